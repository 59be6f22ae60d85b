"""The errors of this folder: what can go wrong while the pieces are started and run together."""


class DeployError(RuntimeError):
    """A piece could not be started or kept running; the message says what to do about it."""


class MissingToolError(DeployError):
    """Something that must be installed first (a Python extra, Java, Maven) is missing or too old."""


class ChildFailedError(DeployError):
    """A child process ended by itself, or was not ready in time; the message carries the end of its log."""


class BrokerUnavailableError(DeployError):
    """No Kafka broker answers at the address that was given."""
