"""Policy stability beta_f (equation 6): how much a perturbation of a task changes the stability loss, by pairs of runs.

A pair is a perturbed episode and the reference episodes of the same task, whose losses are averaged. Tasks wait in a
bounded memory for their other half. The oldest make room: what they have of pairs becomes part of sketches and maxima
that stay, and what had no twin is let go and counted.

An example: clean runs of one task lose 1.0 and 1.2, on average 1.1. A slip of magnitude 0.5 brings the loss to 1.6, so
beta is (1.6 - 1.1) / 0.5 = 1:

>>> pairs = StabilityPairs()
>>> pairs.add_reference("kitchen-041", 1.0, memory=10)
>>> pairs.add_reference("kitchen-041", 1.2, memory=10)
>>> pairs.add_perturbed("kitchen-041", PerturbedLoss(1.6, 0.5, "physical"), memory=10, kinds=4)
>>> figures = pairs.figures()
>>> figures.pairs, round(figures.beta, 6), list(figures.beta_by_kind)
(1, 1.0, ['physical'])
"""

import hashlib
from typing import NamedTuple

import msgspec

from springback.stream_processors.resilience.families.navigation_safety import kind_label
from springback.stream_processors.resilience.families.operational_margin import EPSILON
from springback.stream_processors.resilience.quantiles import QuantileSketch

MAGNITUDE_MEMORY = 64
"""Magnitudes remembered for the unpaired estimate."""
UPPER_RANK = 0.95
"""The quantile of the ratio that is reported beside its sup."""


class PerturbedLoss(msgspec.Struct, frozen=True, array_like=True):
    """A perturbed episode: its stability loss, ||rho|| and the kind of the perturbation."""

    loss: float
    magnitude: float
    kind: str


class TaskLosses(msgspec.Struct, array_like=True):
    """The episodes of one task. `paired` says that pairs of it have been settled already."""

    total: float = 0.0
    references: int = 0
    perturbed: list[PerturbedLoss] = msgspec.field(default_factory=list)
    paired: bool = False

    def ratios(self) -> list[tuple[str, float]]:
        """Kind and ratio of each pair. Source: equation 6."""
        if not self.references:
            return []
        clean = self.total / self.references
        return [(p.kind, _ratio(p.loss, clean, p.magnitude)) for p in self.perturbed]


class StabilityFigures(NamedTuple):
    """What the pairs come to; see `FamilyReading` for the fields."""

    beta: float | None
    beta_p95: float | None
    beta_by_kind: dict[str, float]
    beta_unpaired: float | None
    pairs: int
    tasks_let_go: int
    unmeasured: int


