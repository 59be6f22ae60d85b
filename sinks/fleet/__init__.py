"""The picture of the fleet that readings add up to, and its series."""
