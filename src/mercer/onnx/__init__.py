"""Machines as ONNX graphs, which other programs run (`docs/onnx.md`).

`export` is the door, `exported` what it gives. `graph` has the graph in the making and its tensors, on which
NumPy's functions write nodes (`functions`, `distances`). `writing` is how a kernel is written, `leaves` and
`rules` what each writes; `machines` and `processes` what fitted machines make of it. `proto` has ONNX's own
objects, and compares them with the machine.
"""
