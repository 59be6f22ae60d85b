"""Readers of recordings, one a format: each gives timed messages, and tells of what it cannot read."""
