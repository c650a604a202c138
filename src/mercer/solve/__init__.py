"""Operators in, solutions out. This room knows no kernels."""
