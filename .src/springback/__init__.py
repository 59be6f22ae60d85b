"""springback: live resilience telemetry for embodied agents.

All that an agent's own code needs has its name here, and so has what third parties make sources, sinks and value models
of. Each is imported when it is first asked for, so that `import springback` costs next to nothing and a base install
does without the extras of the parts that it does not use.

>>> import springback
>>> publisher = springback.MemoryPublisher()
>>> with springback.StepEmitter(publisher, producer="robot-7") as emitter:
...     episode = emitter.begin_episode(episode="12", family="transportation")
...     episode.step(progress=1.0)
...     episode.end("success")
>>> [end.outcome for frame in publisher.frames for end in frame.ends]
['success']
"""

import sys

TYPE_CHECKING = False  # for type checkers and editors it is true; `typing` itself would cost more than all of this
if TYPE_CHECKING:
    from springback.producers.contract.codec import decode_frame, encode_json, encode_msgpack
    from springback.producers.contract.frame import StepFrame
    from springback.producers.emitter.ending_signals import end_on_signals
    from springback.producers.emitter.kafka_publisher import KafkaPublisher
    from springback.producers.emitter.measured_stress import MeasuredStress
    from springback.producers.emitter.publishers import FramePublisher, JsonLinesPublisher, MemoryPublisher
    from springback.producers.emitter.spooled_publisher import SpooledPublisher
    from springback.producers.emitter.step_emitter import StepEmitter
    from springback.producers.environments.isolated import isolated
    from springback.producers.environments.signal_hooks import SignalHooks
    from springback.producers.environments.vector_wrapper import VectorWrapper
    from springback.producers.environments.wrapper import Wrapper
    from springback.producers.errors import FrameRefusedError, ProducerError
    from springback.producers.habitat.metrics import HabitatReading
    from springback.producers.habitat.sight import instrumented
    from springback.producers.habitat.watch import watch
    from springback.producers.install_hints import MissingExtraError
    from springback.producers.mapping.live import MappedEmitters, MappedSteps
    from springback.producers.mapping.signal_mapping import TimedMessage, load_mapping
    from springback.producers.perturbations.habitat import disturbed
    from springback.producers.recordings.opening import OpenRecording
    from springback.producers.sources import Source
    from springback.sinks.errors import SinkUnavailableError
    from springback.sinks.sink import DeadLetter, Sink
    from springback.stream_processors.offline.evaluation import evaluate
    from springback.stream_processors.resilience.readings import (
        AgentStatus,
        EpisodeBegun,
        EpisodeSummary,
        FamilyReading,
        Reading,
        WindowReading,
    )
    from springback.stream_processors.resilience.stability.value_function import StateFeatures, ValueModel

    __version__: str

__all__ = [
    "AgentStatus",
    "DeadLetter",
    "EpisodeBegun",
    "EpisodeSummary",
    "FamilyReading",
    "FramePublisher",
    "FrameRefusedError",
    "HabitatReading",
    "JsonLinesPublisher",
    "KafkaPublisher",
    "MappedEmitters",
    "MappedSteps",
    "MeasuredStress",
    "MemoryPublisher",
    "MissingExtraError",
    "OpenRecording",
    "ProducerError",
    "Reading",
    "SignalHooks",
    "Sink",
    "SinkUnavailableError",
    "Source",
    "SpooledPublisher",
    "StateFeatures",
    "StepEmitter",
    "StepFrame",
    "TimedMessage",
    "ValueModel",
    "VectorWrapper",
    "WindowReading",
    "Wrapper",
    "__version__",
    "decode_frame",
    "disturbed",
    "encode_json",
    "encode_msgpack",
    "end_on_signals",
    "evaluate",
    "instrumented",
    "isolated",
    "load_mapping",
    "watch",
]

