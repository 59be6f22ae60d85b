"""The settings of a bridge: those of the command line above those of the mapping's `[source.NAME]`."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from springback.producers.errors import ProducerError
from springback.producers.signal_mapping import SignalMapping

Settings = TypeVar("Settings", bound=msgspec.Struct)


class BridgeOptionError(ProducerError, ValueError):
    """A bridge has no such setting, or it cannot have that value."""


def bridge_settings(
    kind: type[Settings], name: str, mapping: SignalMapping | None, options: Mapping[str, str], **defaults: Any
) -> Settings:
    """The settings of the bridge.

    Args:
        kind: the struct of its settings.
        name: the bridge's name.
        mapping: its `[source.NAME]` is read, if there is one.
        options: KEY=VALUE of the command line, texts all of them.
        **defaults: what is known otherwise.

    Raises:
        BridgeOptionError: a setting is not known, or has a wrong value.
    """
    given = defaults | (mapping.sources.get(name, {}) if mapping is not None else {}) | dict(options)
    known = kind.__struct_fields__
    unknown = sorted(set(given) - set(known))
    if unknown:
        message = f"the bridge {name} has no setting {', '.join(unknown)}; it has {', '.join(known)}"
        raise BridgeOptionError(message)
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        message = f"a setting of the bridge {name}: {error}"
        raise BridgeOptionError(message) from error
