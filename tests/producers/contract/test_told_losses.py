"""What a producer could not keep is told in its next frame, by either encoding; a remark costs no frame."""

import msgspec
import pytest

from springback.producers.contract.codec import decode_frame, encode_json, encode_msgpack
from springback.producers.contract.frame import StepFrame
from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.errors import PublishError
from tests.producers.emitter.emitter_waiting import until


@pytest.mark.parametrize("encode", [encode_json, encode_msgpack])
def test_both_encodings_say_it(encode: object) -> None:
    frame = StepFrame(producer="r7", session="s", lost_steps=7, lost_ends=2)
    read = decode_frame(encode(frame))  # type: ignore[operator]
    assert (read.lost_steps, read.lost_ends) == (7, 2)
    nothing = encode(StepFrame(producer="r7", session="s"))  # type: ignore[operator]
    assert b"lost" not in nothing
    assert decode_frame(nothing).lost_steps == 0


@pytest.mark.parametrize("lost", [-1, 1.5, "many", None, [1], 2**60])
def test_what_is_no_count_is_left_out_alone(lost: object) -> None:
    document = {"schema_version": 1, "producer": "r7", "session": "s", "lost_steps": lost, "lost_ends": 1}
    read = decode_frame(msgspec.json.encode(document))
    assert (read.lost_steps, read.lost_ends) == (0, 1)


def test_an_emitter_tells_what_it_has_dropped() -> None:
    publisher = MemoryPublisher()
    publisher.failure = PublishError("Kafka is away")
    with StepEmitter(publisher, producer="r7", buffer_steps=10) as emitter:
        episode = emitter.begin_episode(family="f")
        for _ in range(25):
            episode.step(progress=0.5)
        publisher.failure = None
        until(lambda: emitter.report.steps_buffered == 0)
        episode.step(progress=1.0)
        episode.end("success")
    dropped = emitter.report.steps_dropped
    assert dropped == 15
    assert publisher.frames[-1].lost_steps == dropped
