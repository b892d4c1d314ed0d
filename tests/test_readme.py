"""What the documentation shows runs as shown."""

import doctest
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from small import environment

ROOT = Path(__file__).parent.parent
ELSEWHERE = {"your-own-task.md"}  # executed, and its numbers checked, in test_envs.py
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))  # executed as notebooks
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if page.name not in ELSEWHERE and page not in TUTORIALS),
]


def blocks(page):
    """The language and text of every block that is meant to be run."""
    return re.findall(r"^```(python|sh)\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


@pytest.fixture(autouse=True)
def the_same_every_time(tmp_path, monkeypatch):
    """Examples need no seed to be read, but their tests do; and what they write goes to a temporary folder."""
    default_rng = np.random.default_rng
    monkeypatch.setattr(np.random, "default_rng", lambda seed=None: default_rng(0 if seed is None else seed))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # as where a script lies


def cells(notebook):
    """The language and text of every code cell."""
    code = [cell["source"] for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]
    return [("sh", text.removeprefix("%%sh\n")) if text.startswith("%%sh\n") else ("python", text) for text in code]


def execute(blocks, name):
    names: dict = {"__name__": "documentation"}
    commands = environment() | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for number, (language, block) in enumerate(blocks):
        if language == "sh":
            subprocess.run(["sh", "-e", "-c", block], check=True, env=commands)
        else:
            exec(compile(block, f"{name}, block {number}", "exec"), names)
    return names


def run(page):
    return execute(blocks(page), page.name)


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES[1:] if blocks(page)], ids=lambda page: page.name)
def test_the_examples_of_the_documentation_run(page):
    run(page)


def test_the_notebooks_are_made_from_the_pages():
    spec = importlib.util.spec_from_file_location("notebooks", ROOT / "docs" / "notebooks.py")
    notebooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(notebooks)
    assert doctest.testmod(notebooks).failed == 0 and len(TUTORIALS) == 3
    for page in TUTORIALS:
        notebook = page.with_suffix(".ipynb")
        assert notebook.read_text() == notebooks.as_text(page), "run python docs/notebooks.py"
        assert cells(notebook) == [(language, block.rstrip()) for language, block in blocks(page)]


@pytest.mark.slow
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_the_notebooks_run(page):
    """The cells of a notebook in one namespace, as a kernel runs them. No Jupyter is needed."""
    execute(cells(page.with_suffix(".ipynb")), page.stem)


@pytest.mark.slow
def test_the_examples_of_the_readme_run_and_the_first_answer_is_certified(capsys):
    names = run(PAGES[0])
    res = names["res"]
    assert res.success and res.certificate.holds
    assert res.x == pytest.approx([0.5, 0.5], abs=0.05) and res.x.sum() <= 1
    shown = capsys.readouterr().out
    assert (
        "Certified: with 95 % confidence all mean constraints are <= 0" in shown
        and "CERTIFIED: off_centre at most " in shown
    )
    assert names["run"].certificate.holds and (Path("runs") / "first" / "report.html").exists()
