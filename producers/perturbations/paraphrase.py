"""Says an instruction in other words: the same meaning, by other words, order and politeness, and an aside. Ours.

Of everything in a sentence that can be changed, a severity s changes a share of s, rounded up: words and phrases that a
small lexicon knows, the order of its clauses, a courtesy before it and a remark beside the point after it. What comes
first and what is said instead are drawn by the seed and the sentence alone; so a harsher severity makes all changes of
a milder one, and more. `plain` is the way back: of a paraphrase it gives what it gives of the sentence itself.

The lexicon has the words of BabyAI's missions, and some of indoor navigation. A phrase means what its first form means,
in any sentence; words that it does not know stay as they are.

>>> told = "open the door, then go to the ball"
>>> changed = paraphrase(told, 1.0, seed=3)
>>> changed.text
'please before you proceed to the sphere, first unlatch the portal, and by the way my cousin has a new bicycle'
>>> plain(changed.text) == told, changed.share, paraphrase(told, 0.0).text == told
(True, 1.0, True)
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from springback.producers.perturbations.severity import checked_severity

EditKind = Literal["thing", "colour", "place", "act", "relation", "order", "swap", "courtesy", "aside"]

LEXICON: dict[EditKind, tuple[tuple[str, ...], ...]] = {
    "act": (
        ("go to", "head for", "make for", "proceed to", "walk over to"),
        ("pick up", "grab", "take hold of", "collect"),
        ("open", "unfasten", "unlatch"),
        ("put", "set down", "deposit"),
        ("walk", "stroll", "amble"),
        ("turn left", "veer left", "bear left"),
        ("turn right", "veer right", "bear right"),
        ("stop", "halt", "come to rest"),
        ("enter", "step into", "come into"),
        ("wait", "linger", "hold on"),
        ("find", "locate", "track down"),
    ),
    "relation": (("next to", "beside", "alongside", "adjacent to"),),
    "place": (
        ("in front of you", "ahead of you", "before your eyes"),
        ("behind you", "at your back", "to your rear"),
        ("on your left", "at your left hand", "to the left of you"),
        ("on your right", "at your right hand", "to the right of you"),
    ),
    "thing": (
        ("door", "portal", "gateway"),
        ("ball", "sphere", "globe"),
        ("box", "crate", "carton"),
        ("key", "latchkey", "passkey"),
        ("object", "thing"),
        ("sofa", "couch", "settee"),
        ("plant", "potted greenery"),
        ("toilet", "lavatory", "water closet"),
        ("television", "tv", "telly"),
        ("fridge", "refrigerator"),
        ("stairs", "staircase", "flight of steps"),
        ("hallway", "corridor", "passageway"),
        ("bathroom", "washroom"),
    ),
    "colour": (
        ("red", "crimson", "scarlet"),
        ("green", "jade", "viridian"),
        ("blue", "sapphire", "cobalt"),
        ("purple", "violet", "mauve"),
        ("yellow", "golden", "straw-coloured"),
        ("grey", "gray", "slate-coloured"),
    ),
}
"""For each meaning its forms, by what kind of word it is; the first is the plain one."""

COURTESIES = ("please", "kindly", "if you would,", "when it suits you,")
ASIDES = (
    "it is a quiet morning",
    "the post came early today",
    "my cousin has a new bicycle",
    "the windows were washed yesterday",
    "nobody has watered the garden",
)

_THEN, _BEFORE, _FIRST = ", then ", "before you ", ", first "
_AFTER, _NOT_BEFORE = " after you ", ", but not before you "
_AND, _ALSO = " and ", ", and also "
_ASIDE = ", and by the way "


class _Meaning(NamedTuple):
    kind: EditKind
    forms: tuple[str, ...]


_MEANING_OF = {
    form: _Meaning(kind, forms) for kind, meanings in LEXICON.items() for forms in meanings for form in forms
}
_PHRASE = re.compile(
    r"\b(?:" + "|".join(sorted(map(re.escape, _MEANING_OF), key=len, reverse=True)) + r")\b", re.IGNORECASE
)
_SAID_COURTESY = re.compile(r"^(?:(?:" + "|".join(sorted(COURTESIES, key=len, reverse=True)) + r") )+")
_SAID_ASIDE = re.compile(r"(?:" + _ASIDE + r"(?:" + "|".join(ASIDES) + r"))+$")
_FOLLOWS = re.compile(f"({_THEN}|{_AFTER})")


@dataclass(frozen=True)
class Edit:
    """One change of a sentence.

    Attributes:
        kind: what was changed: a word of the lexicon by its kind, the `order` of two clauses that must follow each
            other, a `swap` of two that need not, a `courtesy` or an `aside` added.
        plain: what it stands for, in the lexicon's first form; empty for what was added or moved.
        said: what is said instead; empty for what was moved.
        thing: which of the sentence's things it is about, counted from 0; None for what is about none.
    """

    kind: EditKind
    plain: str = ""
    said: str = ""
    thing: int | None = None


@dataclass(frozen=True)
class Paraphrase:
    """A sentence in other words.

    Attributes:
        text: the sentence as it is said now.
        edits: what was changed, in the order in which a rising severity changes it.
        possible: how many changes there could have been.
    """

    text: str
    edits: tuple[Edit, ...] = ()
    possible: int = 0

    @property
    def share(self) -> float:
        """The share of the possible changes that were made, in [0, 1]."""
        return len(self.edits) / self.possible if self.possible else 0.0


class _Word(NamedTuple):
    """A phrase of the lexicon in a sentence, and where it begins and ends there."""

    start: int
    stop: int
    edit: Edit


def paraphrase(sentence: str, severity: float, *, seed: int = 0, free_order: bool = False) -> Paraphrase:
    """The sentence in other words; the same arguments give the same words.

    Args:
        sentence: an instruction.
        severity: the share of what can be changed that is changed, in [0, 1], rounded up; 0 changes nothing.
        seed: of what is changed first, and into what.
        free_order: whether the order of two clauses joined by "and" is free, as in BabyAI; in a description of a way
            it is not.

    Raises:
        ValueError: the severity is outside [0, 1].
    """
    checked_severity(severity)
    if not sentence.strip(" ."):
        return Paraphrase(sentence)
    rng = np.random.default_rng([seed, zlib.crc32(sentence.encode())])
    words = _words(sentence, rng)
    edits = [word.edit for word in words]
    if _is_ordered(sentence):
        edits.append(Edit("order"))
    if free_order and _each_clause(sentence, _swapped) != sentence:
        edits.append(Edit("swap"))
    edits.append(Edit("courtesy", said=COURTESIES[int(rng.integers(len(COURTESIES)))]))
    edits.append(Edit("aside", said=ASIDES[int(rng.integers(len(ASIDES)))]))
    order = rng.permutation(len(edits)).tolist()
    chosen = order[: math.ceil(severity * len(edits) - 1e-9)]
    text = _with_words(sentence, [word for place, word in enumerate(words) if place in chosen])
    made = {edits[place].kind: edits[place] for place in chosen}
    stop = "." if text.endswith(".") else ""
    text = text.removesuffix(".")
    if "swap" in made:
        text = _each_clause(text, _swapped)
    if "order" in made:
        text = _reordered(text)
    if "courtesy" in made:
        text = _in_place_of(text[0], made["courtesy"].said) + " " + text[0].lower() + text[1:]
    if "aside" in made:
        text += _ASIDE + made["aside"].said
    return Paraphrase(text + stop, tuple(edits[place] for place in chosen), len(edits))


def plain(text: str) -> str:
    """The plain form of a sentence: in small letters, by first forms, without courtesy and aside, in its usual order.

    A sentence of first forms that nothing was done to is its own plain form; so BabyAI's missions are.
    """
    said = text.lower()
    stop = "." if said.endswith(".") else ""
    said = _SAID_COURTESY.sub("", _SAID_ASIDE.sub("", said.removesuffix(".")))
    if said.startswith(_BEFORE) and _FIRST in said:
        later, first = said.removeprefix(_BEFORE).split(_FIRST, 1)
        said = _SAID_COURTESY.sub("", first) + _THEN + later
    said = _each_clause(said.replace(_NOT_BEFORE, _AFTER), _unswapped)
    return _PHRASE.sub(lambda found: _MEANING_OF[found[0]].forms[0], said) + stop


def _words(sentence: str, rng: np.random.Generator) -> list[_Word]:
    """The phrases of the lexicon in the sentence, each with what is said instead.

    A colour belongs to the next thing, a place to the last one.
    """
    words, things = [], 0
    for found in _PHRASE.finditer(sentence):
        kind, forms = _MEANING_OF[found[0].lower()]
        others = [form for form in forms if form != found[0].lower()]
        thing = {"thing": things, "colour": things, "place": max(things - 1, 0)}.get(kind)
        things += kind == "thing"
        edit = Edit(kind, forms[0], others[int(rng.integers(len(others)))], thing)
        words.append(_Word(found.start(), found.end(), edit))
    return words


def _with_words(sentence: str, words: list[_Word]) -> str:
    for start, stop, edit in reversed(words):
        sentence = sentence[:start] + _in_place_of(sentence[start], edit.said) + sentence[stop:]
    return sentence


def _in_place_of(old: str, new: str) -> str:
    return new[0].upper() + new[1:] if old.isupper() else new


def _is_ordered(sentence: str) -> bool:
    """Whether it is two clauses that must follow each other: of more it would not be clear which belong together."""
    said = sentence.lower()
    moved = said.startswith(_BEFORE) or _FIRST in said or _NOT_BEFORE in said
    clauses = [_SAID_COURTESY.sub("", clause.lower() + " ").strip(" .") for clause in _FOLLOWS.split(sentence)[::2]]
    return len(clauses) == 2 and all(clauses) and "." not in sentence.removesuffix(".") and not moved


def _reordered(text: str) -> str:
    """Two clauses the other way round. Whoever does not know the words between them takes them in the wrong order."""
    if _AFTER in text:
        return text.replace(_AFTER, _NOT_BEFORE)
    first, later = text.split(_THEN)
    return _in_place_of(first[0], _BEFORE) + later + _FIRST + first[0].lower() + first[1:]


def _each_clause(text: str, change: Callable[[str], str]) -> str:
    """Changes each of the clauses that follow each other by itself."""
    parts = _FOLLOWS.split(text)
    parts[::2] = [change(part) for part in parts[::2]]
    return "".join(parts)


def _swapped(clause: str) -> str:
    if clause.count(_AND) != 1 or _ALSO in clause:
        return clause
    one, other = clause.split(_AND)
    return other + _ALSO + one


def _unswapped(clause: str) -> str:
    if clause.count(_ALSO) != 1:
        return clause
    other, one = clause.split(_ALSO)
    return one + _AND + other
