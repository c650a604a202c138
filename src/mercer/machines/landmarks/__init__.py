"""Smaller Gram matrices.

nystroem, random_features          `Nystroem`, `RandomFeatures`: transformers and `approximation=`
falkon                             `FalkonRegressor`, `FalkonClassifier`: landmarks in bounded memory
falkon_fit, penalty                what they share; the α that the data ask for
falkon_newton, falkon_blocks       Newton's method: of one class against the rest, or of all classes at once
streamed, scattered                sums over rows that are read a few at a time, or that are on a cluster
batches                            `Batches`, rows that come a few at a time
selection, sketches                which rows are landmarks; how random features are drawn
approximation                      what the two kinds share
"""
