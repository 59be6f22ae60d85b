"""Whether a page can be read and used by all: asked of axe-core, in the browser that has it open."""

from typing import Any

from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Page

WIDTHS = (1280, 390)
"""A desk's and a phone's."""

SCHEMES = ("light", "dark")


def assert_no_violations(page: Page, told: str = "") -> None:
    """Fail with what axe-core finds wrong in what the page shows now.

    Args:
        page: which shows what it is to be judged by: wait for that first.
        told: what stands before what is found, such as the width.
    """
    found: list[dict[str, Any]] = Axe().run(page).response["violations"]
    assert not found, "\n".join([told or page.url, *(_words(violation) for violation in found)])


def _words(violation: dict[str, Any]) -> str:
    nodes = [
        f"    {node['target']}: {node['html'][:160]}\n      {node['failureSummary']}" for node in violation["nodes"][:5]
    ]
    return "\n".join([f"  {violation['id']} ({violation['impact']}): {violation['help']}", *nodes])
