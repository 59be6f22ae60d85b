"""Files with secrets in them: passwords, tokens, keys. Whoever reads one warns of those that others can read.

No secret stands on a command line or in a settings file, where every user of the machine or a version control could
see it: both name files. What a file holds is in no message.
"""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

_OTHERS = stat.S_IRGRP | stat.S_IWGRP | stat.S_IROTH | stat.S_IWOTH
_log = logging.getLogger(__name__)
_warned: set[tuple[str, int]] = set()


def read_secret(file: str | Path, what: str, errors: str = "strict") -> str:
    """A secret out of its file, without the newline at its end; warns once if others can read the file.

    Args:
        file: the file.
        what: is in it, for the warning: `the password of Kafka`.
        errors: what becomes of bytes that are no UTF-8, as Python's codecs name it.

    Raises:
        OSError: the file cannot be read.
        UnicodeDecodeError: it is no text in UTF-8.
    """
    text = Path(file).read_text(encoding="utf-8", errors=errors).rstrip("\r\n")
    warn_of_readers(file, what)
    return text


def warn_of_readers(file: str | Path, what: str) -> bool:
    """Warns, once for a file and its rights, if others than its owner can read or change it; whether they can.

    A file that is not there is no matter of this function: whoever reads it says so.

    Args:
        file: the file.
        what: is in it.
    """
    if os.name != "posix":
        return False  # what the bits say elsewhere is not who can read it
    try:
        mode = stat.S_IMODE(Path(file).stat().st_mode)
    except OSError:
        return False
    if not mode & _OTHERS:
        return False
    if (str(file), mode) not in _warned:
        _warned.add((str(file), mode))
        _log.warning("%s: others can read or change %s (mode %04o); chmod 600 %s", what, file, mode, file)
    return True
