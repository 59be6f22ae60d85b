"""The soak in short, on a real Kafka; and that what it looks for is found."""

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.house import ROOT
from tests.soak.soak_emitter import SoakCount
from tests.soak.soak_figures import JUDGED_FROM_S, broken_bounds, growths, write_plot
from tests.soak.soak_run import ProcessSample, SoakSample, page_differences

RUN_S = 400


@pytest.mark.kafka
@pytest.mark.timeout(RUN_S + 60)
def test_counters_are_exact_after_a_short_soak(kafka_process: object, tmp_path: Path) -> None:
    del kafka_process  # only for its skip where there is no Kafka; the soak has one of its own
    plot, figures = tmp_path / "soak.png", tmp_path / "soak.json"
    command = [
        *(sys.executable, "-m", "tests.soak", "--minutes", "0.4", "--sample", "2"),
        *("--plot", str(plot), "--json", str(figures)),
    ]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=RUN_S, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert plot.read_bytes().startswith(b"\x89PNG")
    found = json.loads(figures.read_text())
    assert found["counts"]["steps"] > 0
    assert set(found["samples"][0]["processes"]) == {"broker", "worker", "exporter", "producer-0", "producer-1"}


def samples(memory_mb: list[float], *, descriptors: list[int] | None = None, threads: list[int] | None = None,
            name: str = "worker") -> list[SoakSample]:  # fmt: skip
    """A soak that is long enough to be judged, evenly sampled."""
    places = range(len(memory_mb))
    return [
        SoakSample(
            at_s=2 * JUDGED_FROM_S * (place + 1) / len(memory_mb),
            processes={
                name: ProcessSample(
                    memory_mb=memory_mb[place],
                    descriptors=(descriptors or [10] * len(memory_mb))[place],
                    threads=(threads or [4] * len(memory_mb))[place],
                    core_share=0.5,
                )
            },
            steps_per_s=1000.0,
            frames_behind=3,
        )
        for place in places
    ]


def test_what_grows_is_found() -> None:
    level = [100.0, 200, 200, 200, 205, 200, 210, 205]
    assert broken_bounds(samples(level)) == []
    assert growths(samples(level))[0].memory_mb == (200.0, 207.5)
    (memory,) = broken_bounds(samples([100.0, 150, 200, 250, 300, 350, 400, 450]))
    assert memory == "worker: memory grew from 225 to 425 MB"
    assert broken_bounds(samples([100.0, 150, 200, 250, 300, 350, 400, 450], name="broker")) == []
    (files,) = broken_bounds(samples(level, descriptors=[10, 10, 10, 10, 20, 20, 30, 30]))
    assert files == "worker: descriptors grew from 10 to 30"
    (threads,) = broken_bounds(samples(level, threads=[4, 4, 4, 4, 8, 8, 9, 9]))
    assert threads == "worker: threads grew from 4 to 9"


def test_a_short_soak_is_not_judged_by_growth() -> None:
    short = [msgspec.structs.replace(one, at_s=one.at_s / 10) for one in samples([100.0, 200, 300, 400])]
    assert broken_bounds(short) == []


def test_counters_that_are_one_off_are_found(tmp_path: Path) -> None:
    total = SoakCount(
        steps=1000,
        refusable=2,
        begun=10,
        ends={"success": 6, "failure": 4},
        steps_sent=1000,
        steps_dropped=0,
        ends_dropped=0,
    )
    page = {
        ("springback_steps_total", (("family", "a"),)): 500.0,
        ("springback_steps_total", (("family", "b"),)): 498.0,
        ("springback_dead_letters_total", ()): 2.0,
        ("springback_episodes_begun_total", ()): 10.0,
        ("springback_episodes_total", ()): 10.0,
    }
    assert list(page_differences(page, total)) == []
    for series in page:
        assert len(list(page_differences(page | {series: page[series] + 1}, total))) == 1
    dropped = msgspec.structs.replace(total, steps_sent=999, steps_dropped=1)
    assert "own counts" in next(iter(page_differences(page, dropped)))
    write_plot(samples([100.0, 110, 120]), tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 0
