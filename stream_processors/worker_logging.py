"""The worker's log: one line per event on stderr, key=value; libraries speak up only when something is wrong."""

import logging
import sys
import time

_LIBRARIES = ("faust", "mode", "aiokafka", "asyncio", "kafka", "httpx", "httpcore")


class LineFormatter(logging.Formatter):
    """One line per record, whatever it holds: a traceback is folded into it."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line."""
        clock = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = (
            f"time={clock}.{int(record.msecs):03d}Z "
            f"level={record.levelname.lower()} logger={record.name} {record.getMessage()}"
        )
        if record.exc_info:
            line += f" traceback={self.formatException(record.exc_info)}"
        return line.replace("\n", " | ")


def configure_logging(level: int = logging.INFO) -> None:
    """Send the log to stderr, ours from `level` on, libraries' from WARNING on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for name in _LIBRARIES:
        logging.getLogger(name).setLevel(logging.WARNING)
    # A commit waits for the outputs under way, and its timer calls that overlapping.
    logging.getLogger("mode.timers").setLevel(logging.ERROR)
