"""From frames to one checked table of columns: what only workers and evaluations need."""
