"""The live page in a browser, over readings that are written straight to the topics."""

import re
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace
from playwright.sync_api import Locator, Page, expect

from springback.sinks.fleet.fleet_state import agent_key
from springback.sinks.fleet.labels import clean_label_value
from springback.stream_processors.metrics.glossary import meaning
from tests.dashboards.live_page.fake_fleet import (
    NOTHING_KNOWN,
    ReadingSender,
    family,
    moments,
    status,
    summary,
    window,
)
from tests.dashboards.live_page.live_process import LiveProcess

pytestmark = [pytest.mark.broker, pytest.mark.browser]
OpenPage = Callable[..., Page]

expect.set_options(timeout=20_000)


def row(page: Page, agent: str) -> Locator:
    return page.locator(".sb-fleet tbody tr", has=page.get_by_role("link", name=agent, exact=True))


def names(page: Page) -> list[str]:
    return page.locator(".sb-fleet tbody .sb-name").all_inner_texts()


def agent_path(agent: str) -> str:
    return f"agent/{agent_key(clean_label_value(agent)).hex()}"


def test_an_empty_page_says_how_to_fill_it_and_fills_by_itself(
    live: LiveProcess, sender: ReadingSender, open_page: OpenPage
) -> None:
    page = open_page(live.address)
    expect(page.get_by_text("No agent has reported yet")).to_be_visible()
    expect(page.get_by_text(f"springback replay FILE --broker {live.broker}")).to_be_visible()
    expect(page.get_by_role("status")).to_contain_text("live")
    example = page.locator("pre", has_text="begin_episode").inner_text()
    assert re.findall(r"^(?:from|import) (springback\S*)", example, re.MULTILINE) == ["springback"]
    subprocess.run([sys.executable, "-c", example], check=True, timeout=60)
    page.set_viewport_size({"width": 390, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    sender.send(status("robot-7"))
    expect(page.get_by_role("link", name="robot-7")).to_be_visible()
    expect(page.get_by_text("No agent has reported yet")).to_be_hidden()
    assert list(live.working_directory.iterdir()) == []


def test_an_agent_goes_into_rebound_and_out_again(
    shared: LiveProcess, shared_sender: ReadingSender, open_page: OpenPage
) -> None:
    fleet, agent = open_page(shared.address), open_page(shared.address + agent_path("robot-7"))
    expect(agent.get_by_text("Nothing is known of this agent")).to_be_visible()
    shared_sender.send(status("robot-7", 40), status("robot-8", 40))
    expect(row(fleet, "robot-7")).to_contain_text("calm")
    expect(agent.get_by_role("heading", name="robot-7")).to_be_visible()
    shared_sender.send(
        window("robot-7", state="open", reentry_step=44, departure_step=41),
        status("robot-7", 46, departed=41, cost=1.23, intensity=4.5),
    )
    expect(row(fleet, "robot-7")).to_contain_text(re.compile("in rebound.*4.50.*1.23", re.DOTALL))
    expect(row(fleet, "robot-8")).to_contain_text("calm")
    expect(agent.get_by_text("Departed at step 41, 5 steps ago, by effort.")).to_be_visible()
    expect(agent.locator(".sb-windows li").filter(visible=True)).to_contain_text("has not re-entered yet")
    expect(agent.get_by_role("img", name="g by channel")).to_contain_text("re-entry")
    shared_sender.send(status("robot-7", 60, intensity=0.5), window("robot-7"))
    expect(row(fleet, "robot-7")).to_contain_text("calm")
    told = "departed from its baseline at step 41, with more effort than is normal there, and re-entered at step 52"
    expect(agent.get_by_text(told)).to_be_visible()
    expect(agent.locator(".sb-windows li").filter(visible=True)).to_have_count(1)
    expect(fleet.locator(".sb-windows").get_by_text(told)).to_be_visible()
    shaded = agent.locator(".sb-chart svg path[fill='var(--sb-window)']")
    expect(shaded.first).to_be_attached()
    shared_sender.send(status("robot-7", 60, ended=True), summary("robot-7"))
    expect(row(fleet, "robot-7")).to_contain_text("ended")


def test_the_fleet_table_sorts_and_filters(
    shared: LiveProcess, shared_sender: ReadingSender, open_page: OpenPage
) -> None:
    page = open_page(shared.address)
    shared_sender.send(
        status("sorted-2", 30, family="sorted-assembly", intensity=0.25),
        status("sorted-10", 10, intensity=0.75),
        status("sorted-9", 50, departed=41, cost=3.0, intensity=4.0),
        status("drone-sorted", 20, intensity=None, ended=True),
    )
    page.get_by_label("Find an agent or a family").fill("sorted")
    expect(row(page, "drone-sorted")).to_contain_text("ended")
    expect(page.locator(".sb-fleet tbody .sb-name")).to_have_count(4)
    assert names(page) == ["sorted-9", "sorted-2", "sorted-10", "drone-sorted"]  # by urgency, then by name
    page.get_by_role("columnheader", name="Agent").click()
    expect(page.locator(".sb-fleet tbody .sb-name").first).to_have_text("drone-sorted")
    assert names(page) == ["drone-sorted", "sorted-2", "sorted-9", "sorted-10"]
    page.get_by_role("columnheader", name="g", exact=True).click()
    expect(page.locator(".sb-fleet tbody .sb-name").first).to_have_text("sorted-2")
    page.get_by_role("columnheader", name="g", exact=True).click()
    expect(page.locator(".sb-fleet tbody .sb-name").first).to_have_text("sorted-9")
    assert names(page) == ["sorted-9", "sorted-10", "sorted-2", "drone-sorted"]
    page.get_by_label("Find an agent or a family").fill("SORTED-ASSEMB")
    expect(page.locator(".sb-fleet tbody .sb-name")).to_have_text(["sorted-2"])
    page.get_by_label("Find an agent or a family").fill("nobody")
    expect(page.get_by_text("No agent is like that.")).to_be_visible()
    page.get_by_label("Find an agent or a family").fill("sorted")
    page.get_by_role("button", name="in rebound").click()
    expect(page.locator(".sb-fleet tbody .sb-name")).to_have_text(["sorted-9"])
    page.get_by_role("button", name="ended").click()
    expect(page.locator(".sb-fleet tbody .sb-name")).to_have_text(["sorted-9", "drone-sorted"])
    page.get_by_role("link", name="sorted-9").click()
    expect(page.get_by_role("heading", name="sorted-9")).to_be_visible()


def test_all_can_be_done_with_keys(shared: LiveProcess, shared_sender: ReadingSender, open_page: OpenPage) -> None:
    page = open_page(shared.address)
    shared_sender.send(
        status("keyed-2"),
        status("keyed-1"),
        family("keyed-assembly"),
        family("keyed-navigation", stress_state="breach"),
    )
    expect(row(page, "keyed-2")).to_be_visible()
    page.get_by_label("Find an agent or a family").fill("keyed")
    expect(page.locator(".sb-fleet tbody .sb-name")).to_have_count(2)
    heads = page.locator(".sb-fleet thead th")
    name = heads.filter(has_text="Agent")
    expect(heads.filter(has_text="State")).to_have_attribute("aria-sort", "ascending")
    expect(name).to_have_attribute("aria-sort", "none")
    name.press("Enter")
    expect(name).to_have_attribute("aria-sort", "ascending")
    name.press("Space")
    expect(name).to_have_attribute("aria-sort", "descending")
    expect(page.locator(".sb-fleet tbody .sb-name")).to_have_text(["keyed-2", "keyed-1"])
    expect(name).to_be_focused()
    page.get_by_role("link", name="keyed-2").focus()
    shared_sender.send(status("keyed-2", 40, intensity=3.25))
    expect(row(page, "keyed-2")).to_contain_text("3.25")
    expect(page.get_by_role("link", name="keyed-2")).to_be_focused()
    page.get_by_role("button", name="in rebound").press("Enter")
    expect(page.get_by_role("button", name="in rebound")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_text("No agent is like that.")).to_be_visible()
    page.goto(shared.address + "families")
    expect(page.get_by_role("heading", name="Stress response of keyed-navigation")).to_be_visible()
    page.get_by_role("button", name="keyed-assembly").press("Enter")
    expect(page.get_by_role("heading", name="Stress response of keyed-assembly")).to_be_visible()


def test_times_are_those_of_whoever_looks(
    shared: LiveProcess, shared_sender: ReadingSender, open_page: OpenPage
) -> None:
    # A quarter of an hour off the others.
    page = open_page(shared.address + agent_path("clock-7"), zone="Asia/Kathmandu")
    now_s = time.time()
    shared_sender.send(status("clock-7", 10, seen_s=now_s - 1.0), status("clock-7", 11, seen_s=now_s))
    minutes = {datetime.fromtimestamp(now_s - ago_s, ZoneInfo("Asia/Kathmandu")).strftime("%H:%M") for ago_s in (0, 60)}
    expect(page.get_by_role("img", name="g by channel")).to_contain_text(re.compile(f"({'|'.join(minutes)}):[0-5]"))


def test_a_thousand_agents_are_paged_and_none_is_left_out(
    live: LiveProcess, sender: ReadingSender, open_page: OpenPage
) -> None:
    page = open_page(live.address)
    sender.send(*(status(f"robot-{number}") for number in range(1000)))
    expect(page.get_by_text("1\N{EN DASH}50 of 1,000")).to_be_visible()
    expect(page.get_by_role("button", name="calm")).to_contain_text("1,000")
    page.get_by_role("columnheader", name="Agent").click()
    seen: list[str] = []
    for number in range(20):
        first = 50 * number + 1
        expect(page.get_by_text(f"{first:,}\N{EN DASH}{first + 49:,} of 1,000")).to_be_visible()
        expect(page.locator(".sb-fleet tbody .sb-name").first).to_have_text(f"robot-{first - 1}")
        seen += names(page)
        if number < 19:
            page.get_by_label("Next page").click()
    assert seen == [f"robot-{number}" for number in range(1000)]
    elements = page.evaluate("document.querySelectorAll('*').length")
    for step in range(11, 15):
        sender.send(*(status(f"robot-{number}", step, intensity=step / 4) for number in range(1000)))
        expect(page.locator(".sb-fleet tbody tr").first).to_contain_text(f"{step / 4:.2f}")
    assert page.evaluate("document.querySelectorAll('*').length") <= elements + 5


HOSTILE = (
    "<script>document.title='broken'</script>",
    "<img src=x onerror=alert(1)>",
    "{{ constructor.constructor('alert(1)')() }}",
    "`${alert(1)}` </script><script>alert(1)</script>",
    "' onclick='alert(1)",
    "a\nb\x00c \u202eevil \N{FIRE}",
    "x" * 10_000,
    "None",
)


def test_hostile_ids_stay_text(live: LiveProcess, sender: ReadingSender, open_page: OpenPage) -> None:
    page = open_page(live.address)
    sender.send(
        *(status(name, 10, family=name) for name in HOSTILE),
        *(window(name, 0) for name in HOSTILE),
        *(family(name) for name in HOSTILE),
    )
    sender.send_dead_letter(HOSTILE[0], 1)
    expect(page.locator(".sb-fleet tbody .sb-name")).to_have_count(len(HOSTILE))
    assert set(names(page)) == {clean_label_value(name) for name in HOSTILE}
    page.reload()
    expect(page.locator(".sb-fleet tbody .sb-name")).to_have_count(len(HOSTILE))
    for path in ("", "families", "windows", "pipeline"):
        page.goto(live.address + path)
        expect(page.get_by_text("document.title='broken'").first).to_be_visible()
        assert "broken" not in page.title()
    for name in HOSTILE:
        page.goto(live.address + agent_path(name))
        expect(page.locator(".sb-agent-name")).to_have_text(clean_label_value(name))
    page.goto(live.address + "agent/none")
    expect(page.get_by_text("Nothing is known of this agent")).to_be_visible()


def test_families_show_success_beside_cost_and_the_curve_of_whoever_is_chosen(
    live: LiveProcess, sender: ReadingSender, open_page: OpenPage
) -> None:
    page = open_page(live.address + "families")
    expect(page.get_by_text("No episode of any family has ended yet.")).to_be_visible()
    sender.send(
        family("navigation"),
        family(
            "assembly",
            stress_state="breach",
            live_stress=0.8,
            dependable=0.2,
            success_rate=0.5,
            recovery_cost_mean=6.25,
        ),
        family("cleaning", **NOTHING_KNOWN, recovery_cost_mean=None, stress_state=None, live_stress=None),
    )
    table = families_of(page)
    expect(table).to_have_count(3)
    expect(table.nth(0)).to_contain_text(re.compile(r"assembly.*50.%.*6\.25.*0\.2.*0\.8 breach", re.DOTALL))
    expect(table.nth(2)).to_contain_text(
        re.compile(
            r"navigation.*97.%.*1\.82.*0\.4.*0\.2 within.*8 of 12.*0\.6; 39 to 86 %.*contract violated", re.DOTALL
        )
    )
    curve = page.get_by_role("img", name="margin over stress")
    expect(page.get_by_text("Stress response of assembly")).to_be_visible()  # the one in breach
    expect(page.get_by_text("Its agents work at 0.8 now: breach.")).to_be_visible()
    expect(curve).to_contain_text("live 0.8: breach")
    table.nth(2).click()
    expect(page.get_by_text("Stress response of navigation")).to_be_visible()
    expect(curve).to_contain_text("dependable: 0.4")
    levels = page.locator("[aria-label='Stress levels'] tbody tr")
    expect(levels).to_have_count(6)
    expect(levels.nth(3)).to_contain_text(re.compile(r"0\.6.*broken.*12.*0\.25.*8 of 12.*39 to 86 %", re.DOTALL))
    expect(levels.nth(4)).to_contain_text(re.compile(r"0\.8.*insufficient.*3", re.DOTALL))
    sender.send(family("navigation", 2, success_rate=0.25))
    expect(table.nth(2)).to_contain_text("25")
    table.nth(1).click()
    expect(page.get_by_text("Too few episodes at any declared stress")).to_be_visible()
    expect(table.nth(1)).to_contain_text(re.compile(r"not known.*not known.*no declared stress running", re.DOTALL))


def families_of(page: Page) -> Locator:
    return page.locator("[aria-label='Families'] .sb-table tbody tr")


@pytest.mark.parametrize("width", [1280, 390])
def test_at_three_moments_of_a_demo_nothing_says_more_than_is_known(
    shared: LiveProcess, shared_sender: ReadingSender, open_page: OpenPage, width: int
) -> None:
    """Situations 2 and 10: while clean episodes run, as stress rises, at the end; on a phone too."""
    page = open_page(shared.address + "families", width=width)
    number = 0
    for moment, (row, words) in {
        "learning": (r"learning: 12 of 20.*not known.*untested", "Learning: 12 of 20 references"),
        "clean": (r"at least 0\.0.*not tested above", "Above 0.0 there are too few episodes to tell."),
        "rising": (r"at least 0\.2.*not tested above", "Its agents work at 0.6 now: untested."),
        "ended": (r"no declared stress running", "No declared stress running."),
    }.items():
        number += 1
        name = f"{moment}-{width}"
        shared_sender.send(replace(moments()[moment], family=name, sequence=number))
        shown = families_of(page).filter(has_text=name)
        expect(shown).to_contain_text(name)
        text = re.sub(r"\s+", " ", shown.inner_text())
        if moment == "learning" and width == 390:  # the capacity stands after what runs now, under the family's name
            row = r"learning: 12 of 20.*untested.*not known"
        assert re.search(row, text), text
        assert "kept, up to" not in text
        shown.get_by_role("button", name=name).click()
        expect(page.get_by_text(words)).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.get_by_text("What the words mean").click()
    expect(page.get_by_text(meaning("undecided"))).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_every_state_is_explained_where_it_stands(
    shared: LiveProcess, shared_sender: ReadingSender, open_page: OpenPage
) -> None:
    page = open_page(shared.address + "families")
    shared_sender.send(replace(moments()["rising"], family="explained"))
    shown = families_of(page).filter(has_text="explained")
    shown.get_by_text("0.6 untested").hover()
    expect(page.get_by_role("tooltip")).to_have_text(meaning("untested"))
    page.get_by_role("columnheader", name="Dependable").hover()
    expect(page.get_by_role("tooltip").filter(has_text=meaning("dependable capacity"))).to_be_visible()


def test_a_provisional_window_says_that_it_does_not_count(
    shared: LiveProcess, shared_sender: ReadingSender, open_page: OpenPage
) -> None:
    page = open_page(shared.address + "windows")
    shared_sender.send(
        window("learner-1", provisional=True, state="open", departure_time_s=time.time()),
        status("learner-1", 44, departed=41, cost=1.0, provisional=True),
        summary("learner-2", "1", interruptions=2, gap=True),
        status("learner-2", 10),
    )
    told = page.locator(".sb-windows li").filter(has_text="learner-1")
    expect(told).to_contain_text("Provisional: its family is still learning.")
    page.goto(shared.address)
    expect(row(page, "learner-1")).to_contain_text(re.compile("in rebound.*provisional", re.DOTALL))
    page.goto(shared.address + agent_path("learner-1"))
    expect(page.get_by_text("by effort. Provisional: its family is still learning.")).to_be_visible()
    page.goto(shared.address + agent_path("learner-2"))
    expect(page.locator(".sb-stats > div").filter(has_text="Last episode")).to_contain_text(
        "success; 2 interruptions; gap"
    )


def test_recent_windows_are_paged(live: LiveProcess, sender: ReadingSender, open_page: OpenPage) -> None:
    page = open_page(live.address + "windows")
    expect(page.get_by_text("No rebound window yet.")).to_be_visible()
    sender.send(*(window("robot-7", number, departure_time_s=1000.0 + number) for number in range(60)))
    sender.send(window("robot-8", departure_step=7, departure_time_s=999.0, state="unrecovered", cause="delay"))
    told = page.locator(".sb-windows li").filter(visible=True)
    expect(page.get_by_text("1\N{EN DASH}25 of 61 that are remembered")).to_be_visible()
    expect(told).to_have_count(25)
    page.get_by_role("button", name="Older").click()
    page.get_by_role("button", name="Older").click()
    expect(page.get_by_text("51\N{EN DASH}61 of 61 that are remembered")).to_be_visible()
    page.get_by_role("button", name="Older").click()
    expect(told).to_have_count(11)
    last = re.compile("unrecovered.*robot-8 departed.*step 7.*delay.*physical.*6.25.*2.75", re.DOTALL)
    expect(told.last).to_contain_text(last)
    page.get_by_role("button", name="Newer").click()
    expect(told).to_have_count(25)
    told.first.get_by_role("link", name="robot-7", exact=True).click()
    expect(page.get_by_role("heading", name="robot-7")).to_be_visible()


def test_the_pipeline_page_counts(live: LiveProcess, sender: ReadingSender, open_page: OpenPage) -> None:
    page = open_page(live.address + "pipeline")
    sender.send(status("robot-1"), summary("robot-1", "1"), summary("robot-1", "1"))
    sender.send_dead_letter("missing_progress", 1)
    sender.send_dead_letter("missing_progress", 1)  # sent again
    sender.send_dead_letter("not_a_frame", 2)
    figures = page.locator(".sb-stats > div")
    expect(figures.filter(has_text="Broker")).to_contain_text("answers")
    expect(figures.filter(has_text="Dead letters")).to_contain_text("2")
    expect(figures.filter(has_text="Episodes ended")).to_contain_text("1")
    expect(figures.filter(has_text="Agents")).to_contain_text("1")
    expect(page.locator(".sb-counts > div", has_text="missing progress")).to_contain_text("1")
    expect(page.get_by_text("No frame waits.")).to_be_visible()


def test_on_a_phone_nothing_is_wider_than_the_screen(
    shared: LiveProcess, shared_sender: ReadingSender, open_page: OpenPage
) -> None:
    page = open_page(shared.address, width=390)
    shared_sender.send(
        *(status(f"phone-{number}" * (1 + number), 20) for number in range(9)), window("phone-1"), family("phones")
    )
    shared_sender.send(status("phone-1phone-1", 44, departed=41, cost=1.0))
    for path, shown in {
        "": "in rebound",
        "families": "phones",
        "windows": "phone-1 departed",
        "pipeline": "answers",
        agent_path("phone-1phone-1"): "Departed at step 41",
    }.items():
        page.goto(shared.address + path)
        expect(page.get_by_text(shown).filter(visible=True).first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path


def test_dark_and_light_follow_the_system_until_somebody_chooses(shared: LiveProcess, open_page: OpenPage) -> None:
    page = open_page(shared.address)
    dark = page.locator("body.body--dark")
    expect(page.get_by_role("button", name="Colours: as the system")).to_be_visible()
    expect(dark).to_have_count(0)
    page.emulate_media(color_scheme="dark")
    expect(dark).to_have_count(1)
    page.emulate_media(color_scheme="light")
    page.get_by_role("button", name="Colours: as the system").click()
    expect(page.get_by_role("button", name="Colours: dark")).to_be_visible()
    expect(dark).to_have_count(1)
    page.reload()
    expect(page.get_by_role("button", name="Colours: dark")).to_be_visible()
    expect(dark).to_have_count(1)
