"""The resilience core: pure functions and state machines, free of clocks, files, brokers and frameworks."""
