"""Figures of a family put in words that say no more than is known: the same on every page, table, mark and report.

A capacity is only as good as the stress that was tried, so where nothing higher was tested it reads "at least":

>>> capacity_text(0.0, "open"), capacity_text(0.4, "ok")
('at least 0.0; not tested above', '0.4')
>>> capacity_text(0.0, "none"), capacity_text(None, "insufficient")
('none', 'not known')

What each word means is in `glossary`. Source: ours.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from springback.stream_processors.metrics.glossary import NOTHING_DECLARED, UNSETTLED, WITHIN_NOISE, LiveState
from springback.stream_processors.resilience.families.contract_config import AggregateConfig
from springback.stream_processors.resilience.readings import CapacityFlag, FamilyReading, LevelState

UNDECLARED = "undeclared"
"""What stands in the place of a stress that nobody declared: in text, and as the label of the level."""

NOT_KNOWN = "not known"
NOT_TESTED_ABOVE = "not tested above"
_LARGEST_STRESS = 1.0
_ENOUGH = AggregateConfig().min_episodes
_LIVE_WORDS: Mapping[LiveState, str] = {
    "within": "within",
    "untested": "untested",
    "breach": "breach",
    "unsettled": UNSETTLED,
    "none_declared": NOTHING_DECLARED,
}


class CapacityFigures(Protocol):
    """What is known of a group's capacity: a `FamilyReading` has it, and so has its form in JSON."""

    @property
    def capacity(self) -> float | None:
        """λ*."""

    @property
    def capacity_flag(self) -> CapacityFlag:
        """What λ* rests on."""

    @property
    def dependable(self) -> float | None:
        """The largest stress up to which every sufficient level is kept."""

    @property
    def tested_up_to(self) -> float | None:
        """The largest sufficient level."""

    @property
    def first_breach(self) -> float | None:
        """The smallest sufficient level with a negative margin."""


class StabilityFigures(Protocol):
    """What β of a group rests on: a `FamilyReading` has it, and so has its form in JSON."""

    @property
    def beta(self) -> float | None:
        """β."""

    @property
    def pairs(self) -> int:
        """The pairs that it is over."""

    @property
    def unpaired(self) -> Mapping[str, int]:
        """Perturbed episodes that are in none, by why."""

    @property
    def beta_difference(self) -> float | None:
        """The change of loss of the pair that gives it."""

    @property
    def stability_repeatability(self) -> float | None:
        """How much clean runs of one task differ."""


class ViolationFigures(Protocol):
    """How many of a level's episodes broke the contract: `LevelFigures` have it, and so has their form in JSON."""

    @property
    def state(self) -> LevelState:
        """What the level shows."""

    @property
    def judged(self) -> int:
        """All of them of which that is known."""

    @property
    def provisional(self) -> int:
        """Those of them that ended while the family was learning."""

    @property
    def violations(self) -> int:
        """Those that did."""

    @property
    def violation_low(self) -> float | None:
        """The lower end of the interval of their share."""

    @property
    def violation_high(self) -> float | None:
        """Its upper end."""


class StressedFigures(ViolationFigures, Protocol):
    """The same of a level of the stress grid."""

    @property
    def stress(self) -> float:
        """Its point."""


class ContractFigures(Protocol):
    """What the levels of a group say of its contract: a `FamilyReading` has it, and so has its form in JSON."""

    @property
    def contract_violated(self) -> bool | None:
        """Whether at some level more episodes break it than may; None where it is not known."""

    @property
    def margins(self) -> Sequence[StressedFigures]:
        """The levels of the grid."""

    @property
    def undeclared(self) -> ViolationFigures | None:
        """The one of episodes whose stress nobody declared."""


def stress_text(stress: float | None) -> str:
    """A stress, or that nobody declared one.

    >>> stress_text(0.4), stress_text(0.25), stress_text(None)
    ('0.4', '0.25', 'undeclared')
    """
    if stress is None:
        return UNDECLARED
    return f"{stress:.1f}" if round(stress, 1) == round(stress, 6) else f"{stress:.3g}"


def capacity_text(capacity: float | None, flag: CapacityFlag) -> str:
    """λ* with what it rests on."""
    if capacity is None:
        return NOT_KNOWN
    if flag == "none":
        return "none"
    return f"at least {stress_text(capacity)}; {NOT_TESTED_ABOVE}" if flag == "open" else stress_text(capacity)


