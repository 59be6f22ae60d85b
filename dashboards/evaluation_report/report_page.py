"""The page: one HTML file that needs nothing else, not the network, and reads without its script.

Its script sorts tables, shows long ones a page at a time, and says what a mark is. No other may run: what runs is named
by its hash, for names come from whoever sends steps.
"""

import base64
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from html import escape
from importlib import resources

from springback.dashboards.evaluation_report.cost_plots import (
    channel_share_section,
    cost_distribution_section,
    cost_stress_section,
)
from springback.dashboards.evaluation_report.page_tables import (
    attacked,
    breach_table,
    capacity_table,
    comparison_table,
    contract_table,
    level_table,
    navigation_table,
    outcome_table,
    stress_table,
)
from springback.dashboards.evaluation_report.plot_style import PlotSection, unique_ids
from springback.dashboards.evaluation_report.report_display import (
    Chosen,
    choose,
    count_text,
    method_name,
    name_text,
    time_text,
    visible_text,
)
from springback.dashboards.evaluation_report.report_numbers import Progress, ReportNumbers
from springback.dashboards.evaluation_report.report_origin import ReportOrigin
from springback.dashboards.evaluation_report.resilience_plots import signature_section, stress_response_section
from springback.dashboards.evaluation_report.timeline_table import HEADING, timeline_tables
from springback.stream_processors.metrics.glossary import GLOSSARY, meaning

_TITLE = "Resilience report"
_FEW_SOURCES = 6
_WIDTHS = {0: "one", 1: "one", 2: "two"}
"""How many columns of the page a section takes, by its panels."""


