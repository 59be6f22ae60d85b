"""Where there is no stability loss, what is left out of one, and what never enters its state."""

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springback.stream_processors.intake.step_table import ArrivedFrame
from springback.stream_processors.intake.validation import tabulate
from springback.stream_processors.offline.evaluation import learn_baseline
from springback.stream_processors.resilience.baseline.estimates import MaterialisedBaseline
from springback.stream_processors.resilience.baseline.stage_baseline import StageBaseline, policy_matrix
from springback.stream_processors.resilience.stability.stability_state import MANY_MODES
from springback.stream_processors.resilience.tracking.episode_tracker import EpisodeTracker
from springback.stream_processors.resilience.tracking.tracker_state import TrackerState
from tests.stream_processors.frame_builders import (
    START_S,
    frame_of,
    frame_of_parts,
    header_of,
    nominal_rows,
    nothing_learned,
    ready,
    run_tracker,
)
from tests.stream_processors.random_episodes import by_seed, cut_into_frames, judged_episodes
from tests.stream_processors.resilience.stability.literal_stability import LiteralStability
from tests.stream_processors.resilience.stability.stability_in_stream import (
    CONFIG,
    baseline_of,
    by_key,
    open_episodes,
    with_lag,
)

seeds = st.integers(0, 2**32 - 1)


def unlearned(baseline: StageBaseline, **changes: Any) -> MaterialisedBaseline:
    families = {name: msgspec.structs.replace(family, **changes) for name, family in baseline.families.items()}
    return ready(StageBaseline(families=families, grid=baseline.grid), CONFIG)


def test_without_values_or_a_covariance_there_is_no_loss() -> None:
    parts = judged_episodes(3, families=1)
    frames = [frame_of_parts([part]) for part in parts]
    learned = baseline_of(parts)
    for hidden, taught in (({"valued": 0}, (True, False)), ({"stable": 0}, (True, True))):
        outputs, _ = run_tracker(frames, CONFIG, unlearned(learned, **hidden))
        assert set(by_key(outputs.summaries).values()) == {(None, None)}
        assert {(c.valued, c.stable) for c in outputs.contributions} == {taught}
        for contribution in outputs.contributions:
            rows = policy_matrix(contribution.policy)
            assert (rows[:, 0] > 0).all()
            assert (rows[:, 2] > 0).all() if taught[1] else (rows[:, 2:] == 0).all()
    outputs, _ = run_tracker(frames, CONFIG, nothing_learned(CONFIG))
    assert set(by_key(outputs.summaries).values()) == {(None, None)}
    assert {(c.policy, c.valued, c.stable) for c in outputs.contributions} == {(b"", False, False)}


@pytest.mark.parametrize("taught", [9, 10])
@pytest.mark.parametrize("part", ["valued", "stable"])
def test_what_too_few_episodes_taught_is_not_used_unless_frozen(part: str, taught: int) -> None:
    learned = baseline_of(judged_episodes(3, families=1, references=12))
    family = learned.families["family-0"]
    assert (family.references, family.valued, family.stable) == (12, 12, 12)
    setattr(family, part, taught)
    for family.frozen in (False, True):
        index = ready(learned.mature(CONFIG.baseline), CONFIG).families["family-0"]
        assert getattr(index, part) is (taught == 10 or family.frozen)
    assert getattr(family, part) == taught  # what was learned is hidden, not lost


def test_an_aborted_episode_and_one_that_falls_silent_have_no_loss() -> None:
    baseline = ready(baseline_of(judged_episodes(3, families=1)), CONFIG)
    rows = judged_episodes(4, families=1)[0][1]
    aborted, _ = run_tracker([frame_of(rows, "aborted", family="family-0")], CONFIG, baseline)
    assert by_key(aborted.summaries) == {aborted.summaries[0].key: (None, None)}
    _, state = run_tracker([frame_of(rows, family="family-0")], with_lag(4), baseline)
    [episode] = open_episodes(state)
    assert episode.stability.steps == len(rows) - 4  # known so far, and shown live
    assert episode.stability.beta_step() is not None
    silent = EpisodeTracker(CONFIG).close_idle(state, START_S + 1e6)
    assert by_key(silent.summaries) == {silent.summaries[0].key: (None, None)}


@pytest.mark.parametrize("lag", [0, 4, 64])
def test_unscored_steps_are_left_out(lag: int) -> None:
    # The family's baseline comes in mid-episode: the loss is that of an episode that begins there.
    parts = judged_episodes(3, families=1)
    config, baseline = with_lag(lag), ready(baseline_of(parts), CONFIG)
    rows = parts[-1][1]
    begin, rest = frame_of(rows[:6], family="family-0"), frame_of(rows[6:], "failure", family="family-0")
    _, state = run_tracker([begin], config, nothing_learned(config))
    outputs, _ = run_tracker([rest], config, baseline, state=state)
    [summary] = outputs.summaries
    assert (summary.unscored_steps, summary.steps) == (6, len(rows))
    literal = LiteralStability([own for header, own, _ in parts if header.reference])
    literal.lag, literal.unscored = lag or None, 6
    assert summary.stability_loss == pytest.approx(literal.loss(rows, success=False), rel=1e-9)
    assert summary.beta_step == pytest.approx(literal.beta_step(rows, success=False), rel=1e-9)


