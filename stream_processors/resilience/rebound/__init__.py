"""Rebound windows and what they cost (equations 1 to 3)."""
