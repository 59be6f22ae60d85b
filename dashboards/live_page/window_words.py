"""A rebound window in a sentence that says no more than its figures do."""

from springback.dashboards.live_page.page_parts import NOTHING, figure
from springback.sinks.fleet.labels import clean_label_value
from springback.stream_processors.metrics.figure_words import counted
from springback.stream_processors.metrics.spec import AgentStateName
from springback.stream_processors.resilience.readings import ChannelCosts, WindowReading, WindowState

EFFORT = "with more effort than is normal there"
NO_NEARER = "as its task came no nearer"
SLOWER = "as its task came nearer more slowly than is normal"
MADE_UP = "as its task came no nearer for a while, which it has made up for since"

WINDOW_LOOKS: dict[WindowState, tuple[AgentStateName, str, str]] = {
    "open": ("rebound", "settings_backup_restore", "open"),
    "recovered": ("calm", "check_circle_outline", "recovered"),
    "unrecovered": ("stalled", "report", "unrecovered"),
    "censored": ("unknown", "help_outline", "censored"),
}
"""Of what has become of a window: the state of an agent whose colour it has, the icon, and the word."""


def window_sentence(window: WindowReading) -> str:
    """What happened, what has become of it, and whether it counts."""
    told = _sentence(window)
    return f"{told} Provisional: its family is still learning." if window.provisional else told


def cause_words(window: WindowReading) -> str:
    """Why the alarm was raised, in words that hold for the whole window.

    The alarm is of a moment, the lost cycles are of all steps since the departure: a task that came no nearer at first
    may have come nearer faster than is normal afterwards.
    """
    told = [EFFORT] if "effort" in window.cause else []
    if "delay" in window.cause:
        told.append(_delay_words(window.lost_cycles, window.reentry_step - window.departure_step))
    return ", and ".join(told)


def dominant_channel(costs: ChannelCosts) -> str | None:
    """The channel that cost most; None where none did."""
    shares = {"cognitive": costs.cognitive, "physical": costs.physical, "debt": costs.debt}
    name = max(shares, key=lambda channel: shares[channel])
    return name if shares[name] > 0 else None


def window_figures(window: WindowReading) -> tuple[str, str, str, str, str]:
    """Cause, dominant channel, lost cycles, peak and cost, as they are shown."""
    cost = figure(window.recovery_cost)
    return (
        window.cause.replace("+", " and "),
        dominant_channel(window.costs) or NOTHING,
        figure(window.lost_cycles),
        figure(window.peak),
        cost if window.state != "open" else f"{cost} at the alarm",
    )


def _delay_words(lost_cycles: float, cycles: int) -> str:
    lost = round(lost_cycles, 0 if abs(lost_cycles) >= 100 else 2)  # as `figure` shows it
    if lost <= 0:
        return MADE_UP
    # By the normal course each cycle brings the end nearer by one.
    return NO_NEARER if lost >= cycles else SLOWER


def _sentence(window: WindowReading) -> str:
    agent = clean_label_value(window.key.agent)
    head = f"{agent} departed from its baseline at step {window.departure_step:,}, {cause_words(window)},"
    steps = counted(window.length_steps, "step")
    match window.state:
        case "recovered":
            return f"{head} and re-entered at step {window.reentry_step:,}, after {steps}."
        case "unrecovered":
            return f"{head} and had not re-entered when its episode ended, {steps} on."
        case "censored":
            return f"{head} and was lost sight of after {steps}: whether it recovered is not known."
        case "open":
            return f"{head} and has not re-entered yet."
