"""The alerts: what springback decides itself, what an Alertmanager says, and the runbook that each leads to."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import markdown2  # type: ignore[import-untyped]
from nicegui import ui

from springback.dashboards.live_page.alerts.alert_book import Alert
from springback.dashboards.live_page.alerts.alertmanager import (
    AlertmanagerWatch,
    ManagedAlert,
    Silence,
    as_seconds,
)
from springback.dashboards.live_page.alerts.conditions import RULES, Severity
from springback.dashboards.live_page.explained import When, text
from springback.dashboards.live_page.links import RUNBOOK, runbook_link
from springback.dashboards.live_page.live_sink import LiveSink
from springback.dashboards.live_page.page_parts import section_title
from springback.sinks.fleet.labels import clean_label_value
from springback.stream_processors.metrics.figure_words import counted
from springback.stream_processors.metrics.spec import AgentStateName

_MOST_ROWS = 50
_LONGEST_TEXT = 300
_ALERT_NAME = re.compile(r"[A-Za-z0-9_]{1,100}")
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_MARKDOWN = ["tables", "fenced-code-blocks", "cuddled-lists"]
_LOOKS: dict[Severity, tuple[AgentStateName, str]] = {
    "critical": ("rebound", "error"),
    "warning": ("stalled", "warning_amber"),
    "info": ("silent", "info"),
}
_OVER_LOOK: tuple[AgentStateName, str] = ("ended", "history")
_ONLY_PROMETHEUS = (
    "Not looked at here, since the page reads no metrics: whether workers, judges, gateways and exporters run and get "
    "on, steps that were lost on the way, and the share of unscored steps. Prometheus does that."
)


class Runbook:
    """The runbook: an introduction, and a section for each alert.

    Args:
        source: as Markdown; empty where there is none.
    """

    def __init__(self, source: str) -> None:
        parts = _SECTION.split(source)
        self.introduction = re.sub(r"<!--.*?-->|^# .+$", "", parts[0], flags=re.DOTALL | re.MULTILINE)
        self.sections = dict(zip(parts[1::2], parts[2::2], strict=True))

    def link(self, alert: str) -> str | None:
        """Where its section of an alert is; None where it has none."""
        return runbook_link(alert) if alert in self.sections else None


class AlertSources(NamedTuple):
    """What the page has of alerts besides the readings.

    Attributes:
        runbook: what is to be done.
        manager: what an Alertmanager says; None where none was named.
    """

    runbook: Runbook
    manager: AlertmanagerWatch | None = None


class _Row:
    """An alert in a row that is made once and then only changes its text."""

    def __init__(self) -> None:
        self._shown: object = None
        self._mark = ""
        with ui.element("li") as self._row:
            with ui.element("span").classes("sb-state") as self._chip:
                self._icon, self._word = ui.icon("").props('aria-hidden="true"'), ui.label()
            with ui.element("div").classes("sb-alert"):
                with ui.element("div"):
                    self._link = ui.link("", "").classes("sb-sentence")
                    self._subject = text().classes("sb-sentence")
                    self._told = text()
                with ui.element("div").classes("sb-under"):
                    self._since_word = text()
                    self._since = When()
                    self._remark = text()
                    self._runbook = ui.link("", RUNBOOK)
        self._row.set_visibility(False)

    def show(self, row: "AlertRow | None") -> None:
        if row == self._shown:
            return
        self._shown = row
        self._row.set_visibility(row is not None)
        if row is None:
            return
        mark, self._icon.name = row.look
        self._word.text = row.word
        self._chip.classes(add=f"sb-state--{mark}", remove=self._mark)
        self._mark = f"sb-state--{mark}"
        self._link.set_visibility(row.link is not None)
        self._subject.set_visibility(row.link is None)
        self._link.text = self._subject.text = row.subject
        if row.link is not None:
            self._link.props["href"] = row.link
        self._told.text = f" {row.told}"
        self._since_word.text = row.since_word
        self._since.show(row.since_s)
        self._since.set_visibility(row.since_s is not None)
        self._remark.text = row.remark
        self._runbook.set_visibility(row.runbook is not None)
        self._runbook.text = f"Runbook: {row.name}"
        if row.runbook is not None:
            self._runbook.props["href"] = row.runbook


class AlertRow(NamedTuple):
    """What a row shows; all of it text of bounded length, safe to be shown."""

    name: str
    look: tuple[AgentStateName, str]
    word: str
    subject: str
    told: str
    link: str | None
    since_word: str
    since_s: float | None
    remark: str
    runbook: str | None


def row_of(alert: Alert, runbook: Runbook) -> AlertRow:
    """The row of an alert of ours."""
    over = alert.over_s is not None
    return AlertRow(
        name=alert.rule.name,
        look=_OVER_LOOK if over else _LOOKS[alert.rule.severity],
        word="over" if over else alert.rule.severity,
        subject=alert.subject,
        told=alert.told,
        link=alert.link,
        since_word="last so" if over else "for longer than" if alert.at_least else "since",
        since_s=alert.over_s if over else alert.since_s,
        remark=f"told {alert.rule.keep_s // 60:g} min longer" if over else "",
        runbook=runbook.link(alert.rule.name),
    )


def managed_row_of(alert: ManagedAlert, runbook: Runbook) -> AlertRow:
    """The row of an alert that an Alertmanager has."""
    labels = alert.labels
    name = labels.get("alertname", "")
    severity = labels.get("severity", "")
    look = _LOOKS[severity] if severity in _LOOKS else _OVER_LOOK
    summary = alert.annotations.get("summary") or ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))
    return AlertRow(
        name=_cut(name),
        look=look if alert.state == "active" else _OVER_LOOK,
        word=severity if severity in _LOOKS else "alert",
        subject=_cut(name) or "an alert without a name",
        told=_cut(summary),
        link=None,
        since_word="since" if alert.starts_at is not None else "",
        since_s=as_seconds(alert.starts_at),
        remark="" if alert.state == "active" else alert.state,
        runbook=runbook.link(name) if _ALERT_NAME.fullmatch(name) else None,
    )


def silence_row_of(silence: Silence) -> AlertRow:
    """The row of a silence."""
    return AlertRow(
        name="",
        look=("ended", "notifications_off"),
        word="silence",
        subject=_cut(silence.what),
        told=_cut(silence.comment),
        link=None,
        since_word="ends",
        since_s=as_seconds(silence.ends_at),
        remark=f"by {_cut(silence.created_by)}",
        runbook=None,
    )


def _cut(value: str) -> str:
    return str(clean_label_value(value, _LONGEST_TEXT))


class _Rows:
    """Rows that are made once, and how many there are beyond them."""

    def __init__(self) -> None:
        with ui.element("ul").classes("sb-windows sb-alerts") as self._list:
            self._rows = [_Row() for _ in range(_MOST_ROWS)]
        self._more = ui.label().classes("sb-note")

    def show(self, rows: Sequence[AlertRow], beyond: int = 0) -> None:
        for number, row in enumerate(self._rows):
            row.show(rows[number] if number < len(rows) else None)
        more = max(0, len(rows) - _MOST_ROWS) + beyond
        self._list.set_visibility(bool(rows))
        self._more.set_visibility(more > 0)
        self._more.text = f"{more:,} more are not shown."


def looked_at_text(sink: LiveSink, alerts: Sequence[Alert]) -> str:
    """How many alerts there are, and what was looked at to say so: that nothing is told is not that all is well."""
    with sink.look() as (view, now_s):
        agents, families = sum(1 for _ in view.agents()), len(view.families())
        sight, blindness = view.sight, view.sight.blindness
        answered_s = sight.broker.answered_s
    number = sum(alert.over_s is None for alert in alerts)
    told = counted(number, "alert") if number else "No alert"
    heard = "no agent has reported" if sight.newest_s is None else f"last report {_ago(now_s - sight.newest_s)}"
    seen = f"{counted(agents, 'agent')} seen, {counted(families, 'family', 'families')}, {heard}"
    if blindness == "no broker":
        answer = "" if answered_s < 0 else f" It last answered {_ago(now_s - answered_s)}."
        return f"Not known: the broker does not answer.{answer} {seen.capitalize()}."
    if blindness == "catching up":
        return f"Not known yet: the topics are still being read. {seen.capitalize()}."
    unread = " Steps wait unread, so what agents do now is not known." if blindness == "no worker" else ""
    names = sorted({condition.rule.name for condition in sink.waiting_for_alerts()})
    waiting = f" So now, but not yet for as long as an alert takes: {', '.join(names)}." if names else ""
    return f"{told}; {seen}, broker answered {_ago(now_s - answered_s)}.{unread}{waiting}"


def _ago(seconds: float) -> str:
    """How long ago something was, so coarse that it seldom changes.

    >>> [_ago(seconds) for seconds in (3, 47, 125, 7300)]
    ['just now', '40 s ago', '2 min ago', '2 h ago']
    """
    if seconds < 10:
        return "just now"
    if seconds < 60:
        return f"{seconds // 10 * 10:.0f} s ago"
    return f"{seconds // 60:.0f} min ago" if seconds < 3600 else f"{seconds // 3600:.0f} h ago"


class AlertPanel:
    """The page's content.

    Args:
        sink: what is shown.
        sources: the runbook, and the Alertmanager.
    """

    def __init__(self, sink: LiveSink, sources: AlertSources) -> None:
        self._sink = sink
        self._sources = sources
        with ui.element("section").classes("sb-card").props('aria-label="Alerts of springback"'):
            section_title("What springback tells by itself")
            self._looked = ui.label().classes("sb-note sb-looked")
            self._rows = _Rows()
            with ui.element("details").classes("sb-note sb-looked-at"):
                with ui.element("summary"):
                    text("What is looked at")
                ui.label("The alerts of the rules for Prometheus, by the same names, conditions and times:")
                with ui.element("ul"):
                    for rule in RULES:
                        with ui.element("li"):
                            _name_link(rule.name, sources.runbook)
                ui.label(_ONLY_PROMETHEUS)
        self._manager: _ManagerPanel | None = None
        if sources.manager is not None:
            self._manager = _ManagerPanel(sources.manager, sources.runbook, sink)

    def refresh(self) -> None:
        """Shows what holds now."""
        alerts = self._sink.alerts()
        self._looked.text = looked_at_text(self._sink, alerts)
        self._rows.show([row_of(alert, self._sources.runbook) for alert in alerts])
        if self._manager is not None:
            self._manager.refresh()


def _name_link(name: str, runbook: Runbook) -> None:
    link = runbook.link(name)
    if link is None:
        ui.label(name)
    else:
        ui.link(name, link)


class _ManagerPanel:
    """What an Alertmanager says."""

    def __init__(self, watch: AlertmanagerWatch, runbook: Runbook, sink: LiveSink) -> None:
        self._watch, self._runbook, self._sink = watch, runbook, sink
        with ui.element("section").classes("sb-card").props('aria-label="Alertmanager"'):
            section_title("Alertmanager")
            self._told = ui.label().classes("sb-note sb-manager")
            self._rows = _Rows()
            self._silences = _Rows()

    def refresh(self) -> None:
        news = self._watch.news
        with self._sink.look() as (_, now_s):
            pass
        when = "has not answered yet" if news.answered_s is None else f"answered {_ago(now_s - news.answered_s)}"
        if news.fault is not None:
            shown = "" if news.answered_s is None else " What is shown is from then."
            self._told.text = (
                f"The Alertmanager at {self._watch.url} is not to be asked: {news.fault}. It {when}.{shown}"
            )
        elif news.answered_s is None:
            self._told.text = f"The Alertmanager at {self._watch.url} {when}."
        else:
            firing = sum(alert.state == "active" for alert in news.alerts) + news.more
            held = counted(len(news.silences), "silence")
            alerts = "No alert" if not news.alerts else counted(len(news.alerts) + news.more, "alert")
            self._told.text = (
                f"{alerts}, {firing:,} of them active, {held}; the Alertmanager at {self._watch.url} {when}."
            )
        self._rows.show([managed_row_of(alert, self._runbook) for alert in news.alerts], news.more)
        self._silences.show([silence_row_of(silence) for silence in news.silences])


def runbook_page(runbook: Runbook) -> None:
    """The runbook, each section under an id of its own."""
    if not runbook.sections:
        ui.label("There is no runbook here: `springback alerts export DIR` writes it.").classes("sb-card sb-none")
        return
    with ui.element("section").classes("sb-card sb-runbook"):
        _html(runbook.introduction)
    for name, source in runbook.sections.items():
        with ui.element("section").classes("sb-card sb-runbook").props(f'id="{name.lower()}"'):
            text(name, "h2")
            _html(source)
    # The browser looked for the place that the address names before there was any.
    ui.timer(0.1, lambda: ui.run_javascript(_SCROLL), once=True)


_SCROLL = "document.getElementById(location.hash.slice(1))?.scrollIntoView()"


def _html(source: str) -> None:
    # It is a file of the package: nothing of it comes from input.
    ui.html(markdown2.markdown(source, extras=_MARKDOWN), sanitize=False)
