"""The demos: the whole pipeline on this machine, with a source, something to watch, and a table at the end."""
