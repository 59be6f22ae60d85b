"""Mapping files: what is wrong is told by file, key, what arrived and what was expected."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from springback.producers.errors import MappingError
from springback.producers.mapping.paths import MISSING, FieldPath, TopicPattern
from springback.producers.mapping.signal_mapping import load_mapping, parse_mapping, shipped_mappings
from springback.producers.mapping.toml_section import TomlSection
from springback.producers.mapping.transform_reading import read_transforms
from springback.producers.mapping.transforms import PLAIN, WITH_NUMBER
from tests.house import ROOT

GOOD = """
agent = "a"
header = { family = "f" }
step = { trigger = "odom" }
signals = { progress = { topic = "odom", field = "done" } }
episode = { whole = true }
"""


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('agent = "a"', "", r"mine.toml: agent is missing"),
        ('agent = "a"', 'agent = { segment = "robot" }', r"expected a topic that names this level, such as fleet/"),
        ('agent = "a"', 'agent = "a"\ntime = "now"', r"mine.toml: time: got 'now', expected one of header, receive"),
        ('agent = "a"', 'agent = "a"\nreorder_s = -1', r"reorder_s: got -1, expected a number of 0 or more"),
        ('agent = "a"', 'agent = "a"\nheader_unit = "h"', r"header_unit: got 'h', expected one of s, ms, us, ns"),
        ('family = "f"', 'familly = "f"', r"header.familly is not known; did you mean family\?"),
        ('family = "f"', 'task = "f"', r"header.family is missing"),
        ('trigger = "odom"', "", r"mine.toml: step: got \{\}, expected either trigger"),
        ('trigger = "odom"', 'trigger = "odom", cycle_s = 1', r"step: got .* expected either trigger"),
        ('trigger = "odom"', 'trigger = "a b"', r"step.trigger\[0\]: 'a b' is not a topic pattern"),
        ('trigger = "odom"', "trigger = 3", r"step.trigger\[0\]: got 3, expected a text"),
        ("progress =", "risk =", r"signals.progress is missing"),
        ("progress =", "progres =", r"signals.progres is not known; did you mean progress\?"),
        ('field = "done"', 'field = "a..b"', r"signals.progress.field: 'a..b' is not a field path"),
        ('field = "done"', "field = 3", r"signals.progress.field: got 3, expected a text"),
        ('field = "done"', 'over = "first"', r"signals.progress.over: got 'first', expected one of last, sum"),
        (
            'field = "done"',
            'transform = "half"',
            r"signals.progress.transform\[0\]: got 'half', expected one of one_minus",
        ),
        (
            'field = "done"',
            "transform = [{ clip = [1, 0] }]",
            r"transform\[0\].clip: got \[1, 0\], expected two",
        ),
        (
            'field = "done"',
            "transform = { linear = [3, 3] }",
            r"transform\[0\].linear: got \[3, 3\], expected two different numbers",
        ),
        (
            'field = "done"',
            "transform = { linear = [0, inf] }",
            r"transform\[0\].linear: got \[0, inf\], expected two different numbers",
        ),
        ('field = "done"', "transform = { linear = 3 }", r"transform\[0\].linear: got 3, expected two"),
        ('field = "done"', 'transform = { scale = "2" }', r"transform\[0\].scale: got '2', expected a number"),
        ('field = "done"', "transform = { scale = inf }", r"transform\[0\].scale: got inf, expected a number"),
        (
            'field = "done"',
            "transform = { table = { a = [1] } }",
            r"transform\[0\].table.a: got \[1\], expected a",
        ),
        ("whole = true", "whole = 1", r"episode.whole: got 1, expected true or false"),
        ("whole = true", "", r"episode: got \{\}, expected a way to end"),
        ("whole = true", "gap_s = 0", r"episode.gap_s: got 0, expected a number of 0.001 or more"),
        ("whole = true", "end = {}", r"episode.end.outcome: got \{\}, expected either outcome, or outcomes"),
        ("whole = true", 'end = { topic = "x", outcome = "won" }', r"episode.end.outcome: got 'won', expected one of"),
        ("whole = true", 'end = { outcome = "success" }', r"episode.end: got .* expected a topic, a field or both"),
        (
            "whole = true",
            'begin = { topic = "x", equals = 3 }',
            r"episode.begin.field: got None, expected a field path",
        ),
        ("whole = true", 'whole = true, outcome = "won"', r"episode.outcome: got 'won', expected one of success"),
        ("whole = true", "whole = true, navigation = { way = 3 }", r"episode.navigation.way is not known"),
        ('family = "f"', 'family = "f", stress = "0.5"', r"header.stress: got '0.5', expected a number"),
        (
            'family = "f"',
            'family = "f", stress = 7',
            r"header.stress: got 7.0, expected a number from 0 to 1; a percentage",
        ),
        ('family = "f"', 'family = "f", reference = "yes"', r"header.reference: got 'yes', expected true or false"),
        ("progress =", 'retries = "few", progress =', r"signals.retries: got 'few', expected a number from 0 to"),
        ("progress =", "risk = -1, progress =", r"signals.risk: got -1, expected a number from 0 to 1e\+12"),
        ('field = "done"', "default = 50", r"signals.progress: got 50, expected a number from 0 to 1"),
        ("progress =", 'mode = { over = "sum" }, progress =', r"signals.mode: got 'sum', expected over = last"),
        ("whole = true", 'id = { field = "x", transform = "changes" }', r"episode.id: got 'sum', expected over = last"),
        ("whole = true", "whole = true, navigation = { actions = 1.5 }", r"navigation.actions: got 1.5, expected a"),
        ("[", "[", r""),
    ],
)
def test_what_is_wrong_is_told(old: str, new: str, told: str) -> None:
    if not told:
        with pytest.raises(MappingError, match=r"mine.toml: not TOML"):
            parse_mapping("agent = ", "mine.toml")
        return
    assert old in GOOD
    with pytest.raises(MappingError, match=told):
        parse_mapping(GOOD.replace(old, new), "mine.toml")


def test_a_mapping_knows_what_it_reads() -> None:
    mapping = parse_mapping(
        GOOD.replace('agent = "a"', 'agent = { segment = "robot" }').replace('"odom"', '"fleet/{robot}/odom"'),
        "mine.toml",
    )
    assert mapping.topics == ("fleet/+/odom",)
    assert mapping.reads("fleet/7/odom")
    assert not mapping.reads("fleet/7/scan")
    assert mapping.columns == frozenset({"header", "done"})


def test_the_shipped_mappings_are_found_by_name(tmp_path: Path) -> None:
    assert shipped_mappings() == ("lerobot", "move_base", "nav2", "vda5050")
    for name in shipped_mappings():
        assert load_mapping(name).signals["progress"].sources
    with pytest.raises(MappingError, match="no mapping file 'nav3'; those that come with springback are lerobot"):
        load_mapping("nav3")
    (tmp_path / "own.toml").write_text(GOOD, encoding="utf-8")
    assert load_mapping(tmp_path / "own.toml").agent.constant == "a"


def test_the_shipped_mappings_declare_no_stress_that_nobody_measured() -> None:
    for name in shipped_mappings():
        assert not {"stress", "magnitude", "perturbation", "attack"} & set(load_mapping(name).header)


def test_the_mappings_of_the_readme_are_mappings() -> None:
    text = (ROOT / "producers" / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"^```toml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(shown) >= 2
    for number, mapping in enumerate(shown):
        assert parse_mapping(mapping, f"README.md, mapping {number}").signals


def test_every_transform_is_in_the_readme() -> None:
    text = (ROOT / "producers" / "README.md").read_text(encoding="utf-8")
    assert [name for name in (*PLAIN, *WITH_NUMBER, "clip", "linear", "table") if name not in text] == []


class Message:
    def __init__(self, **fields: Any) -> None:
        self.__dict__ |= fields
        self._secret = 1

    def method(self) -> None: ...


@pytest.mark.parametrize(
    ("path", "value", "read"),
    [
        ("a.b", {"a": {"b": 3}}, 3),
        ("a.1", {"a": [3, 4]}, 4),
        ("a[-1].b", {"a": [{"b": 1}, {"b": 2}]}, 2),
        ("a[5]", {"a": [1]}, MISSING),
        ("a[name=x].b", {"a": [{"name": "x", "b": 1}, {"name": "y", "b": 2}]}, [1]),
        ("a[*].b", {"a": [{"b": 1}, {"c": 2}]}, [1]),
        ('"a.b".c', {"a.b": {"c": 1}}, 1),
        ("", 5, 5),
        ("a.b", Message(a=Message(b=3)), 3),
        ("_secret", Message(), MISSING),
        ("method", Message(), MISSING),
        ("a", None, MISSING),
        ("a", "text", MISSING),
    ],
)
def test_field_paths(path: str, value: Any, read: Any) -> None:
    assert FieldPath(path).read(value) == read


@pytest.mark.parametrize("path", [".a", "a.", "a..b", "a[", "a]", "a[b]", 'a"b"', "a b[", "[*"])
def test_what_is_no_path(path: str) -> None:
    with pytest.raises(ValueError, match="is not a field path"):
        FieldPath(path)


@pytest.mark.parametrize(
    ("pattern", "topic", "named"),
    [
        ("a/b", "/a/b", {}),
        ("/a/+/c", "a/x/c", {}),
        ("a/{x}/{y}", "a/1/2", {"x": "1", "y": "2"}),
        ("a/#", "a", {}),
        ("a/#", "a/b/c", {}),
        ("#", "anything/at/all", {}),
        ("a/+", "a/b/c", None),
        ("a", "b", None),
    ],
)
def test_topic_patterns(pattern: str, topic: str, named: dict[str, str] | None) -> None:
    assert TopicPattern(pattern).match(topic) == named


@pytest.mark.parametrize(
    ("declared", "given", "expected"),
    [
        ("one_minus", [0.25], [0.75]),
        ("invert", [4, 0], [0.25, None]),
        ("number", ["0.5", "x", 2], [0.5, None, 2.0]),
        ("seconds", [{"secs": 1, "nsecs": 500_000_000}, "2026-01-01T00:00:00Z"], [1.5, 1767225600.0]),
        ("norm", [{"x": 3, "y": 4}, [1.0, float("nan")]], [5.0, None]),
        ("yaw", [{"x": 0, "y": 0, "z": 1, "w": 0}], [3.141592653589793]),
        ("path_length", [[{"x": 0, "y": 0}, {"x": 3, "y": 4}]], [5.0]),
        ("maximum", [[1, float("nan"), 3], []], [3.0, None]),
        ("minimum", [[1, 3]], [1.0]),
        ("mean", [[1, 3]], [2.0]),
        ("sum", [[1, 3]], [4.0]),
        ("count", [[1, 3], 5], [2.0, None]),
        ("last", [[1, 3], []], [3, None]),
        ("ratio_to_first", [4, 2, 8], [1.0, 0.5, 2.0]),
        ("progress_from_remaining", [0, 10, 5, 12, 0], [None, 0.0, 0.5, 0.0, 1.0]),
        ("since_first", [4, 2], [0.0, -2.0]),
        ("difference", [4, 2, float("inf"), 3], [0.0, -2.0, None, 1.0]),
        ("count_new", [2, 5, 1], [0.0, 3.0, 1.0]),
        ("changes", ["a", "a", "b"], [0.0, 0.0, 1.0]),
        ("distance_travelled", [{"x": 0, "y": 0}, {"x": 3, "y": 4}, {"x": float("nan"), "y": 0}], [0.0, 5.0, None]),
        ([{"scale": 2}, {"offset": 1}], [3, [1, 2]], [7.0, [3.0, 5.0]]),
        ({"threshold": 0.5}, [0.4, 0.5], [0.0, 1.0]),
        ({"clip": [0, 1]}, [-1, 2], [0.0, 1.0]),
        # Payload from 4 to 20 kg: (kg - 4) / 16; light from 300 down to 20 lux: (300 - lux) / 280; marks from 1 to 5.
        ({"linear": [4, 20]}, [12, 4, 0, 90, [8, 20], float("nan")], [0.5, 0.0, 0.0, 1.0, [0.25, 1.0], None]),
        ({"linear": [300, 20]}, [300, 160, 0], [0.0, 0.5, 1.0]),
        ({"linear": [1, 5]}, [1, 2, 5], [0.0, 0.25, 1.0]),
        ([{"table": {"0": 0.0, "2": 1.0, "*": 0.5}}, "maximum"], [[0, 0], [0, 7], [0, 2, 7]], [0.0, 0.5, 1.0]),
        ({"table": {"FollowPath": "navigate"}}, ["FollowPath", "Other", 3], ["navigate", None, None]),
    ],
)
def test_transforms(declared: Any, given: list[Any], expected: list[Any]) -> None:
    functions = [transform.make() for transform in read_transforms(TomlSection({"transform": declared}, "mine.toml"))]
    results = []
    for value in given:
        for function in functions:
            value = None if value is None else function(value)
        results.append(value)
    assert results == expected
