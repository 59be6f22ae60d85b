"""What is marked in the panels: windows and breaches, as `springback annotate` writes them into Grafana."""

from springback.dashboards.grafana_parts.colour_scheme import ORANGE, VERMILLION
from springback.sinks.grafana_marks import BREACH_TAG, WINDOW_TAG, agent_tag

WINDOW_MARKS = ("Rebound windows", ORANGE, (WINDOW_TAG,))
BREACH_MARKS = ("Stress-capacity breaches", VERMILLION, (BREACH_TAG,))
WINDOWS_OF_ONE_AGENT = ("Rebound windows", ORANGE, (WINDOW_TAG, agent_tag("$agent")))
