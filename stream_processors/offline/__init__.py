"""The same reducers without Kafka: evaluation, comparison of versions, value networks."""
