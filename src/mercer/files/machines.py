"""The machines that a file may hold, and what a fit may have left in each, with facts (see `files.facts`).

Sizes: n rows of fit, d columns, s support vectors, f functions, c classes, t targets, m landmarks or rows of
a factor, r features of an approximation, p explicit features, q components, g clusters, k kernels of a set.
"""

from __future__ import annotations

from mercer.files.registry import REGISTRY, MachineForm
from mercer.machines.gaussian_process.classification import GaussianProcessClassifier
from mercer.machines.gaussian_process.regression import GaussianProcessRegressor
from mercer.machines.kernel_sets.margin import MultipleKernelClassifier, MultipleKernelOneClass
from mercer.machines.kernel_sets.ridge import MultipleKernelRegressor
from mercer.machines.landmarks.falkon import FalkonClassifier, FalkonRegressor
from mercer.machines.landmarks.nystroem import Nystroem
from mercer.machines.landmarks.random_features import RandomFeatures
from mercer.machines.loss.kernel_machine import KernelMachine
from mercer.machines.margin.adatron import Adatron
from mercer.machines.margin.nu import NuSVC
from mercer.machines.margin.one_class import OneClassSVM
from mercer.machines.margin.perceptron import KernelPerceptron, Perceptron
from mercer.machines.margin.svc import SVC
from mercer.machines.margin.svdd import SVDD
from mercer.machines.margin.svr import SVR, NuSVR
from mercer.machines.relevance.relevance import RelevanceVectorClassifier, RelevanceVectorRegressor
from mercer.machines.ridge.feature_machine import FeatureMachineClassifier, FeatureMachineRegressor
from mercer.machines.ridge.least_squares import KernelLeastSquares
from mercer.machines.ridge.ridge import KernelRidge
from mercer.machines.ridge.ridge_cv import KernelRidgeCV
from mercer.machines.shared.parameters import check_parameters
from mercer.machines.shared.support import SupportMachine
from mercer.machines.structure.cca import KernelCCA
from mercer.machines.structure.kmeans import KernelKMeans
from mercer.machines.structure.mercer_map import MercerMap
from mercer.machines.structure.pca import KernelPCA
from mercer.machines.windows.mean_embedding import KernelMeanEmbedding
from mercer.machines.windows.nadaraya_watson import NadarayaWatson

Facts = dict[str, str]

EVERY: Facts = {
    "n_features_in_": "size[d]",
    "feature_names_in_": "names[d]",
    "kernel_": "kernel",
    "certificate_": "Certificate",
    "n_iter_": "count",
    "_notes": "text*",
    "witness_": "witness",
    "approximation_": "machine",
    "feature_coef_": "floats[r] | floats[r, weights]",
}
CLASSES: Facts = {"classes_": "labels[c]", "class_weight_": "floats[c]"}
SUPPORT: Facts = {
    **EVERY,
    "n_rows_fit_": "size[n]",
    "support_": "wholes[s] < n",
    "support_vectors_": "rows[s]",
    "dual_coef_": "floats[f, s]",
    "intercept_": "floats[f]",
    "coef_": "floats[f, p]",
    "feature_map_": "FeatureMap",
}
MARGIN: Facts = {
    **SUPPORT,
    "solver_": "text",
    "at_bound_": "flags[f, s]",
    "certificates_": "Certificate*",
    "norms_": "floats[f]",
    "n_support_": "wholes[c] | wholes[1]",
    # Rows and multipliers of each problem, where a warm start begins.
    "_last": "any*",
}
MARGIN_CLASSES: Facts = {
    **CLASSES,
    **MARGIN,
    "calibration_": "Calibration",
    "conformal_scores_": "floats[conformal]",
}
ONE_CLASS: Facts = {**MARGIN, "offset_": "floats[f]"}
SET_OF_KERNELS: Facts = {
    "weights_": "floats[k]",
    "scales_": "floats[k]",
    "kernels_": "text*",
    "norm_shares_": "floats[k]",
    "trace_shares_": "floats[k]",
}
MISTAKES: Facts = {
    "converged_": "flag",
    "mistakes_": "wholes[mistakes]",
    "n_mistakes_": "count",
    "_steps": "count",
    "_made": "count*",
    "_reach": "number",
}
RIDGE: Facts = {
    **EVERY,
    "X_fit_": "rows[n]",
    "_single": "flag",
    "_weight": "floats[n]",
    "_targets": "floats[n, t]",
    "solver_": "text",
    "dual_coef_": "floats[n] | floats[n, t]",
    "intercept_": "number | floats[t]",
    "coef_": "floats[p] | floats[p, t]",
    "feature_map_": "FeatureMap",
    "landmarks_": "wholes[m] < n",
    "landmark_coef_": "floats[m] | floats[m, t]",
}
FEATURES: Facts = {
    **RIDGE,
    "alpha_": "number",
    "path_": "FeaturePath",
    "search_rows_": "wholes[searched] < n",
}
RELEVANCE: Facts = {
    **EVERY,
    "relevance_": "wholes[s]",
    "relevance_vectors_": "rows[s]",
    "log_evidence_path_": "reals[path]",
}
LANDMARKS: Facts = {
    **EVERY,
    "n_rows_fit_": "size[n]",
    "noise_": "number",
    "basis_": "Basis",
    "landmarks_": "rows[m]",
}
FALKON: Facts = {**LANDMARKS, "smooth_": "kernel", "alpha_": "number", "coef_": "floats[m, t]"}

