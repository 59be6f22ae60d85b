"""The report in a browser, from a file: it asks for nothing, can be sorted, pointed at and paged, and reads without."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from springback.dashboards.evaluation_report.report_files import write_report
from tests.dashboards.evaluation_report.report_readings import HOSTILE, fleet, numbers_of, summary_of
from tests.dashboards.live_page.axe import SCHEMES, WIDTHS, assert_no_violations

pytestmark = pytest.mark.browser
WAIT_MS = 60_000


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("report")
    odd = [summary_of(f"odd-{i}", 1.0, family=HOSTILE, task=f"t{i}", outcome="failure") for i in range(3)]
    write_report(folder, numbers_of([*fleet(["navigation"], episodes=8), *odd]))
    return (folder / "report.html").as_uri()


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    with browser.new_context() as context:
        page = context.new_page()
        complaints: list[str] = []
        page.on("console", lambda said: complaints.append(said.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda asked: None if asked.url == address else complaints.append(asked.url))
        page.goto(address)
        yield page
        assert complaints == []


def first_cells(page: Page, sheet: str, place: int) -> list[str]:
    found: list[str] = page.eval_on_selector_all(
        f"[aria-label='{sheet}'] tbody tr", f"rows => rows.map(row => row.cells[{place}].firstChild.textContent)"
    )
    return found


def test_a_table_is_sorted_by_a_click_and_what_is_unknown_comes_last(page: Page) -> None:
    sheet = "By family, method and stress"
    cost = page.get_by_role("region", name=sheet).get_by_role("button", name="C_rec mean")
    for way in (1, -1):
        cost.click()
        costs = [float(cell) for cell in first_cells(page, sheet, 6)]
        assert costs == sorted(costs, key=lambda value: way * value)
    stress = page.get_by_role("region", name=sheet).get_by_role("button", name="λ")
    for _ in range(2):
        stress.click()
        assert first_cells(page, sheet, 2)[-1] == "undeclared"
    expect(page.locator(f"[aria-label='{sheet}'] th[aria-sort=descending]")).to_have_count(1)


def test_all_lines_of_a_timeline_come_a_page_at_a_time(page: Page) -> None:
    table = page.locator("table[data-page]").last
    whole = table.locator("tbody tr").count()
    assert whole > 25
    seen: list[str] = []
    while True:
        seen += table.locator("tbody tr:visible th").all_text_contents()
        onward = page.get_by_role("button", name="Next").last
        if onward.is_disabled():
            break
        onward.click()
    assert len(set(seen)) == len(seen) == whole


def test_a_mark_says_what_it_is_when_it_is_pointed_at(page: Page) -> None:
    mark = page.locator("figure [data-tip*='episode navigation-']").first
    mark.scroll_into_view_if_needed()
    mark.hover(force=True)
    expect(page.locator("#tip")).to_contain_text("C_rec", timeout=WAIT_MS)
    page.keyboard.press("Escape")
    expect(page.locator("#tip")).to_be_hidden()


def test_without_scripts_everything_is_there(browser: Browser, address: str) -> None:
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(address)
        expect(page.get_by_role("button")).to_have_count(0)
        rows = page.locator("table[data-page]").last.locator("tbody tr")
        assert rows.count() > 25
        expect(rows.last).to_be_visible()
        assert page.locator("figure title").count() > 100


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_all_can_read_it(browser: Browser, address: str, width: int, scheme: str) -> None:
    with browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme) as context:  # type: ignore[arg-type]
        page = context.new_page()
        page.goto(address)
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert_no_violations(page, f"{width} px, {scheme}")
