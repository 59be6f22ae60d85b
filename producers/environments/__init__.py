"""Gymnasium environments as a source of steps: one, a vector of them, and one that may die."""
