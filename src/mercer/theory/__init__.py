"""What can be said of a problem before, and of a model after, it is fitted."""

from mercer.theory.cover import cover_probability

__all__ = ["cover_probability"]
