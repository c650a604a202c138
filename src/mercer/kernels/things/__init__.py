"""Kernels on things that are not vectors: text, strings, sets, categories, graphs.

vocabulary      which column a feature has
counted         a leaf that is an inner product of counted features
sparse_map      the features of some rows, with names: for products, for solving in the primal, for reading
reading         named maps from things to numbers, such as `Date("year")`
"""
