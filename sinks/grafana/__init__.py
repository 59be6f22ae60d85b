"""Grafana as a sink: rebound windows, breaches and violated contracts as annotations."""
