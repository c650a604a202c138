"""Kernels on things that are not vectors: text, strings, sets, categories, graphs.

vocabulary      which column a feature has
counted         a leaf that is an inner product of counted features
sparse_map      the features of some rows, with names: for products, for solving in the primal, for reading
strings, text   substrings; documents as bags of words
categories      values that are equal or not
dates, scaling  dates as numbers; columns standardised, and filled where values are missing
graphs          graphs, and the nodes of one graph
reading         named maps from things to numbers, such as `Date("year")`
"""
