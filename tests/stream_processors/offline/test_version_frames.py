"""A recording of two versions, told apart."""

import msgspec

from springback.producers.contract.frame import PartFault, StepFrame, TextColumn
from springback.stream_processors.intake.step_table import ArrivedFrame
from springback.stream_processors.intake.validation import tabulate
from springback.stream_processors.offline.version_frames import frames_of_version, versions_in
from tests.stream_processors.frame_builders import START_S, frame_of, frame_of_parts, header_of, nominal_rows

MIXED = frame_of_parts(
    [
        (header_of(episode="a", version="1"), nominal_rows(0, 3), "success"),
        (header_of(episode="b", version="2"), nominal_rows(0, 2, mode="manipulate"), "failure"),
        (header_of(episode="c", version="1"), nominal_rows(5, 6), None),
    ]
)


def rows_of(frame: StepFrame) -> list[tuple[str, int, str]]:
    mode = frame.steps["mode"]
    assert isinstance(mode, TextColumn)
    episodes, steps = frame.steps["episode"], frame.steps["step"]
    assert not isinstance(episodes, TextColumn)
    assert not isinstance(steps, TextColumn)
    numbers = zip(episodes.tolist(), steps.tolist(), mode.texts(), strict=True)
    return [(frame.episodes[episode].episode, step, text) for episode, step, text in numbers]


def ends_of(frame: StepFrame) -> list[tuple[str, str]]:
    return [(frame.episodes[end.episode].episode, end.outcome) for end in frame.ends]


def test_a_mixed_frame_is_cut_in_two() -> None:
    ((first,), (second,)) = (frames_of_version([MIXED], version) for version in ("1", "2"))
    assert rows_of(first) == [("a", 0, "navigate"), ("a", 1, "navigate"), ("a", 2, "navigate"), ("c", 5, "navigate")]
    assert ends_of(first) == [("a", "success")]
    assert rows_of(second) == [("b", 0, "manipulate"), ("b", 1, "manipulate")]
    assert ends_of(second) == [("b", "failure")]
    assert (first.producer, first.session) == (MIXED.producer, MIXED.session)


def test_what_is_of_one_version_stays_as_it_is() -> None:
    own, other = frame_of(nominal_rows(0, 2), version="1"), frame_of(nominal_rows(0, 2), version="2")
    assert frames_of_version([own, other, own], "1") == [own, own]
    assert frames_of_version([own], "3") == []
    assert versions_in([other, MIXED, own]) == ["1", "2"]


def test_a_frame_without_steps_keeps_its_ends() -> None:
    bare = msgspec.structs.replace(MIXED, steps={})
    assert ends_of(frames_of_version([bare], "2")[0]) == [("b", "failure")]


def test_faulty_rows_stay_faulty() -> None:
    faults = (
        PartFault("steps", 1, "not_a_number", "", {}),
        PartFault("steps", 4, "not_a_number", "", {}),
        PartFault("ends", 7, "unknown_outcome", "", {}),
    )
    faulty = msgspec.structs.replace(MIXED, faults=faults)
    for version, row in (("1", 1), ("2", 1)):
        (part,) = frames_of_version([faulty], version)
        assert [(fault.part, fault.index) for fault in part.faults] == [("steps", row), ("ends", 7)]
        table = tabulate([ArrivedFrame(part, START_S)])
        assert sorted(rejected.reason for rejected in table.rejected) == ["not_a_number", "unknown_outcome"]
