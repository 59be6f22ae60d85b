"""The dead letters read back: what they are, and what would become of them if they were sent again."""
