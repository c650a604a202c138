"""Mathematics of the pages as MathML, made when the site is built: browsers draw it without a script."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True}


def _inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def _block(translator: Any, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="math">{mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def mathml(latex: str, display: str) -> str:
    """LaTeX as MathML; what cannot be read stops the build."""
    try:
        return convert(latex, display=display)
    except Exception as error:
        raise ExtensionError(f"This is no mathematics that the site can draw: {latex!r}: {error}") from error
