"""Kernels on things that are not vectors: text, strings, sets, categories, graphs.

vocabulary      which column a feature has
counted         a leaf that is an inner product of counted features
sparse_map      the features of some rows, with names: for products, for solving in the primal, for reading
placed          where in a thing its features are: in which letters, in which nodes
on_things       a leaf whose rows are things: what it says of a row that it cannot read
strings, text   substrings; documents as bags of words
sequences       sequences as arrays, and loops over pairs of them
sets            sets and amounts: Jaccard, MinMax
paths, alignments   series of vectors: signatures, global alignment
positions, gaps    substrings at the same place; subsequences with gaps
edits           the edit distance, which gives no kernel
categories      values that are equal or not
dates, scaling  dates as numbers; columns standardised, and filled where values are missing
coded           a mixed table as numbers: indicators of categories, years of dates
metric          rows turned and stretched, so that distances are (x - z)ᵀ M (x - z)
gates           what is there after a place, or before it
graphs          graphs, and the nodes of one graph
reading         named maps from things to numbers, such as `Date("year")`
"""
