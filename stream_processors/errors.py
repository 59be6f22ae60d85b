"""The errors of this folder: what can go wrong around the reducers, between Kafka and the state."""


class StreamError(RuntimeError):
    """Something in the stream engine went wrong; the message says what to do about it."""


class SettingsError(StreamError, ValueError):
    """A setting is not what it must be; the message names the key, what arrived and what was expected."""


class TopicMismatchError(StreamError):
    """A topic exists already, but not with the partitions that were asked for."""


class TopicDeclarationError(StreamError):
    """The broker refused to create a topic."""


class StateFormatError(StreamError):
    """A record of the state, or of the baselines, cannot be read by this version of springback."""


class StateAheadError(StreamError):
    """The state has read further than the topic reaches: the topic was made anew under the worker."""


class RecoveryTimeoutError(StreamError):
    """The worker did not get its partitions, tables and baselines ready within the bound that was set."""


class WorkerStoppedError(StreamError):
    """A part that the worker cannot go on without has ended."""


class BaselineImportError(StreamError):
    """An import of a baseline was not taken up in time, or its file cannot be read."""


class TransientBrokerError(StreamError):
    """The broker did not do what was asked, and may do so later."""


class StateWriteError(StreamError):
    """The changelog did not take a state record: the worker must recover its state from there."""
