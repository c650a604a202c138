"""Whether a kernel is one.

proof, answers, validity    proofs; what `validity()` answers; how it is found
expansion, forms            proofs by multiplying out, and of quadratic forms
series, densities           what a user declares, compared with what he wrote
witness                     points that refute
enclosure, intervals        certain bounds of Gram matrices
"""
