"""The errors of this folder: what can go wrong around the reducers, between Kafka and the state."""


class StreamError(RuntimeError):
    """Something in the stream engine went wrong; the message says what to do about it."""


class SettingsError(StreamError, ValueError):
    """A setting is not what it must be; the message names the key, what arrived and what was expected."""


class TopicMismatchError(StreamError):
    """A topic exists already, but not with the partitions that were asked for."""


class TopicMissingError(StreamError):
    """A topic that is to be read is not there."""


class TopicDeclarationError(StreamError):
    """The broker refused to create a topic."""


class BrokerFaultError(StreamError):
    """The brokers cannot be used: their address, TLS, the login or the user's rights; the message says which.

    Attributes:
        kind, detail: those of the `BrokerFault` that was found.
    """

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(f"Kafka cannot be used ({kind}: {detail}).")
        self.kind = kind
        self.detail = detail


class StateFormatError(StreamError):
    """A record of the state, or of the baselines, cannot be read by this version of springback."""


class StateAheadError(StreamError):
    """The state has been read further than the topic reaches: the topic was deleted and created again."""


class RecoveryTimeoutError(StreamError):
    """Partitions, tables and baselines were not ready within the time that was set."""


class WorkerStoppedError(StreamError):
    """A part of the worker has ended that it cannot go on without."""


class BaselineImportError(StreamError):
    """A baseline's file cannot be read, or no worker took the baseline up in time."""


class DeadLetterError(StreamError, ValueError):
    """A dead letter that was asked for is not there, or cannot be sent again; the message says why."""


class StateFullError(StreamError):
    """A state would be larger than its changelog takes; the event that makes it so is refused."""


class TooCostlyError(StreamError):
    """A message takes longer than the time that a worker has before its partitions are given to another."""


class TransientBrokerError(StreamError):
    """The broker did not do what was asked, but may do it later."""


class StateWriteError(StreamError):
    """The changelog did not take a state record: the worker must recover its state from there."""
