"""Whole families: stability beta, operational margin, stress capacity, navigation safety."""
