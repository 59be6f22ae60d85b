"""The parts that Grafana dashboards are put together from. `dashboards/grafana_dashboards.py` is the way in."""