MACHINES = {
    # ── margins ─────────────────────────────────────────────────────────────────────────────────────────────
    SVC: MARGIN_CLASSES,
    NuSVC: MARGIN_CLASSES,
    SVR: MARGIN,
    NuSVR: {**MARGIN, "epsilon_": "number"},
    OneClassSVM: ONE_CLASS,
    SVDD: {**ONE_CLASS, "_own": "number", "center_norm_": "number", "radius_": "number"},
    KernelPerceptron: {
        **CLASSES,
        **SUPPORT,
        **MISTAKES,
        "_A": "rows[n]",
        "_y": "floats[n]",
        "_norms": "floats[n]",
        "alpha_": "floats[n]",
        "b_": "number",
        "_f": "floats[n]",
        "_sum": "floats[n]",
        "_sum_b": "number",
        "_lives": "count*",
        "lives_": "wholes[lives]",
    },
    Perceptron: {
        **CLASSES,
        **EVERY,
        **MISTAKES,
        "map_": "FeatureMap",
        "_w": "floats[p]",
        "_b": "number",
        "_w_sum": "floats[p]",
        "_b_sum": "number",
        "coef_": "floats[1, p]",
        "intercept_": "floats[1]",
    },
    Adatron: {
        **CLASSES,
        **SUPPORT,
        "converged_": "flag",
        "step_": "number",
        "alpha_": "floats[n]",
        "b_": "number",
        "dual_": "floats[steps]",
    },
    MultipleKernelClassifier: {**MARGIN_CLASSES, **SET_OF_KERNELS},
    MultipleKernelOneClass: {**ONE_CLASS, **SET_OF_KERNELS},
    # ── losses and processes ────────────────────────────────────────────────────────────────────────────────
    KernelRidge: RIDGE,
    KernelRidgeCV: {
        **RIDGE,
        "alphas_": "floats[grid]",
        "alpha_": "number | floats[t]",
        "dof_path_": "reals[grid]",
        "loo_errors_": "reals[grid] | reals[grid, t]",
        "gcv_errors_": "reals[grid] | reals[grid, t]",
        "cv_errors_": "reals[grid] | reals[grid, t]",
        "best_error_": "real | reals[t]",
    },
    FeatureMachineRegressor: FEATURES,
    FeatureMachineClassifier: {**CLASSES, **FEATURES, "calibration_": "Calibration"},
    KernelLeastSquares: {
        **EVERY,
        "X_fit_": "rows[n]",
        "_used": "wholes[used] < n",
        "validation_rows_": "wholes[held]",
        "dual_coef_": "floats[n] | floats[n, t]",
        "largest_eigenvalue_": "number",
        "step_": "number",
        "path_": "DescentPath",
    },
    KernelMachine: {
        **CLASSES,
        **SUPPORT,
        "loss_": "Loss",
        "equivalent_alpha_": "real*",
        "certificates_": "Certificate*",
        "crossings_": "count",
    },
    GaussianProcessRegressor: {
        **EVERY,
        "X_fit_": "rows[n]",
        "_single": "flag",
        "_constant": "flag",
        "_centred": "flag",
        "_scaled": "flag",
        "y_mean_": "floats[t]",
        "y_scale_": "floats[t]",
        "y_fit_": "floats[n] | floats[n, t]",
        "noise_": "number | floats[n]",
        "_exact": "flag",
        "_seed": "count",
        "_alpha": "floats[n, t]",
        "alpha_": "floats[n] | floats[n, t]",
        "_inverse": "Exact | InFeatures | Iterative",
        "log_evidence_": "real",
    },
    GaussianProcessClassifier: {
        **CLASSES,
        **EVERY,
        "X_fit_": "rows[m]",
        "rows_fit_": "wholes[m]",
        "_likelihood": "LatentLogistic | LatentSoftmax",
        "posterior_": "TwoClasses | ManyClasses",
        "log_evidence_": "real",
        "_seed": "count",
    },
    RelevanceVectorRegressor: {
        **RELEVANCE,
        "weights_": "floats[s]",
        "alpha_": "reals[basis]",
        "covariance_": "floats[basis, basis]",
        "intercept_": "number",
        "noise_": "number",
        "log_evidence_": "real",
    },
    RelevanceVectorClassifier: {
        **CLASSES,
        **RELEVANCE,
        "weights_": "floats[f, s]",
        "alpha_": "reals[f, basis]",
        "covariance_": "floats[f, basis, basis]",
        "intercept_": "floats[f]",
        "log_evidence_": "reals[f]",
    },
    MultipleKernelRegressor: {
        **EVERY,
        **SET_OF_KERNELS,
        "X_fit_": "rows[n] | none",
        "dual_coef_": "floats[n] | floats[n, t]",
        "intercept_": "number | floats[t]",
    },
    FalkonRegressor: FALKON,
    FalkonClassifier: {**FALKON, **CLASSES},
    NadarayaWatson: {
        **EVERY,
        "X_fit_": "rows[n]",
        "_single": "flag",
        "y_fit_": "floats[n, t]",
        "weights_": "floats[n]",
        "loo_predictions_": "reals[n] | reals[n, t]",
        "loo_error_": "real",
    },
    # ── structure ───────────────────────────────────────────────────────────────────────────────────────────
    KernelMeanEmbedding: {
        **EVERY,
        "X_fit_": "rows[n] | none",
        "weights_": "floats[n]",
        "norm_": "number",
        "offset_": "number",
    },
    KernelKMeans: {
        **EVERY,
        "X_fit_": "rows[n]",
        "labels_": "wholes[n] < g",
        "inertia_": "number",
        "objective_": "floats[steps]",
        "cluster_weights_": "floats[g]",
        "_members": "wholes[m] < n",
        "_codes": "wholes[m] < g",
        "_alpha": "floats[m]",
        "_norms": "reals[g]",
        "_n_features_out": "size[g]",
    },
    KernelPCA: {
        **EVERY,
        "X_fit_": "rows[n]",
        "eigenvalues_": "floats[q]",
        "eigenvectors_": "floats[n, q]",
        "explained_variance_": "floats[q]",
        "explained_variance_ratio_": "floats[q]",
        "total_variance_": "number",
        "n_components_": "size[q]",
        "_n_features_out": "size[q]",
        "_coef": "floats[n, q]",
        "_offset": "floats[q]",
        "_ridge": "RidgeMap | none",
    },
    KernelCCA: {
        **EVERY,
        "kernel_y_": "kernel",
        "X_fit_": "rows[n]",
        "Y_fit_": "any",
        "singular_values_": "floats[q]",
        "alpha_": "floats[n, q]",
        "_offset": "floats[q]",
        "beta_": "floats[n, q]",
        "_offset_y": "floats[q]",
        "correlations_": "floats[q]",
        "n_components_": "size[q]",
        "_n_features_out": "size[q]",
        "feature_coef_y_": "floats[r_y, q]",
        "approximation_y_": "machine",
    },
    MercerMap: {
        **EVERY,
        "X_fit_": "rows[n]",
        "eigenvalues_": "floats[q]",
        "eigenvectors_": "floats[n, q]",
        "negative_eigenvalues_": "floats[negative]",
        "residual_trace_": "number",
        "residual_share_": "number",
    },
    Nystroem: {
        **LANDMARKS,
        "_smooth": "kernel | none",
        "landmark_indices_": "wholes[m] < n | none",
        "n_dropped_": "count",
        "threshold_": "number",
        "residual_trace_": "number",
        "residual_share_": "number",
        "residual_rounding_": "number",
        "judged_": "text*",
    },
    RandomFeatures: {
        **EVERY,
        "noise_": "number",
        "sketch_": "Sketch",
        "n_components_": "count",
        "error_": "MeasuredError",
        "judged_": "text*",
    },
}


def complete_map(model: KernelRidge | KernelRidgeCV | SupportMachine) -> None:
    """A machine in sparse features is saved without their map, which follows from the rows that it keeps."""
    left_out = "coef_" in vars(model) and "feature_map_" not in vars(model)
    if left_out and not model.is_approximated:
        model.map_again()


for _kind, _facts in MACHINES.items():
    _complete = complete_map if issubclass(_kind, KernelRidge | KernelRidgeCV | SupportMachine) else None
    REGISTRY.add_machine(MachineForm(_kind.__name__, _kind, _facts, check_parameters, _complete))
