"""The methods of a family side by side, and the tables to be taken away, in a browser."""

import csv
import io
import re
from collections.abc import Callable

import pytest
from msgspec.structs import replace
from playwright.sync_api import Page, expect

from springback.dashboards.live_page.links import compare_link
from springback.stream_processors.resilience.readings import EpisodeTraits, Reading
from tests.dashboards.live_page.fake_fleet import ReadingSender, family, status, summary, window
from tests.dashboards.live_page.live_process import LiveProcess

pytestmark = [pytest.mark.broker, pytest.mark.browser]
OpenPage = Callable[..., Page]

HOSTILE = "<img src=x onerror=alert(1)>"
expect.set_options(timeout=90_000)


def played(name: str, method: str, cost: float, stress: float, tasks: int = 8) -> list[Reading]:
    """Episodes of one method, one of each task, each of which costs a little more."""
    traits = EpisodeTraits(family=name, task="", method=method, version="1.4", stress=stress)
    return [
        replace(
            summary(f"{method}-robot", str(number)),
            traits=replace(traits, task=f"kitchen-{number}"),
            recovery_cost=cost + number / 10,
        )
        for number in range(tasks)
    ]


def test_methods_stand_side_by_side_with_what_their_figures_rest_on(
    shared: LiveProcess, shared_sender: ReadingSender, open_page: OpenPage
) -> None:
    noisy = family("compared", method=HOSTILE, beta=39.3, beta_difference=7.86, stability_repeatability=8.0)
    readings = [family("compared", method=method) for method in ("plain", "reflexion")] + [noisy]
    shared_sender.send(
        *readings,
        *played("compared", "plain", 1.0, 0.4),
        *played("compared", "reflexion", 3.0, 0.4),
        *played("compared", HOSTILE, 9.0, 0.8),
    )
    page = open_page(f"{shared.address}compare")
    page.get_by_role("link", name="compared").click()
    rows = page.locator("[aria-label='Methods and versions'] tbody tr")
    expect(rows).to_have_count(3)
    dearer = page.locator("[aria-label='Methods and versions'] tbody tr", has_text="reflexion 1.4")
    expect(dearer).to_contain_text(
        re.compile(r"100.%.*8 episodes of 8 tasks.*3\.35.*to.*8 episodes of 8 tasks.*0\.4.*4\.48.*120 pairs", re.DOTALL)
    )
    expect(rows.filter(has_text=HOSTILE)).to_contain_text("120 pairs; says nothing: within run-to-run noise")
    page.goto(shared.at(compare_link(readings[0])))
    told = page.locator("[aria-label='What differs']")
    expect(told.get_by_role("heading", name="Against plain 1.4")).to_be_visible()
    expect(told).to_contain_text("Recovery cost 3.35 against 1.35: higher, the difference between 2.00 and 2.00")
    expect(told).to_contain_text(f"Left out are the episodes of {HOSTILE} 1.4 at stress 0.8 (8)")
    expect(told).to_contain_text("nothing of them can be compared")
    told.get_by_role("link", name="reflexion 1.4").click()
    expect(told).to_contain_text("Recovery cost 1.35 against 3.35: lower")
    with page.expect_download() as downloading:
        page.get_by_role("link", name="Download as CSV").click()
    table = list(csv.DictReader(io.StringIO(downloading.value.path().read_text())))
    costs = {row["method"]: float(row["cost_value"]) for row in table}
    assert costs == pytest.approx({HOSTILE: 9.35, "plain": 1.35, "reflexion": 3.35})
    page.set_viewport_size({"width": 390, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_every_table_is_had_as_csv(shared: LiveProcess, shared_sender: ReadingSender, open_page: OpenPage) -> None:
    shared_sender.send(status("=csv-1"), window("=csv-1"), summary("=csv-1"), family("csv"))
    page = open_page(shared.address)
    expect(page.get_by_role("link", name="=csv-1", exact=True).first).to_be_visible()
    for name, shown in {
        "fleet": "'=csv-1,calm",
        "windows": "'=csv-1,boot,1,0,navigation",
        "episodes": "'=csv-1,boot,1,navigation",
        "families": "csv,reflexion,1.4",
        "levels": "csv,reflexion,1.4,0.6,broken",
    }.items():
        answer = page.request.get(f"{shared.address}csv/{name}")
        assert answer.headers["content-type"] == "text/csv; charset=utf-8"
        assert any(line.startswith(shown) for line in answer.text().splitlines()), name
    for path in ("csv/nonsense", "csv/compare", "csv/compare?family=ff"):
        answer = page.request.get(shared.address + path)
        assert (answer.status, "csv" in answer.headers["content-type"]) == (404, False)
