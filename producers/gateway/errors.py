"""Why the gateway takes nothing of a request, or cannot be started."""

from __future__ import annotations

from springback.producers.errors import ProducerError


class GatewayOptionsError(ProducerError, ValueError):
    """The gateway cannot be started with these options."""


class RequestRefusedError(ProducerError):
    """Nothing of a request was taken.

    Attributes:
        status: the HTTP status.
        reason: a short snake_case code out of a small fixed set, fit for a metric label.
        retry_after_s: after how long to try again; None where it never helps.
    """

    def __init__(self, status: int, reason: str, detail: str, retry_after_s: int | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.reason = reason
        self.retry_after_s = retry_after_s
