"""The commands that make, read, play back and compare recordings."""
