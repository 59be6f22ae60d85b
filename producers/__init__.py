"""Where step events come from: the wire contract, the emitter and one module per source."""
