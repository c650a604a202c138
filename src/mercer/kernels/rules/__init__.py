"""The construction rules, one class each; `mercer.kernels.algebra` gathers them.

combined       what all rules share
arithmetic     multiples, sums, products
functions      powers, the exponential, polynomials
views          maps of the rows: a function, a matrix, a choice of columns
readings       named maps of the rows
missing        columns with gaps: what is missing is a level of its own
spaces         the feature space of another kernel
factors        f(x) k(x, z) f(z), and the cosine in feature space
bags           the mean of a kernel over two bags of points
"""
