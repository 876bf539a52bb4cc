"""Configuration of the site, which `make docs` builds offline from the pages of the repository.

The source folder is the root of the repository. Links between the README, `docs/`, `notebooks/` and `studies/results/`
therefore work on the site as well as between the files.
"""

import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE / "_extensions"))  # Extensions that belong to this site.

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

project = PROJECT["name"]
author = PROJECT["authors"][0]["name"]
release = version = PROJECT["version"]
project_copyright = author

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "mathematics",
    "public_names",
    "results",
    "gallery",
]

root_doc = "docs/index"
include_patterns = [
    "docs/*.md",
    "docs/**/*.md",
    "notebooks/*.ipynb",
    "studies/results/*.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
]
exclude_patterns = [".*", "build", "dist", "onebasin", "runs", "tests", "docs/_static"]

# Pages
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 4
nb_execution_mode = "off"  # Pages show the output of `make notebooks`.
nb_merge_streams = True
math_number_all = False

# Docstrings state the types of parameters, and have names in single backticks.
autodoc_typehints = "none"
default_role = "code"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
napoleon_google_docstring = False
napoleon_custom_sections = [("Attributes", "params_style")]  # Fields of results form one list.
napoleon_use_rtype = False

# Look
html_theme = "furo"
html_title = f"onebasin {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_additional_pages = {"index": "to-front-page.html"}
templates_path = ["_templates"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_use_index = True
html_math_renderer = "katex"
pygments_style = "friendly"
pygments_dark_style = "github-dark"
copybutton_exclude = ".linenos, .gp, .go"
