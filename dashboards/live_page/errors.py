"""The errors of the live page: what keeps it from being served."""

from springback.dashboards.errors import DashboardError


class LivePageError(DashboardError):
    """The live page cannot be served; the message says what to do about it."""


class LiveAddressError(LivePageError):
    """The page cannot be served at the address that was given."""


class PasswordFileError(LivePageError, ValueError):
    """The page is to be seen from other machines, and there is no usable password."""
