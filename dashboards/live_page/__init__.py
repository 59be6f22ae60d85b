"""The live page: who is where, who is in trouble, what recovering costs. It needs no Grafana."""
