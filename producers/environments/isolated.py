"""Makes the death of one environment the end of its episode, and of nothing else.

In a vector environment an exception in one sub-environment ends the step of all of them. Around each, `isolated` keeps
the others going: `SyncVectorEnv([isolated(make_env)] * 8)`, and the same for `AsyncVectorEnv`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, SupportsFloat

from springback.producers.environments.signal_hooks import ABORT_REASON, ABORTED
from springback.producers.install_hints import MissingExtraError

try:
    import gymnasium
except ImportError as error:
    raise MissingExtraError(extra="gymnasium", cause=error) from error

log = logging.getLogger(__name__)

MOST_ATTEMPTS = 3


class IsolatedEnvironment(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment that is replaced by a new one after an exception.

    The step that fails truncates the episode: it gives the last observation again, no reward, and an info with
    `aborted` (True) and `abort_reason`; the wrappers of springback end the episode as aborted. The next reset makes a
    new environment.

    Args:
        make: makes the environment.

    Raises:
        Exception: whatever `make` raises at first; later what it, or a reset, raises `MOST_ATTEMPTS` times in a row.
    """

    def __init__(self, make: Callable[[], gymnasium.Env[Any, Any]]) -> None:
        super().__init__(make())
        self._make = make
        self._dead = False
        self._reason = ""
        self._observation: Any = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Resets the environment, or a new one where it is dead or cannot be reset."""
        for attempt in range(1, MOST_ATTEMPTS + 1):
            try:
                if self._dead:
                    self.env = self._make()
                    self._dead = False
                self._observation, info = super().reset(seed=seed, options=options)
            except Exception as error:
                self._bury(error)
                if attempt == MOST_ATTEMPTS:
                    raise
            else:
                return self._observation, info
        raise AssertionError  # the last attempt returns or raises

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Takes a step; one that raises ends the episode. A dead environment is not touched until its reset."""
        if not self._dead:
            try:
                result = super().step(action)
            except Exception as error:  # whatever a simulator dies of
                self._bury(error)
            else:
                self._observation = result[0]
                return result
        return self._observation, 0.0, False, True, {ABORTED: True, ABORT_REASON: self._reason}

    def close(self) -> None:
        """Closes the environment, unless it is dead and closed already."""
        if not self._dead:
            super().close()

    def _bury(self, error: Exception) -> None:
        self._reason = f"{type(error).__name__}: {error}"
        log.warning("an environment died; its next reset makes a new one: %s", self._reason)
        if not self._dead:
            self._dead = True
            try:
                super().close()
            except Exception as second:  # what is broken may not close either
                log.warning("the dead environment could not be closed: %s: %s", type(second).__name__, second)


def isolated(make: Callable[[], gymnasium.Env[Any, Any]]) -> Callable[[], gymnasium.Env[Any, Any]]:
    """Makes the same environment, but its death ends its own episode only; see `IsolatedEnvironment`."""
    return lambda: IsolatedEnvironment(make)
