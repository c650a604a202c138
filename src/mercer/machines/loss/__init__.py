"""Any convex loss plus a growing function of the length of f.

kernel_machine             `KernelMachine`
losses, smooth             the losses, their slopes and conjugates
minimise                   how its problems are solved, and certified from what was found
objective                  primal, dual and gap
penalty, quantiles         other functions of the length; several quantiles at once
"""
