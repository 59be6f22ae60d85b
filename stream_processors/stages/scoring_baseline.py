"""The baseline that scores, as the context of the first stage: when it changes, how it is kept, and scoring by it.

Live, baselines grow while steps are scored. What steps are scored by is switched seldom: to a family as soon as it may
be scored by at all, and again whenever it has outgrown what scores by a tenth (`FamilyBaseline.outgrows`). A part of
the context is a family, so a switch writes the families that have changed and no others. Each content is materialised
from the bytes that are kept, also by the worker that made them: whoever reads them scores to the last bit alike.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

import msgspec

from springback.stream_processors.errors import StateFormatError
from springback.stream_processors.exact.context_log import (
    ContextLog,
    Parts,
    content_key,
    decode_content,
    decode_switch,
    digest_of,
    read_context_key,
)
from springback.stream_processors.exact.contexts import HeldContext, Renewal
from springback.stream_processors.exact.port import Output, StageEvent
from springback.stream_processors.resilience.anchor import AnchorGrid
from springback.stream_processors.resilience.baseline.codec import (
    BaselineFormatError,
    decode_scoring_family,
    encode_scoring_family,
)
from springback.stream_processors.resilience.baseline.estimates import MaterialisedBaseline, materialise
from springback.stream_processors.resilience.baseline.stage_baseline import FamilyBaseline, StageBaseline
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.tracking.tracker_state import TrackerState
from springback.stream_processors.stages.track_steps import TrackSteps
from springback.stream_processors.topics import SWITCHES

_MATERIALISED_AT_ONCE = 8


class LearnedBaselines(Protocol):
    """What there is to score by, as it is just now. `version` rises with every change."""

    version: int
    pinned: bool
    """Whether it is to be scored by exactly as it is: any difference is a switch, however small."""

    def usable(self) -> StageBaseline:
        """The families that may be scored by."""


class _Outline(NamedTuple):
    """A family in force, without its cells, and its grid."""

    family: FamilyBaseline
    grid: AnchorGrid


class ScoringBaseline:
    """The contexts of `track_steps`.

    Args:
        config: settings of the core.
        learned: where baselines come from.
        tracker: the reducer that scores.
        interval_s: shortest time between two switches.

    Attributes:
        topic: where switches are shown.
    """

    topic = SWITCHES

    def __init__(
        self, config: ResilienceConfig, learned: LearnedBaselines, tracker: TrackSteps, interval_s: float
    ) -> None:
        self.interval_s = interval_s
        self._config = config
        self._learned = learned
        self._tracker = tracker
        self._outlines: dict[bytes, _Outline] = {}
        self._materialised: OrderedDict[frozenset[tuple[str, bytes]], MaterialisedBaseline] = OrderedDict()

    def version(self) -> int:
        """Rises with every change of what has been learned."""
        return self._learned.version

    def renewed(self, held: Sequence[HeldContext]) -> Renewal:
        """The families to go on with: of each the furthest that a partition scores by, or a newer one if it is due."""
        learned = self._learned.usable()
        outlines = {digest: self._outline(digest, context) for context in held for digest in context.parts.values()}
        parts: dict[str, bytes] = {}
        contents: dict[bytes, bytes] = {}
        for name, family in sorted(learned.families.items()):
            in_force = {context.parts[name] for context in held if name in context.parts}
            furthest = max(in_force, key=lambda digest: (outlines[digest].family.references, digest), default=None)
            if furthest is not None and not self._is_due(family, learned.grid, outlines[furthest]):
                parts[name] = furthest
                continue
            content = encode_scoring_family(family, learned.grid)
            parts[name] = digest_of(content)
            contents[parts[name]] = content
            outlines[parts[name]] = _outline_of(content)
        self._outlines = outlines
        return Renewal(parts, contents)

    def apply(self, events: Sequence[StageEvent], states: Sequence[TrackerState], context: HeldContext) -> list[Output]:
        """Takes in frames, scored by the families of the context."""
        key = frozenset(context.parts.items())
        ready = self._materialised.get(key)
        if ready is None:
            baseline = read_context(context, self._config.grid)
            ready = materialise(baseline, self._config.baseline, self._config.window.fixed_bounds())
            self._materialised[key] = ready
            while len(self._materialised) > _MATERIALISED_AT_ONCE:
                self._materialised.popitem(last=False)
        self._materialised.move_to_end(key)
        return self._tracker.apply_by(events, states, ready)

    def _is_due(self, family: FamilyBaseline, grid: AnchorGrid, in_force: _Outline) -> bool:
        if grid != in_force.grid or self._learned.pinned:
            return True
        return family.outgrows(in_force.family, self._config.baseline)

    def _outline(self, digest: bytes, context: HeldContext) -> _Outline:
        return self._outlines.get(digest) or _outline_of(context.content(digest))


def read_context(context: HeldContext, grid: AnchorGrid) -> StageBaseline:
    """The baseline that a context stands for.

    Args:
        context: its parts.
        grid: that of a baseline without families.

    Raises:
        StateFormatError: a part of it cannot be read by this version.
    """
    families = {}
    for name, digest in sorted(context.parts.items()):
        families[name], grid = _decoded(context.content(digest))
    return StageBaseline(families=families, grid=grid)


class BaselineSwitch(NamedTuple):
    """From which offset of a partition on its steps were scored by a baseline."""

    from_offset: int
    baseline: StageBaseline


def baseline_switches(
    records: Iterable[tuple[bytes, bytes | None]], grid: AnchorGrid
) -> dict[int, list[BaselineSwitch]]:
    """What scored where: the switches of each partition of the steps that count, in order of their offsets.

    Steps below a partition's first switch were scored by nothing that is known here.

    Args:
        records: keys and values of the topic `baseline-switches`, or of the changelog of the steps' state (other
            records and tombstones in it are passed over), in the order in which they were written.
        grid: the anchor grid of the settings.

    Raises:
        StateFormatError: a record cannot be read, or the content that a switch names is not among them.
    """
    switches: dict[int, dict[bytes, bytes]] = {}
    contents: dict[bytes, bytes] = {}
    for key, record in records:
        place = read_context_key(key)
        if place is None or record is None:
            continue
        if place.digest is None:
            switches.setdefault(place.partition, {})[key] = record
        else:
            contents[place.digest] = decode_content(key, record)
    baselines = _Baselines(contents.get, grid)
    found: dict[int, list[BaselineSwitch]] = {}
    for partition, written in switches.items():
        log = ContextLog(decode_switch(key, record) for key, record in written.items())
        found[partition] = [BaselineSwitch(switch.from_offset, baselines.of(switch.parts)) for switch in log.path]
    return found


def family_switches(
    records: Iterable[tuple[bytes, bytes | None]], partition: int, family: str, offsets: range, grid: AnchorGrid
) -> list[BaselineSwitch]:
    """What scored the steps of one family in a stretch of a partition: as `baseline_switches`, and no more than that.

    Args:
        records: as for `baseline_switches`; those of other partitions are passed over.
        partition: of the steps.
        family: theirs.
        offsets: the stretch.
        grid: the anchor grid of the settings.

    Raises:
        StateFormatError: a record cannot be read, or the content that a switch names is not among them.
    """
    written: dict[bytes, bytes] = {}
    contents: dict[bytes, bytes] = {}
    for key, record in records:
        place = read_context_key(key)
        if place is not None and record is not None and place.partition == partition:
            (written if place.digest is None else contents)[key] = record
    log = ContextLog(decode_switch(key, record) for key, record in written.items())
    of_stretch = (log.at(offsets.start), *log.after(offsets.start))

    def content(digest: bytes) -> bytes | None:
        key = content_key(partition, digest)
        return decode_content(key, contents[key]) if key in contents else None

    baselines = _Baselines(content, grid)
    return [
        BaselineSwitch(switch.from_offset, baselines.of({n: d for n, d in switch.parts.items() if n == family}))
        for switch in of_stretch
        if switch is not None and switch.from_offset < offsets.stop
    ]


class _Baselines:
    """What switches name, each read once.

    Args:
        content: the content with a digest; None where it is not among the records.
        grid: that of a baseline without families.
    """

    def __init__(self, content: Callable[[bytes], bytes | None], grid: AnchorGrid) -> None:
        self._find = content
        self._grid = grid
        self._read: dict[frozenset[tuple[str, bytes]], StageBaseline] = {}

    def of(self, parts: Parts) -> StageBaseline:
        """The baseline that a context stands for."""
        key = frozenset(parts.items())
        if key not in self._read:
            self._read[key] = read_context(HeldContext(parts, self._content), self._grid)
        return self._read[key]

    def _content(self, digest: bytes) -> bytes:
        found = self._find(digest)
        if found is None:
            message = f"The content {digest.hex()}, which a switch names, is not among the records: read all of them."
            raise StateFormatError(message)
        return found


def _outline_of(content: bytes) -> _Outline:
    family, grid = _decoded(content)
    return _Outline(msgspec.structs.replace(family, cells={}, policy={}), grid)


def _decoded(content: bytes) -> tuple[FamilyBaseline, AnchorGrid]:
    try:
        return decode_scoring_family(content)
    except BaselineFormatError as error:
        message = f"The state's {error}. Run the version of springback that wrote it, or start under another app_id."
        raise StateFormatError(message) from error
