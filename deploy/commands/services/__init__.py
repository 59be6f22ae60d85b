"""The commands that run until they are stopped, and those that set up what these need."""
