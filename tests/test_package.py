"""What is published: one version, the right files, and the same checks on every system."""

import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import distribution
import portable
import pytest
import yaml

import pcces

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())


def recipe(target):
    """The commands of a target of the Makefile, without where their programs are."""
    makefile = (ROOT / "Makefile").read_text()
    lines = re.search(rf"^{re.escape(target)}:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)[1]
    return [line.strip().lstrip("@").replace("$(BIN)/", "") for line in lines.splitlines()]


def test_the_version_is_in_one_place():
    assert pcces.__version__ == version("pcces") == PROJECT["version"]
    assert re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[1] == PROJECT["version"]
    written = re.compile(rf"(?<![\d.]){re.escape(PROJECT['version'])}(?![\d.])")
    others = [*(ROOT / "pcces").rglob("*.py"), ROOT / "CITATION.cff", *(ROOT / "docs").glob("*.py")]
    assert [file.name for file in others if written.search(file.read_text())] == []


def test_the_workflow_runs_what_make_runs_on_three_systems():
    job = WORKFLOW["jobs"]["test"]
    assert job["strategy"]["matrix"]["os"] == ["ubuntu-latest", "macos-latest", "windows-latest"]
    run = [line.strip() for step in job["steps"] for line in step.get("run", "").splitlines()]
    assert {"make lint", "make test"} < set((ROOT / ".ci" / "run").read_text().splitlines())
    assert [line for line in [*recipe("lint"), *recipe("test")] if line not in run] == []
    (extras,) = re.findall(r"-e '(\.\[.*dev\])'", (ROOT / "Makefile").read_text())
    assert f"python -m pip install -e '{extras}'" in run
    assert recipe("dist") == [
        step["run"] for step in WORKFLOW["jobs"]["dist"]["steps"] if "distribution" in step.get("run", "")
    ]


def test_the_versions_of_python_that_are_named_are_those_that_are_tested():
    named = {line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)}
    assert named == set(portable.PYTHONS) and PROJECT["requires-python"] == f">={portable.PYTHONS[0]}"
    assert {*WORKFLOW["jobs"]["test"]["strategy"]["matrix"]["python"]} <= named


def test_no_folder_of_the_repository_but_the_package_goes_into_the_sdist():
    pruned = re.findall(r"^prune (\S+)$", (ROOT / "MANIFEST.in").read_text(), re.MULTILINE)
    folders = {file.parent.name for file in ROOT.glob("*/*") if file.suffix in (".py", ".md", ".json")}
    assert {"tests", "results", "docs", "benchmarks", "examples"} <= folders
    unknown = {name for name in folders - {"pcces", "site", "build", "dist", "runs", "out"} if not name.startswith(".")}
    assert unknown <= {*pruned, "mutants"} and set(pruned) < set(distribution.KEPT_OUT)


def test_what_make_dist_looks_at_is_there():
    assert all((ROOT / "pcces" / name).exists() for name in distribution.DATA)
    first, *others = distribution.examples()
    assert "pcces.minimize(" in first and "train" not in first and any("pcces.train(" in block for block in others)
    extras = {*distribution.WITHOUT, *distribution.WITH_RL}
    assert extras == set(PROJECT["optional-dependencies"]) - {"dev"}


@pytest.mark.parametrize("name", ["LICENSE", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "README.md"])
def test_the_files_that_people_look_for_are_there(name):
    assert (ROOT / name).stat().st_size > 100
