"""Settings: defaults, under a file, under the environment, under the command line; errors say what is wrong where."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import pytest

from springback.stream_processors.errors import SettingsError
from springback.stream_processors.settings import WorkerSettings, load_settings


def test_later_sources_win(tmp_path: Path) -> None:
    file = tmp_path / "worker.toml"
    file.write_text("partitions = 8\nbuckets = 4\n[kafka]\nbootstrap = 'a:1'\n[resilience]\nidle_timeout_s = 30\n")
    environment = {"SPRINGBACK_PARTITIONS": "6", "SPRINGBACK_KAFKA__SASL_USERNAME": "robot", "OTHER": "x"}
    found = load_settings(file, environment, {"kafka": {"bootstrap": "b:2"}})
    assert (found.partitions, found.buckets, found.batch_max) == (6, 4, 500)
    assert (found.kafka.bootstrap, found.kafka.sasl_username) == ("b:2", "robot")
    assert found.resilience.idle_timeout_s == 30


def test_variables_of_other_parts_are_left_alone() -> None:
    assert load_settings(environment={"SPRINGBACK_BROKER": "x", "SPRINGBACK_DEBUG": "1"}) == WorkerSettings()


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"SPRINGBACK_PARTITIONS": "many"}, r"partitions is 'many', expected a whole number \(SPRINGBACK_PARTITIONS\)"),
        ({"SPRINGBACK_PARTITIONS": "0"}, "partitions is 0, expected a finite number of at least 1"),
        (
            {"SPRINGBACK_KAFKA__SECURITY_PROTOCOL": "TLS"},
            r"kafka.security_protocol is 'TLS', expected 'PLAINTEXT', 'SSL', ",
        ),
        ({"SPRINGBACK_STALL_S": "inf"}, "stall_s is inf, expected a finite number of at least 0.01"),
        ({"SPRINGBACK_STALL_S": "nan"}, "stall_s is nan, expected a finite number of at least 0.01"),
        ({"SPRINGBACK_HEALTH_PORT": "inf"}, "health_port is 'inf', expected a whole number"),
        ({"SPRINGBACK_HEALTH_PORT": "65536"}, "health_port is 65536, expected at most 65535"),
        ({"SPRINGBACK_KAFKA__COLOUR": "x"}, "kafka.colour: not known; the keys there are bootstrap, "),
        ({"SPRINGBACK_PREFIX": "p", "SPRINGBACK_PREFIX__X": "y"}, "'prefix' is 'p', expected a table"),
    ],
)
def test_errors_say_the_key_what_arrived_and_what_was_expected(environment: dict[str, str], told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        load_settings(environment=environment)


LIBRARY_WORDS = re.compile(r"`|\$|pydantic|msgspec|Invalid enum|Object |got '?str|validation")


def all_settings(kind: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every key that there is, tables too, with the type of its value."""
    for name, hint in get_type_hints(kind).items():
        yield (*path, name), hint
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            yield from all_settings(hint, (*path, name))


SETTINGS = list(all_settings(WorkerSettings))


def variable(path: tuple[str, ...]) -> str:
    return "SPRINGBACK_" + "__".join(path).upper()


@pytest.mark.parametrize("path", [path for path, kind in SETTINGS if kind is not str], ids=".".join)
def test_every_setting_says_in_our_words_what_it_takes(path: tuple[str, ...]) -> None:
    with pytest.raises(SettingsError) as raised:
        load_settings(environment={variable(path): "wrong!"})
    told = str(raised.value)
    hidden = re.search("password|key|url", path[-1])
    assert told.startswith(f"Settings: {'.'.join(path)} is {'…' if hidden else repr('wrong!')}, expected "), told
    assert told.endswith(f" ({variable(path)})."), told
    assert not LIBRARY_WORDS.search(told), told


@pytest.mark.parametrize("path", [(), *(path for path, kind in SETTINGS if hasattr(kind, "__struct_fields__"))])
def test_a_key_that_is_misspelt_is_told_with_the_one_that_was_meant(path: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text("".join(f"[{'.'.join(path)}]\n" if path else "") + "no_such_keys = 1\n")
    with pytest.raises(SettingsError) as raised:
        load_settings(tmp_path / "s.toml", {})
    told = str(raised.value)
    assert told.startswith(f"Settings: {'.'.join((*path, 'no_such_keys'))}: not known; "), told
    assert told.endswith(f" (in {tmp_path / 's.toml'})."), told
    assert not LIBRARY_WORDS.search(told), told


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("partition = 3", "partition: not known; did you mean partitions?"),
        ("[resilience.aggregate]\ngrid = [0, 'x', 1]", "resilience.aggregate.grid[1] is 'x', expected a number"),
        ("[resilience.aggregate]\ngrid = [0, 2]", "resilience.aggregate: grid is [0.0, 2.0], expected rising values"),
        (
            "[resilience.aggregate.families.docking]\nprogress = 'much'",
            "resilience.aggregate.families.docking.progress is 'much', expected a number or 'auto'",
        ),
        (
            "[resilience.aggregate.families.docking]\nprogress = 7",
            "resilience.aggregate.families.docking: progress is 7.0, expected a number above 0 and at most 1",
        ),
        ("kafka = 7", "kafka is 7, expected a table of keys"),
        ("[judge]\nretries = -1", "judge.retries is -1, expected a finite number of at least 0"),
        ("[partitions]\nx = 1", "partitions is a table of keys, expected a whole number"),
    ],
)
def test_what_is_wrong_deep_inside_is_told_with_its_place(content: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(content)
    with pytest.raises(SettingsError) as raised:
        load_settings(tmp_path / "s.toml", {})
    assert str(raised.value).startswith(f"Settings: {told}")
    assert not LIBRARY_WORDS.search(str(raised.value))


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("s.toml", "a = ", "not valid TOML"),
        ("s.json", "[1]", "holds list, expected a table"),
        ("s.yaml", "a: 1", r"ends in .toml or .json"),
    ],
)
def test_files_that_are_no_settings(tmp_path: Path, name: str, content: str, told: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(SettingsError, match=told):
        load_settings(tmp_path / name, {})


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"none.toml.*No such file"):
        load_settings(tmp_path / "none.toml", {})


def test_secrets_come_from_a_file_and_are_never_told(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("hush hush\n")
    environment = {
        "SPRINGBACK_KAFKA__SECURITY_PROTOCOL": "SASL_SSL",
        "SPRINGBACK_KAFKA__SASL_MECHANISM": "SCRAM-SHA-512",
        "SPRINGBACK_KAFKA__SASL_USERNAME": "robot",
        "SPRINGBACK_KAFKA__SASL_PASSWORD_FILE": str(tmp_path / "password"),
    }
    kafka = load_settings(environment=environment).kafka
    options = kafka.client_options()
    assert options["sasl_plain_password"] == "hush hush"
    assert options["ssl_context"].verify_mode.name == "CERT_REQUIRED"
    assert "hush" not in repr(kafka)
    with pytest.raises(SettingsError) as told:
        load_settings(environment=environment | {"SPRINGBACK_KAFKA__SASL_PASSWORD": "hush", "SPRINGBACK_BUCKETS": "0"})
    assert "hush" not in str(told.value)
    (tmp_path / "password").unlink()
    with pytest.raises(SettingsError, match="sasl_password_file: cannot read"):
        kafka.client_options()
