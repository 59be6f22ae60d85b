"""A Faust table whose keys say which partition they belong to, and which knows when its changelog has them."""

import logging
from collections.abc import Mapping
from typing import Any

import faust
from faust.tables.table import Table
from springback.stream_processors.errors import StateWriteError
from springback.stream_processors.state_codec import read_key


class PartitionedTable(Table[bytes, bytes]):
    """Keys begin with the input partition, so that a batch of several partitions is logged where it belongs.

    By itself Faust takes the partition of the event at hand, and forgets what became of a change that it sent.
    """

    logger = logging.getLogger("faust.tables")  # else what Faust says of it would go out under our name

    def __init__(self, app: faust.App, **options: Any) -> None:
        super().__init__(app, **options)
        self._sent: list[Any] = []

    def partition_for_key(self, key: bytes) -> int:
        """The partition that the key begins with."""
        return read_key(key).partition

    def send_changelog(self, partition: int | None, key: Any, value: Any, *options: Any, **more: Any) -> Any:
        """Send a change to the changelog, and remember to wait for it."""
        sent = super().send_changelog(partition, key, value, *options, **more)
        self._sent.append(sent)
        return sent

    def stored(self) -> Mapping[bytes, bytes]:
        """What the table holds."""
        data: Mapping[bytes, bytes] = self.data
        return data

    def put(self, key: bytes, value: bytes) -> None:
        """Set a key, here and in the changelog."""
        self[key] = value

    async def written(self) -> None:
        """Wait until the changelog has all that was put.

        Raises:
            StateWriteError: it has not taken it all.
        """
        sent, self._sent = self._sent, []
        for change in sent:
            try:
                await change
            except Exception as error:
                message = (
                    f"The changelog of {self.name} did not take a record: {error!r}. The worker must recover its state "
                    "from there: start it again."
                )
                raise StateWriteError(message) from error