def test_an_episode_that_was_scored_or_valued_in_part_teaches_no_part_of_that() -> None:
    parts = judged_episodes(3, families=1)
    learned = baseline_of(parts)
    rows = parts[0][1]
    pieces = [frame_of(piece, family="family-0", reference=True) for piece in (rows[:6], rows[6:])]
    end = frame_of([], "success", family="family-0", reference=True)
    for before, valued in ((nothing_learned(CONFIG), False), (unlearned(learned, valued=0), True)):
        _, state = run_tracker(pieces[:1], CONFIG, before)
        outputs, _ = run_tracker([pieces[1], end], CONFIG, ready(learned, CONFIG), state=state)
        [contribution] = outputs.contributions
        assert (contribution.valued, contribution.stable) == (valued, False)
        if valued:
            taught = policy_matrix(contribution.policy)
            assert taught[:, 0].sum() == len(rows)
            assert (taught[:, 2:] == 0).all()
        else:
            assert contribution.policy == b""


def test_a_baseline_may_go_while_steps_wait() -> None:
    parts = judged_episodes(3, families=1)
    baseline = ready(baseline_of(parts), CONFIG)
    rows = parts[0][1]
    for gone in (nothing_learned(CONFIG), ready(baseline_of([(header_of(family="other"), *parts[0][1:])]), CONFIG)):
        _, state = run_tracker([frame_of(rows[:9], family="family-0", reference=True)], CONFIG, baseline)
        outputs, _ = run_tracker(
            [frame_of(rows[9:], "success", family="family-0", reference=True)], CONFIG, gone, state=state
        )
        assert by_key(outputs.summaries) == {outputs.summaries[0].key: (None, None)}


STEPS = MANY_MODES + 100


@pytest.mark.parametrize("size", [1, 50])
def test_modes_that_never_come_twice_do_not_pile_up(size: int) -> None:
    parts = judged_episodes(3, families=1)
    config, baseline = with_lag(8), ready(baseline_of(parts), CONFIG)
    rows = nominal_rows(0, STEPS, total=STEPS)
    names = [str(1999 - row["step"]) for row in rows]
    for row, name in zip(rows, names, strict=True):
        row["mode"] = name
    odd = [frame_of(rows[i : i + size], family="family-0", reference=True) for i in range(0, STEPS, size)]
    for row in rows:
        row["mode"] = "unknown"
    plain = [frame_of(rows[i : i + size], family="family-0") for i in range(0, STEPS, size)]
    _, state = run_tracker(odd, config, baseline)
    _, state_plain = run_tracker(plain, config, baseline)
    [episode], [expected] = open_episodes(state), open_episodes(state_plain)
    assert len(episode.stability.modes) <= MANY_MODES
    assert len(msgspec.msgpack.encode(episode.stability)) < 8000
    assert (episode.stability.total, episode.stability.steps) == (expected.stability.total, expected.stability.steps)
    assert episode.learning is not None
    assert [mode for mode, _, _ in episode.learning.policy] == names[: STEPS - 8]  # each step with its own
    assert [mode for mode, _, _ in episode.learning.returns.cells] == names[:-1]
    last = episode.stability.last
    assert last is not None
    assert episode.stability.modes[last.mode] == names[-1]


NUMBERS = ["planning_s", "retries", "violation", "cycle_time_s", "progress", "judge_goal", "judge_efficiency"]
worst = st.sampled_from([np.nan, np.inf, -np.inf, 1e308, -1e308, 1e200, 1e12, 5e-324, -1.0, 2.0])


@by_seed(20)
@given(seed=seeds, faults=st.lists(st.tuples(st.integers(0, 200), st.sampled_from(NUMBERS), worst), max_size=12))
def test_no_number_however_bad_makes_stability_not_finite(seed: int, faults: list[tuple[int, str, float]]) -> None:
    parts = judged_episodes(seed, references=3, others=1, families=1)
    every = [row for _, rows, _ in parts for row in rows]
    for place, name, value in faults:
        every[place % len(every)][name] = value
    frames = cut_into_frames(parts, seed)
    with np.errstate(all="raise", under="ignore"):
        learned = learn_baseline(frames, CONFIG)
        tracker, state, baseline = EpisodeTracker(with_lag(6)), TrackerState(), ready(learned, CONFIG)
        summaries = []
        for frame in frames:
            summaries += tracker.track(tabulate([ArrivedFrame(frame, START_S)]), [state], baseline).summaries
            for episode in open_episodes(state):
                own = episode.stability
                last = [] if own.last is None else list(msgspec.structs.astuple(own.last))
                sums = [own.initial_work, own.total, own.changes, own.last_distance]
                assert np.isfinite([*sums, *own.values, *last, *np.frombuffer(own.waiting)]).all()
                learning = episode.learning
                if learning is not None:
                    assert np.isfinite([*learning.returns.sums, *learning.returns.traces]).all()
    for summary in summaries:
        if summary.outcome != "aborted" and summary.stability_loss is not None:
            assert np.isfinite([summary.stability_loss, summary.beta_step or 0.0]).all()
    for family in learned.families.values():
        for sums_of_cell in family.policy.values():
            assert np.isfinite(policy_matrix(sums_of_cell)).all()
