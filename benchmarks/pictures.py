"""Pictures beside the tables: things on two axes of kernel PCA, and the features that mattered."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import mercer


def embedding(
    options: argparse.Namespace, name: str, kernel: mercer.Kernel, things: Sequence, y: np.ndarray
) -> None:
    """Kernel PCA of the things, coloured by class; only where `--pictures` names a folder."""
    if not options.pictures:
        return
    axes = mercer.KernelPCA(kernel, 2).fit(things)
    _keep(options, f"{name}-pca", mercer.plot.embedding(axes, things, y))


def weights(options: argparse.Namespace, name: str, model: object) -> None:
    """The features with the largest weights."""
    if options.pictures:
        _keep(options, f"{name}-weights", mercer.plot.feature_weights(model))


def _keep(options: argparse.Namespace, name: str, figure) -> None:
    folder = Path(options.pictures)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"{name}.png", dpi=130)
