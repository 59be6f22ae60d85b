"""Where the recovery cost comes from, by stress: shares of the three channels, stacked to the whole."""

from matplotlib.axes import Axes
from springback.dashboards.evaluation_report.channel_shares import ChannelRow
from springback.dashboards.evaluation_report.plot_style import MUTED, SERIES, SURFACE, Panel, PlotSection, draw
from springback.dashboards.evaluation_report.report_numbers import ReportNumbers
from springback.dashboards.evaluation_report.report_selection import Chosen, own

_CHANNELS = (
    ("cognitive", "thinking", SERIES[0], ""),
    ("physical", "moving", SERIES[4], ""),
    ("debt", "state debt", SERIES[3], "////"),
)


def channel_share_section(numbers: ReportNumbers, chosen: Chosen) -> PlotSection:
    """A panel for each group."""
    panels, missing = [], list(chosen.left_out)
    for row in chosen.groups:
        shares = own(numbers.channels, row)
        if any(share.debt is not None for share in shares):
            panels.append(Panel(f"{chosen.name(row)}: {_finding(shares)}", _drawn(shares)))
        else:
            missing.append(f"{chosen.name(row)}: no episode cost anything.")
    return PlotSection(
        "What does recovering consist of?",
        "Thinking is planning and perception time above the normal, moving is travel and retries, state debt is "
        "progress that lags, and risk. Shares are of the channels' own costs, summed over the episodes of a stress.",
        panels,
        missing,
    )


def _finding(shares: list[ChannelRow]) -> str:
    hardest = max((share for share in shares if share.debt is not None), key=lambda share: share.stress)
    largest, name = max((getattr(hardest, channel) or 0.0, name) for channel, name, _, _ in _CHANNELS)
    return f"at λ = {hardest.stress:g}, {largest:.0%} is {name}"


def _drawn(shares: list[ChannelRow]) -> str:
    def plot(axes: Axes) -> None:
        for place, share in enumerate(shares):
            _bar(axes, place, share)
        for _, name, colour, hatch in _CHANNELS:
            axes.bar([0], [0], color=colour, hatch=hatch, edgecolor=SURFACE, linewidth=0.8, label=name)
        axes.set_xticks(range(len(shares)), [f"{share.stress:g}" for share in shares])
        axes.set_xlim(-0.6, len(shares) - 0.4)
        axes.set_xlabel("stress λ (0 clean, 1 hardest)")
        axes.set_ylim(0, 1)
        axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0 %", "25 %", "50 %", "75 %", "100 %"])
        axes.set_ylabel("share of the cost")
        axes.grid(visible=False, axis="x")
        axes.legend(loc="lower center", bbox_to_anchor=(0.45, 1.0), ncols=3)

    return draw(plot)


def _bar(axes: Axes, place: int, share: ChannelRow) -> None:
    if share.debt is None:
        axes.annotate("no\ncost", (place, 0.03), ha="center", color=MUTED, fontsize=8)
        return
    below = 0.0
    for channel, _, colour, hatch in _CHANNELS:
        height = getattr(share, channel)
        axes.bar(
            [place], [height], bottom=[below], width=0.7, color=colour, hatch=hatch, edgecolor=SURFACE, linewidth=0.8
        )
        below += height
