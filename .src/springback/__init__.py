"""springback: live resilience telemetry for embodied agents."""
