"""Whole jobs done with the library, from data to report."""
