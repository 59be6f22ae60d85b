"""Whatever an agent's code reports: it is taken in, or refused by the one error that is documented."""

from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from springback.producers.contract.columns import LARGEST_INTEGER
from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.emitter.signal_checks import checked_number, checked_steps
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.errors import SignalError


class Unfit:
    """Nothing can be asked of it."""

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        message = "no text"
        raise RuntimeError(message)

    def __eq__(self, other: object) -> bool:
        message = "no comparison"
        raise RuntimeError(message)

    def __bool__(self) -> bool:
        message = "no truth"
        raise RuntimeError(message)


class ShyFloat(float):
    """A number that cannot be shown."""

    def __repr__(self) -> str:
        message = "no text"
        raise RuntimeError(message)


ODD: dict[str, Any] = {
    "an integer beyond a float": 10**400,
    "one below": -(10**400),
    "one beyond what Python prints": 10**5000,
    "a decimal": Decimal("0.5"),
    "a signalling NaN": Decimal("sNaN"),
    "a fraction": Fraction(1, 3),
    "a large fraction": Fraction(10**400),
    "a long double": np.longdouble("1e4000"),
    "a half": np.float16(0.5),
    "64 bits": np.uint64(2**64 - 1),
    "numpy's true": np.bool_(True),
    "true": True,
    "a complex number": 1j,
    "numpy's complex number": np.complex64(1),
    "an array": np.array([1, 2]),
    "an array of no dimension": np.array(0.5),
    "lists of unequal lengths": [[1], [2, 3]],
    "a date": np.datetime64("2020"),
    "a time": np.timedelta64(1),
    "a text": "x",
    "bytes": b"x",
    "nothing": None,
    "an object": object(),
    "a mapping": {},
    "a mapping of odd keys": {10**5000: 1},
    "a set": {1},
    "void": np.void(b"ab"),
    "a record": np.zeros(1, dtype=[("a", int)])[0],
    "masked": np.ma.masked,
    "not a number": float("nan"),
    "infinity": float("inf"),
    "what cannot be asked": Unfit(),
    "a number that cannot be shown": ShyFloat(0.5),
    "a lone surrogate": "\ud800",
}


def reports(emitter: StepEmitter, odd: Any) -> Iterator[Callable[[], object]]:
    """One call for each place that a value can be given at."""
    numbers = iter(range(1000))

    def begun(**fields: Any) -> Any:
        return emitter.begin_episode(**{"agent": f"a{next(numbers)}", "family": "f"} | fields)

    def end(outcome: Any = "success", navigation: Any = None, **named: Any) -> None:
        begun().end(outcome, navigation, **named)

    def session(**named: Any) -> None:
        StepEmitter(MemoryPublisher(), **{"producer": "p"} | named).close()

    episode = begun()
    together = partial(emitter.step_together, [episode])
    for name in ("progress", "step", "time_s", "travel", "mode", "judge_goal"):
        yield partial(episode.step, **{"progress": 0.5} | {name: odd})
    for name in ("agent", "episode", "family", "task", "method", "reference", "stress", "magnitude", "instruction"):
        yield partial(begun, **{name: odd})
    for name in ("outcome", "navigation", "time_s", "realised_magnitude", "extended"):
        yield partial(end, **{name: odd})
    for name in ("path", "actions", "target_in_view"):
        yield partial(end, navigation={name: odd})
    for signals in ({"progress": odd}, {"progress": 0.5, "mode": odd}):
        yield partial(together, np.array([7]), signals)
        # A masked value inside a list: numpy itself warns that it becomes a NaN.
        listed = {name: value if value is np.ma.masked else [value] for name, value in signals.items()}
        yield partial(together, np.array([8]), listed)
    yield partial(together, odd, {"progress": 0.5})
    if odd is not np.ma.masked:
        yield partial(together, [odd], {"progress": 0.5})
    yield partial(together, np.array([9]), {"progress": 0.5}, time_s=odd)
    for name in ("producer", "session"):
        yield partial(session, **{name: odd})


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_it_is_taken_in_or_refused_as_the_documentation_says(odd: Any) -> None:
    emitter = StepEmitter(MemoryPublisher(), producer="p")
    for report in reports(emitter, odd):
        try:
            report()
        except SignalError:
            continue
    emitter.close()
    # What was taken in can also be sent: a value that cannot be encoded would cost all steps of its frame.
    assert (emitter.report.steps_dropped, emitter.report.ends_dropped, emitter.report.last_error) == (0, 0, None)


@pytest.mark.parametrize("given", [10**400, Fraction(10**400), np.longdouble("1e4000")])
def test_a_number_too_large_for_a_float_is_left_to_the_worker_as_an_infinite_one_is(given: Any) -> None:
    assert (checked_number("travel", given), checked_number("travel", -given)) == (np.inf, -np.inf)


@pytest.mark.parametrize("given", [[0.5], [-1], [LARGEST_INTEGER + 1], [True], [None], [np.nan], "7", [[1], [2, 3]]])
def test_step_numbers_are_whole_and_in_range(given: Any) -> None:
    with pytest.raises(SignalError, match="step"):
        checked_steps(given)
    assert checked_steps([0, 7.0]).tolist() == checked_steps(np.array([0, 7], dtype=np.uint8)).tolist() == [0, 7]
