"""The log of a process that runs for days: one line per event on stderr, as text or as JSON.

Libraries speak up only when something is wrong, and do not repeat themselves. Messages of ours are written as an event
and its fields (`broker_fault kind=%s reason=%s`), or as a sentence; the JSON form has the fields apart.
"""

import json
import logging
import math
import re
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["text", "json"]

LEVEL_VARIABLE: Final = "SPRINGBACK_LOG_LEVEL"
FORMAT_VARIABLE: Final = "SPRINGBACK_LOG_FORMAT"

_LIBRARIES = frozenset({"faust", "mode", "aiokafka", "asyncio", "kafka", "httpx", "httpcore"})
_MOST_REMEMBERED = 1000
# An id from outside must neither forge a line of the log nor steer the terminal that shows it.
_CONTROLS = (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)
_ONE_LINE = {**{code: f"\\x{code:02x}" for code in _CONTROLS}, ord("\t"): " ", ord("\n"): " | "}
# A conversion with the name before it, if there is one; or a field that the message itself has the value of.
_FIELD = re.compile(
    r"(?:\b(?P<name>\w+)=)?%(?P<kind>%|[-#0 +]*\d*(?:\.\d+)?[a-zA-Z])|\b(?P<fixed>\w+)=(?P<value>[^\s%]+)"
)
_OF_EVERY_RECORD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def _moment(record: logging.LogRecord) -> str:
    clock = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{clock}.{int(record.msecs):03d}Z"


class LineFormatter(logging.Formatter):
    """One line per record, whatever it holds: a traceback is folded into it."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line."""
        line = f"time={_moment(record)} level={record.levelname.lower()} logger={record.name} {record.getMessage()}"
        if record.exc_info:
            line += f" traceback={self.formatException(record.exc_info)}"
        return line.translate(_ONE_LINE)


class JsonFormatter(logging.Formatter):
    """One JSON object per line and record: `time`, `level`, `logger`, `message`, `fields`, and `traceback` if any.

    It is ASCII, so that no id from outside can break a line or steer a terminal.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line."""
        told: dict[str, Any] = {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "fields": log_fields(record),
        }
        if record.exc_info:
            told["traceback"] = self.formatException(record.exc_info)
        return json.dumps(told, ensure_ascii=True, allow_nan=False)


def log_fields(record: logging.LogRecord) -> dict[str, Any]:
    """What the record tells by name: `name=%s` of its message with the argument, `name=value`, and its `extra`.

    Numbers and truth values stay what they are; all else is text.

    >>> given = logging.LogRecord("x", logging.INFO, "", 1, "stalled stage=%s end=%d retry=yes", ("learn", 7), None)
    >>> log_fields(given)
    {'stage': 'learn', 'end': 7, 'retry': 'yes'}
    """
    arguments: Any = record.args or ()
    found: dict[str, Any] = {}
    if isinstance(arguments, Mapping):
        found |= {str(name): _plain(value) for name, value in arguments.items()}
    else:
        left = iter(arguments)
        for part in _FIELD.finditer(str(record.msg)):
            if part["fixed"]:
                found[part["fixed"]] = part["value"]
            elif part["kind"] != "%":
                value = next(left, None)  # a message with too few arguments cannot be made anyway
                if part["name"]:
                    found[part["name"]] = _plain(value)
    extra = {name: _plain(value) for name, value in vars(record).items() if name not in _OF_EVERY_RECORD}
    return found | extra


def _plain(value: object) -> Any:
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return str(value)


class RepetitionFilter(logging.Filter):
    """Lets a library's message through once in a while. Messages are the same that differ in their arguments alone.

    While a broker is away, aiokafka reports it more than a hundred times a second.

    Args:
        interval_s: how long the same message is held back.
        clock: seconds, only ever rising.
    """

    def __init__(self, interval_s: float = 60.0, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._interval_s = interval_s
        self._clock = clock
        self._last_s: dict[tuple[str, int, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is passed on."""
        if record.name.partition(".")[0] not in _LIBRARIES:
            return True
        key = record.name, record.levelno, str(record.msg)
        now_s = self._clock()
        last_s = self._last_s.get(key)
        if last_s is not None and now_s - last_s < self._interval_s:
            return False
        if len(self._last_s) >= _MOST_REMEMBERED:
            self._last_s.clear()
        self._last_s[key] = now_s
        return True


def configure_logging(level: LogLevel = "info", form: LogFormat = "text") -> None:
    """Sends the log to stderr: ours from `level` on, that of libraries from `warning` on and without repetitions.

    Args:
        level: the least that is told; libraries are never told of more than their warnings.
        form: text, or one JSON object a line.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else LineFormatter())
    handler.addFilter(RepetitionFilter())
    number = logging.getLevelNamesMapping()[level.upper()]
    logging.basicConfig(level=number, handlers=[handler], force=True)
    for name in _LIBRARIES:
        logging.getLogger(name).setLevel(max(number, logging.WARNING))
    # A commit waits for outputs that are still being sent, which its timer reports as overlapping.
    logging.getLogger("mode.timers").setLevel(logging.ERROR)
    # On a busy machine it tells of each of its tasks that it was slow, every time in other words.
    logging.getLogger("kafka.net.selector").setLevel(max(number, logging.ERROR))


def logs_json() -> bool:
    """Whether the log of this process is JSON, so that all else that it writes to stderr should be."""
    return any(isinstance(handler.formatter, JsonFormatter) for handler in logging.getLogger().handlers)
