"""Any convex loss plus a growing function of the length of f.

kernel_machine             `KernelMachine`
losses, smooth             the losses, their slopes and conjugates
objective                  primal, dual and gap
penalty, quantiles         other functions of the length; several quantiles at once
"""