def report_page(numbers: ReportNumbers, progress: Progress = lambda what, done, total: None) -> str:
    """The whole page. The same numbers make the same page, byte for byte.

    Args:
        numbers: what it shows.
        progress: told how far the drawing has come.
    """
    chosen = choose(numbers.groups)
    sections = _sections(numbers, chosen, progress)
    style, script = _part("page_style.css"), _part("page_script.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    navigation, confidence = _navigation(numbers), f"{numbers.confidence:.0%}"
    links = [
        ("glance", "At a glance"),
        *((f"s{place}", section.heading) for place, section in enumerate(sections)),
        ("timelines", HEADING),
        *([("navigation", "Navigation")] if navigation else []),
        *(("levels", "Stress levels"), ("table", "By stress"), ("contract", "Contract"), ("settings", "Settings")),
    ]
    body = "\n".join(_section(place, section) for place, section in enumerate(sections))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{_TITLE}</title>
<style>
{style}</style>
</head>
<body>
<header>
<h1>{_TITLE}</h1>
{_about(numbers)}
{_origin(numbers.origin)}
<nav aria-label="Parts of the report">{" ".join(f'<a href="#{to}">{escape(text)}</a>' for to, text in links)}</nav>
</header>
<main>
<h2 id="glance">At a glance</h2>
<p class="quiet">C_rec: recovery cost of an episode, no unit. Small figures are {confidence} bootstrap intervals
({numbers.resamples} resamples of the tasks, seed {numbers.seed}); one of no width says that all episodes had the same
value. Clean episodes are references and those that declared no stress to be there (0); undeclared ones said nothing.
Censored episodes (their end was not seen) and unscored ones (no baseline) enter no cost. Provisional ones (their family
was still learning) are shown, and count in no test and no margin.</p>
{outcome_table(numbers.outcomes)}
<p class="quiet">A task is one value in a test, and p is Holm-corrected over all rows.</p>
{comparison_table(numbers.groups)}
<p class="quiet">{_explained("dependable capacity", "λ*", "first breach", "β")}
<b>AUDC</b>: Area under M_f + 1 over the stress levels with enough episodes, by their width.
<b>cliff</b>: First stress at which M_f falls by more than 1 per unit of stress.</p>
{capacity_table(numbers)}
<div class="sections">
{body}
</div>
{timeline_tables(numbers, chosen)}
{navigation}
<h2 id="levels">What each stress level shows</h2>
<p class="quiet">{_explained("margin M", "favourable margin M⁺", "kept", "broken", "undecided", "insufficient")}
n: episodes that M rests on. The five entries are what the worst tenth reached against what is asked, at most
{numbers.ratio_cap:g}; M is the mean of the two smallest, less 1.</p>
{level_table(numbers.evaluation.resilience)}
<h2 id="table">By family, method and stress</h2>
{stress_table(numbers.stresses)}
<h2 id="contract">The contract</h2>
<p class="quiet">What an episode must keep to. A family has one contract, whatever its methods and versions; <i>auto</i>
takes it from the clean episodes that were seen to end and are not provisional.</p>
{contract_table(numbers.contracts)}
<h3>Which parts of it were broken, by how many episodes</h3>
{breach_table(numbers.outcomes)}
<h2 id="settings">Settings</h2>
{_settings(numbers.origin)}
{_words()}
</main>
<footer><p>All numbers are in report.json and the CSV files beside this page.</p></footer>
<script>{script}</script>
</body>
</html>
"""


def _part(name: str) -> str:
    return resources.files("springback.dashboards.evaluation_report").joinpath(name).read_text(encoding="utf-8")


def _explained(*words: str) -> str:
    return "\n".join(f"<b>{escape(word)}</b>: {escape(meaning(word))}" for word in words)


def _words() -> str:
    rows = "\n".join(
        f"<dt>{escape(word.word)} <small>of {escape(word.of)}</small></dt><dd>{escape(word.meaning)}</dd>"
        for word in GLOSSARY.values()
    )
    return f"<details><summary>What the words mean</summary>\n<dl>\n{rows}\n</dl>\n</details>"


def _sections(numbers: ReportNumbers, chosen: Chosen, progress: Progress) -> list[PlotSection]:
    makers: tuple[Callable[[], PlotSection], ...] = (
        lambda: stress_response_section(numbers, chosen),
        lambda: cost_distribution_section(numbers, chosen),
        lambda: cost_stress_section(numbers, chosen),
        lambda: channel_share_section(numbers, chosen),
        lambda: signature_section(numbers),
    )
    sections = []
    for place, make in enumerate(makers):
        progress("Plots", place, len(makers))
        sections.append(make())
    progress("Plots", len(makers), len(makers))
    return sections


def _about(numbers: ReportNumbers) -> str:
    evaluation = numbers.evaluation
    windows = sum(len(episode.windows) for episode in evaluation.episodes)
    families = len({row.family for row in numbers.groups})
    methods = sorted({method_name(row) for row in numbers.groups})
    said = [
        count_text(len(evaluation.episodes), "episode"),
        count_text(families, "family", "families"),
        f"1 method ({methods[0]})" if len(methods) == 1 else count_text(len(methods), "method"),
        count_text(windows, "rebound window"),
    ]
    if numbers.rejected_rows:
        said.append(f"{count_text(numbers.rejected_rows, 'row')} rejected")
    return f'<p class="quiet">{escape(", ".join(said))}.</p>'


def _origin(origin: ReportOrigin) -> str:
    """Where it comes from, when it was, and how it was made."""
    names = [name_text(source) for source in origin.sources[:_FEW_SOURCES]]
    if len(origin.sources) > _FEW_SOURCES:
        names.append(f"{len(origin.sources) - _FEW_SOURCES} more")
    changed = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in origin.changed.items()]
    told = [
        ("From", ", ".join(names)),
        ("Steps", f"{time_text(origin.first_step_s)} to {time_text(origin.last_step_s)}"),
        ("Written", "" if origin.written_s is None else time_text(origin.written_s)),
        ("By", f"springback {origin.version}"),
        ("Scored by", name_text(origin.baseline, 100)),
        ("Mapping", name_text(origin.mapping or "")),
        ("Values", name_text(origin.value_model or "")),
        ("Settings", name_text(", ".join(changed), 400) if changed else "the defaults"),
    ]
    rows = "\n".join(f"<dt>{what}</dt><dd>{escape(text)}</dd>" for what, text in told if text)
    return f'<dl class="origin">\n{rows}\n</dl>'


def _settings(origin: ReportOrigin) -> str:
    changed = "\n".join(f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in origin.changed.items())
    told = f"<pre>{escape(visible_text(changed))}</pre>" if changed else ""
    many = count_text(len(origin.changed), "setting is", "settings are") if changed else "No setting is"
    whole = json.dumps(origin.settings, indent=1, ensure_ascii=False)
    return (
        f"<p>{many} other than the default (resilience in a settings file).</p>\n{told}\n"
        f"<details><summary>All settings</summary>\n<pre>{escape(visible_text(whole))}</pre>\n</details>"
    )


def _section(place: int, section: PlotSection) -> str:
    return "\n".join(
        [
            f'<section id="s{place}" class="{_WIDTHS.get(len(section.panels), "many")}">',
            f"<h2>{escape(section.heading)}</h2>",
            '<div class="panels">',
            *_panels(place, section),
            "</div>",
            f'<p class="quiet">{escape(section.explanation)}</p>',
            *_scales(section),
            *_missing(section),
            "</section>",
        ]
    )


def _scales(section: PlotSection) -> Iterator[str]:
    if section.scales:
        items = "".join(f"<li><b>{escape(name)}</b>: {escape(meaning)}</li>" for name, meaning in section.scales)
        yield f"<details><summary>How each is measured</summary>\n<ul class=quiet>{items}</ul>\n</details>"


def _missing(section: PlotSection) -> Sequence[str]:
    if not section.panels and not section.missing:
        return ["<p>Nothing to draw: there is no episode.</p>"]
    return [f"<p>{escape(reason)}</p>" for reason in section.missing]


def _panels(place: int, section: PlotSection) -> Iterator[str]:
    for number, panel in enumerate(section.panels):
        note = f"<figcaption>{escape(panel.note)}</figcaption>" if panel.note else ""
        yield (
            f'<figure class="panel"><h3>{escape(panel.title)}</h3>'
            f"{unique_ids(panel.svg, f'p{place}-{number}')}{note}</figure>"
        )


def _navigation(numbers: ReportNumbers) -> str:
    resilience = numbers.evaluation.resilience
    table = navigation_table(resilience)
    if not table:
        return ""
    return (
        f'<h2 id="navigation">Navigation{" under attack" if attacked(resilience) else ""}</h2>\n'
        '<p class="quiet">SR: target in view within 1.5 m. SPL and SEL: success weighted by the shortest over the own '
        f"path, in metres and in actions.</p>\n{table}"
    )
