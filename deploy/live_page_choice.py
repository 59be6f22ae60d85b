"""Whether the live page is among what `up` and `demo` run: it is, where its extra is installed."""

import importlib.util

from springback.deploy.local_stack import LocalStack

_MISSING = "the live page is not installed; pip install 'springback[live]' brings it"


def live_page_installed() -> bool:
    """Whether what the live page needs is installed."""
    return importlib.util.find_spec("nicegui") is not None


def live_page_line(stack: LocalStack) -> str:
    """Where the live page is, or why there is none, as a line to print."""
    return f"Live:    {stack.live_url or _MISSING}"
