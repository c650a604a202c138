"""Smaller Gram matrices.

nystroem, random_features          `Nystroem`, `RandomFeatures`: transformers and `approximation=`
falkon                             `FalkonRegressor`, `FalkonClassifier`: landmarks in bounded memory
falkon_fit, falkon_newton          what they share; Newton's method of the classifier
streamed                           sums over rows that are read a few at a time
batches                            `Batches`, rows that come a few at a time
selection, sketches                which rows are landmarks; how random features are drawn
approximation                      what the two kinds share
"""
