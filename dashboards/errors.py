"""The errors of this folder: what can go wrong while dashboards are made."""


class DashboardError(RuntimeError):
    """A dashboard could not be made; the message says what to do about it."""


class MetricQueryError(DashboardError):
    """A query asks for a label, a value or a suffix that the metric catalogue does not declare: a fault of ours."""
