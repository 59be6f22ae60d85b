"""Settings of the worker: defaults, a TOML or JSON file over them, SPRINGBACK_* of the environment over both.

A key inside a table is reached in the environment by two underscores: SPRINGBACK_KAFKA__SASL_USERNAME. Variables that
name no setting of the worker are left to the other parts of springback.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from springback.producers.setting_words import setting_fault
from springback.stream_processors.errors import SettingsError
from springback.stream_processors.judging.settings import JudgeSettings, check_range
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.service.kafka_connection import KafkaConnection

ENVIRONMENT_PREFIX = "SPRINGBACK_"
_HIGHEST_PORT = 65535
_MAY_BE_SECRET = re.compile("password|key|url")


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of one worker. Times are seconds.

    Attributes:
        kafka: addresses and security of the brokers.
        prefix: what every topic's name begins with; also part of the consumer group's name.
        app_id: name of the application: consumer group and changelogs.
        partitions: partitions of the topics.
        replication: copies of each partition.
        standby_replicas: workers that keep a warm copy of another's state.
        buckets: into how many records a partition's state of open episodes is divided.
        families: how many families one partition of the second and third stage may have; of one more nothing is
            learned or aggregated, and what comes of it goes to the dead letters.
        batch_max: most messages in one batch.
        batch_within_s: longest wait for a batch to fill.
        session_timeout_s: silence after which the broker takes a worker for dead.
        rebalance_timeout_s: how long a group waits for its members.
        commit_interval_s: how often offsets are committed.
        tick_interval_s: how often silent episodes and stalled partitions are looked for.
        stall_s: silence of a partition with unread messages after which it is read again from where the state is.
        recovery_bound_s: longest time to become ready; after it the worker ends with an error.
        baseline_refresh_s: shortest time between two switches to what has been learned meanwhile.
        frozen_baseline: a baseline file to score by instead of the live baselines; empty for the live ones.
        value_model: what values states: a value network (a file of `springback fit-value`), the name of a third
            party's model, or `anchor`, the mean return by anchor; empty for the latter. All workers of one application
            must agree.
        data_directory: has no effect: a worker keeps no files. It is read so that older settings go on to work.
        health_host: where the health endpoint and the metrics page listen.
        health_port: their port, another one for each worker of a machine; 0 takes a free one.
        judged: whether the steps are read as `springback judge` passes them on, instead of as they come; its state is
            kept apart. All workers of one application must agree.
        judge: settings of the judge.
        resilience: settings of the core.
    """

    kafka: KafkaConnection = KafkaConnection()
    prefix: str = ""
    app_id: str = "springback"
    partitions: int = 4
    replication: int = 1
    standby_replicas: int = 0
    buckets: int = 32
    families: int = 4096
    batch_max: int = 500
    batch_within_s: float = 0.25
    session_timeout_s: float = 10.0
    rebalance_timeout_s: float = 10.0
    commit_interval_s: float = 0.5
    tick_interval_s: float = 1.0
    stall_s: float = 5.0
    recovery_bound_s: float = 120.0
    baseline_refresh_s: float = 10.0
    frozen_baseline: str = ""
    value_model: str = ""
    data_directory: str = ""
    health_host: str = "127.0.0.1"
    health_port: int = 0
    judged: bool = False
    judge: JudgeSettings = JudgeSettings()
    resilience: ResilienceConfig = ResilienceConfig()

    @property
    def group(self) -> str:
        """The consumer group, which also begins the changelogs' names."""
        return self.prefix + self.app_id

    def __post_init__(self) -> None:
        """Checks the ranges."""
        for key in ("partitions", "replication", "buckets", "families", "batch_max"):
            check_range(key, getattr(self, key), 1)
        for key in ("batch_within_s", "commit_interval_s", "tick_interval_s", "stall_s", "baseline_refresh_s"):
            check_range(key, getattr(self, key), 0.01)
        for key in ("session_timeout_s", "rebalance_timeout_s", "recovery_bound_s"):
            check_range(key, getattr(self, key), 1.0)
        for key in ("standby_replicas", "health_port"):
            check_range(key, getattr(self, key), 0)
        if self.health_port > _HIGHEST_PORT:
            message = f"health_port is {self.health_port}, expected at most {_HIGHEST_PORT}"
            raise ValueError(message)


