"""When each agent last got on: what tells one that is busy without getting anywhere (ours)."""

import numpy as np
from springback.producers.step_table import StepTable
from springback.stream_processors.resilience.admission import Admission
from springback.stream_processors.resilience.runs import run_begins


def watch_progress(table: StepTable, admission: Admission) -> None:
    """Note the broker's time of each agent's last new step, and of the last rise above an episode's highest progress.

    Args:
        table: the batch.
        admission: which of its rows count; its agents and episodes are mutated.
    """
    order = admission.order
    if not len(order):
        return
    arrived_s = np.array([table.frames[entry.frame].broker_time_s for entry in table.episodes])[table.episode[order]]
    progress = table.progress[order]
    starts = np.flatnonzero(run_begins(admission.slot))
    highest = np.maximum.reduceat(progress, starts).tolist()
    latest_s = np.maximum.reduceat(arrived_s, starts).tolist()
    stops = [*starts[1:].tolist(), len(order)]
    for start, stop, top, last_s in zip(starts.tolist(), stops, highest, latest_s, strict=True):
        slot = admission.slots[admission.slot[start]]
        agent, episode = slot.agent, slot.episode
        agent.step_s = max(agent.step_s, last_s)
        if top > episode.highest_progress:
            episode.highest_progress = top
            risen = start + int(progress[start:stop].argmax())
            agent.progress_s = max(agent.progress_s, float(arrived_s[risen]))
