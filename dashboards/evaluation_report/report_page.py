"""The page: one HTML file that needs nothing else, neither the network nor a script."""

from collections.abc import Callable, Iterator, Sequence
from html import escape
from importlib import resources

from springback.dashboards.evaluation_report.cost_plots import (
    channel_share_section,
    cost_distribution_section,
    cost_stress_section,
)
from springback.dashboards.evaluation_report.page_tables import navigation_table, stress_table, summary_table
from springback.dashboards.evaluation_report.plot_style import PlotSection, unique_ids
from springback.dashboards.evaluation_report.report_display import choose, count_text, method_name, name_text
from springback.dashboards.evaluation_report.report_numbers import Progress, ReportNumbers
from springback.dashboards.evaluation_report.resilience_plots import signature_section, stress_response_section
from springback.dashboards.evaluation_report.timeline_plot import timeline_section
from springback.stream_processors.metrics.glossary import GLOSSARY, meaning

_TITLE = "Resilience report"
_FEW_SOURCES, _FEW_PANELS = 6, 3


def report_page(numbers: ReportNumbers, progress: Progress = lambda what, done, total: None) -> str:
    """The whole page. The same numbers make the same page, byte for byte.

    Args:
        numbers: what it shows.
        progress: told how far the drawing has come.
    """
    sections = _sections(numbers, progress)
    style = (
        resources.files("springback.dashboards.evaluation_report")
        .joinpath("page_style.css")
        .read_text(encoding="utf-8")
    )
    links = " ".join(f'<a href="#s{place}">{escape(section.heading)}</a>' for place, section in enumerate(sections))
    body = "\n".join(_section(place, section) for place, section in enumerate(sections))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{_TITLE}</title>
<style>
{style}</style>
</head>
<body>
<header>
<h1>{_TITLE}</h1>
{_about(numbers)}
<nav>{links} <a href="#table">By stress</a></nav>
</header>
<main>
<h2>At a glance</h2>
<p class="quiet">C_rec: recovery cost of an episode. Small figures are {numbers.confidence:.0%} bootstrap intervals.
A task is one value in a test, and p is Holm-corrected over all rows.
<b>AUDC</b>: Area under M_f + 1 over the stress levels with enough episodes, by their width.
<b>cliff</b>: First stress at which M_f falls by more than 1 per unit of stress.
{_explained("dependable capacity", "λ*", "β")}</p>
{summary_table(numbers)}
{body}
{_navigation(numbers)}
<h2 id="table">By family, method and stress</h2>
<p class="quiet">Small figures are {numbers.confidence:.0%} bootstrap intervals ({numbers.resamples} resamples of the
tasks, seed {numbers.seed}); one of no width says that all episodes had the same value. Censored episodes (their end
was not seen) and unscored ones (no baseline) enter no cost. Provisional ones (their family was still learning) are
shown, and count in no test and no margin.</p>
{stress_table(numbers.stresses)}
{_words()}
</main>
<footer><p>All numbers are in report.json and the CSV files beside this page.</p></footer>
</body>
</html>
"""


def _explained(*words: str) -> str:
    return "\n".join(f"<b>{escape(word)}</b>: {escape(meaning(word))}" for word in words)


def _words() -> str:
    rows = "\n".join(
        f"<dt>{escape(word.word)} <small>of {escape(word.of)}</small></dt><dd>{escape(word.meaning)}</dd>"
        for word in GLOSSARY.values()
    )
    return f"<details><summary>What the words mean</summary>\n<dl>\n{rows}\n</dl>\n</details>"


def _sections(numbers: ReportNumbers, progress: Progress) -> list[PlotSection]:
    chosen = choose(numbers.groups)
    makers: tuple[Callable[[], PlotSection], ...] = (
        lambda: stress_response_section(numbers, chosen),
        lambda: cost_distribution_section(numbers, chosen),
        lambda: cost_stress_section(numbers, chosen),
        lambda: channel_share_section(numbers, chosen),
        lambda: timeline_section(numbers, chosen),
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
    names = [name_text(source) for source in numbers.sources[:_FEW_SOURCES]]
    if len(numbers.sources) > _FEW_SOURCES:
        names.append(f"{len(numbers.sources) - _FEW_SOURCES} more")
    of = f"<br>From {escape(', '.join(names))}" if names else ""
    return f'<p class="quiet">{escape(", ".join(said))}.{of}</p>'


def _section(place: int, section: PlotSection) -> str:
    return "\n".join(
        [
            f'<section id="s{place}">',
            f"<h2>{escape(section.heading)}</h2>",
            f'<p class="quiet">{escape(section.explanation)}</p>',
            *_scales(section),
            *_missing(section),
            f'<div class="{"panels few" if len(section.panels) <= _FEW_PANELS else "panels"}">',
            *_panels(place, section),
            "</div>",
            "</section>",
        ]
    )


def _scales(section: PlotSection) -> Iterator[str]:
    if section.scales:
        items = "".join(f"<li><b>{escape(name)}</b>: {escape(meaning)}</li>" for name, meaning in section.scales)
        yield f'<ul class="quiet">{items}</ul>'


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
    table = navigation_table(numbers.evaluation.resilience)
    if not table:
        return ""
    return (
        "<h2>Navigation under attack</h2>\n"
        '<p class="quiet">SR: target in view within 1.5 m. SPL and SEL: success weighted by the shortest over the own '
        f"path, in metres and in actions.</p>\n{table}"
    )
