"""The parts of a step frame: episode headers, episode ends, columns of steps, and what was wrong in single cells.

The structs carry their own limits, so that decoding checks them and the JSON Schema states them. A struct built in
Python is not checked until `stream_processors.intake.validation` sees it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Optional, Union

import msgspec
import numpy as np
import numpy.typing as npt

from springback.producers.contract.columns import LARGEST_INTEGER, LARGEST_LOAD, LARGEST_NUMBER, MAX_TEXT

SCHEMA_VERSION = 1
MAX_IDENTIFIER = 256
MAX_DISTINCT_TEXTS = 65_536

Outcome = Literal["success", "failure", "timeout", "aborted"]
Identifier = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_IDENTIFIER)]
Label = Annotated[str, msgspec.Meta(max_length=MAX_TEXT)]
Stress = Annotated[
    float, msgspec.Meta(ge=0.0, le=1.0, description="severity λ of the stress; absent: undeclared, which is not 0")
]
NonNegative = Annotated[float, msgspec.Meta(ge=0.0, le=LARGEST_LOAD)]
Positive = Annotated[float, msgspec.Meta(gt=0.0, le=LARGEST_LOAD)]
Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_INTEGER)]
Index = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_INTEGER)]
Instant = Annotated[float, msgspec.Meta(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER)]


class RunTraits(msgspec.Struct, frozen=True, kw_only=True):
    """How an episode is run: what `EpisodeHeader` and `EpisodeTraits` have in common.

    `stress` None is undeclared, which is not the same as 0: nobody said what the episode had to withstand.
    """

    method: Identifier = "default"
    version: Identifier = "0"
    reference: bool = False
    stress: Optional[Stress] = None
    perturbation: Label = "none"
    perturbation_name: Label = ""
    magnitude: NonNegative = 0.0
    attack: Label = "none"


class EpisodeTraits(RunTraits, frozen=True):
    """What kind of episode it is, with nothing left open: what states and readings keep of its header.

    `task` is the same for the clean and the perturbed run of one task. Fields of its own come before those of
    `RunTraits`, which are by keyword alone: that is their order in stored states.
    """

    family: Identifier
    task: Identifier

    @property
    def declared_stress(self) -> float | None:
        """The severity that the episode ran under: 0 for a reference whatever it says; None where undeclared."""
        return 0.0 if self.reference else self.stress


class _DescribedRun(RunTraits, frozen=True, kw_only=True):
    """A class of its own so that the instruction comes last on the wire."""

    instruction: Label = ""


class EpisodeHeader(_DescribedRun, frozen=True, omit_defaults=True):
    """What an episode says of itself, in every frame that has steps of it.

    `task` is the same for the clean and the perturbed run of one task; None stands for the episode id. `stress` is
    the severity λ in [0, 1] (None: undeclared), `magnitude` the size of the perturbation, `reference` marks a clean
    episode.
    """

    agent: Identifier
    episode: Identifier
    family: Identifier
    task: Optional[Identifier] = None

    def traits(self) -> EpisodeTraits:
        """The traits that the header declares.

        >>> EpisodeHeader(agent="robot-7", episode="12", family="navigation", stress=0.4).traits().task
        '12'
        """
        run = {name: getattr(self, name) for name in RunTraits.__struct_fields__}
        return EpisodeTraits(family=self.family, task=self.task or self.episode, **run)


class NavigationOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a navigation episode ended: distances, counts of actions and of goals. All optional.

    `shortest_path`, `path` and `final_distance` are in metres. A source that counts in another unit, cells of a grid
    say, gives `metres_per_unit`, by which readers multiply them; without it they are metres.
    """

    shortest_path: Optional[NonNegative] = None
    path: Optional[NonNegative] = None
    actions: Optional[Count] = None
    shortest_actions: Optional[Count] = None
    final_distance: Optional[NonNegative] = None
    target_in_view: Optional[bool] = None
    goals_met: Optional[Count] = None
    goals_total: Optional[Count] = None
    metres_per_unit: Optional[Positive] = None


