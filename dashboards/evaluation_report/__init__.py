"""An evaluation as one page that people read: numbers with their uncertainty, plots, and the same as JSON and CSV."""
