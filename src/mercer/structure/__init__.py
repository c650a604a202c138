"""A kernel found by a search (`mercer.choose.structure`), and said in words.

vocabulary      how lengths, places and periods are spoken
factors, words  a term as factors; one sentence for each term
grammar         what one step may do to a kernel
proposals       what the data propose
scoring         evidence, and rows held out
plain           the Gaussian of all columns that a table is compared with
search, answer  the beam; what it found
door            `structure(X, y)`
"""

from mercer.structure.vocabulary import Axis, Vocabulary
from mercer.structure.words import Number, Said, say, say_fit

__all__ = ["Axis", "Number", "Said", "Vocabulary", "say", "say_fit"]
