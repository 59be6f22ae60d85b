"""The words that pages, reports, alerts and tables use for what is known of a family, with a sentence for each.

They are written once: the live page shows them where they stand, the report and the terminal as lines, the runbook as a
table. The numbers in them are the defaults of `AggregateConfig` and `FamilyContract`. Source: ours.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

from springback.stream_processors.resilience.readings import LevelState

LiveState = Literal["within", "untested", "breach", "unsettled", "none_declared"]
"""What there is to say of a family's live stress: a `StressState`, that none has held for long enough yet, or that no
declared stress is running."""

LIVE_STATES: tuple[LiveState, ...] = get_args(LiveState)
LEVEL_STATES: tuple[LevelState, ...] = get_args(LevelState)

UNSETTLED = "not settled yet"
NOTHING_DECLARED = "no declared stress running"
WITHIN_NOISE = "says nothing: within run-to-run noise"
CONTRACT_VIOLATED = "contract violated"


class Word(NamedTuple):
    """A word, what it is said of, and what it means, in a sentence."""

    word: str
    of: str
    meaning: str


_WORDS = (
    Word(
        "progress p",
        "a step",
        "How much of its task is done after the step, from 0 to 1, as the agent reports it.",
    ),
    Word(
        "propositions q",
        "a step",
        "The share of the propositions of its goal that hold after the step, from 0 to 1, as the agent reports it.",
    ),
    Word(
        "intensity g",
        "a step",
        "How far it was off what is normal at that stage of the task (the stage baseline), by what is worse than "
        "normal alone: 0 is normal, and at or below 1 an agent may re-enter.",
    ),
    Word(
        "channel",
        "an intensity or a cost",
        "Where the trouble shows: cognitive is time to plan and perceive, physical is travel and retries, debt is "
        "progress and propositions that lag, and risk.",
    ),
    Word(
        "stress λ",
        "an episode",
        "How hard it was disturbed, from 0 (not at all) to 1, as its producer declared it.",
    ),
    Word(
        "rebound window",
        "an episode",
        "The steps from where an agent departed from its baseline to where it was back at it (re-entry).",
    ),
    Word(
        "cause",
        "a rebound window",
        "What raised the alarm: effort (more effort than is normal, for too long), delay (the task came nearer too "
        "slowly), or both.",
    ),
    Word(
        "lost cycles",
        "a rebound window or an episode",
        "How many decision cycles further away the end of the task was after it than by the normal course; negative "
        "says that more was made up than was lost.",
    ),
    Word("peak g", "a rebound window", "The largest intensity g of its steps."),
    Word(
        "recovery cost C_rec",
        "a rebound window or an episode",
        "What the way back took: over the steps of the window the sum of duration (as multiples of the normal one) "
        "times intensity g, by the steps that were left to do at its departure; an episode's is the sum of its "
        "windows'.",
    ),
    Word("in rebound", "an agent", "It has departed from its baseline, and is not back at it yet."),
    Word("stalled", "an agent", "It takes steps, but its progress does not rise."),
    Word("stale", "an agent", "Its link repeats itself: messages come, but no new step."),
    Word("silent", "an agent", "It has an episode open, and nothing comes from it."),
    Word("contested", "an agent", "Two programs report under its name, so that steps are lost."),
    Word("unknown", "an agent", "Nothing can be said: we do not see it, or it has no baseline."),
    Word("calm", "an agent", "It works as is normal at its stage of the task."),
    Word("ended", "an agent", "It has no episode open."),
    Word("open", "a rebound window", "The agent has not re-entered yet, and its figures are those of the alarm."),
    Word(
        "recovered",
        "a rebound window",
        "The agent was back at its baseline for three steps in a row, or its episode ended in success before that.",
    ),
    Word("unrecovered", "a rebound window", "The episode ended before the agent was back at its baseline."),
    Word(
        "censored",
        "a rebound window",
        "The agent was lost sight of before its end: it counts in no mean, since whether it recovered is not known.",
    ),
    Word(
        "kept",
        "a stress level",
        "It has enough episodes, their margin M is not negative, and it is not sure (95 %) that more than one in ten "
        "of them breaks the contract; single ones may break the contract all the same.",
    ),
    Word(
        "broken",
        "a stress level",
        "The margin M is negative even with the most favourable tail that its episodes allow (one-sided 95 %).",
    ),
    Word(
        "undecided",
        "a stress level",
        "Neither kept nor broken: the margin M is negative by so few episodes that it may be chance, or it is not, but "
        "surely more than one episode in ten breaks the contract.",
    ),
    Word(
        "insufficient",
        "a stress level",
        "It has too few episodes (fewer than 5, provisional ones not counted) to decide anything.",
    ),
    Word(
        "within",
        "the live stress",
        "The level of the stress that runs now, or a higher one, is kept, and none at or below it is broken.",
    ),
    Word(
        "untested",
        "the live stress",
        "No level at or above the stress that runs now is known to be kept, and none at or below it to be broken.",
    ),
    Word("breach", "the live stress", "A level at or below the stress that runs now is broken."),
    Word(
        UNSETTLED,
        "the live stress",
        "A declared stress is running, but what it is against the levels has not held for long enough (30 s) to count.",
    ),
    Word(
        NOTHING_DECLARED,
        "the live stress",
        "No episode that declared its stress is running, so there is nothing to hold against the levels; that is not "
        "the same as within.",
    ),
    Word(
        "live stress",
        "a family",
        "The 0.9 quantile of the stress that its running episodes of this method and version declare, put on the grid.",
    ),
    Word(
        "undeclared",
        "an episode",
        "Nobody said what stress it ran under, which is not 0: such episodes form a level of their own, which λ* "
        "leaves out.",
    ),
    Word(
        "dependable capacity",
        "a family",
        "The largest stress up to which every level with enough episodes is kept: what one may rely on.",
    ),
    Word(
        "λ*",
        "a family",
        "Stress capacity: the largest level whose margin is not negative, whether or not it, and the levels below it, "
        "are kept.",
    ),
    Word(
        "not tested above",
        "a capacity",
        "No higher level has enough episodes: the capacity is at least what is shown, and nothing is known beyond.",
    ),
    Word("first breach", "a family", "The smallest level with enough episodes whose margin is negative."),
    Word(
        "margin M",
        "a stress level",
        "How far its worse episodes are within the contract: the mean of the two smallest ratios to it, less 1; "
        "negative is outside.",
    ),
    Word(
        "favourable margin M⁺",
        "a stress level",
        "The margin with the most favourable quantiles that so few episodes allow (one-sided 95 %): negative, and the "
        "level is broken.",
    ),
    Word(
        "violation share",
        "a stress level",
        "The share of its episodes that broke the contract, with its 95 % interval (Wilson); provisional episodes are "
        "among them.",
    ),
    Word(
        CONTRACT_VIOLATED,
        "a family",
        "At some level, the undeclared one too, more than one episode in ten breaks the contract, and that is not "
        "chance (95 %).",
    ),
    Word(
        "learning",
        "a family",
        "Fewer reference episodes than are needed (20) stand behind its alarm bounds: its windows are provisional.",
    ),
    Word(
        "provisional",
        "a window or an episode",
        "Its family was still learning: the window counts in no alert, no capacity and no comparison, the episode in "
        "outcomes and, by its progress, propositions and violations, in the violation share.",
    ),
    Word(
        "β",
        "a family",
        "Policy stability: the largest change of the stability loss between a clean and a perturbed run of one task, "
        "by the magnitude of the perturbation.",
    ),
    Word(
        "repeatability",
        "a family",
        "How much two clean runs of one task differ in stability loss, in 19 of 20 cases: run-to-run noise.",
    ),
    Word(
        WITHIN_NOISE,
        "β",
        "The change of loss behind it is no larger than between two clean runs of one task.",
    ),
    Word("unpaired", "a perturbed episode", "It is in no pair, so β does not know it; the reason is counted."),
    Word("no twin", "an unpaired episode", "No reference episode of its task has been seen."),
    Word(
        "twin unmeasured",
        "an unpaired episode",
        "The reference episodes of its task have no stability loss, or only provisional ones.",
    ),
    Word("other version", "an unpaired episode", "Only other methods or versions have reference episodes of its task."),
    Word("unmeasured", "an unpaired episode", "Its own stability loss is not known."),
    Word("let go", "an unpaired episode", "It waited for its twin until memory had no more room."),
    Word(
        "no magnitude",
        "an unpaired episode",
        "It said neither magnitude nor stress, or had none in the end: there is nothing to divide by.",
    ),
    Word(
        "interruption",
        "a cycle",
        "It lasted ten times as long as is normal, or longer, and counts as ten times: a pause, or a clock that was "
        "set.",
    ),
    Word(
        "gap", "an episode", "So many steps of it are missing in one place that its course could not be judged there."
    ),
    Word("joined", "an episode", "Its beginning was not seen: it is scored, but never a reference."),
    Word("extended", "an episode", "Work was added while it ran: its progress counts against the largest total."),
)

GLOSSARY: Mapping[str, Word] = {word.word: word for word in _WORDS}
"""The words, in the order in which they are explained."""


def meaning(word: str) -> str:
    """What a word means, in one sentence.

    >>> meaning("breach")
    'A level at or below the stress that runs now is broken.'
    """
    return GLOSSARY[word].meaning


def glossary_table() -> str:
    """The words as a table in Markdown."""
    rows = (f"| *{word.word}* | {word.of} | {word.meaning} |" for word in _WORDS)
    return "\n".join(("| word | said of | meaning |", "|---|---|---|", *rows))


if __name__ == "__main__":
    print(glossary_table())
