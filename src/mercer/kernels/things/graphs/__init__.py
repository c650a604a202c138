"""Kernels of graphs, and of the nodes of one graph.

graph               what a graph is here: nodes, edges, labels
forms               graphs as people have them (networkx, matrices, lists of edges) read as such
files               the text files of TU Dortmund
stack               many graphs as one, for counting all at once
counting            leaves that count something in each graph
colours             nodes by what is seen from them, and their names
weisfeiler_lehman   colours counted, and nodes paired by them
paths               pairs of nodes by the way between them
graphlets           small subgraphs, counted exactly
walks               common walks of two graphs
nodes               kernels of the nodes of one graph
"""
