"""The errors of this folder."""


class DashboardError(RuntimeError):
    """What people look at could not be made or served; the message says what to do about it."""


class MetricQueryError(DashboardError):
    """A query asks for a label, a value or a suffix that the metric catalogue does not declare: a fault of ours."""
