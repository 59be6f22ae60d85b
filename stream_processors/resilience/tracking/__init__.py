"""The episode tracker: steps in; windows, summaries, statuses and contributions out."""
