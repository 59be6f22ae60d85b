"""Where readings go: Prometheus today, and whatever else implements the sink protocol."""
