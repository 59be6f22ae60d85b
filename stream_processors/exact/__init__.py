"""Exactly once in effect, from at-least-once delivery: the state knows how far it has read."""
