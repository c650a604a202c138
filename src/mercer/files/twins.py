"""The twins of scikit-learn's estimators in model files, and what they hold that is scikit-learn's."""

from __future__ import annotations

from sklearn.gaussian_process import kernels as peer
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.preprocessing import LabelBinarizer

from mercer.files.machines import MARGIN, MARGIN_CLASSES, ONE_CLASS, RIDGE, Facts
from mercer.files.registry import REGISTRY, Fields, Form, MachineForm
from mercer.sklearn import gaussian_process, kernel_pca, kernel_ridge, svm
from mercer.sklearn.gp_kernels import Sample
from mercer.sklearn.gp_process import BinaryLaplace
from mercer.sklearn.margin import QuietNuSVC, QuietNuSVR, QuietOneClassSVM, QuietSVC, QuietSVR
from mercer.sklearn.twin import check_twin

TWIN: Facts = {
    "n_features_in_": "size[d]",
    "feature_names_in_": "names[d]",
    "certificate_": "Certificate",
}
MARGIN_TWIN: Facts = {
    **TWIN,
    "_sparse": "flag",
    "shape_fit_": "count*",
    "_gamma": "number",
    "_X_fit": "rows[n]",
    "machine_": "machine",
    "support_": "wholes[s]",
    "support_vectors_": "matrix",
    "dual_coef_": "matrix",
    "intercept_": "floats[f]",
    "_n_support": "wholes[c] | wholes[1]",
    "fit_status_": "count",
    "n_iter_": "count | wholes[problems]",
}
MARGIN_TWIN_CLASSES: Facts = {"classes_": "labels[c]", "class_weight_": "floats[c]", **MARGIN_TWIN}
PROCESS: Facts = {
    **TWIN,
    "kernel_": "PeerKernel",
    "X_train_": "rows[n] | any",
    "_sample": "Sample",
    "log_marginal_likelihood_value_": "real",
    "L_": "floats[n, n]",
}
MANY: Facts = {
    "n_features_in_": "size[d]",
    "feature_names_in_": "names[d]",
    "estimators_": "machine*",
    "label_binarizer_": "machine",
    "classes_": "labels[c]",
    "n_classes_": "count",
    "pairwise_indices_": "none",
}
TWINS = {
    "SVC": (svm.SVC, MARGIN_TWIN_CLASSES),
    "NuSVC": (svm.NuSVC, MARGIN_TWIN_CLASSES),
    "SVR": (svm.SVR, MARGIN_TWIN),
    "NuSVR": (svm.NuSVR, MARGIN_TWIN),
    "OneClassSVM": (svm.OneClassSVM, {**MARGIN_TWIN, "offset_": "floats[f]"}),
    "machine of SVC": (QuietSVC, MARGIN_CLASSES),
    "machine of NuSVC": (QuietNuSVC, MARGIN_CLASSES),
    "machine of SVR": (QuietSVR, MARGIN),
    "machine of NuSVR": (QuietNuSVR, {**MARGIN, "epsilon_": "number"}),
    "machine of OneClassSVM": (QuietOneClassSVM, ONE_CLASS),
    "machine of KernelRidge": (kernel_ridge.QuietRidge, RIDGE),
    "KernelRidge": (
        kernel_ridge.KernelRidge,
        {
            **TWIN,
            "machine_": "machine",
            "dual_coef_": "floats[n] | floats[n, t]",
            "X_fit_": "rows[n]",
        },
    ),
    "KernelPCA": (
        kernel_pca.KernelPCA,
        {
            **TWIN,
            "gamma_": "number | none",
            "X_fit_": "rows[n]",
            "eigenvalues_": "floats[q]",
            "eigenvectors_": "floats[n, q]",
            "_coef": "floats[n, q]",
            "_offset": "floats[q]",
            "_column_means": "floats[n]",
            "dual_coef_": "floats[n, p]",
            "X_transformed_fit_": "floats[n, q]",
        },
    ),
    "GaussianProcessRegressor": (
        gaussian_process.GaussianProcessRegressor,
        {
            **PROCESS,
            "y_train_": "floats[n] | floats[n, t]",
            "_y_train_mean": "number | floats | floats[t]",
            "_y_train_std": "number | floats | floats[t]",
            "alpha_": "floats[n] | floats[n, t]",
            "_rng": "any",
        },
    ),
    "GaussianProcessClassifier": (
        gaussian_process.GaussianProcessClassifier,
        {
            **TWIN,
            "classes_": "labels[c]",
            "n_classes_": "count",
            "base_estimator_": "machine",
            "log_marginal_likelihood_value_": "real",
        },
    ),
    "BinaryLaplace": (
        BinaryLaplace,
        {
            **PROCESS,
            "classes_": "labels[c]",
            "rng": "any",
            "y_train_": "wholes[n] < c",
            "_likelihood": "LatentLogistic",
            "f_cached": "floats[n]",
            "W_sr_": "floats[n]",
            "pi_": "floats[n]",
            "_laplace_mode": "TwoClasses",
            "_last": "none | floats[n]",
        },
    ),
    "OneVsRestClassifier": (OneVsRestClassifier, MANY),
    "OneVsOneClassifier": (OneVsOneClassifier, MANY),
    "LabelBinarizer": (
        LabelBinarizer,
        {"y_type_": "text", "sparse_input_": "flag", "classes_": "labels[c]"},
    ),
}
NUMBERS = {"length_scale": "number | floats[d]"}
PEER_KERNELS: dict[type[peer.Kernel], Facts] = {
    peer.Sum: {"k1": "PeerKernel", "k2": "PeerKernel"},
    peer.Product: {"k1": "PeerKernel", "k2": "PeerKernel"},
    peer.Exponentiation: {"kernel": "PeerKernel", "exponent": "number"},
    peer.ConstantKernel: {"constant_value": "number", "constant_value_bounds": "any"},
    peer.WhiteKernel: {"noise_level": "number", "noise_level_bounds": "any"},
    peer.RBF: {**NUMBERS, "length_scale_bounds": "any"},
    peer.Matern: {**NUMBERS, "length_scale_bounds": "any", "nu": "real"},
    peer.RationalQuadratic: {
        "length_scale": "number",
        "alpha": "number",
        "length_scale_bounds": "any",
        "alpha_bounds": "any",
    },
    peer.ExpSineSquared: {
        "length_scale": "number",
        "periodicity": "number",
        "length_scale_bounds": "any",
        "periodicity_bounds": "any",
    },
    peer.DotProduct: {"sigma_0": "number", "sigma_0_bounds": "any"},
    peer.PairwiseKernel: {
        "gamma": "number",
        "gamma_bounds": "any",
        "metric": "text",
        "pairwise_kernels_kwargs": "dict | none",
    },
}


def _peer_form(kind: type[peer.Kernel], facts: Facts) -> Form:
    """A kernel of scikit-learn by its parameters."""

    def take(kernel: peer.Kernel) -> Fields:
        found = kernel.get_params(deep=False)
        return {name: found[name] for name in facts}

    def make(fields: Fields) -> peer.Kernel:
        kernel = kind(**fields)
        # What is wrong with its numbers or their bounds is found out here, and not in a prediction.
        if len(kernel.theta) != len(kernel.bounds):
            raise ValueError("bounds that are none")
        return kernel

    return Form(
        f"sklearn.{kind.__name__}", kind, facts, own=True, groups=("PeerKernel",), take=take, make=make
    )


for _name, (_kind, _facts) in TWINS.items():
    REGISTRY.add_machine(MachineForm(f"sklearn.{_name}", _kind, _facts, check_twin))
for _peer, _facts in PEER_KERNELS.items():
    REGISTRY.add_form(_peer_form(_peer, _facts))
REGISTRY.add_form(Form("Sample", Sample, {"X": "any", "rows": "Rows | none"}))
