"""What every process that runs for days needs: a way to end, a log, its health, Kafka's address."""
