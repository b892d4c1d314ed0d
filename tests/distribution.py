"""Build the wheel and the sdist, and use them as a stranger does: installed into empty environments, outside the checkout.

    make dist                         # leaves dist/; needs the network for what pcces depends on, a few minutes

First with no extra: the README's black box, and for all that needs an extra the hint which one. Then with the extra `rl`: every
example of the README, and the command line.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"
SCRIPTS = "Scripts" if os.name == "nt" else "bin"
KEPT_OUT = ("tests", "results", "docs", "benchmarks", "examples", "site", "runs", ".github", ".ci")
DATA = ("py.typed", "report/page.html", "report/page.css", "report/page.js")

# What needs an extra, and says so: in an environment without any, and in one with rl.
WITHOUT = {
    "rl": (
        "pcces.train('CartSafe-v0')",
        "pcces.envs.make('CartSafe-v0')",
        "pcces.train('Pendulum-v1', engine='local')",
    ),
    "cluster": ("pcces.minimize(lambda x: x @ x, [1.0], max_evaluations=100, engine='ray')",),
    "optuna": ("import pcces.integrations.optuna",),
}
WITH_RL = {
    "safety": ("pcces.train('PointGoal1-v0', iterations=1)",),
    "bullet": ("pcces.train('HopperBulletEnv-v0', iterations=1)",),
    "brax": ("from pcces.envs import make; make('brax/ant')",),
    "cluster": ("pcces.train('CartSafe-v0', engine='ray', iterations=1)",),
    "export": ("pcces.load('runs/first').export('policy.onnx')",),
    "torch": ("pcces.load('runs/first').to_torch()",),
    "tensorboard": ("pcces.train('CartSafe-v0', iterations=1, trackers='tensorboard')",),
    "wandb": ("pcces.train('CartSafe-v0', iterations=1, trackers='wandb')",),
    "mlflow": ("pcces.train('CartSafe-v0', iterations=1, trackers='mlflow')",),
}


def main() -> None:
    """Build, look inside, install and use."""
    wheel, sdist = build()
    look_inside(wheel, sdist)
    with tempfile.TemporaryDirectory(prefix="pcces-dist-") as name:
        folder = Path(name)
        alone = installed(folder / "alone", f"{wheel}")
        first, *others = examples()
        say("the first example, without extras")
        run(alone, folder, "-c", first)
        hints(alone, folder, WITHOUT)
        said = subprocess.run([alone.parent / "pcces", "envs"], cwd=folder, env=clean(), capture_output=True, text=True)
        expect(said.returncode == 2 and "pip install 'pcces[rl]'" in said.stderr, said.stderr)
        full = installed(folder / "rl", f"{wheel}[rl]")
        say("every example of the README")
        run(full, folder, "-c", "\n".join([first, *others]))
        hints(full, folder, WITH_RL)
        command_line(full, folder)
    say(f"good: {wheel.name}, {sdist.name} in {DIST}")


def build() -> tuple[Path, Path]:
    """The wheel, made from the sdist, and the sdist."""
    say("building")
    shutil.rmtree(DIST, ignore_errors=True)
    done = subprocess.run([sys.executable, "-m", "build", "--outdir", DIST, ROOT], capture_output=True, text=True)
    expect(done.returncode == 0, done.stdout + done.stderr)
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    return wheel, sdist


def look_inside(wheel: Path, sdist: Path) -> None:
    """All of the package is in both, and nothing that only the repository needs."""
    sources = {f"pcces/{file.relative_to(ROOT / 'pcces').as_posix()}" for file in (ROOT / "pcces").rglob("*.py")}
    needed = sources | {f"pcces/{name}" for name in DATA}
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    for names, more in (
        (set(zipfile.ZipFile(wheel).namelist()), set()),
        (inside, {"CHANGELOG.md", "CITATION.cff", "LICENSE"}),
    ):
        expect(needed | more <= names, f"missing: {sorted((needed | more) - names)}")
        wrong = [name for name in names if name.split("/")[0] in KEPT_OUT]
        expect(not wrong, f"not for users: {wrong[:5]}")


def installed(folder: Path, what: str) -> Path:
    """The interpreter of a new environment with this in it, and what it depends on."""
    say(f"installing {Path(what).name}")
    venv.create(folder, with_pip=True)
    python = folder / SCRIPTS / ("python.exe" if os.name == "nt" else "python")
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", what]
    done = subprocess.run(install, capture_output=True, text=True)
    expect(done.returncode == 0, done.stdout + done.stderr)
    return python


def examples() -> list[str]:
    """The README's blocks of Python."""
    return re.findall(
        r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


def hints(python: Path, folder: Path, needed: dict[str, Sequence[str]]) -> None:
    """What needs an extra that is not there says how to get it."""
    for extra, code in needs(needed):
        say(f"without the extra {extra}: {code}")
        done = subprocess.run(
            [python, "-c", f"import pcces\n{code}"], cwd=folder, env=clean(), capture_output=True, text=True
        )
        last = "".join(done.stderr.strip().splitlines()[-1:])
        named = re.search(r"pip install 'pcces\[(.*)\]'", last)
        expect(done.returncode == 1 and named is not None and extra in named[1].split(","), f"{code}\n{done.stderr}")


def needs(needed: dict[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Pairs of an extra and a line that needs it."""
    return ((extra, code) for extra, lines in needed.items() for code in lines)


def command_line(python: Path, folder: Path) -> None:
    """As typed: what it lists, and a training with everything that follows from it."""
    small = [
        "--steps",
        "2e4",
        "--set",
        "hidden=8",
        "--set",
        "certify_episodes=50",
        "--threshold",
        "300",
        "--out",
        "runs/small",
    ]
    for words in (
        ["--version"], ["settings"], ["envs"], ["train", "CartSafe-v0", *small], ["evaluate", "runs/small", "--episodes", "20"],
        ["report", "runs/small"],
    ):  # fmt: skip
        say("pcces " + " ".join(words))
        subprocess.run([python.parent / "pcces", *words], cwd=folder, env=clean(), check=True, capture_output=True)
    expect((folder / "runs" / "small" / "report.html").stat().st_size > 10_000, "there is no report")


def run(python: Path, folder: Path, *words: str) -> None:
    """Without what this process has in its environment for Python."""
    subprocess.run([python, *words], cwd=folder, env=clean(), check=True)


def clean() -> dict[str, str]:
    """The environment without paths that would lead to the checkout."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}


def expect(good: bool, what: str) -> None:
    """End with what is wrong, if something is."""
    if not good:
        sys.exit(f"make dist: {what}")


def say(what: str) -> None:
    """To the person who waits."""
    print(what, flush=True)


if __name__ == "__main__":
    main()
