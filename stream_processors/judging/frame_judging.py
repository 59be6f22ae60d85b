"""One frame on its way through the judge: it waits for its scores, at most until its deadline, and goes on."""

import asyncio
import logging
from collections.abc import Callable

import msgspec
import numpy as np

from springback.producers.contract.codec import decode_frame, encode_msgpack
from springback.producers.contract.columns import ABSENT, is_absent
from springback.producers.contract.frame import StepFrame
from springback.producers.errors import UnreadableFrameError
from springback.stream_processors.judging.chat import Scores
from springback.stream_processors.judging.counts import Cause, JudgeCounts, NoScoresError
from springback.stream_processors.judging.step_judge import StepJudge
from springback.stream_processors.judging.step_selection import JUDGE_COLUMNS, JudgeRequest, StepSelection
from springback.stream_processors.topics import LARGEST_JUDGED_BYTES

_log = logging.getLogger(__name__)
_BESIDES_BYTES = 64 * 1024  # key and headers


class FrameJudging:
    """A message that is being judged; it must be made inside an event loop, to whose clock the deadline belongs.

    Args:
        data: the message.
        selection: chooses what is asked about it.
        judge: gives the scores.
        counts: counts what becomes of its steps, each once.
        deadline: when it goes on at the latest.
        on_settled: called once, when `output` is final; perhaps before this constructor has returned.
    """

    def __init__(
        self,
        data: bytes,
        selection: StepSelection,
        judge: StepJudge,
        counts: JudgeCounts,
        deadline: float,
        on_settled: Callable[[], None],
    ) -> None:
        self.output = data
        self.settled = False
        self._counts = counts
        self._on_settled = on_settled
        self._scores: list[tuple[JudgeRequest, Scores]] = []
        self._asked: dict[asyncio.Task[tuple[Scores, Cause]], JudgeRequest] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._frame = _readable(data, counts)
        requests = [] if self._frame is None else selection.requests(self._frame)
        if not requests:
            self._settle()
            return
        loop = asyncio.get_running_loop()
        for request in requests:
            task = loop.create_task(judge.judge(request, deadline))
            self._asked[task] = request
            task.add_done_callback(self._answered)
        self._timer = loop.call_at(deadline, self.give_up, "timed_out")

    def give_up(self, cause: Cause) -> None:
        """Lets it go on at once, if it has not yet; what is still unanswered is counted under the cause."""
        if self.settled:
            return
        for task, request in self._asked.items():
            self._counts.add_steps(cause, len(request.rows))
            task.cancel()
        self._asked.clear()
        self._settle()

    def _answered(self, task: asyncio.Task[tuple[Scores, Cause]]) -> None:
        request = self._asked.pop(task, None)
        if request is None:
            return  # given up before
        cause: Cause = "failed"
        try:
            scores, cause = task.result()
            self._scores.append((request, scores))
        except NoScoresError as error:
            cause = error.cause
        except Exception:
            _log.exception("judge_fault rubric=yes")  # a fault of ours must not hold the stream up
        self._counts.add_steps(cause, len(request.rows))
        if not self._asked:
            self._settle()

    def _settle(self) -> None:
        self.settled = True
        if self._timer is not None:
            self._timer.cancel()
        if self._frame is not None and self._scores:
            judged = encode_msgpack(with_scores(self._frame, self._scores))
            if len(judged) <= LARGEST_JUDGED_BYTES - _BESIDES_BYTES:
                self.output = judged
                self._counts.add("judged_frames")
            else:
                self._counts.add("oversized_frames")
        self._frame = None
        self._scores.clear()
        self._on_settled()


def with_scores(frame: StepFrame, scores: list[tuple[JudgeRequest, Scores]]) -> StepFrame:
    """The frame with these scores filled in where the producer has given none."""
    steps = dict(frame.steps)
    for number, name in enumerate(JUDGE_COLUMNS):
        given = steps.get(name)
        column = np.full(frame.n_steps, ABSENT) if given is None else np.array(given, dtype=np.float64)
        for request, found in scores:
            rows = np.array(request.rows)
            column[rows] = np.where(is_absent(column[rows]), found[:, number], column[rows])
        steps[name] = column
    return msgspec.structs.replace(frame, steps=steps)


def _readable(data: bytes, counts: JudgeCounts) -> StepFrame | None:
    """The frame; None where it goes on as it is, since it is unreadable or has faults that must arrive unchanged."""
    counts.add("frames")
    try:
        frame = decode_frame(data)
    except UnreadableFrameError:
        counts.add("unreadable_frames")
        return None
    if frame.faults:
        counts.add("faulty_frames")
        counts.add_steps("skipped", frame.n_steps)
        return None
    return frame
