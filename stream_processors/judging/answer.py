"""Reads the model's answer strictly: exactly what was asked for, or nothing of it."""

import msgspec
import numpy as np
import numpy.typing as npt

from springback.stream_processors.judging.counts import NoScoresError

Scores = npt.NDArray[np.float64]
"""Goal, rationality and efficiency of each judged step, in [0, 1]. Shape: (judged, 3)."""

_LONGEST_ANSWER = 64 * 1024


class _StepScore(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    judge: int
    goal: float
    rationality: float
    efficiency: float


class _Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    scores: list[_StepScore]


class _Message(msgspec.Struct, frozen=True):
    content: str


class _Choice(msgspec.Struct, frozen=True):
    message: _Message


class _Completion(msgspec.Struct, frozen=True):
    choices: list[_Choice]


_completion_decoder = msgspec.json.Decoder(_Completion)
_answer_decoder = msgspec.json.Decoder(_Answer)


def read_answer(body: bytes, count: int) -> Scores:
    """The scores in an endpoint's answer.

    Args:
        body: what came back from `/chat/completions`.
        count: how many steps were to be judged.

    Raises:
        NoScoresError: it is not one JSON object with one entry for each step in order and three numbers in [0, 1]
            each; the cause says whether the form or a number was wrong.
    """
    try:
        choices = _completion_decoder.decode(body).choices
        content = choices[0].message.content if len(choices) == 1 else ""
        answer = _answer_decoder.decode(content[:_LONGEST_ANSWER])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        message = f"The judge's answer is refused: {error}."
        raise NoScoresError(cause="refused_malformed", message=message) from error
    numbers = [score.judge for score in answer.scores]
    if numbers != list(range(1, count + 1)):
        message = f"The judge's answer is refused: {len(numbers)} scores, expected {count}, numbered in order."
        raise NoScoresError(cause="refused_malformed", message=message)
    scores = np.array([(score.goal, score.rationality, score.efficiency) for score in answer.scores], dtype=np.float64)
    if not ((scores >= 0.0) & (scores <= 1.0)).all():
        message = "The judge's answer is refused: a score is outside [0, 1]."
        raise NoScoresError(cause="refused_out_of_range", message=message)
    return scores
