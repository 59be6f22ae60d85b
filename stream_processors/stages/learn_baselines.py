"""The second stage: contributions of episodes in, records of the compacted baselines topic out.

It is the only writer of `stage-baselines`, also for an import: that comes as a message among the contributions.
"""

from collections.abc import Sequence

import msgspec

from springback.stream_processors.exact.port import Output, StageEvent
from springback.stream_processors.exact.state import decode_versioned
from springback.stream_processors.resilience.baseline.codec import (
    BaselineReplacement,
    baseline_records,
    decode_contribution,
)
from springback.stream_processors.resilience.baseline.stage_baseline import (
    BaselineConfig,
    CellKey,
    EpisodeContribution,
    FamilyBaseline,
)
from springback.stream_processors.stages.dead_letters import WRONG_KEY, dead_message, refused_message
from springback.stream_processors.topics import BASELINES

LEARNER_SCHEMA_VERSION = 2
"""2: largest sums carry the count of references behind them. Version 1 is read; its sums count for nothing."""


class LearnerState(msgspec.Struct, kw_only=True):
    """What has been learned of the families of one bucket (one family, or several of equal hashes)."""

    families: dict[str, FamilyBaseline] = msgspec.field(default_factory=dict)
    schema_version: int = LEARNER_SCHEMA_VERSION


class LearnBaselines:
    """The reducer of `learn_baselines`.

    Args:
        config: how much is remembered.

    Attributes:
        ignored: contributions to frozen families since the worker began.
    """

    def __init__(self, config: BaselineConfig) -> None:
        self._config = config
        self.ignored = 0

    def blank(self) -> LearnerState:
        """Nothing learned."""
        return LearnerState()

    def encode(self, state: LearnerState) -> bytes:
        """The state as MessagePack."""
        return msgspec.msgpack.encode(state)

    def decode(self, data: bytes) -> LearnerState:
        """The state in the bytes.

        Raises:
            StateFormatError: this version cannot read it.
        """
        return decode_versioned(data, LearnerState, LEARNER_SCHEMA_VERSION, oldest=1)

    def apply(self, events: Sequence[StageEvent], states: Sequence[LearnerState]) -> list[Output]:
        """Merges the contributions; each cell that changed is written once, however many episodes changed it."""
        dead: list[Output] = []
        changed: dict[str, set[CellKey]] = {}
        requests: dict[str, str] = {}
        latest: dict[str, FamilyBaseline] = {}
        for event, state in zip(events, states, strict=True):
            try:
                message = decode_contribution(event.value)
            except msgspec.DecodeError as error:
                dead.append(dead_message(event, "unreadable_contribution", str(error)))
                continue
            family = message.family
            if family.encode("utf-8", "replace") != event.key:
                dead.append(dead_message(event, WRONG_KEY, f"family {family!r} came under key {event.key!r}"))
                continue
            cells = self._take(state, message)
            if cells is None:
                continue
            changed.setdefault(family, set()).update(cells)
            latest[family] = state.families[family]
            if isinstance(message, BaselineReplacement):
                requests[family] = message.request
        records = [
            Output(BASELINES, key, value)
            for family, cells in changed.items()
            for key, value in baseline_records(family, latest[family], sorted(cells), requests.get(family, ""))
        ]
        return [*records, *dead]

    def tick(self, state: LearnerState, now_s: float) -> list[Output] | None:
        """Nothing is ever due."""
        return None

    def reject(self, event: StageEvent, error: Exception) -> list[Output]:
        """A contribution that cannot be merged goes to the dead letters."""
        return [refused_message(event, error)]

    def _take(self, state: LearnerState, message: EpisodeContribution | BaselineReplacement) -> set[CellKey] | None:
        known = state.families.setdefault(message.family, FamilyBaseline())
        if isinstance(message, BaselineReplacement):
            state.families[message.family] = msgspec.structs.replace(message.baseline, origin=message.request)
            return {*known.cells, *message.baseline.cells}
        if known.frozen:
            self.ignored += 1
            return None
        return known.add(message, self._config) or None
