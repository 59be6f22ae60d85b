"""What becomes of every step and every call, and the errors that say why steps have no scores.

Each step is counted once, under one cause; an error carries the cause under which its steps are counted.
"""

from typing import Any, Literal, get_args

from springback.stream_processors.errors import StreamError

Cause = Literal[
    "judged",
    "cached",
    "refused_malformed",
    "refused_out_of_range",
    "failed",
    "timed_out",
    "rate_limited",
    "over_budget",
    "endpoint_down",
    "crowded_out",
    "handed_over",
    "given",
    "skipped",
]
"""`judged` and `cached` steps have our scores, `given` ones the producer's; all others are left to the rubric.

`skipped` steps were not to be judged (see `JudgeSettings.which`) or cannot be; `endpoint_down` ones met the open
circuit breaker; `crowded_out` ones were beyond the steps or waiting frames that the settings allow; `handed_over` ones
could not be waited for, because their partition went to another judge or this one ended.
"""

Event = Literal["frames", "unreadable_frames", "faulty_frames", "judged_frames", "oversized_frames", "calls", "retries"]


class JudgeCounts:
    """Steps by cause, and events; all of them only rise."""

    def __init__(self) -> None:
        self.steps: dict[Cause, int] = dict.fromkeys(get_args(Cause), 0)
        self.events: dict[Event, int] = dict.fromkeys(get_args(Event), 0)

    def add_steps(self, cause: Cause, steps: int) -> None:
        """Counts so many more steps under this cause."""
        self.steps[cause] += steps

    def add(self, event: Event) -> None:
        """Counts one more of this event."""
        self.events[event] += 1

    def report(self) -> dict[str, Any]:
        """All counts, for the health endpoint."""
        return {"steps": dict(self.steps), "events": dict(self.events)}


class NoScoresError(StreamError):
    """Steps could not be judged; they are counted under `cause`."""

    def __init__(self, *, cause: Cause, message: str) -> None:
        super().__init__(message)
        self.cause = cause


class EndpointError(NoScoresError):
    """A call failed because of the endpoint.

    Attributes:
        again: whether another try may succeed.
        retry_after_s: how long the endpoint asks to be left alone, s; None where it does not ask.
    """

    def __init__(self, *, cause: Cause, message: str, again: bool, retry_after_s: float | None = None) -> None:
        super().__init__(cause=cause, message=message)
        self.again = again
        self.retry_after_s = retry_after_s
