"""The methods and versions of a family side by side."""
