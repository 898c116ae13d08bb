"""How Sphinx builds these pages: `sphinx-build -W docs docs/_build`, in half the time with `-t without_site`."""

from __future__ import annotations

import re
import shutil
import sys
from importlib import metadata
from pathlib import Path
from weakref import WeakSet

from matplotlib.figure import Figure
from sphinx.application import Sphinx
from sphinx_gallery.scrapers import figure_rst

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from generate import write_pages, write_site  # noqa: E402 - it is in this folder

project = "bbo_suite"
copyright = "the authors of bbo_suite; Apache-2.0"
version = release = metadata.version(project)

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
included = [f"generated/{name}.md" for name in ("strategies", "families", "problems", "policies", "folders")]
exclude_patterns = ["_build", *included, "gallery", "carps", "optunahub", "sg_execution_times.rst"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
default_role = "code"  # what docstrings put in backticks
highlight_language = "none"
copybutton_prompt_text = r"^\$ "
copybutton_prompt_is_regexp = True

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_custom_sections = [("Columns", "params_style")]
napoleon_attr_annotations = False  # attributes say their shapes and types in words
autodoc_type_aliases = {"NDArray": "NDArray", "ArrayLike": "ArrayLike"}
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100

html_theme = "pydata_sphinx_theme"
html_title = "bbo_suite"
html_theme_options = {"navbar_center": [], "show_toc_level": 2, "secondary_sidebar_items": ["page-toc"]}
html_sidebars = {"**": ["globaltoc.html"]}
html_show_sourcelink = False
with_site = not tags.has("without_site")  # noqa: F821 - Sphinx defines it
html_extra_path = ["generated/extra"] if with_site else []  # the site of our published studies


def forget_runs(conf: dict, file: str) -> None:
    """Delete what an earlier example or build stored, so that each example starts with an empty folder."""
    shutil.rmtree(HERE / "gallery" / "results", ignore_errors=True)


def draw_figures(block: tuple, variables: dict, conf: dict) -> str:
    """Save the figures that a block of an example has made, wherever they come from, and return how to show them."""
    paths = []
    for value in variables["example_globals"].values():
        if isinstance(value, Figure) and value not in drawn:
            drawn.add(value)
            paths.append(next(variables["image_path_iterator"]))
            value.savefig(paths[-1], dpi=120)
    return figure_rst(paths, conf["src_dir"])


drawn = WeakSet()
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "within_subsection_order": "FileNameSortKey",
    "image_scrapers": (draw_figures,),
    "reset_modules": ("matplotlib", forget_runs),
}

# The configuration of the gallery holds a function, and the folder of a clone may have spaces in its name.
suppress_warnings = ["config.cache", "sphinx_gallery.space_in_filename"]

write_pages(HERE / "generated")
if with_site:
    write_site(HERE / "generated" / "extra" / "site")


def shorten_types(app: object, what: str, name: str, thing: object, options: object, *texts: str | None) -> tuple:
    """Write types of arrays in signatures as the code does."""
    return tuple(text and re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", text) for text in texts)


def link_results(app: Sphinx, name: str, source: list[str]) -> None:
    """Let links to a README of the results folder, or of one study to another, lead to the copy that is built."""
    source[0] = re.sub(r"\]\(\.\./results/([\w/]*)README\.md", r"](generated/results/\1index.md", source[0])
    if name.startswith("generated/results/"):
        source[0] = re.sub(r"\]\(\.\./([\w/]+)/README\.md", r"](../\1/index.md", source[0])


def setup(app: Sphinx) -> None:
    """Connect what changes pages while they are built."""
    app.connect("source-read", link_results)
    app.connect("autodoc-process-signature", shorten_types)