_HOMES = {
    "producers.contract.codec": ("decode_frame", "encode_json", "encode_msgpack"),
    "producers.contract.frame": ("StepFrame",),
    "producers.emitter.ending_signals": ("end_on_signals",),
    "producers.emitter.kafka_publisher": ("KafkaPublisher",),
    "producers.emitter.measured_stress": ("MeasuredStress",),
    "producers.emitter.publishers": ("FramePublisher", "JsonLinesPublisher", "MemoryPublisher"),
    "producers.emitter.spooled_publisher": ("SpooledPublisher",),
    "producers.emitter.step_emitter": ("StepEmitter",),
    "producers.environments.isolated": ("isolated",),
    "producers.environments.signal_hooks": ("SignalHooks",),
    "producers.environments.vector_wrapper": ("VectorWrapper",),
    "producers.environments.wrapper": ("Wrapper",),
    "producers.errors": ("FrameRefusedError", "ProducerError"),
    "producers.habitat.metrics": ("HabitatReading",),
    "producers.habitat.sight": ("instrumented",),
    "producers.habitat.watch": ("watch",),
    "producers.install_hints": ("MissingExtraError",),
    "producers.mapping.live": ("MappedEmitters", "MappedSteps"),
    "producers.mapping.signal_mapping": ("TimedMessage", "load_mapping"),
    "producers.perturbations.habitat": ("disturbed",),
    "producers.recordings.opening": ("OpenRecording",),
    "producers.sources": ("Source",),
    "sinks.errors": ("SinkUnavailableError",),
    "sinks.sink": ("DeadLetter", "Sink"),
    "stream_processors.offline.evaluation": ("evaluate",),
    "stream_processors.resilience.readings": (
        "AgentStatus",
        "EpisodeBegun",
        "EpisodeSummary",
        "FamilyReading",
        "Reading",
        "WindowReading",
    ),
    "stream_processors.resilience.stability.value_function": ("StateFeatures", "ValueModel"),
}
_PACKAGE_OF_HOME = {
    "producers.environments.isolated": "gymnasium",
    "producers.environments.vector_wrapper": "gymnasium",
    "producers.environments.wrapper": "gymnasium",
    "stream_processors.offline.evaluation": "datasketches",
    "stream_processors.resilience.stability.value_function": "datasketches",
}
# The base install runs on older Pythons: only the folders after `producers` need this one.
_OLDER_PYTHON = sys.version_info < (3, 11)
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def _load(name: str) -> object:
    """Imports a public name, and keeps it.

    Raises:
        AttributeError: there is no such name.
        OlderPythonError: this Python is too old for it.
        MissingExtraError: a package that it needs is not installed. `hasattr` raises it too: False would not say which.
    """
    import importlib

    if name == "__version__":
        import importlib.metadata

        found: object = importlib.metadata.version(__name__)
    elif name in _HOME_OF:
        if _OLDER_PYTHON and not _HOME_OF[name].startswith("producers."):
            from springback.producers.errors import OlderPythonError

            part = f"{__name__}.{name}"
            raise OlderPythonError(part, sys.version_info[:3])
        try:
            found = getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)
        except ModuleNotFoundError as error:
            from springback.producers.install_hints import EXTRA_OF_PACKAGE, MissingExtraError

            extra = EXTRA_OF_PACKAGE.get((error.name or "").partition(".")[0])
            if extra is None:
                raise
            raise MissingExtraError(extra=extra, cause=error) from error
    else:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """The names that can be had here: `help(springback)` asks for each, and would end at one that is missing."""
    from importlib.util import find_spec

    absent = {name for home, package in _PACKAGE_OF_HOME.items() if find_spec(package) is None for name in _HOMES[home]}
    if _OLDER_PYTHON:
        absent.update(name for name, home in _HOME_OF.items() if not home.startswith("producers."))
    return sorted({*globals(), *__all__} - absent)


if not TYPE_CHECKING:  # a type checker that saw this would take any misspelt name for one that exists
    __getattr__ = _load