class StabilityPairs(msgspec.Struct, kw_only=True):
    """The pairs of one family, method and version.

    Attributes:
        tasks: tasks that may still get their other half, by a mark of 64 bits, oldest first.
        waiting: perturbed episodes among them.
        kinds: the kinds of perturbations that are told apart, in the order in which they came.
        settled: ratios of settled pairs; `largest` their maxima by kind.
        let_go: tasks without a pair that there was no room for.
        unmeasured: perturbed episodes that said neither magnitude nor stress: there is nothing to divide by.
        reference_total, references: sum and count of the losses of all reference episodes.
        extremes: least and largest loss of perturbed episodes by magnitude, for the unpaired estimate.
    """

    tasks: dict[int, TaskLosses] = msgspec.field(default_factory=dict)
    waiting: int = 0
    kinds: dict[str, None] = msgspec.field(default_factory=dict)
    settled: QuantileSketch = msgspec.field(default_factory=QuantileSketch)
    largest: dict[str, float] = msgspec.field(default_factory=dict)
    let_go: int = 0
    unmeasured: int = 0
    reference_total: float = 0.0
    references: int = 0
    extremes: dict[float, tuple[float, float]] = msgspec.field(default_factory=dict)

    def add_reference(self, task: str, loss: float, memory: int) -> None:
        """Takes in a reference episode."""
        self.reference_total += loss
        self.references += 1
        known = self._task(task, memory)
        known.total += loss
        known.references += 1

    def add_perturbed(self, task: str, perturbed: PerturbedLoss, memory: int, kinds: int) -> None:
        """Takes in a perturbed episode, of one of at most `kinds` kinds; one without a magnitude is only counted."""
        if perturbed.magnitude <= 0:
            self.unmeasured += 1
            return
        self._note_extremes(perturbed)
        kind = kind_label(perturbed.kind, self.kinds, kinds)
        self.kinds[kind] = None
        self._task(task, memory).perturbed.append(PerturbedLoss(perturbed.loss, perturbed.magnitude, kind))
        self.waiting += 1
        if self.waiting > memory:
            self._settle(next(mark for mark, losses in self.tasks.items() if losses.perturbed))

    def figures(self) -> StabilityFigures:
        """beta, its 0.95 quantile and the rest, over all pairs so far."""
        open_ratios = [ratio for losses in self.tasks.values() for ratio in losses.ratios()]
        by_kind = dict(self.largest)
        for kind, ratio in open_ratios:
            by_kind[kind] = max(by_kind.get(kind, 0.0), ratio)
        all_ratios = QuantileSketch.load(self.settled.dump())
        for _, ratio in open_ratios:
            all_ratios.add(ratio)
        return StabilityFigures(
            beta=max(by_kind.values(), default=None),
            beta_p95=all_ratios.quantile(UPPER_RANK),
            beta_by_kind=dict(sorted(by_kind.items())),
            beta_unpaired=self._unpaired(),
            pairs=len(all_ratios),
            tasks_let_go=self.let_go,
            unmeasured=self.unmeasured,
        )

    def _task(self, task: str, memory: int) -> TaskLosses:
        mark = int.from_bytes(hashlib.blake2b(task.encode("utf-8", "replace"), digest_size=8).digest(), "little")
        if mark not in self.tasks:
            if len(self.tasks) >= memory:
                oldest = next(iter(self.tasks))
                self._settle(oldest)
                if oldest in self.tasks:
                    self.let_go += not self.tasks.pop(oldest).paired
            self.tasks[mark] = TaskLosses()
        return self.tasks[mark]

    def _settle(self, mark: int) -> None:
        """Makes the task's pairs part of what stays. Its references are kept for pairs to come; without one it goes."""
        losses = self.tasks[mark]
        found = losses.ratios()
        for kind, ratio in found:
            self.settled.add(ratio)
            self.largest[kind] = max(self.largest.get(kind, 0.0), ratio)
        losses.paired = losses.paired or bool(found)
        self.waiting -= len(losses.perturbed)
        losses.perturbed = []
        if not losses.references:
            self.let_go += 1
            del self.tasks[mark]

    def _note_extremes(self, perturbed: PerturbedLoss) -> None:
        low, high = self.extremes.get(perturbed.magnitude, (perturbed.loss, perturbed.loss))
        self.extremes[perturbed.magnitude] = min(low, perturbed.loss), max(high, perturbed.loss)
        if len(self.extremes) > MAGNITUDE_MEMORY:
            # Of many different magnitudes the one goes that adds least to the sup as it is now.
            mean = self.reference_total / max(self.references, 1)
            del self.extremes[min(self.extremes, key=lambda magnitude: self._farthest(magnitude, mean))]

    def _unpaired(self) -> float | None:
        """The sup of the ratio against the mean loss of all references, in place of each task's own."""
        if not self.references or not self.extremes:
            return None
        mean = self.reference_total / self.references
        return max(self._farthest(magnitude, mean) for magnitude in self.extremes)

    def _farthest(self, magnitude: float, mean: float) -> float:
        low, high = self.extremes[magnitude]
        return max(_ratio(low, mean, magnitude), _ratio(high, mean, magnitude))


def _ratio(loss: float, clean: float, magnitude: float) -> float:
    return abs(loss - clean) / (magnitude + EPSILON)
