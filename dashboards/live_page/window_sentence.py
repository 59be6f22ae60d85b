"""A rebound window in one sentence, for whoever reads no tables."""

from springback.sinks.label_values import clean_label_value
from springback.stream_processors.resilience.readings import ChannelCosts, WindowCause, WindowReading

_CAUSES: dict[WindowCause, str] = {
    "effort": "with more effort than is normal there",
    "delay": "as its task came no nearer",
    "effort+delay": "with more effort than is normal there, and as its task came no nearer",
}


def dominant_channel(costs: ChannelCosts) -> str | None:
    """The channel that cost most; None where none did."""
    shares = {"cognitive": costs.cognitive, "physical": costs.physical, "debt": costs.debt}
    name = max(shares, key=lambda channel: shares[channel])
    return name if shares[name] > 0 else None


def window_sentence(window: WindowReading) -> str:
    """What happened, and what has become of it."""
    agent = clean_label_value(window.key.agent)
    head = f"{agent} departed from its baseline at step {window.departure_step:,}, {_CAUSES[window.cause]},"
    steps = f"{window.length_steps:,} step{'' if window.length_steps == 1 else 's'}"
    match window.state:
        case "recovered":
            return f"{head} and re-entered at step {window.reentry_step:,}, after {steps}."
        case "unrecovered":
            return f"{head} and had not re-entered when its episode ended, {steps} on."
        case "censored":
            return f"{head} and was lost sight of after {steps}: whether it recovered is not known."
        case "open":
            return f"{head} and has not re-entered yet."
