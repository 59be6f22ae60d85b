"""What each stage of the stream does with its input: the reducers of the core, behind topics."""
