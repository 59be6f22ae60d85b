"""Files that are written whole or not at all: a disk that is full leaves neither half a file nor a draft of one."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A draft beside the file, to be written in the block; it takes the file's place at the end, once it is on disk.

    If the block fails there is no draft left, and the file is as it was. The draft's name ends as the file's does.

    Args:
        path: the file.

    Raises:
        OSError: it cannot be written; `filename` is the file.
    """
    path = Path(path).resolve()  # a link stays one
    if path.exists() and not path.is_file():
        yield path  # a pipe, or a device such as /dev/stdout: nothing can take its place
        return
    draft = path.with_name(f".{os.getpid()}-{threading.get_ident():x}-draft-{path.name}")
    try:
        try:
            yield draft
            with draft.open("rb") as written:
                os.fsync(written.fileno())
            draft.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):  # what was wrong is told already
                draft.unlink()
            raise
    except OSError as error:
        if error.filename not in (None, str(draft)):
            raise  # another file's
        raise type(error)(error.errno, error.strerror or str(error), str(path)) from error


def write_whole(path: str | os.PathLike[str], data: bytes | str) -> None:
    """Writes a file so that nobody ever sees half of it; a text as UTF-8, its line ends as they are.

    Raises:
        OSError: it cannot be written; `filename` is the file.
    """
    with whole_file(path) as draft:
        draft.write_bytes(data.encode("utf-8") if isinstance(data, str) else data)
