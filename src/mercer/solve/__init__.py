"""Operators in, solution out."""
