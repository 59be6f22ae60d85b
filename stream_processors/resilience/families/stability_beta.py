"""Policy stability beta_f (equation 6): how much a perturbation of a task changes the stability loss, by pairs of runs.

A pair is a perturbed episode and the reference episodes of the same task, whose losses are averaged. Tasks wait in a
bounded memory for their other half. The oldest make room: what they have of pairs becomes part of sketches and maxima
that stay, and what had no twin is let go and counted. Runs of one task that are all clean differ too: that is the
noise below which a difference says nothing (ours).

An example: clean runs of one task lose 1.0 and 1.2, on average 1.1. A slip of magnitude 0.5 brings the loss to 1.6, so
beta is (1.6 - 1.1) / 0.5 = 1, by a difference of 0.5 where clean runs differ by 0.2:

>>> pairs = StabilityPairs()
>>> pairs.add_reference("kitchen-041", 1.0, memory=10)
>>> pairs.add_reference("kitchen-041", 1.2, memory=10)
>>> pairs.add_perturbed("kitchen-041", PerturbedLoss(1.6, 0.5, "physical"), memory=10, kinds=4)
>>> figures = pairs.figures()
>>> figures.pairs, round(figures.beta, 6), list(figures.beta_by_kind)
(1, 1.0, ['physical'])
>>> round(figures.beta_difference, 6), round(figures.stability_repeatability, 6)
(0.5, 0.2)
"""

import hashlib
from collections.abc import Container, Iterator
from typing import NamedTuple

import msgspec

from springback.stream_processors.resilience.families.navigation_safety import kind_label
from springback.stream_processors.resilience.families.operational_margin import EPSILON
from springback.stream_processors.resilience.quantiles import QuantileSketch
from springback.stream_processors.resilience.readings import UnpairedReason

MAGNITUDE_MEMORY = 64
"""Magnitudes remembered for the unpaired estimate."""
REPEAT_MEMORY = 8
"""Clean losses remembered per task, for the next clean run to be compared with."""
UPPER_RANK = 0.95
"""The quantile of the ratio that is reported beside its sup, and of the differences of clean runs."""


class PerturbedLoss(msgspec.Struct, frozen=True, array_like=True):
    """A perturbed episode: its stability loss, ||rho|| and the kind of the perturbation."""

    loss: float
    magnitude: float
    kind: str


class PairRatio(NamedTuple):
    """The ratio of equation 6 of one pair, the difference of losses in it, and the kind of the perturbation."""

    ratio: float
    difference: float
    kind: str


class TaskLosses(msgspec.Struct, array_like=True):
    """The episodes of one task.

    Attributes:
        total, references: sum and count of the losses of its reference episodes.
        unmeasured: reference episodes whose loss is not known.
        perturbed: episodes that may still become pairs, or are ones by what is known now.
        paired: whether pairs of it have been settled already.
        recent: the latest losses of reference episodes.
    """

    total: float = 0.0
    references: int = 0
    unmeasured: int = 0
    perturbed: list[PerturbedLoss] = msgspec.field(default_factory=list)
    paired: bool = False
    recent: list[float] = msgspec.field(default_factory=list)

    @property
    def has_twin(self) -> bool:
        """Whether a reference episode was seen, measured or not."""
        return self.references + self.unmeasured > 0

    @property
    def is_lonely(self) -> bool:
        """Whether perturbed episodes have not met one."""
        return bool(self.perturbed) and not self.has_twin

    def ratios(self) -> list[PairRatio]:
        """Of each pair. Source: equation 6."""
        if not self.references:
            return []
        clean = self.total / self.references
        return [PairRatio(_ratio(p.loss, clean, p.magnitude), abs(p.loss - clean), p.kind) for p in self.perturbed]


class StabilityFigures(NamedTuple):
    """What the pairs come to; see `FamilyReading` for the fields."""

    beta: float | None
    beta_p95: float | None
    beta_by_kind: dict[str, float]
    beta_difference: float | None
    beta_unpaired: float | None
    stability_repeatability: float | None
    pairs: int
    unpaired: dict[str, int]
    tasks_let_go: int


