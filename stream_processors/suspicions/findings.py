"""Signs gathered into suspicions: counted by kind and subject, spoken of from so much evidence on as the kind asks for.

Memory is bounded: of each kind so many subjects are kept apart, and further ones count together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from springback.producers.contract.suspicions import KINDS, Sign

MOST_SUBJECTS = 256
"""Subjects of a kind that are kept apart."""
MOST_TOLD = 5
"""Subjects of a kind that a report names."""
OTHERS = "others"
_LOSES_REFERENCES = (
    "rejected_part", "episode_id_reused", "session_changing", "first_step_not_0", "no_ends", "one_episode_families"
)  # fmt: skip
_FOLLOWS: Mapping[str, tuple[str, ...]] = {
    "no_references": _LOSES_REFERENCES,
    "few_references": _LOSES_REFERENCES,
    "step_gaps": ("rejected_part", "episode_id_reused", "session_changing", "steps_overtaken"),
    "travel_unit": ("rejected_part", "counted_up"),
}  # fmt: skip
"""What may follow from other mistakes is not told besides one of them: who has mended it checks again."""


class Suspicion(msgspec.Struct, frozen=True, kw_only=True):
    """A mistake that the steps look like, as a report tells it.

    Attributes:
        kind: its name, out of `KINDS`.
        subject: what it is about; the one with the most signs, where there are several.
        also: further subjects, at most `MOST_TOLD`, and how many more there are.
        count: how many signs there were, of all subjects.
        arrived, expected: of the first sign.
        damage: what goes wrong because of it.
        advice: what to do.
        example: where the first sign was met: a line of a file, an offset of a topic, or an episode.
    """

    kind: str
    subject: str
    also: tuple[str, ...]
    count: int
    arrived: str
    expected: str
    damage: str
    advice: str
    example: str


class LookedAt(msgspec.Struct, kw_only=True):
    """What was looked at; `references` are episodes that are marked so, `ended` those whose end was seen."""

    messages: int = 0
    frames: int = 0
    steps: int = 0
    episodes: int = 0
    ended: int = 0
    references: int = 0
    agents: int = 0
    families: int = 0


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """What a check comes to: the suspicions, the most damaging first, what was looked at, and what is good to know."""

    suspicions: tuple[Suspicion, ...]
    looked_at: LookedAt
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Noted:
    sign: Sign
    example: str
    count: int


@dataclass
class Ledger:
    """The signs so far.

    >>> ledger, sign = Ledger(), Sign("session_reused", "agent 'r7'", "step 3 came with other content", "new ones")
    >>> ledger.note(sign, "monday.jsonl:1", 2)
    >>> len(ledger.suspicions())
    0
    >>> ledger.note(sign, "monday.jsonl:9")
    >>> [(found.count, found.example) for found in ledger.suspicions()]
    [(3, 'monday.jsonl:1')]
    """

    _noted: dict[str, dict[str, _Noted]] = field(default_factory=dict)

    def note(self, sign: Sign, example: str, count: int = 1) -> None:
        """Takes in signs that look alike; the first is the example."""
        of_kind = self._noted.setdefault(sign.kind, {})
        subject = sign.subject
        if subject not in of_kind and len(of_kind) >= MOST_SUBJECTS:
            subject = OTHERS
        known = of_kind.get(subject)
        if known is None:
            of_kind[subject] = _Noted(sign._replace(subject=subject), example, count)
        else:
            known.count += count

    def suspicions(self) -> tuple[Suspicion, ...]:
        """One for each kind with enough evidence, in order of damage."""
        enough = {
            name: [noted for noted in self._noted.get(name, {}).values() if noted.count >= kind.least]
            for name, kind in KINDS.items()
        }
        return tuple(
            # The sort is stable: of equals the first met leads.
            _suspicion(name, sorted(noted, key=lambda each: -each.count))
            for name, noted in enough.items()
            if noted and not any(enough[cause] for cause in _FOLLOWS.get(name, ()))
        )


def _suspicion(name: str, enough: Sequence[_Noted]) -> Suspicion:
    kind, first = KINDS[name], enough[0]
    also = [
        f"{noted.sign.subject}: {noted.sign.arrived}{f' ({noted.example})' if noted.example else ''}"
        for noted in enough[1 : 1 + MOST_TOLD]
    ]
    if len(enough) > 1 + MOST_TOLD:
        also.append(f"and {len(enough) - 1 - MOST_TOLD} more")
    return Suspicion(
        kind=name,
        subject=first.sign.subject,
        also=tuple(also),
        count=sum(noted.count for noted in enough),
        arrived=first.sign.arrived,
        expected=first.sign.expected,
        damage=kind.damage,
        advice=kind.advice,
        example=first.example,
    )
