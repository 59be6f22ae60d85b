"""Settings of the judge: which endpoint it asks, what it asks about, and what it may cost in time and calls."""

import math
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

KEY_VARIABLE = "SPRINGBACK_JUDGE_API_KEY"
"""The environment variable that has the endpoint's key; the settings can name a file instead. It is never logged."""


class JudgeSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that a judge can be told; times are in seconds.

    Attributes:
        base_url: an OpenAI-compatible endpoint, up to but without `/chat/completions`: https://host/v1.
        model: the model's name there.
        api_key_file: a file that contains the key alone; without one SPRINGBACK_JUDGE_API_KEY, else no key is sent.
        answer_format: how the endpoint is told to answer in JSON: by schema, as any object, or not at all.
        parameters: further fields of every request, such as temperature.
        which: what is judged: steps with an event (a retry, a violation, a setback or new feedback), every step, or
            every n-th.
        every_nth: that n.
        steps_per_call: the most steps that one call asks about.
        calls_per_frame: the most calls for one frame; the steps beyond are left to the rubric.
        trajectory_steps: how many steps before a judged one are shown.
        deadline_s: the longest that a frame waits for its scores.
        call_timeout_s: the longest that one call takes; no call is begun that could end after the deadline.
        concurrency: the most calls at a time.
        calls_per_minute: the most calls in any minute, retries included.
        retries: how often a failed call is tried again.
        backoff_s: the wait before the first retry, doubled for each further one, with jitter.
        longest_pause_s: the longest Retry-After of an endpoint that is heeded.
        breaker_failures: failures in a row after which the endpoint counts as down.
        breaker_pause_s: how often one call then checks whether it is back.
        cached_answers: how many answers are kept.
        remembered_episodes: for how many episodes the last steps are kept.
        waiting_frames: the most frames that wait; when one more comes, the one that has waited longest goes on.
        waiting_bytes: the most bytes of frames that wait, likewise.
    """

    base_url: str = ""
    model: str = ""
    api_key_file: str = ""
    answer_format: Literal["json_schema", "json_object", "none"] = "json_schema"
    parameters: dict[str, Any] = msgspec.field(default_factory=lambda: {"temperature": 0, "max_tokens": 1024})
    which: Literal["events", "every", "nth"] = "events"
    every_nth: int = 10
    steps_per_call: int = 8
    calls_per_frame: int = 8
    trajectory_steps: int = 6
    deadline_s: float = 8.0
    call_timeout_s: float = 5.0
    concurrency: int = 8
    calls_per_minute: int = 60
    retries: int = 2
    backoff_s: float = 0.25
    longest_pause_s: float = 300.0
    breaker_failures: int = 5
    breaker_pause_s: float = 15.0
    cached_answers: int = 10_000
    remembered_episodes: int = 4_096
    waiting_frames: int = 2_000
    waiting_bytes: int = 64 * 1024 * 1024

    def __post_init__(self) -> None:
        """Checks the ranges, and that the address has no secret in it."""
        counts = (
            "every_nth", "steps_per_call", "calls_per_frame", "concurrency", "breaker_failures", "cached_answers",
            "remembered_episodes", "waiting_frames", "waiting_bytes",
        )  # fmt: skip
        for key in counts:
            check_range(f"judge.{key}", getattr(self, key), 1)
        check_range("judge.calls_per_minute", self.calls_per_minute, 2)
        for key in ("trajectory_steps", "retries"):
            check_range(f"judge.{key}", getattr(self, key), 0)
        for key in ("call_timeout_s", "breaker_pause_s", "backoff_s", "longest_pause_s"):
            check_range(f"judge.{key}", getattr(self, key), 0.001)
        check_range("judge.deadline_s", self.deadline_s, self.call_timeout_s)
        if self.base_url:
            _check_address(self.base_url)


def check_range(key: str, value: float, least: float) -> None:
    """Checks that a setting, of this judge or of the worker around it, is finite and large enough.

    Raises:
        ValueError: it is not.
    """
    if not least <= value < math.inf:
        message = f"{key} is {value}, expected a finite number of at least {least}"
        raise ValueError(message)


def _check_address(address: str) -> None:
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        message = "judge.base_url is not an address: expected http://HOST/… or https://HOST/…"
        raise ValueError(message)
    if parts.username or parts.password or parts.query or parts.fragment:
        message = f"judge.base_url is more than an address: a key belongs in {KEY_VARIABLE} or api_key_file"
        raise ValueError(message)
