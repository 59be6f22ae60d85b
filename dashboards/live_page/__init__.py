"""The live page: who is where, who is in trouble, what recovering costs; for whoever has no Grafana."""