class EpisodeEnd(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The end of an episode. `episode` indexes the frame's episodes; `time_s` None stands for the broker's time.

    `realised_magnitude` is the size of the perturbation as it really was, where the producer knows it: by chance an
    episode gets more or less than the header's `magnitude` announced. Readers then take it in place of that. `extended`
    says that work was added while the episode ran, so that its progress counts against more than it did at first.
    """

    episode: Index
    outcome: Outcome
    time_s: Optional[Instant] = None
    navigation: Optional[NavigationOutcome] = None
    realised_magnitude: Optional[NonNegative] = None
    extended: bool = False


class TextColumn(msgspec.Struct, frozen=True, eq=False):
    """A text column: the distinct strings, and for each row the index of its own.

    Shape: `codes` is (rows,), uint16 (uint32 where there are more than 65,536 distinct strings).
    """

    values: list[str]
    codes: npt.NDArray[Any]

    @classmethod
    def of(cls, texts: list[str]) -> TextColumn:
        """The column of these texts, row by row.

        >>> TextColumn.of(["a", "b", "a"]).codes.tolist()
        [0, 1, 0]
        """
        index: dict[str, int] = {}
        codes = [index.setdefault(text, len(index)) for text in texts]
        return cls(list(index), np.array(codes, dtype=np.uint16 if len(index) <= MAX_DISTINCT_TEXTS else np.uint32))

    def __len__(self) -> int:
        """How many rows it has."""
        return len(self.codes)

    def texts(self) -> list[str]:
        """The texts, row by row."""
        return [self.values[code] for code in self.codes.tolist()]


StepColumn = Union[npt.NDArray[Any], TextColumn]


class PartFault(msgspec.Struct, frozen=True, eq=False):
    """A part of a frame that could not be read, while the rest could.

    Attributes:
        part: where it is: a row of steps, an episode header, an end, or what else an end says.
        index: its place there.
        reason: snake_case code.
        detail: what arrived and what was expected.
        values: what arrived, as far as it can be shown.
        field: the column or field that is at fault; empty where it is the whole part.
    """

    part: Literal["steps", "episodes", "ends", "navigation", "realised_magnitude", "extended"]
    index: int
    reason: str
    detail: str
    values: dict[str, Any]
    field: str = ""


class StepFrame(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A columnar batch of steps of one producer, the episodes they belong to, and the episode ends among them.

    Attributes:
        producer: id of the producer; the Kafka key.
        session: id of this start of the producer's process.
        episodes: headers; `steps["episode"]` and `ends[].episode` index them.
        steps: the columns that were given, by name (see `columns.STEP_COLUMNS`), all of one length: int64 for
            integers, float64 for numbers (absent cells hold `columns.ABSENT`), `TextColumn` for texts.
        ends: the ends of episodes; each follows all steps of its episode.
        faults: what could not be read of this frame. A faulty header keeps its place in `episodes`.
        lost_steps, lost_ends: what the producer could not keep, of all that was reported in this session until now, and
            of what earlier ones had left in its spool.
        schema_version: version of the wire contract.
    """

    producer: str
    session: str
    episodes: tuple[EpisodeHeader, ...] = ()
    steps: dict[str, StepColumn] = msgspec.field(default_factory=dict)
    ends: tuple[EpisodeEnd, ...] = ()
    faults: tuple[PartFault, ...] = ()
    schema_version: int = SCHEMA_VERSION
    lost_steps: int = 0
    lost_ends: int = 0

    @property
    def n_steps(self) -> int:
        """How many rows `steps` has."""
        episode = self.steps.get("episode")
        return 0 if episode is None else len(episode)

    def numbers(self, name: str) -> Optional[npt.NDArray[Any]]:
        """The column of that name; None where it was not given, or holds texts."""
        column = self.steps.get(name)
        return None if isinstance(column, TextColumn) else column
