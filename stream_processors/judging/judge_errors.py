"""The errors of the judge: why steps have no scores."""

from springback.stream_processors.errors import StreamError
from springback.stream_processors.judging.judge_counts import Cause


class NoScoresError(StreamError):
    """Steps could not be judged; `cause` is what it is counted under."""

    def __init__(self, *, cause: Cause, message: str) -> None:
        super().__init__(message)
        self.cause = cause


class EndpointError(NoScoresError):
    """A call came to nothing by the endpoint's fault.

    Attributes:
        again: whether it may go better another time.
        retry_after_s: how long the endpoint asks to be left alone; None where it does not.
    """

    def __init__(self, *, cause: Cause, message: str, again: bool, retry_after_s: float | None = None) -> None:
        super().__init__(cause=cause, message=message)
        self.again = again
        self.retry_after_s = retry_after_s
