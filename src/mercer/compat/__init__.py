"""Other programs' files and flags.

libsvm     LIBSVM's text models: read, written, and made of a fitted twin
platt      probabilities as LIBSVM has them
programs   svm-train, svm-predict and svm-scale, with their flags and words
scaling    columns scaled to a range, with LIBSVM's file of ranges
"""
