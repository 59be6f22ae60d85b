"""PointNav in an empty room by habitat-lab's Env, RLEnv and VectorEnv, clean and disturbed: fake and real."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.habitat.watch import watch
from springback.producers.perturbations.habitat import disturbed
from tests.producers.habitat.habitat_makers import Habitat
from tests.producers.habitat.real_habitat import HALF, glb_of_a_box
from tests.producers.habitat.trace_replay import ends_of, rows_of

pytestmark = pytest.mark.filterwarnings("default")  # those of habitat-lab's own packages
WALK = ["move_forward"] * 12  # 3 m, as far as the goal
NEAR = 0.05
"""How exact a real navmesh is, m or as a share."""


def walked(env: Any, actions: list[str]) -> list[float]:
    """Takes the actions, and gives the distance to the goal after each."""
    env.reset()
    distances = []
    for action in actions:
        env.step({"action": action})
        core = env if hasattr(env, "get_metrics") else env.habitat_env
        distances.append(float(core.get_metrics()["distance_to_goal"]))
    return distances


@pytest.mark.parametrize("kind", ["env", "gym"])
def test_a_walk_to_the_goal_is_told_as_habitat_lab_measures_it(
    habitat: Habitat, emitter: StepEmitter, publisher: MemoryPublisher, kind: str
) -> None:
    env: Any = watch(getattr(habitat, kind)(), emitter, family="pointnav")
    distances = walked(env, [*WALK, "stop"])
    env.close()
    assert emitter.flush()
    rows = [row for _, row in rows_of(publisher.frames)]
    assert [row["progress"] for row in rows] == pytest.approx([1 - left / 3.0 for left in distances], abs=NEAR)
    assert [row["travel"] for row in rows] == pytest.approx([0.25] * 12 + [0.0], abs=NEAR)
    assert [row["mode"] for row in rows] == ["navigate"] * 12 + ["stop"]
    assert sum(row["violation"] for row in rows) == 0
    [end] = ends_of(publisher.frames).values()
    assert end.outcome == "success"
    assert end.navigation is not None
    assert end.navigation.shortest_path == pytest.approx(3.0, abs=NEAR)
    assert end.navigation.path == pytest.approx(3.0, abs=4 * NEAR)
    assert end.navigation.shortest_actions == pytest.approx(13, abs=1)


def test_a_wall_is_a_violation_though_nothing_measures_collisions(
    habitat: Habitat, emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    env: Any = watch(habitat.env(), emitter, family="pointnav")
    walked(env, ["move_forward"] * 20)
    env.close()
    assert emitter.flush()
    hits = [row["violation"] for _, row in rows_of(publisher.frames)]
    assert hits[:14] == [0] * 14  # 3.5 m are free
    assert hits[17:] == [1] * 3  # 4.25 m are not


def test_disturbances_of_an_env_are_told_with_their_steps(
    habitat: Habitat, emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    env: Any = watch(disturbed(habitat.env(), 1.0, kinds=["action_drop"], seed=3), emitter, family="pointnav")
    walked(env, [*WALK, *["move_forward"] * 8])
    env.close()
    assert emitter.flush()
    rows = [row for _, row in rows_of(publisher.frames)]
    dropped = ["action_drop" in row["feedback"] for row in rows]
    assert 0 < sum(dropped) < 20
    assert all(row["travel"] == 0.0 for row, acted in zip(rows, dropped) if acted)
    header = publisher.frames[0].episodes[0]
    assert (header.stress, header.perturbation, header.perturbation_name) == (1.0, "physical", "action_drop")


def test_a_gym_environment_passes_for_one(habitat: Habitat, emitter: StepEmitter) -> None:
    bare = habitat.gym()
    gyms = [base for base in type(bare).__mro__ if base.__name__ == "Env"]
    assert gyms
    for env in (watch(bare, emitter, family="pointnav"), disturbed(bare, 0.5)):
        assert all(isinstance(env, gym) for gym in gyms)


def test_each_environment_of_a_vector_counts_from_the_start(
    habitat: Habitat, emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    envs: Any = watch(habitat.vector(2), emitter, family="pointnav")
    envs.reset()
    for action in ("move_forward", "move_forward", "stop"):
        envs.step([{"action": action}] * 2)
    envs.close()
    assert emitter.flush()
    agents = {header.agent: header.task for frame in publisher.frames for header in frame.episodes}
    assert set(agents) == {"habitat-0", "habitat-1"}
    assert len(set(agents.values())) == 1
    progress = sorted(row["progress"] for _, row in rows_of(publisher.frames))
    assert progress == pytest.approx(sorted([1 / 12, 2 / 12, 2 / 12] * 2), abs=NEAR)
    assert [end.outcome for frame in publisher.frames for end in frame.ends] == ["failure"] * 2


def test_the_room_s_scene_is_a_closed_box_that_looks_outwards() -> None:
    data = glb_of_a_box((0.0, -HALF[1], 0.0), HALF)
    assert data[:4] == b"glTF"
    assert int.from_bytes(data[8:12], "little") == len(data)
    binary = data[20 + int.from_bytes(data[12:16], "little") + 8 :]
    corners = np.frombuffer(binary, "<f4", 72).reshape(24, 3).astype(float)
    normals = np.frombuffer(binary, "<f4", 72, 288).reshape(24, 3)
    triangles = np.frombuffer(binary, "<u4", 36, 576).reshape(12, 3)
    assert corners.max(axis=0).tolist() == pytest.approx([HALF[0], 0.0, HALF[2]])
    sides = [np.cross(corners[b] - corners[a], corners[c] - corners[a]) / 2 for a, b, c in triangles]
    assert all(side @ normals[triangle[0]] > 0 for side, triangle in zip(sides, triangles))
    volume = sum(corners[a] @ np.cross(corners[b], corners[c]) for a, b, c in triangles) / 6
    assert math.isclose(volume, 8 * math.prod(HALF), rel_tol=1e-5)
