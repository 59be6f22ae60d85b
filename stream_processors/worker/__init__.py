"""The worker: the stages as agents of a Faust application."""
