"""The errors of this folder: what can go wrong between the readings and where they are shown or kept."""


class SinkError(RuntimeError):
    """A sink could not do its work; the message says what to do about it."""


class SinkUnavailableError(SinkError):
    """What the sink writes to is away for now. The same call may be made again, and is."""


class SinkOptionError(SinkError, ValueError):
    """A sink that was asked for is not there, or cannot be made of the options that were given."""


class MetricLabelsError(SinkError):
    """A series was named with other labels than the metric catalogue declares: a fault of ours."""


class AuthFileError(SinkError, ValueError):
    """The file that says who may read the metrics page cannot be used."""


class GrafanaUnreachableError(SinkUnavailableError):
    """Grafana does not answer, or says that it cannot just now. The same call may be made again."""


class GrafanaRefusedError(SinkError):
    """Grafana answered, and did not do what was asked.

    `status` is what HTTP calls it; `says_why` tells that the answer was Grafana's own, with a reason.
    """

    def __init__(self, message: str, status: int, *, says_why: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.says_why = says_why


class GrafanaAddressError(SinkError, ValueError):
    """What was given is not the address of a Grafana."""


class PagesBusyError(SinkError):
    """More is asked of the metrics page than it gives at a time. The same may be asked again later."""
