"""How steps leave an agent: the emitter, its bounded memory, and what frames are handed to."""
