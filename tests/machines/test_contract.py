"""scikit-learn's own checks of every native machine; no exemption that its own twin does not have."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import SVC, SVR, Adatron, KernelPerceptron, NuSVC, NuSVR, OneClassSVM, Perceptron

INFEASIBLE = (
    "the labels of this check are so unequal that nu=0.5 is infeasible, for scikit-learn's NuSVC as well"
)


def excused(estimator):
    if isinstance(estimator, NuSVC):
        names = (
            "check_class_weight_classifiers",
            "check_sample_weight_equivalence_on_dense_data",
            "check_sample_weight_equivalence_on_sparse_data",
        )
        return dict.fromkeys(names, INFEASIBLE)
    return {}


MACHINES = [
    SVC(),
    SVC(multiclass="ovr"),
    SVC(fit_intercept=False, solver="projected-gradient"),
    NuSVC(),
    SVR(),
    NuSVR(),
    OneClassSVM(),
    KernelPerceptron(),
    KernelPerceptron(average="averaged"),
    KernelPerceptron(average="voted"),
    Perceptron(),
    Adatron(C=1.0),
]


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(MACHINES, expected_failed_checks=excused)
def test_the_contract(estimator, check):
    check(estimator)
