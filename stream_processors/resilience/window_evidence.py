"""What a rebound window was found in: the steps around it, as they stood when they were scored (ours).

A window's reading says what it cost and why it opened; this says what the agent did meanwhile, so that nobody has to
look for the steps. It is small, and whoever has no use for it lets it be.
"""

import msgspec

STEPS_BEFORE = 5
STEPS_AFTER = 3
MOST_HEAD = 32
"""Of a longer stretch so many steps are kept from its beginning on, those before the departure included."""
MOST_TAIL = 32
"""Of a longer stretch so many are kept up to its end, those after the re-entry included."""
MOST_TEXT = 80
"""Characters of a mode, an action or a feedback; what is longer is cut, and ends with an ellipsis."""


class EvidenceStep(msgspec.Struct, frozen=True, array_like=True):
    """One scored step.

    Attributes:
        step: its number in the episode.
        time_s: when it was, UTC epoch; the broker's time where the agent has no clock.
        mode, action, feedback: in the producer's words, cut to `MOST_TEXT`.
        progress, propositions: p and q after the step.
        intensity: g^rec of equation 2; `cognitive`, `physical` and `debt` are the g^u of its channels.
        lost_cycles: cycles lost by it; 0 at an episode's first step and behind a gap.
    """

    step: int
    time_s: float
    mode: str
    action: str
    feedback: str
    progress: float
    propositions: float
    intensity: float
    cognitive: float
    physical: float
    debt: float
    lost_cycles: float


class WindowEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """The scored steps from 5 before a window's departure to 3 after its re-entry, 64 at most.

    An opening has those up to its alarm. A closing has as many after the re-entry as were seen when the window closed:
    with three calm steps to confirm it that is two, none where the episode's end, a gap or silence closed it.

    Attributes:
        steps: the steps that are kept, by their numbers.
        before: how many of them lie before the departure.
        after: how many of them lie after the re-entry.
        left_out: how many scored steps of the stretch are not kept: those in its middle, where it is longer than 64.
        left_out_at: before which of `steps` they were; 0 where none is left out.
    """

    steps: tuple[EvidenceStep, ...]
    before: int
    after: int = 0
    left_out: int = 0
    left_out_at: int = 0
