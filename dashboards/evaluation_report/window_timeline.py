"""The episodes whose rebound windows a report draws: a sample that is spread evenly over stress."""

import msgspec
from springback.dashboards.evaluation_report.report_groups import ReportGroup

SHOWN_EPISODES = 24


class TimelineWindow(msgspec.Struct, frozen=True, kw_only=True):
    """A window of an episode, in steps."""

    departure_step: int
    reentry_step: int
    cause: str
    state: str


class TimelineEpisode(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the timeline. `steps` is the number of the last step known, and one."""

    episode: str
    stress: float
    outcome: str
    steps: int
    windows: list[TimelineWindow]


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of one family, method and version, by stress: a sample of the episodes that had a window."""

    family: str
    method: str
    version: str
    episodes: int
    with_windows: int
    rows: list[TimelineEpisode]


def timeline(group: ReportGroup) -> Timeline:
    """The timeline of one group. Of too many episodes, those at even distances in their order by stress are shown."""
    family, method, version = group.identity
    windows_of: dict[object, list[TimelineWindow]] = {}
    for window in group.windows:
        windows_of.setdefault(window.key, []).append(
            TimelineWindow(
                departure_step=window.departure_step,
                reentry_step=window.reentry_step,
                cause=window.cause,
                state=window.state,
            )
        )
    disturbed = [summary for summary in group.summaries if summary.key in windows_of]
    disturbed.sort(key=lambda summary: group.stress(summary.traits))
    count = min(SHOWN_EPISODES, len(disturbed))
    shown = [disturbed[(2 * index + 1) * len(disturbed) // (2 * count)] for index in range(count)]
    return Timeline(
        family=family,
        method=method,
        version=version,
        episodes=len(group.summaries),
        with_windows=len(disturbed),
        rows=[
            TimelineEpisode(
                episode=summary.key.episode,
                stress=group.stress(summary.traits),
                outcome=summary.outcome,
                steps=max(summary.steps, *(window.reentry_step + 1 for window in windows_of[summary.key])),
                windows=windows_of[summary.key],
            )
            for summary in shown
        ],
    )
