"""What pcces imports is what it declares."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = {"PIL": "pillow"}  # where a package is imported by another name than it is installed by
FILES = sorted((ROOT / "pcces").rglob("*.py"))


def declared():
    """All that pyproject.toml lets a user install: the dependencies and the extras, but not what is for developers."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [wanted for name, wanted in project["optional-dependencies"].items() if name != "dev"]
    return {normal(re.split(r"[^\w.-]", wanted)[0]) for wanted in sum(extras, project["dependencies"])}


def normal(name):
    return name.lower().replace("_", "-")


def imported(text):
    """The packages that a module imports, wherever in it."""
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(node.module)
    packages = {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"pcces"}
    return {normal(PACKAGES.get(package, package)) for package in packages}


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_package_that_is_imported_is_declared(file):
    assert imported(file.read_text()) <= declared()


def at_once(text):
    """The packages that a module imports when it is imported itself, and not only for type checking."""
    body = [node for node in ast.parse(text).body if isinstance(node, ast.Import | ast.ImportFrom)]
    return imported(ast.unparse(ast.Module(body, [])))


@pytest.mark.parametrize(
    "room", ["support", "core", "strategies", "blackbox", "minimize.py", "limits.py", "__init__.py"]
)
def test_black_boxes_need_no_extra(room):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    base = {normal(re.split(r"[^\w.-]", wanted)[0]) for wanted in project["dependencies"]}
    home = ROOT / "pcces" / room
    for file in [home] if home.is_file() else sorted(home.rglob("*.py")):
        assert at_once(file.read_text()) <= base, file


def test_what_is_not_declared_would_be_seen():
    text = "import os, numpy.linalg\ndef f():\n    from PIL import Image\n    import pandas\n"
    assert imported(text) == {"numpy", "pillow", "pandas"} and "pandas" not in declared()
    assert at_once(text) == {"numpy"}
    assert {"numpy", "jax", "pillow", "tensorboardx"} <= declared() and "pytest" not in declared()
