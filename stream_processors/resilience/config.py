"""Every number of the resilience core that a user may set, with the defaults that the tests and figures stand on."""

import math
from typing import Literal

import msgspec

from springback.stream_processors.resilience.anchor import AnchorGrid
from springback.stream_processors.resilience.baseline.stage_baseline import BaselineConfig
from springback.stream_processors.resilience.families.contract_config import AggregateConfig
from springback.stream_processors.resilience.rebound.rebound_window import WindowConfig
from springback.stream_processors.resilience.rebound.recovery_cost import CostConfig
from springback.stream_processors.resilience.stability.stability_state import StabilityConfig
from springback.stream_processors.resilience.tracking.bounds import BoundsConfig


class ResilienceConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of the core (ours, where the paper leaves a value open).

    Attributes:
        grid: bins of the anchor.
        baseline: shrinkage and calibration of stage baselines.
        window: detectors of the rebound window.
        cost: the most that one step can add to a recovery cost.
        stability: value, advantage and stability loss.
        aggregate: contracts, margins and capacity of families.
        learn_from: `reference` learns from reference episodes that end in success; `success` from every successful
            episode, without the steps inside rebound windows, for fleets that have no clean runs.
        rate_ratio: how many times more, or less, often than the episodes behind its family's baseline an episode may
            decide and still be scored, by medians of cycle times; `any` scores all.
        idle_timeout_s: silence after which an open episode is closed as aborted, in seconds.
        status_interval_s: shortest time between two statuses of one agent, in seconds.
        open_episodes: episodes that one agent may have open at a time; one more, and its oldest is closed as aborted.
        remembered_episodes: ended episodes remembered per agent, so that late copies are dropped.
        silent_episodes: episodes kept per agent that silence has closed: steps or an end that come later go on with
            them.
        remembered_sessions: closed sessions remembered per agent, for the same reason.
        forget_agent_s: silence after which an agent without open episodes is forgotten, in seconds. A copy of what it
            sent that comes later is taken for new and counts again; steps that come for the first time, however late,
            count once. So it should be longer than the longest time after which a link or a spool repeats itself.
        bounds: what one producer may have in the state of a worker. Offline there are no such bounds.
    """

    grid: AnchorGrid = AnchorGrid()
    baseline: BaselineConfig = BaselineConfig()
    window: WindowConfig = WindowConfig()
    cost: CostConfig = CostConfig()
    stability: StabilityConfig = StabilityConfig()
    aggregate: AggregateConfig = AggregateConfig()
    learn_from: Literal["reference", "success"] = "reference"
    rate_ratio: float | Literal["any"] = 2.0
    idle_timeout_s: float = 300.0
    status_interval_s: float = 1.0
    open_episodes: int = 1024
    remembered_episodes: int = 1024
    silent_episodes: int = 16
    remembered_sessions: int = 8
    forget_agent_s: float = 86_400.0
    bounds: BoundsConfig = BoundsConfig()

    def __post_init__(self) -> None:
        """Checks the range."""
        if self.rate_ratio != "any" and not 1 < self.rate_ratio < math.inf:
            message = f'rate_ratio is {self.rate_ratio}, expected a number above 1, or "any"'
            raise ValueError(message)
