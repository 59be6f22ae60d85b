"""What people look at. Empty until the first dashboard lands."""
