"""Agents on minigrid's BabyAI levels, with perturbations and a clock of their own: a source of step events.

`tasks` says which tasks there are, `play` plays one step by step into an emitter, and `recording` makes a recording of
many.
"""

from __future__ import annotations

import os

from springback.producers.install_hints import MissingExtraError

# pygame, which minigrid imports, would print an advertisement to stdout.
os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")

try:
    import minigrid  # noqa: F401 - registers the levels
except ImportError as error:
    raise MissingExtraError(extra="babyai", cause=error) from error
