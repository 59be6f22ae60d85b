"""What turns step events into readings: the resilience core and the stream processors around it."""
