"""The page: needs nothing but itself, shows names as they are and runs none of them, and is the same every time."""

import base64
import hashlib
import re
from collections import Counter
from html.parser import HTMLParser
from typing import Any

import pytest

import springback
from springback.dashboards.evaluation_report import report_display, timeline_table
from springback.dashboards.evaluation_report.cost_plots import cost_stress_section
from springback.dashboards.evaluation_report.report_display import choose
from springback.dashboards.evaluation_report.report_origin import ReportOrigin
from springback.dashboards.evaluation_report.report_page import report_page
from springback.stream_processors.metrics.glossary import GLOSSARY
from springback.stream_processors.resilience.readings import EpisodeSummary, NavigationReading
from tests.dashboards.evaluation_report.report_readings import HOSTILE, fleet, numbers_of, summary_of


class Page(HTMLParser):
    """What is in a page, and whether its elements are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in {"meta", "br"}:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.fixture(scope="module")
def page() -> str:
    return report_page(numbers_of(list(fleet(["navigation"])), origin=ReportOrigin(sources=["monday.jsonl"])))


def test_it_loads_nothing(page: str) -> None:
    parsed = Page(page)
    assert not {"link", "img", "iframe", "object", "image", "base"} & set(parsed.tags)
    references = [value or "" for name, value in parsed.attributes if name in {"src", "href", "xlink:href", "action"}]
    assert references
    assert all(value.startswith("#") for value in references)
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", page))
    assert "http:" not in page
    assert "https:" not in page
    assert "@import" not in page


def test_ids_are_unique_and_every_reference_has_one(page: str) -> None:
    parsed = Page(page)
    ids = Counter(value for name, value in parsed.attributes if name == "id")
    assert [name for name, count in ids.items() if count > 1] == []
    targets = set(re.findall(r'href="#([^"]*)"', page)) | set(re.findall(r"url\(#([^)]*)\)", page))
    assert targets <= set(ids)


def test_it_has_every_section_and_follows_light_and_dark(page: str) -> None:
    parsed = Page(page)
    # Response, cost against stress: a panel a family. Distribution, channels: a group. Radar: a method.
    assert parsed.tags["figure"] == 2 * 1 + 2 * 2 + 2
    assert "prefers-color-scheme: dark" in page
    assert 'name="viewport"' in page
    colours = set(re.findall(r"#[0-9a-f]{6}\b", page.partition("</style>")[2]))
    assert colours <= {"#000000", "#ffffff"}
    assert "monday.jsonl" in "".join(parsed.words)


def test_its_script_is_the_only_one_that_may_run(page: str) -> None:
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'\"" in page
    assert not re.search(r"\son\w+=", page.partition("<body>")[2].replace(script, ""))


def test_the_same_numbers_make_the_same_bytes(page: str) -> None:
    assert report_page(numbers_of(list(fleet(["navigation"])), origin=ReportOrigin(sources=["monday.jsonl"]))) == page


def test_a_hostile_name_is_shown_and_does_nothing() -> None:
    summaries = list(fleet(families=[HOSTILE, "navigation"], methods=[HOSTILE]))
    origin = ReportOrigin(sources=[HOSTILE], mapping=HOSTILE, changed={HOSTILE: HOSTILE}, settings={HOSTILE: HOSTILE})
    parsed = Page(report_page(numbers_of(summaries, origin=origin)))
    assert parsed.tags["script"] == 1
    words = "".join(parsed.words)
    assert '<script>alert("x")</script>&' in words
    assert "\u202e" not in words
    assert "机器人" in words


def test_a_name_is_no_formula_of_a_plot() -> None:
    numbers = numbers_of(list(fleet(families=["$\\no$"], methods=["$\\such$", "b"], episodes=1)))
    [panel] = cost_stress_section(numbers, choose(numbers.groups)).panels
    assert "$\\such$ 0" in "".join(Page(panel.svg).words)


def test_the_numbers_of_the_table_are_those_of_the_report(page: str) -> None:
    numbers = numbers_of(list(fleet(["navigation"])))
    table = page.partition('id="table"')[2].partition('id="contract"')[0]
    rows = re.findall(r"<tr><th class=\"name\" scope=row>.*?</tr>", table)
    assert len(rows) == len(numbers.stresses) == 12
    for row, expected in zip(rows, numbers.stresses, strict=True):
        cells = re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row)
        assert cells[0] == expected.family
        assert cells[2] == f"{expected.stress:.1f}"
        assert cells[3] == expected.run == ("disturbed" if expected.stress else "clean")
        assert cells[4] == f"{expected.episodes}<small>{expected.tasks} tasks</small>"
        mean = expected.recovery_cost_mean
        assert mean is not None
        assert cells[6] == f"{mean.value:.3g}<small>{mean.low:.3g} to {mean.high:.3g}</small>"


@pytest.mark.parametrize(
    ("summaries", "said"),
    [
        ([], "Nothing to draw: there is no episode."),
        ([summary_of("1", None)], "navigation: no episode has a cost"),
        ([summary_of("1", 2.0, stress=0.4)], "navigation: has too few episodes to tell"),
        ([summary_of("1", 2.0, stress=0.4)], "navigation: no clean episode"),
        ([summary_of("1", 0.0, reference=True)], "no rebound window in 1 episode"),
        ([summary_of("1", 0.0, reference=True)], "no disturbed episode"),
        (
            [summary_of("1", 1.0, outcome="aborted")],
            "no declared stress has an episode that a margin could be found of",
        ),
    ],
)
def test_little_input_makes_a_page_that_says_what_is_missing(summaries: list[object], said: str) -> None:
    text = report_page(numbers_of(summaries))  # type: ignore[arg-type]
    assert said in "".join(Page(text).words)
    assert "nan" not in text.partition("</style>")[2].lower()


def test_of_many_families_the_largest_are_drawn_and_all_are_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_display, "MOST_PANELS", 1)
    summaries = list(fleet(families=[f"family-{n}" for n in range(2)], methods=["one"], episodes=1))
    parsed = Page(report_page(numbers_of(summaries)))
    assert parsed.tags["figure"] == 4 * 1 + 1
    words = "".join(parsed.words)
    assert "Shown are the 1 groups with the most episodes of 2" in words
    assert words.count("family-1") >= 7


def told(summaries: list[EpisodeSummary]) -> str:
    return re.sub(r"\s+", " ", " ".join(Page(report_page(numbers_of(summaries))).words))


def test_a_capacity_is_no_more_than_what_was_tested() -> None:
    """Situation 2: clean episodes alone, then stress up to 0.2."""
    clean = [summary_of(f"c{n}", 0.0, task=f"t{n}", reference=True) for n in range(8)]
    text = told(clean)
    assert "navigation: kept without stress; not tested above" in text
    assert "at least 0.0 not tested above" in text
    text = told([*clean, *(summary_of(f"d{n}", 0.0, task=f"t{n}", stress=0.2) for n in range(8))])
    assert "navigation: kept up to 0.2; not tested above" in text
    assert "dependable at least 0.2; not tested above" in text


def test_failures_of_undeclared_stress_are_said_where_the_curves_are() -> None:
    """Situation 4: 20 of 20 missions fail, and nobody said under what stress."""
    text = told([summary_of(f"{n}", 30.0, task=f"t{n}", final_progress=0.1, final_propositions=0.0) for n in range(20)])
    assert (
        "navigation, default 0: Under undeclared stress 20 of 20 (84 to 100 %) episodes broke the contract: broken."
        in text
    )
    assert "no declared stress has an episode that a margin could be found of" in text


def test_every_word_is_explained_on_the_page() -> None:
    text = told([])
    for word in GLOSSARY.values():
        assert word.word in text
        assert word.meaning in text


def twins(shared: bool, **fields: Any) -> list[EpisodeSummary]:
    """Eight tasks clean, and eight disturbed and dearer; the same ones, or others."""
    clean = [summary_of(f"c{i}", 0.1 * i, task=f"t{i}", reference=True, **fields) for i in range(8)]
    names = [f"t{i}" if shared else f"u{i}" for i in range(8)]
    return [*clean, *(summary_of(f"d{i}", 1.0 + i, task=name, stress=0.4, **fields) for i, name in enumerate(names))]


def test_it_says_which_test_a_p_is_of_and_on_what_it_rests() -> None:
    pairs, apart = told(twins(shared=True)), told(twins(shared=False))
    # 2 of the 2^8 ways to give the differences their signs.
    assert "disturbed episodes cost more (p = 0.008)" in pairs
    assert "Disturbance made 8 of 8 tasks that ran both ways dearer, 0 cheaper, 0 neither." in pairs
    assert "Wilcoxon, 8 pairs; Mann–Whitney p = " in pairs  # noqa: RUF001
    assert "No task ran both ways: by Mann–Whitney." in apart  # noqa: RUF001
    assert "Mann–Whitney; 0 pairs" in apart  # noqa: RUF001


def test_a_correlation_says_what_it_is_over() -> None:
    costs = {0.0: 0.0, 0.4: 1.0, 0.8: 2.0}
    text = told([summary_of(f"{i}-{s}", c, task=f"t{i}", stress=s) for i in range(8) for s, c in costs.items()])
    assert "cost rises (ρ = 1.00, 1.00 to 1.00)" in text  # noqa: RUF001
    assert "1.00 to 1.00 over 24 episodes, 1.00 over 3 level means (p = 0.33)" in text


def test_what_is_provisional_is_tested_for_nothing_and_said_to_be() -> None:
    text = told(twins(shared=True, provisional=True))
    assert "its episodes are provisional, and tested for nothing" in text
    assert "8 provisional" in text
    assert text.count("its episodes are provisional, and tested for nothing") == 2  # of the comparison and of the trend
    assert "does not vary" not in text


def test_undeclared_stress_is_no_stress_of_a_plot() -> None:
    text = told([*twins(shared=True), summary_of("u", 99.0, stress=None)])
    assert "Not drawn: 1 episode of undeclared stress." in text
    assert "undeclared 1 " in text


def test_it_says_of_what_when_and_how_it_was_made() -> None:
    origin = ReportOrigin(
        sources=["monday.jsonl"],
        baseline="the baseline clean.baseline",
        settings={"aggregate": {"min_episodes": 9}, "learn_from": "success"},
        changed={"aggregate.min_episodes": 9, "learn_from": "success"},
        written_s=1_790_100_000.0,
    )
    episode = summary_of("1", 1.0, started_s=1_790_000_000.0, ended_s=1_790_000_119.0)
    text = re.sub(r"\s+", " ", " ".join(Page(report_page(numbers_of([episode], origin=origin))).words))
    for said in (
        "From monday.jsonl",
        "Steps 2026-09-21 14:13 UTC to 2026-09-21 14:15 UTC",
        "Written 2026-09-22 18:00 UTC",
        f"By springback {springback.__version__}",
        "Scored by the baseline clean.baseline",
        'Settings aggregate.min_episodes = 9, learn_from = "success"',
        "2 settings are other than the default",
        '"min_episodes": 9',
    ):
        assert re.sub(r"\s+", " ", said) in text
    assert "Settings the defaults" in told([])
    assert "Written" not in told([])


def test_a_contract_is_shown_with_what_its_thresholds_rest_on() -> None:
    text = told([summary_of(f"c{i}", 0.0, task=f"t{i}", reference=True) for i in range(8)])
    assert "final progress, at least auto 0.5 0.9 × 1, the 0.1 quantile of clean episodes, from 0.05 to 0.5 8" in text  # noqa: RUF001
    assert "stability loss, at most auto unmeasured, left out nothing yet: no clean episode has measured it 0" in text


@pytest.mark.parametrize(("attacks", "said"), [(("none", "none"), False), (("none", "model"), True)])
def test_it_speaks_of_attacks_where_there_were_some(attacks: tuple[str, ...], said: bool) -> None:
    went = NavigationReading(final_distance=1.0, target_in_view=True, path=2.0, shortest_path=2.0)
    text = told([summary_of(f"{i}", 0.0, navigation=went, attack=attack) for i, attack in enumerate(attacks)])
    assert ("Navigation under attack" in text) == said
    assert "Navigation" in text
    assert "attack episodes SR SPL SEL goal completion navigation" in text
    assert " all " not in text.partition("goal completion")[2].partition("What each stress level shows")[0]


def test_every_plot_says_how_many_episodes_are_behind_it(page: str) -> None:
    figures = re.findall(r"<figure.*?</figure>", page, re.DOTALL)
    words = [re.sub(r"\s+", " ", " ".join(Page(figure).words)) for figure in figures]
    assert all(re.search(r"n = \d+|below it n", text) for text in words)


def test_a_mark_says_which_episode_it_is_as_text_alone() -> None:
    summaries = [summary_of("7", 2.5, stress=0.4, task=HOSTILE)]
    [panel] = cost_stress_section(numbers_of(summaries), choose(numbers_of(summaries).groups)).panels
    titles = re.findall(r"<title>(.*?)</title>", panel.svg)
    assert any(title.startswith("robot-7, episode 7, task &lt;script&gt;") for title in titles)
    assert any(title.endswith("mean C_rec 2.5; n = 1") for title in titles)
    assert "<script" not in panel.svg


def test_all_timelines_are_on_the_page_and_a_bound_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    summaries = [summary_of(f"episode-{i:03}", 1.0, stress=0.4) for i in range(60)]
    lines = report_page(numbers_of(summaries)).partition('id="timelines"')[2].partition('id="levels"')[0]
    assert lines.count('class="line"') == 60
    assert "navigation: windows in 60 of 60 episodes" in lines
    monkeypatch.setattr(timeline_table, "MOST_ROWS", 10)
    lines = report_page(numbers_of(summaries)).partition('id="timelines"')[2].partition('id="levels"')[0]
    assert lines.count('class="line"') == 10
    assert "Shown are 10 of them, the calmest first; windows.csv has all." in lines
