"""The value network in a file that a setting or an option names."""

from pathlib import Path

from springback.stream_processors.errors import SettingsError
from springback.stream_processors.resilience.stability.network_value import (
    NetworkFormatError,
    NetworkValues,
    load_network,
)


def read_value_model(file: Path, named_by: str) -> NetworkValues:
    """The value network in a file that `springback fit-value` wrote.

    Args:
        file: the file.
        named_by: the setting or option that names it.

    Raises:
        SettingsError: the file cannot be read, or holds none.
    """
    try:
        return load_network(file.read_bytes())
    except OSError as error:
        message = f"{named_by}: cannot read {str(file)!r} ({error.strerror})."
        raise SettingsError(message) from error
    except NetworkFormatError as error:
        message = f"{named_by} {str(file)!r}: {error}."
        raise SettingsError(message) from error
