"""Settings: defaults, under a file, under the environment, under the command line; errors say what is wrong where."""

from pathlib import Path

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
        ({"SPRINGBACK_PARTITIONS": "many"}, r"Expected `int`, got `str` - at `\$.partitions`.*many"),
        ({"SPRINGBACK_PARTITIONS": "0"}, "partitions is 0, expected a finite number of at least 1"),
        ({"SPRINGBACK_KAFKA__SECURITY_PROTOCOL": "TLS"}, r"Invalid enum value 'TLS' - at `\$.kafka.security_protocol`"),
        ({"SPRINGBACK_STALL_S": "inf"}, "stall_s is inf, expected a finite number of at least 0.01"),
        ({"SPRINGBACK_STALL_S": "nan"}, "stall_s is nan, expected a finite number of at least 0.01"),
        ({"SPRINGBACK_HEALTH_PORT": "inf"}, r"Expected `int`, got `str` - at `\$.health_port`"),
        ({"SPRINGBACK_HEALTH_PORT": "65536"}, "health_port is 65536, expected at most 65535"),
        ({"SPRINGBACK_KAFKA__COLOUR": "x"}, "unknown field `colour`"),
        ({"SPRINGBACK_PREFIX": "p", "SPRINGBACK_PREFIX__X": "y"}, "'prefix' is 'p', expected a table"),
    ],
)
def test_errors_say_the_key_what_arrived_and_what_was_expected(environment: dict[str, str], told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        load_settings(environment=environment)


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
