"""Habitat as a source of steps: environments, vectors of them, and a bare simulator."""
