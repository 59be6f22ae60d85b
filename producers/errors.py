"""What can go wrong on the producer side: one small family, so that `except ProducerError` covers it all."""

from __future__ import annotations

from collections.abc import Sequence


class ProducerError(Exception):
    """The family of everything that this folder raises on its own account."""


class UnreadableFrameError(ProducerError, ValueError):
    """A message that is no step frame, or one whose parts do not fit together: nothing of it can be used.

    Attributes:
        reason: a short snake_case code out of a small fixed set, fit for a metric label.
    """

    def __init__(self, *, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason


class SignalError(ProducerError, TypeError):
    """A step, trait or end was reported with an unknown name, a wrong type or an impossible value."""


class EmitterStateError(ProducerError, RuntimeError):
    """An emitter or an episode was used after its end, or in a process other than the one that made it."""


class PublishError(ProducerError):
    """A frame could not be handed over for now; the emitter keeps it and tries again."""


class FrameRefusedError(PublishError):
    """A frame that will never be accepted (too large, say): do not try again."""


class SpoolInUseError(ProducerError):
    """The folder of a spool belongs to another publisher that runs, here or in another process."""


class MappingError(ProducerError, ValueError):
    """A mapping file says something that cannot be: the message names the file and the key."""


class ServerAddressError(ProducerError):
    """A server of ours cannot listen where it was asked to."""


class CertificateError(ProducerError, ValueError):
    """The certificate of a server of ours, or its key, cannot be used."""


class OlderPythonError(ProducerError, ImportError):
    """This Python is too old for what was asked for, and new enough for the agent's side.

    Args:
        part: what was asked for.
        version: the version of this Python.

    >>> str(OlderPythonError("springback.evaluate", (3, 9, 18))).partition(";")[0]
    'springback.evaluate needs Python 3.11 or newer, and this is 3.9.18'
    """

    def __init__(self, part: str, version: Sequence[int]) -> None:
        super().__init__(
            f"{part} needs Python 3.11 or newer, and this is {'.'.join(map(str, version))}; here runs what an agent's "
            "own code imports (StepEmitter, the wrappers, watch, mappings: see the README of producers)"
        )
