"""Where step events come from: the wire contract, the emitter, and a room for each kind of source."""
