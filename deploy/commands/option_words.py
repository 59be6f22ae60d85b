"""What the command line says of an option's value that it cannot use: what arrived, and what was expected.

typer leaves numbers and choices to a library of its own, whose words are those of that library.
"""

import inspect
from typing import Any, Literal, get_args, get_origin

import typer
from typer.core import TyperGroup
from typer.models import ParameterInfo

_NOUNS = {int: "a whole number", float: "a number"}


class OwnWordsGroup(TyperGroup):
    """A group of commands whose options' errors are told in our words."""

    def invoke(self, ctx: Any) -> Any:
        """Runs the chosen command.

        Raises:
            typer.BadParameter: an option, of this group or of one inside it, has a value that cannot be used.
        """
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            if error.__cause__ is not None:
                _reword(error)
            raise


def _reword(error: typer.BadParameter) -> None:
    """Puts our words into an error that comes of a library's, as far as the option says what it takes."""
    problems = getattr(error.__cause__, "errors", None)
    found = _option_of(error)
    if problems is None or found is None:
        return
    kind, info = found
    expected = expected_value(kind, info)
    if expected is not None:
        given = problems()[0].get("input")
        error.message = f"got {given!r}, expected {expected}"


def _option_of(error: typer.BadParameter) -> tuple[Any, ParameterInfo] | None:
    """The type of the option that an error is about, and what was declared of it."""
    command = None if error.ctx is None else error.ctx.command.callback
    name = getattr(error.param, "name", None)
    if command is None or name is None:
        return None
    return declared_options(command).get(name)


def declared_options(command: Any) -> dict[str, tuple[Any, ParameterInfo]]:
    """The options and arguments of a command by name: the type, and what was declared with it."""
    declared = {}
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        kind, *more = get_args(parameter.annotation) or (parameter.annotation,)
        info = next((each for each in more if isinstance(each, ParameterInfo)), None)
        if info is not None:
            declared[name] = kind, info
    return declared


def expected_value(kind: Any, info: ParameterInfo) -> str | None:
    """What an option takes, in words; None where that is more than a number or a choice.

    >>> expected_value(int | None, typer.Option(min=1, max=1000))
    'a whole number from 1 to 1000'
    >>> expected_value(list[Literal["a", "b", "c"]], typer.Option())
    'a, b or c'
    """
    plain = _plain(kind)
    if get_origin(plain) is Literal:
        *others, last = map(str, get_args(plain))
        return f"{', '.join(others)} or {last}" if others else last
    noun = _NOUNS.get(plain)
    if noun is None:
        return None
    if info.min is not None and info.max is not None:
        return f"{noun} from {info.min:g} to {info.max:g}"
    if info.min is not None:
        return f"{noun} of {info.min:g} or more"
    return noun if info.max is None else f"{noun} of {info.max:g} or less"


def _plain(kind: Any) -> Any:
    """The type of one value: without None, and of a list that of its items."""
    if get_origin(kind) in (list, tuple):
        return _plain(get_args(kind)[0])
    of_union = [each for each in get_args(kind) if each is not type(None)]
    return _plain(of_union[0]) if of_union and get_origin(kind) is not Literal else kind
