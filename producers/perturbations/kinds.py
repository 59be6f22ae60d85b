"""The kinds of perturbations, and which kind of attack each of them is. Ours.

A *physical* attack works on the body and its surroundings: actuation, and the things that the task is about. A *model*
attack works on what the agent takes to be so: what it perceives, what it is told, what it believes. Navigation safety
is told apart by attack (arXiv:2508.05855 names the two).

>>> attack_of(["semantic"]), attack_of(["physical", "object_state"]), attack_of(["physical", "perception"])
('model', 'physical', 'mixed')
>>> attack_of([])
'none'
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

PerturbationKind = Literal["physical", "object_state", "semantic", "perception"]
Attack = Literal["none", "physical", "model", "mixed"]

ATTACK_OF: dict[PerturbationKind, Attack] = {
    "physical": "physical",
    "object_state": "physical",
    "semantic": "model",
    "perception": "model",
}


def attack_of(kinds: Iterable[PerturbationKind]) -> Attack:
    """The attack that perturbations of these kinds make together: `mixed` where they make both."""
    attacks = {ATTACK_OF[kind] for kind in kinds}
    return attacks.pop() if len(attacks) == 1 else "mixed" if attacks else "none"
