"""The wire contract: what a step frame is, how it is written and read, and its JSON Schema."""
