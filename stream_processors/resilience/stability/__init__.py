"""Policy stability: values, advantages, and the stability loss (equations 4 and 5)."""
