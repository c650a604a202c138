"""Large margins: support vector machines, novelty, and the perceptrons they came from.

svc, nu, svr, one_class    `SVC`, `NuSVC`, `SVR`, `NuSVR`, `OneClassSVM`
svdd                       `SVDD`, the smallest ball
perceptron, adatron        `KernelPerceptron`, `Perceptron`, `Adatron`
one_by_one                 what these share: rows one by one, in passes
problems                   what the others share: one Gram operator, box problems, certificates
classify, calibrate        several classes; probabilities and label sets
hard_margin                what is said where nothing separates
"""
