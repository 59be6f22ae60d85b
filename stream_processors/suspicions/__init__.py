"""What looks like a mistake of whoever sends steps: gathered over many frames, without a clock, files or Kafka."""