def dependable_text(figures: CapacityFigures) -> str:
    """The dependable capacity, and whether more was tried."""
    if figures.tested_up_to is None:
        return NOT_KNOWN
    if figures.dependable is None:
        return "none"
    if figures.dependable >= figures.tested_up_to and figures.tested_up_to < _LARGEST_STRESS:
        return f"at least {stress_text(figures.dependable)}; {NOT_TESTED_ABOVE}"
    return stress_text(figures.dependable)


def short(text: str) -> str:
    """A capacity where there is room for little more than a number: `≥` is "at least; not tested above".

    >>> short("at least 0.4; not tested above"), short("0.4"), short("none")
    ('≥ 0.4', '0.4', 'none')
    """
    return text.replace("at least ", "≥ ").removesuffix(f"; {NOT_TESTED_ABOVE}")


def capacity_sentence(figures: CapacityFigures) -> str:
    """What the levels show, in a sentence or two.

    That a level is *kept* is not said of each of its episodes: single ones may break the contract all the same.
    """
    tested, dependable, broken = figures.tested_up_to, figures.dependable, figures.first_breach
    if tested is None:
        return "Too few episodes at any declared stress to say what it withstands."
    if dependable is None:
        told = "Not even its lowest tested level is kept"
    elif dependable == 0.0:
        told = "The level without stress is kept"
    else:
        told = f"Every tested level up to {stress_text(dependable)} is kept"
    if broken is not None:
        told += f"; the first with a negative margin is {stress_text(broken)}"
    elif dependable is None or dependable < tested:
        # No margin is negative, and yet it is not kept: there is one reason alone.
        told += f"; {'there' if dependable is None else 'at the next'} too many episodes break the contract"
    if tested < _LARGEST_STRESS:
        return f"{told}. Above {stress_text(tested)} there are too few episodes to tell."
    return f"{told}."


def live_state(family: FamilyReading) -> LiveState:
    """What there is to say of the live stress, also where there is no `stress_state`: the value of a label."""
    if family.stress_state is not None:
        return family.stress_state
    return "none_declared" if family.live_stress is None else "unsettled"


def counted(number: int, one: str, several: str | None = None) -> str:
    """So many of something.

    Args:
        number: how many.
        one: what one of them is called.
        several: what several are; with an s at the end where not given.

    >>> counted(1, "episode"), counted(1200, "episode"), counted(0, "family", "families")
    ('1 episode', '1,200 episodes', '0 families')
    """
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def live_word(family: FamilyReading) -> str:
    """The same as a word of the glossary."""
    return _LIVE_WORDS[live_state(family)]


def live_sentence(family: FamilyReading) -> str:
    """What runs now, what that is against the levels, and of how many running episodes it says nothing."""
    word, undeclared = live_word(family), family.active_undeclared
    told = f" ({counted(undeclared, 'episode')} undeclared)" if undeclared else ""
    if family.live_stress is not None:
        return f"Its agents work at {stress_text(family.live_stress)} now: {word}{told}."
    if family.stress_state is not None:
        return f"When last at work: {word}{told}."
    return f"{word.capitalize()}{told}."


def violation_text(level: ViolationFigures) -> str:
    """How many of a level's episodes broke the contract, and the interval of their share."""
    return violations_of(level.violations, level.judged, level.violation_low, level.violation_high, level.provisional)


def violations_of(violations: int, episodes: int, low: float | None, high: float | None, provisional: int = 0) -> str:
    """The same of bare numbers.

    >>> violations_of(20, 20, 0.8389, 1.0), violations_of(1, 3, None, None)
    ('20 of 20 (84 to 100 %)', '1 of 3')
    >>> violations_of(20, 20, 0.8389, 1.0, 12)
    '20 of 20 (84 to 100 %; of which 12 provisional)'
    """
    told = f"{violations:,} of {episodes:,}"
    share = _share(low, high, provisional)
    return told if share is None else f"{told} ({share})"


def share_text(level: ViolationFigures) -> str | None:
    """The interval of the share of a level's episodes that broke the contract, and of which how many are provisional.

    None where there is neither.
    """
    return _share(level.violation_low, level.violation_high, level.provisional)


def _share(low: float | None, high: float | None, provisional: int) -> str | None:
    told = [] if low is None or high is None else [f"{100 * low:.0f} to {100 * high:.0f} %"]
    if provisional:
        told.append(f"of which {provisional:,} provisional")
    return "; ".join(told) or None


class WorstLevel(NamedTuple):
    """The level whose episodes break the contract most surely; its stress is None where nobody declared one."""

    stress: float | None
    level: ViolationFigures

    @property
    def sentence(self) -> str:
        """How many of its episodes did."""
        under = "undeclared stress" if self.stress is None else f"stress {stress_text(self.stress)}"
        return f"under {under} {violation_text(self.level)} episodes broke it."


