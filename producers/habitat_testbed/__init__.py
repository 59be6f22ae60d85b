"""A made-up house in which habitat-sim plays: a live source of twins where habitat-sim is installed."""
