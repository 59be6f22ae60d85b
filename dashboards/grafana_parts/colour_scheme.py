"""The colours of the dashboards: after Okabe and Ito, told apart under the common kinds of colour-blindness.

Colour never stands alone: states and channels are named beside it, thresholds carry their number.
"""

from collections.abc import Mapping

from grafana_foundation_sdk.builders.dashboard import ThresholdsConfig
from grafana_foundation_sdk.models.dashboard import (
    DynamicConfigValue,
    Threshold,
    ThresholdsMode,
    ValueMap,
    ValueMapping,
    ValueMappingResult,
)

from springback.stream_processors.metrics.glossary import LEVEL_STATES, LIVE_STATES
from springback.stream_processors.metrics.spec import AGENT_STATES

BLUE, SKY, GREEN, YELLOW = "#0072B2", "#56B4E9", "#009E73", "#F0E442"
ORANGE, VERMILLION, PURPLE, GREY = "#E69F00", "#D55E00", "#CC79A7", "#8C8C8C"

GOOD, WARNING, BAD = BLUE, ORANGE, VERMILLION

STATE_COLOURS = {
    "calm": GREEN,
    "rebound": ORANGE,
    "stalled": PURPLE,
    "stale": YELLOW,
    "silent": VERMILLION,
    "contested": BLUE,
    "ended": SKY,
    "unknown": GREY,
}
STATE_NUMBERS: Mapping[str, int] = {state: number for number, state in enumerate(AGENT_STATES, start=1)}
"""A number for each state, as a time line needs it; the dashboards show the name."""

LIVE_STATE_COLOURS = {
    "within": GREEN,
    "untested": SKY,
    "breach": VERMILLION,
    "unsettled": YELLOW,
    "none_declared": GREY,
}
LIVE_STATE_NUMBERS: Mapping[str, int] = {state: number for number, state in enumerate(LIVE_STATES, start=1)}
FLAG_COLOURS = {"ok": BLUE, "open": SKY, "none": VERMILLION, "insufficient": GREY}
FLAG_NUMBERS: Mapping[str, int] = {flag: number for number, flag in enumerate(FLAG_COLOURS, start=1)}
LEVEL_STATE_COLOURS = {"insufficient": GREY, "kept": GREEN, "undecided": ORANGE, "broken": VERMILLION}
LEVEL_STATE_NUMBERS: Mapping[str, int] = {state: number for number, state in enumerate(LEVEL_STATES, start=1)}

CHANNEL_COLOURS = {"cognitive": BLUE, "physical": ORANGE, "debt": PURPLE}


def fixed_colour(colour: str) -> DynamicConfigValue:
    """What gives a series one colour, whatever its place."""
    return DynamicConfigValue("color", {"mode": "fixed", "fixedColor": colour})


def thresholds(start: str, *steps: tuple[float, str]) -> ThresholdsConfig:
    """A colour from minus infinity on, and others each from a value on."""
    levels = [Threshold(None, start), *(Threshold(value, colour) for value, colour in steps)]
    return ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(levels)


def numbered(numbers: Mapping[str, int], colours: Mapping[str, str]) -> list[ValueMapping]:
    """Names and colours in the place of the states' numbers."""
    return [
        ValueMap({str(number): ValueMappingResult(state.replace("_", " "), colours[state], index=number)})
        for state, number in numbers.items()
    ]


def named_states() -> list[ValueMapping]:
    """Colours for the states' names."""
    return [ValueMap({state: ValueMappingResult(state, colour)}) for state, colour in STATE_COLOURS.items()]


def yes_no(yes: str, no: str, *, bad: bool = True) -> list[ValueMapping]:
    """Words for 1 and 0; 1 is the bad one, unless it is the good one."""
    colours = (BAD, GOOD) if bad else (GOOD, BAD)
    return [
        ValueMap({"1": ValueMappingResult(yes, colours[0], index=0), "0": ValueMappingResult(no, colours[1], index=1)})
    ]
