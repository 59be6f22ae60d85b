"""What happened in one episode: its steps back from the broker, what the core makes of them, and how that is drawn."""
