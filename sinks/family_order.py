"""Which of two readings of a family holds: the later one."""

_OTHER_COUNT_S = 60.0
"""How much newer a reading must be that counts from the beginning again; a repetition is no newer at all."""


def is_later(sequence: int, updated_s: float, held_sequence: int, held_updated_s: float) -> bool:
    """Whether a reading replaces the one that is held, by how many changes each has seen, and when the last was.

    A worker whose state was lost with its broker counts from 1 again.

    >>> is_later(43, 1000.0, 42, 1000.0), is_later(42, 1000.0, 42, 1000.0), is_later(1, 2000.0, 42, 1000.0)
    (True, False, True)
    """
    return sequence > held_sequence or updated_s > held_updated_s + _OTHER_COUNT_S
