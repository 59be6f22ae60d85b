"""Where readings go: Prometheus, marks in Grafana, and whatever else implements the sink protocol."""