class StabilityPairs(msgspec.Struct, kw_only=True):
    """The pairs of one family, method and version.

    Attributes:
        tasks: tasks that may still get their other half, by a mark of 64 bits, oldest first.
        waiting: perturbed episodes among them.
        kinds: the kinds of perturbations that are told apart, in the order in which they came.
        settled: ratios of settled pairs; `largest` the ratio and difference of the largest of them by kind.
        repeats: differences of loss between reference episodes of one task.
        let_go: tasks without a pair that there was no room for.
        unpaired: perturbed episodes that can be no pair any more, by reason.
        reference_total, references: sum and count of the losses of all reference episodes.
        extremes: least and largest loss of perturbed episodes by magnitude, for the unpaired estimate.
    """

    tasks: dict[int, TaskLosses] = msgspec.field(default_factory=dict)
    waiting: int = 0
    kinds: dict[str, None] = msgspec.field(default_factory=dict)
    settled: QuantileSketch = msgspec.field(default_factory=QuantileSketch)
    largest: dict[str, tuple[float, float]] = msgspec.field(default_factory=dict)
    repeats: QuantileSketch = msgspec.field(default_factory=QuantileSketch)
    let_go: int = 0
    unpaired: dict[UnpairedReason, int] = msgspec.field(default_factory=dict)
    reference_total: float = 0.0
    references: int = 0
    extremes: dict[float, tuple[float, float]] = msgspec.field(default_factory=dict)

    def add_reference(self, task: str, loss: float | None, memory: int) -> None:
        """Takes in a reference episode; one whose loss is not known (None) is a twin that nothing was measured of."""
        known = self._task(task, memory)
        if loss is None:
            known.unmeasured += 1
            return
        self.reference_total += loss
        self.references += 1
        known.total += loss
        known.references += 1
        for other in known.recent:
            self.repeats.add(abs(loss - other))
        known.recent = [*known.recent, loss][-REPEAT_MEMORY:]

    def add_perturbed(self, task: str, perturbed: PerturbedLoss, memory: int, kinds: int) -> None:
        """Takes in a perturbed episode, of one of at most `kinds` kinds; one without a magnitude is only counted."""
        if perturbed.magnitude <= 0:
            self.count_unpaired("no_magnitude")
            return
        self._note_extremes(perturbed)
        kind = kind_label(perturbed.kind, self.kinds, kinds)
        self.kinds[kind] = None
        self._task(task, memory).perturbed.append(PerturbedLoss(perturbed.loss, perturbed.magnitude, kind))
        self.waiting += 1
        if self.waiting > memory:
            self._settle(next(mark for mark, losses in self.tasks.items() if losses.perturbed))

    def count_unpaired(self, reason: UnpairedReason, episodes: int = 1) -> None:
        """Counts perturbed episodes that can be no pair."""
        if episodes:
            self.unpaired[reason] = self.unpaired.get(reason, 0) + episodes

    def lonely(self) -> Iterator[int]:
        """The marks of tasks whose perturbed episodes have not met a reference episode of their task."""
        return (mark for mark, losses in self.tasks.items() if losses.is_lonely)

    def waits_for(self, task: str) -> bool:
        """Whether the task is one of those."""
        losses = self.tasks.get(_mark(task))
        return losses is not None and losses.is_lonely

    def figures(self, elsewhere: Container[int] = ()) -> StabilityFigures:
        """beta, its 0.95 quantile and the rest, over all pairs so far.

        Args:
            elsewhere: marks of tasks that other methods and versions of the family have reference episodes of.
        """
        open_pairs = [pair for losses in self.tasks.values() for pair in losses.ratios()]
        by_kind = dict(self.largest)
        all_ratios = QuantileSketch.load(self.settled.dump())
        for ratio, difference, kind in open_pairs:
            by_kind[kind] = max(by_kind.get(kind, (0.0, 0.0)), (ratio, difference))
            all_ratios.add(ratio)
        beta, beta_difference = max(by_kind.values(), default=(None, None))
        return StabilityFigures(
            beta=beta,
            beta_p95=all_ratios.quantile(UPPER_RANK),
            beta_by_kind={kind: ratio for kind, (ratio, _) in sorted(by_kind.items())},
            beta_difference=beta_difference,
            beta_unpaired=self._unpaired_estimate(),
            stability_repeatability=self.repeats.quantile(UPPER_RANK),
            pairs=len(all_ratios),
            unpaired=self._unpaired_by_reason(elsewhere),
            tasks_let_go=self.let_go,
        )

    def _unpaired_by_reason(self, elsewhere: Container[int]) -> dict[str, int]:
        found: dict[str, int] = {reason: count for reason, count in self.unpaired.items()}
        for mark, losses in self.tasks.items():
            if losses.perturbed and not losses.references:
                reason: UnpairedReason = "no_twin"
                if losses.unmeasured:
                    reason = "twin_unmeasured"
                elif mark in elsewhere:
                    reason = "other_version"
                found[reason] = found.get(reason, 0) + len(losses.perturbed)
        return dict(sorted(found.items()))

    def _task(self, task: str, memory: int) -> TaskLosses:
        mark = _mark(task)
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
        for ratio, difference, kind in found:
            self.settled.add(ratio)
            self.largest[kind] = max(self.largest.get(kind, (0.0, 0.0)), (ratio, difference))
        losses.paired = losses.paired or bool(found)
        self.waiting -= len(losses.perturbed)
        if not losses.references:
            self.count_unpaired("let_go", len(losses.perturbed))
            self.let_go += 1
            del self.tasks[mark]
        losses.perturbed = []

    def _note_extremes(self, perturbed: PerturbedLoss) -> None:
        low, high = self.extremes.get(perturbed.magnitude, (perturbed.loss, perturbed.loss))
        self.extremes[perturbed.magnitude] = min(low, perturbed.loss), max(high, perturbed.loss)
        if len(self.extremes) > MAGNITUDE_MEMORY:
            # Of many different magnitudes the one goes that adds least to the sup as it is now.
            mean = self.reference_total / max(self.references, 1)
            del self.extremes[min(self.extremes, key=lambda magnitude: self._farthest(magnitude, mean))]

    def _unpaired_estimate(self) -> float | None:
        """The sup of the ratio against the mean loss of all references, in place of each task's own."""
        if not self.references or not self.extremes:
            return None
        mean = self.reference_total / self.references
        return max(self._farthest(magnitude, mean) for magnitude in self.extremes)

    def _farthest(self, magnitude: float, mean: float) -> float:
        low, high = self.extremes[magnitude]
        return max(_ratio(low, mean, magnitude), _ratio(high, mean, magnitude))


def _mark(task: str) -> int:
    return int.from_bytes(hashlib.blake2b(task.encode("utf-8", "replace"), digest_size=8).digest(), "little")


def _ratio(loss: float, clean: float, magnitude: float) -> float:
    return abs(loss - clean) / (magnitude + EPSILON)
