"""The commands of `springback`: what a user types, and which piece of the product answers it."""
