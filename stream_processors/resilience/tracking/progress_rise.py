"""When the progress of an episode last rose above all before it: what tells a stalled agent.

One false value must not decide: after a single 1.0 by mistake nothing could rise above it for the rest of the episode.
So a level from which progress soon falls, by more than half of the rise to it, is taken back. What lies below a level
that was taken back counts once it has been kept for three steps, and is not taken back again, so that swinging to and
fro is no progress. All of it is ours.
"""

from collections.abc import Iterable

import msgspec

KEPT_STEPS = 16
"""A level is taken back for at least so many steps, and for at most twice as many."""


class ProgressRise(msgspec.Struct, array_like=True):
    """The rise of one episode's progress.

    Attributes:
        highest: the highest progress that counts.
        risen_s: when it last rose, by the broker's time in seconds UTC epoch; 0 before any rise.
        before: the highest before the latest rise.
        steps: since the beginning.
        kept, next_kept: the highest as of the last multiple of `KEPT_STEPS` but one, which is not taken back, and of
            the last.
        doubted: the highest level that was taken back.
        last, last_but_one: progress after the last two steps.
    """

    highest: float = 0.0
    risen_s: float = 0.0
    before: float = 0.0
    steps: int = 0
    kept: float = 0.0
    next_kept: float = 0.0
    doubted: float = 0.0
    last: float = 0.0
    last_but_one: float = 0.0

    def follow(self, progress: Iterable[float], arrived_s: Iterable[float]) -> None:
        """Goes on over the steps of a batch: progress after each, and when each arrived.

        >>> rise = ProgressRise()
        >>> rise.follow([0.1, 0.2, 1.0, 0.3, 0.4, 0.5], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
        >>> rise.highest, rise.risen_s
        (0.3, 3.0)
        >>> rise.follow([0.6], [7.0])
        >>> rise.highest, rise.risen_s
        (0.4, 7.0)
        """
        # Row by row: on plain local numbers, since it is on the hot path.
        highest, before, last, last_but_one = self.highest, self.before, self.last, self.last_but_one
        for value, now_s in zip(progress, arrived_s, strict=True):
            if 2.0 * value < before + highest and highest > self.kept and highest > self.doubted:
                self.doubted = highest
                highest = before = max(self.kept, value)
                self.next_kept = min(self.next_kept, highest)
            if value > highest:
                level = value if value > self.doubted else min(value, last, last_but_one)
                if level > highest:
                    before, highest, self.risen_s = highest, level, now_s
            last, last_but_one = value, last
            self.steps += 1
            if self.steps % KEPT_STEPS == 0:
                self.kept, self.next_kept = self.next_kept, highest
        self.highest, self.before, self.last, self.last_but_one = highest, before, last, last_but_one