def load_settings(
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> WorkerSettings:
    """The worker's settings.

    Args:
        file: a .toml or .json file.
        environment: the variables; those of the process if None.
        overrides: settings of the command line by key, nested tables as nested mappings; they stand above all else.

    Raises:
        SettingsError: a key is unknown, or its value is not what it must be.
    """
    merged: dict[str, Any] = {}
    if file is not None:
        merged = _from_file(file)
    variables: dict[tuple[str, ...], str] = {}
    for name, path, text in _from_environment(os.environ if environment is None else environment):
        variables[tuple(path)] = name
        _put(merged, path, text)
    _merge(merged, overrides or {})
    try:
        return msgspec.convert(merged, WorkerSettings, strict=False)
    except msgspec.ValidationError as error:
        fault = setting_fault(WorkerSettings, merged, secret=_MAY_BE_SECRET)
        if fault is None:
            raise
        message = f"Settings: {fault}{_origin_of(fault.path, file, variables, overrides or {})}."
        raise SettingsError(message) from error


def _from_file(file: Path) -> dict[str, Any]:
    if file.suffix not in (".toml", ".json"):
        message = f"Settings file {str(file)!r}: expected a name that ends in .toml or .json."
        raise SettingsError(message)
    try:
        data = file.read_bytes()
        found = msgspec.toml.decode(data) if file.suffix == ".toml" else msgspec.json.decode(data)
    except OSError as error:
        message = f"Settings file {str(file)!r} cannot be read ({error.strerror})."
        raise SettingsError(message) from error
    except msgspec.DecodeError as error:
        message = f"Settings file {str(file)!r} is not valid {file.suffix[1:].upper()}: {error}."
        raise SettingsError(message) from error
    if not isinstance(found, dict):
        message = f"Settings file {str(file)!r} holds {type(found).__name__}, expected a table of keys."
        raise SettingsError(message)
    return found


def _from_environment(environment: Mapping[str, str]) -> Iterator[tuple[str, list[str], str]]:
    for name, text in sorted(environment.items()):
        path = name.removeprefix(ENVIRONMENT_PREFIX).lower().split("__")
        if name.startswith(ENVIRONMENT_PREFIX) and path[0] in WorkerSettings.__struct_fields__:
            yield name, path, text


def _put(table: dict[str, Any], path: list[str], value: Any) -> None:
    *above, last = path
    for key in above:
        inner = table.setdefault(key, {})
        if not isinstance(inner, dict):
            message = f"Settings: {key!r} is {inner!r}, expected a table, because {'.'.join(path)!r} is set too."
            raise SettingsError(message)
        table = inner
    table[last] = value


def _merge(table: dict[str, Any], over: Mapping[str, Any]) -> None:
    for key, value in over.items():
        if isinstance(value, Mapping):
            inner = table.setdefault(key, {})
            _merge(inner, value)
        else:
            table[key] = value


def _origin_of(
    path: tuple[str, ...], file: Path | None, variables: Mapping[tuple[str, ...], str], overrides: Mapping[str, Any]
) -> str:
    """Where a setting comes from, in brackets; nothing for one of the command line, and for what nobody gave."""
    key = tuple(part.partition("[")[0] for part in path)
    over: Any = overrides
    for part in key:
        over = over.get(part) if isinstance(over, Mapping) else None
    if over is not None and key:
        return ""
    names = [name for place, name in variables.items() if key and key[: len(place)] == place]
    if not names:  # a table that checks its keys against one another
        names = [name for place, name in variables.items() if place[: len(key)] == key]
    if names:
        return f" ({', '.join(names)})"
    return "" if file is None else f" (in {file})"
