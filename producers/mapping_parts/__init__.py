"""What a signal mapping is made of: topic patterns, field paths, transforms, and the checked reading of its TOML."""
