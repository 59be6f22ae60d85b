"""Signal mappings: which field of which topic is which signal, and how episodes come of messages."""
