"""Smaller Gram matrices.

nystroem, random_features          `Nystroem`, `RandomFeatures`: transformers and `approximation=`
falkon, falkon_newton, streamed    `FalkonRegressor`, `FalkonClassifier`: landmarks in bounded memory
batches                            `Batches`, rows that come a few at a time
selection, sketches                which rows are landmarks; how random features are drawn
approximation                      what the two kinds share
"""
