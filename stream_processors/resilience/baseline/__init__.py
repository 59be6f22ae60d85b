"""The stage baseline: what is normal at an anchor, learned from reference episodes."""
