"""What people look at: Grafana dashboards, the live page, and the report of an evaluation."""
