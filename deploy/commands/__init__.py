"""The commands of `springback`, one file each: what a user types, and which piece of the product answers it."""
