"""Stress from measured quantities, on a stated scale."""

import math

import numpy as np
import pytest

from springback.producers.emitter.measured_stress import MeasuredStress
from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.emitter.step_emitter import StepEmitter

PAYLOAD = MeasuredStress("payload_kg", zero=4.0, one=20.0)


@pytest.mark.parametrize(
    ("kg", "stress"),
    # (kg - 4) / (20 - 4), clipped: 4 / 16 = 0.25, 12 / 16 = 0.75.
    [(4.0, 0.0), (8.0, 0.25), (16, 0.75), (20.0, 1.0), (0.0, 0.0), (90.0, 1.0), (np.float32(8.0), 0.25)],
)
def test_stress_rises_evenly_between_the_ends_of_its_scale(kg: float, stress: float) -> None:
    assert PAYLOAD.of(kg) == stress
    assert PAYLOAD({"payload_kg": kg}) == stress


@pytest.mark.parametrize("kg", [None, math.nan, math.inf, "8", np.zeros(2)])
def test_what_was_not_measured_is_undeclared(kg: object) -> None:
    assert PAYLOAD.of(kg) is None
    assert PAYLOAD({}) is None


def test_less_may_be_harder() -> None:
    assert [MeasuredStress("light_lux", zero=300.0, one=20.0).of(lux) for lux in (500, 300, 90, 20, 0)] == [
        0.0, 0.0, 0.75, 1.0, 1.0,
    ]  # fmt: skip


@pytest.mark.parametrize(("zero", "one"), [(5.0, 5.0), (0.0, math.inf), (math.nan, 1.0)])
def test_a_scale_without_two_ends_is_refused(zero: float, one: float) -> None:
    with pytest.raises(ValueError, match="a scale needs two different numbers"):
        MeasuredStress("wind_m_s", zero, one)


def test_an_episode_says_the_stress_that_was_measured_or_none() -> None:
    publisher = MemoryPublisher()
    with StepEmitter(publisher, producer="cart") as emitter:
        for number, kg in enumerate((12.0, None)):
            episode = emitter.begin_episode(episode=str(number), family="hauling", stress=PAYLOAD.of(kg))
            episode.step(progress=1.0)
            episode.end("success")
    assert [header.stress for frame in publisher.frames for header in frame.episodes] == [0.5, None]
