"""Grafana as a sink: rebound windows and breaches as annotations."""
