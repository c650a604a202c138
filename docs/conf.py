"""How the site is built: `make site` writes it to build/site, without a network, with warnings as errors."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from docutils import nodes

import mercer

HERE = Path(__file__).parent
# The extensions of the site itself, and what the examples share.
sys.path[:0] = [str(HERE / "_extensions"), str(HERE.parent / "examples")]

project = "mercer"
author = "The mercer developers"
version = release = mercer.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "docstrings",
    "mathml",
    "patterns",
    "picture",
    "root_pages",
]
exclude_patterns = ["_extensions", "course/README.md", "gallery/**/*.ipynb"]
root_doc = "index"
nitpicky = False
# A warning of a page is an error; these are no warnings about pages.
suppress_warnings = ["config.cache"]
# In the list beside a page a method is called `fit()`, not `SVC.fit()`, which does not fit.
toc_object_entries_show_parents = "hide"

# Markdown: the pages are read on the site and as they are. `$…$` is mathematics, `term\n: text` a definition.
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 3

# The reference: every public name has a page of its own, made from its docstring.
autosummary_generate = True
autodoc_typehints = "none"
templates_path = ["_templates"]
numpydoc_show_class_members = False
numpydoc_attributes_as_param_list = True
numpydoc_xref_param_type = False
default_role = "code"

# The gallery: each script of examples/ is run, and its picture shown. `-D plot_gallery=0` leaves them unrun.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/(?!gallery\.py)\w+\.py$",
    "ignore_pattern": r"gallery\.py",
    "image_scrapers": ("examples_scraper.scrape",),
    "reset_argv": "examples_scraper.arguments",
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "within_subsection_order": "ExampleTitleSortKey",
}

html_theme = "pydata_sphinx_theme"
html_title = "mercer"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "show_nav_level": 1,
    "navigation_depth": 3,
    "show_toc_level": 2,
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
}
project_copyright = "the mercer developers, BSD 3-clause"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def setup(app: Any) -> None:
    app.connect("doctree-read", _without_last_line)


def _without_last_line(_app: Any, tree: nodes.document) -> None:
    """The empty line that ends an example is for the tests, not for readers."""
    for block in tree.findall(nodes.literal_block):
        block.rawsource = block.rawsource.rstrip()
        block.children = [nodes.Text(block.astext().rstrip())]
