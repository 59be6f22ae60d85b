"""The error of a part whose optional packages are not installed: it names the command that installs them."""

from springback.producers.errors import ProducerError


class MissingExtraError(ProducerError, ImportError):
    """An optional package is not installed.

    Args:
        extra: the extra of springback that brings it.
        cause: what the import said.

    >>> str(MissingExtraError(extra="babyai", cause=ImportError(name="minigrid")))
    'minigrid is not installed; this part needs it: pip install "springback[babyai]"'
    """

    def __init__(self, *, extra: str, cause: ImportError) -> None:
        super().__init__(
            f'{cause.name or cause} is not installed; this part needs it: pip install "springback[{extra}]"',
            name=cause.name,
        )