def worst_level(figures: ContractFigures) -> WorstLevel | None:
    """The worst of a family's levels, the undeclared one among them; None without an episode.

    One with too few episodes is it only where none has enough: no contract is violated by it.
    """
    levels = [WorstLevel(margin.stress, margin) for margin in figures.margins if margin.judged]
    if figures.undeclared is not None and figures.undeclared.judged:
        levels.append(WorstLevel(None, figures.undeclared))

    def badness(worst: WorstLevel) -> tuple[bool, float, int]:
        level = worst.level
        # With provisional episodes there may be enough to break a contract, though none that a margin rests on.
        enough = level.state != "insufficient" or (level.provisional > 0 and level.judged >= _ENOUGH)
        return enough, level.violation_low or 0.0, level.violations

    return max(levels, key=badness, default=None)


def violated_sentences(figures: ContractFigures) -> list[str]:
    """Whether the contract is violated, and where most surely."""
    if not figures.contract_violated:
        return []
    worst = worst_level(figures)
    return ["Contract violated." if worst is None else f"Contract violated: {worst.sentence}"]


def aborted_sentences(aborted: int, ended: int) -> list[str]:
    """How many episodes nobody saw the end of; whatever became of them, no level, capacity or success rate knows it.

    >>> aborted_sentences(50, 30), aborted_sentences(0, 30)
    (['Aborted, and in none of these figures: 50 of 80 episodes.'], [])
    """
    return [f"Aborted, and in none of these figures: {aborted:,} of {aborted + ended:,} episodes."] if aborted else []


def undeclared_sentence(level: ViolationFigures) -> str:
    """What episodes whose stress nobody declared show; they are a level of their own.

    >>> from springback.stream_processors.resilience.readings import ExtensibilityRatios, LevelFigures
    >>> level = LevelFigures(episodes=20, margin=None, state="broken", ratios=ExtensibilityRatios(), violations=20)
    >>> undeclared_sentence(level)
    'Under undeclared stress 20 of 20 episodes broke the contract: broken.'
    """
    return f"Under undeclared stress {violation_text(level)} episodes broke the contract: {level.state}."


def learning_sentences(references: int | None, needed: int | None, provisional: int) -> list[str]:
    """How far a family has come in learning, and how many of its episodes count in no margin because of it.

    >>> learning_sentences(12, 20, 14)
    ['Learning: 12 of 20 references; its windows are provisional.', 'Provisional, and in no margin: 14 episodes.']
    """
    learning = learning_text(references, needed)
    of = "" if references is None else " references"
    told = [] if learning is None else [f"{learning.capitalize()}{of}; its windows are provisional."]
    if provisional:
        told.append(f"Provisional, and in no margin: {counted(provisional, 'episode')}.")
    return told


def learning_text(references: int | None, needed: int | None) -> str | None:
    """How far a family has come in learning; None where it is not learning any more, or nothing said so.

    >>> learning_text(12, 20), learning_text(None, 20), learning_text(20, 20), learning_text(None, None)
    ('learning: 12 of 20', 'learning', None, None)
    """
    if needed is None or (references or 0) >= needed:
        return None
    return "learning" if references is None else f"learning: {references} of {needed}"


def within_noise(figures: StabilityFigures) -> bool:
    """Whether the change of loss behind β is no larger than that between clean runs of one task."""
    difference, repeatability = figures.beta_difference, figures.stability_repeatability
    return difference is not None and repeatability is not None and difference <= repeatability


def beta_sentences(figures: StabilityFigures) -> list[str]:
    """What β says, or that it says nothing, and what it does not know of."""
    pairs = counted(figures.pairs, "pair")
    difference, repeatability = figures.beta_difference, figures.stability_repeatability
    if figures.beta is None:
        told = ["β is not known: no pair of a clean and a perturbed run of one task."]
    elif difference is None or repeatability is None:
        told = [f"β {figures.beta:.2f} over {pairs}; how much clean runs differ is not known."]
    else:
        says = f" {WITHIN_NOISE}" if within_noise(figures) else ""
        told = [
            f"β {figures.beta:.2f} over {pairs}{says} (its change of loss {difference:.2f}, repeatability "
            f"{repeatability:.2f})."
        ]
    reasons = [f"{count:,} {reason.replace('_', ' ')}" for reason, count in figures.unpaired.items() if count]
    if reasons:
        told.append(f"{sum(figures.unpaired.values()):,} unpaired: {', '.join(reasons)}.")
    return told
