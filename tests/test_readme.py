"""What the documentation shows runs as shown."""

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
PAGES = [ROOT / "README.md", *sorted(page for page in (ROOT / "docs").rglob("*.md") if page.name not in ELSEWHERE)]


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


def run(page):
    names: dict = {"__name__": "documentation"}
    commands = environment() | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for number, (language, block) in enumerate(blocks(page)):
        if language == "sh":
            subprocess.run(["sh", "-e", "-c", block], check=True, env=commands)
        else:
            exec(compile(block, f"{page.name}, block {number}", "exec"), names)
    return names


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES[1:] if blocks(page)], ids=lambda page: page.name)
def test_the_examples_of_the_documentation_run(page):
    run(page)


@pytest.mark.slow
def test_the_examples_of_the_readme_run_and_the_first_answer_is_certified(capsys):
    names = run(PAGES[0])
    res = names["res"]
    assert res.success and res.certificate.holds
    assert res.x == pytest.approx([0.5, 0.5], abs=0.05) and res.x.sum() <= 1
    shown = capsys.readouterr().out
    assert "feasible with 95 % confidence" in shown and "CERTIFIED: off_centre at most " in shown
    assert names["run"].certificate.holds and (Path("runs") / "first" / "report.html").exists()
