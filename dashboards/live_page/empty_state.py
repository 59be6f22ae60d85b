"""What the fleet page says while no agent has been heard of: how to send the first frames."""

from collections.abc import Callable

from nicegui import ui
from springback.dashboards.live_page.live_sink import LiveSink

_FROM_PYTHON = """\
from springback.producers.kafka_publisher import KafkaPublisher
from springback.producers.step_emitter import StepEmitter

with StepEmitter(KafkaPublisher("{broker}"), producer="robot-7") as emitter:
    episode = emitter.begin_episode(episode="1", family="delivery", reference=True)
    for step in range(40):
        episode.step(progress=(step + 1) / 40, planning_s=0.02, travel=0.25)
    episode.end("success")"""


def empty_state(sink: LiveSink, bootstrap: str, content: ui.element) -> Callable[[], None]:
    """Shown in place of the content until there is an agent. Returns what refreshes it."""
    with ui.element("section").classes("sb-card sb-empty") as card:
        ui.label("No agent has been heard of yet").classes("sb-empty-title")
        ui.label("This page fills by itself as soon as steps arrive. Three ways to send the first:")
        with ui.element("ol"):
            _way("Replay a recording of steps", f"springback replay FILE --broker {bootstrap}")
            _way("Report steps from your own loop", _FROM_PYTHON.format(broker=bootstrap))
            _way("See all of it on this machine, with simulated agents", "springback demo")
        ui.label("Mark clean runs as references: what is normal is learned from them.")

    def refresh() -> None:
        with sink.look() as (view, _):
            empty = view.sight.newest_s is None
        card.set_visibility(empty)
        content.set_visibility(not empty)

    return refresh


def _way(title: str, commands: str) -> None:
    with ui.element("li"):
        ui.label(title)
        with ui.element("pre").props('tabindex="0"'), ui.element("code"):
            ui.label(commands).classes("sb-code")
