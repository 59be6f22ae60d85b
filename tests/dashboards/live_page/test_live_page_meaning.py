"""When, where to and what it means: times, links, addresses and explanations of the live page, in a browser."""

import re
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from urllib.parse import parse_qs, urlsplit

import pytest
from msgspec.structs import replace
from playwright.sync_api import Browser, Locator, Page, expect

from springback.dashboards.live_page.links import (
    RUNBOOK,
    agent_link,
    agent_token,
    compare_link,
    episode_link,
    family_link,
)
from springback.stream_processors.metrics.glossary import meaning
from springback.stream_processors.resilience.readings import EpisodeKey
from tests.dashboards.live_page.axe import SCHEMES, WIDTHS, assert_no_violations
from tests.dashboards.live_page.conftest import watch
from tests.dashboards.live_page.fake_fleet import ReadingSender, family, moments, status, summary, window
from tests.dashboards.live_page.live_process import LiveProcess

pytestmark = [pytest.mark.broker, pytest.mark.browser]
OpenPage = Callable[..., Page]

expect.set_options(timeout=20_000)
NEPAL = timezone(timedelta(hours=5, minutes=45))
TIP = ".sb-tip:popover-open"


def query_of(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def names(page: Page) -> Locator:
    return page.locator(".sb-fleet tbody .sb-name")


def test_a_window_and_an_episode_tell_when_and_where_and_lead_there(
    shared: LiveProcess, shared_sender: ReadingSender, open_page: OpenPage
) -> None:
    now_s = time.time()
    key = EpisodeKey("timed-1", "session", "12")
    # Its clock is an hour ahead of the broker's: what is shown is by the broker's.
    shared_sender.send(status("timed-1", clock_skew_s=3600.0, seen_s=now_s))
    shared_sender.send(
        replace(window("timed-1", 3, departure_time_s=now_s + 3600.0 - 150.0), key=key),
        replace(summary("timed-1", "12", windows=1), key=key, started_s=now_s, ended_s=now_s + 3600.0 - 130.0),
    )
    page = open_page(shared.at("/windows?search=timed-1"), zone="Asia/Kathmandu")
    told = page.locator(".sb-windows li").filter(has_text="timed-1")
    expect(told).to_contain_text("kitchen-041")
    expect(told).to_contain_text(re.compile(r"λ\s*0\.4"))
    when = told.get_by_role("button", name=re.compile("ago"))
    expect(when).to_have_text("2 min ago")
    when.hover()
    expect(page.locator(TIP)).to_have_text(re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+05:45$"))
    exact = datetime.fromisoformat(page.locator(TIP).inner_text())
    assert abs(exact - datetime.fromtimestamp(now_s - 150.0, NEPAL)) < timedelta(seconds=3)
    expect(when.locator("time")).to_have_attribute("datetime", page.locator(TIP).inner_text())
    links = {link.get_attribute("href") for link in told.get_by_role("link").all()}
    reading = window("timed-1")
    assert links == {episode_link(key, 3), agent_link("timed-1"), family_link(reading.traits)}
    episode = page.get_by_role("region", name="Recent episodes").locator("tbody tr")
    expect(episode).to_have_count(1)
    expect(episode).to_contain_text(
        re.compile(r"2 min ago.*12.*timed-1.*navigation.*kitchen-041.*0\.4.*success", re.DOTALL)
    )
    assert episode_link(key) in {link.get_attribute("href") for link in episode.get_by_role("link").all()}
    page.goto(shared.at(agent_link("timed-1")))
    expect(page.locator(".sb-windows li").filter(visible=True)).to_contain_text("2 min ago")
    last = page.get_by_role("heading", name="Its last episodes").locator("..").locator("tbody tr")
    expect(last).to_contain_text(re.compile(r"2 min ago.*12.*kitchen-041", re.DOTALL))


def test_what_is_shown_of_the_fleet_is_in_the_address_and_survives_reload_and_the_way_back(
    shared: LiveProcess, shared_sender: ReadingSender, open_page: OpenPage
) -> None:
    shared_sender.send(
        *(status(f"kept-{number}", 10 + number, intensity=number / 4) for number in range(30)),
        *(status(f"kept-{number}", 50, departed=41, cost=1.0) for number in range(30, 33)),
    )
    page = open_page(shared.address)
    page.get_by_label("Find an agent or a family").fill("kept")
    expect(page.get_by_text("of 33")).to_be_visible()
    expect(page).to_have_url(re.compile(r"\?search=kept$"))
    page.get_by_role("columnheader", name="g", exact=True).click()
    expect(page).to_have_url(re.compile("sort=intensity"))
    page.get_by_role("columnheader", name="g", exact=True).click()
    expect(page).to_have_url(re.compile("sort=-intensity"))
    expect(names(page).first).to_have_text("kept-29")
    page.get_by_role("button", name="in rebound").click()
    expect(names(page)).to_have_count(3)
    assert query_of(page) == {"search": ["kept"], "sort": ["-intensity"], "state": ["rebound"]}
    page.reload()
    expect(names(page)).to_have_count(3)
    expect(page.get_by_label("Find an agent or a family")).to_have_value("kept")
    expect(page.get_by_role("button", name="in rebound")).to_have_attribute("aria-pressed", "true")
    header = page.get_by_role("columnheader", name="g", exact=True)
    expect(header).to_have_attribute("aria-sort", "descending")
    page.go_back()
    expect(page.get_by_text("of 33")).to_be_visible()
    expect(page.get_by_role("button", name="in rebound")).to_have_attribute("aria-pressed", "false")
    page.go_back()
    expect(header).to_have_attribute("aria-sort", "ascending")
    expect(names(page).first).to_have_text("kept-0")
    page.go_forward()
    expect(header).to_have_attribute("aria-sort", "descending")
    # A link that somebody was sent: another browser shows the same page of the same order.
    other = open_page(shared.address + "?search=kept&sort=name&page=2&rows=25")
    expect(other.get_by_text("26\N{EN DASH}33 of 33")).to_be_visible()
    expect(names(other).first).to_have_text("kept-25")


def test_the_chosen_family_its_table_and_the_time_that_is_drawn_are_in_the_address(
    shared: LiveProcess, shared_sender: ReadingSender, open_page: OpenPage
) -> None:
    shared_sender.send(
        family("linked-a", success_rate=0.9), family("linked-b", success_rate=0.5), status("linked-7", 10)
    )
    page = open_page(shared.at(family_link(family("linked-b"))))
    expect(page.get_by_role("heading", name="Stress response of linked-b")).to_be_visible()
    page.get_by_label("Find a family or a method").fill("linked")
    rows = page.locator("[aria-label='Families'] .sb-table tbody tr")
    expect(rows).to_have_count(2)
    rows.first.get_by_role("button", name="linked-a").click()
    expect(page.get_by_role("heading", name="Stress response of linked-a")).to_be_visible()
    page.get_by_role("columnheader", name="Success").press("Enter")
    expect(rows.first).to_contain_text("linked-b")
    expect(page).to_have_url(re.compile("sort=success"))
    page.reload()
    expect(page.get_by_role("heading", name="Stress response of linked-a")).to_be_visible()
    expect(rows.first).to_contain_text("linked-b")
    expect(rows).to_have_count(2)
    page.go_back()
    page.go_back()
    expect(page.get_by_role("heading", name="Stress response of linked-b")).to_be_visible()
    page.goto(shared.at("/families?family=" + 32 * "0"))
    expect(page.get_by_text("Nothing is known (any more) of the family that the address names")).to_be_visible()
    page.goto(shared.at(agent_link("linked-7")))
    page.get_by_role("button", name="Last 30 seconds").click()
    expect(page).to_have_url(re.compile(r"\?last=30s$"))
    page.reload()
    expect(page.get_by_role("button", name="Last 30 seconds")).to_have_attribute("aria-pressed", "true")


def test_windows_are_searched_and_chosen_by_state_and_time(
    shared: LiveProcess, shared_sender: ReadingSender, open_page: OpenPage
) -> None:
    now_s = time.time()
    shared_sender.send(
        window("sought-1", departure_time_s=now_s - 60.0),
        window("sought-2", departure_time_s=now_s - 60.0, state="unrecovered"),
        window("sought-3", departure_time_s=now_s - 7200.0, state="unrecovered"),
    )
    page = open_page(shared.at("/windows"))
    page.get_by_label("Find an agent, a family or a task").fill("sought KITCHEN")
    told = page.locator(".sb-windows li").filter(visible=True)
    expect(told).to_have_count(3)
    page.get_by_role("button", name="Unrecovered", exact=True).click()
    expect(told).to_have_count(2)
    page.get_by_role("button", name="Last hour").click()
    expect(told).to_have_count(1)
    expect(told).to_contain_text("sought-2")
    assert query_of(page) == {"search": ["sought KITCHEN"], "state": ["unrecovered"], "since": ["1h"]}
    page.reload()
    expect(told).to_have_count(1)
    page.go_back()
    expect(told).to_have_count(2)


def test_a_symbol_says_what_it_means_by_pointer_touch_and_key(
    shared: LiveProcess, shared_sender: ReadingSender, open_page: OpenPage, browser: Browser
) -> None:
    shared_sender.send(replace(moments()["rising"], family="meant"), status("meant-7", departed=5))
    shared_sender.send(window("meant-7", departure_time_s=time.time(), lost_cycles=-19.0, cause="delay"))
    page = open_page(shared.at("/families"))
    tip = page.locator(TIP)
    for symbol, word in (("λ*", "λ*"), ("β", "β"), ("Cost", "recovery cost C_rec"), ("M", "margin M")):
        mark = page.get_by_role("button", name=f"What {symbol} means", exact=True).filter(visible=True)
        mark.focus()
        page.keyboard.press("Enter")
        expect(tip).to_have_text(meaning(word))
        page.keyboard.press("Escape")
        expect(tip).to_have_count(0)
        expect(mark).to_have_accessible_description(meaning(word))
    page.goto(shared.at(agent_link("meant-7")))
    for shown, word in (
        ("Progress p", "progress p"),
        ("Propositions q", "propositions q"),
        ("Intensity g", "intensity g"),
    ):
        page.get_by_role("button", name=shown, exact=True).hover()
        expect(tip).to_have_text(meaning(word))
    lost = page.locator(".sb-windows li").filter(visible=True)
    expect(lost).to_contain_text(re.compile(r"which it has made up for since.*lost cycles\s*\u221219\.00", re.DOTALL))
    complaints: list[str] = []
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    phone = context.new_page()
    watch(phone, complaints, shared.address, False)
    phone.goto(shared.at("/windows?search=meant-7"))
    row = phone.locator(".sb-windows li").filter(visible=True)
    for shown, word in (("lost cycles", "lost cycles"), ("λ", "stress λ"), ("peak g", "peak g")):
        row.get_by_role("button", name=shown, exact=True).tap()
        expect(phone.locator(TIP)).to_have_text(meaning(word))
        phone.get_by_role("heading", name="Recent rebound windows").tap()
        expect(phone.locator(TIP)).to_have_count(0)
    row.locator("button.sb-when").tap()
    expect(phone.locator(TIP)).to_have_text(re.compile(r"^\d{4}-\d\d-\d\dT"))
    phone.goto(shared.at("/?search=meant-7"))
    # A tap on what explains itself leads nowhere, and sorts nothing.
    phone.get_by_role("button", name="What g means").tap()
    expect(phone.locator(TIP)).to_have_text(meaning("intensity g"))
    assert urlsplit(phone.url).query == "search=meant-7"
    context.close()
    assert complaints == []


def test_a_phone_keeps_progress_and_last_heard(
    shared: LiveProcess, shared_sender: ReadingSender, open_page: OpenPage
) -> None:
    now_s = time.time()
    shared_sender.send(status("pocket-1", 30, seen_s=now_s - 150.0), status("pocket-2", 45, departed=41, cost=2.5))
    page = open_page(shared.address + "?search=pocket", width=390)
    silent, rebound = (page.locator(".sb-fleet tbody tr").filter(has_text=name) for name in ("pocket-1", "pocket-2"))
    expect(silent).to_contain_text(re.compile(r"50.%"))
    expect(silent.get_by_text("2 min ago").filter(visible=True)).to_have_count(1)
    expect(rebound.get_by_text("now", exact=True).filter(visible=True)).to_have_count(1)
    expect(rebound.get_by_text("cost 2.50").filter(visible=True)).to_be_visible()
    middle = page.locator(".sb-fleet .q-table__middle")
    assert middle.evaluate("table => table.scrollWidth - table.clientWidth") <= 0


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_page_can_be_used_by_all(
    shared: LiveProcess, shared_sender: ReadingSender, open_page: OpenPage, width: int, scheme: str
) -> None:
    now_s = time.time()
    shared_sender.send(
        *(replace(reading, family=f"seen-{name}") for name, reading in moments().items()),
        family("seen-breach", stress_state="breach", live_stress=0.8),
        status("seen-1", 46, departed=41, cost=1.0, intensity=61.0, seen_s=now_s - 1.0),
        status("seen-1", 47, departed=41, cost=1.5, intensity=0.5),
        status("seen-2", 30, seen_s=now_s - 150.0),
        *(window("seen-1", n, state=s) for n, s in enumerate(("open", "recovered", "unrecovered", "censored"))),
        summary("seen-1", "1", interruptions=2, gap=True),
    )
    page = open_page(shared.address, width=width)
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    for path, shows in {
        "/?search=seen": "seen-2",
        "/families": "seen-breach",
        "/windows?search=seen-1": "unrecovered",
        "/pipeline": "Frames behind",
        "/alerts": "What springback tells by itself",
        RUNBOOK: "Springback",
        compare_link(family("seen-breach")): "Methods and versions of seen-breach",
        agent_link("seen-1"): "Its last episodes",
        f"/agent/{agent_token('nobody')}": "Nothing is known of this agent",
    }.items():
        page.goto(shared.at(path))
        expect(page.get_by_text(shows).filter(visible=True).first).to_be_visible()
        assert_no_violations(page, f"{path} at {width}, {scheme}")
        assert page.locator("h1, [role=heading][aria-level='1']").filter(visible=True).count() == 1, path
        assert page.locator("main, [role=main]").count() == 1, path
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        page.locator("details.sb-words summary").click()
        expect(page.get_by_text(meaning("margin M"), exact=True)).to_be_visible()
        assert_no_violations(page, f"{path} with the words, at {width}, {scheme}")
