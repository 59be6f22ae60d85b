"""The mapping files that come with the product, found by name."""
