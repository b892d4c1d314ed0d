"""The tests on other instruction sets, and on every Python that is at hand: `make test-portable`.

    python tests/portable.py                  # all, one after the other, and what came of each
    python tests/portable.py avx2 3.13        # some
    python tests/portable.py --list

Instruction sets: JAX is compiled for them, and NumPy and OpenBLAS are told to use no others. Each Python gets an environment of
its own, .venv-portable-3.x; one for which there are no wheels is said to be left out.
"""

import argparse
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
EXTRAS = ".[rl,safety,dev]"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
SETS = {  # XLA's name, OpenBLAS's kernel, and the newer features of NumPy's that are not to be used
    "sse4.2": ("SSE4_2", "Nehalem", ("X86_V3", "X86_V4", "AVX", "F16C", "AVX2", "FMA3", "AVX512")),
    "avx2": ("AVX2", "Haswell", ("X86_V4", "AVX512")),
}


def instructions(name: str) -> dict[str, str]:
    """The environment in which no newer instructions are used."""
    from numpy._core import _multiarray_umath as compiled

    xla, openblas, newer = SETS[name]
    used = [
        feature
        for feature in compiled.__cpu_dispatch__
        if feature.startswith(newer) and compiled.__cpu_features__[feature]
    ]
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_max_isa={xla}".strip()
    return {"XLA_FLAGS": flags, "OPENBLAS_CORETYPE": openblas, "NPY_DISABLE_CPU_FEATURES": " ".join(used)}


def interpreter(version: str) -> str | None:
    """A Python of this version: on the path, or of pyenv's."""
    places = [shutil.which(f"python{version}"), *sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))]
    for place in places:
        if place and subprocess.run([place, "-c", "import venv"], capture_output=True).returncode == 0:
            return str(place)
    return None


def environment(version: str, python: str) -> Path | None:
    """The interpreter of this version's own environment; None if something has no wheel for it."""
    folder = ROOT / f".venv-portable-{version}"
    if not (folder / ".done").exists():
        subprocess.run([python, "-m", "venv", folder], check=True)
        install = [
            folder / "bin/python",
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "-e",
            EXTRAS,
        ]
        if subprocess.run(install, cwd=ROOT).returncode:
            return None
        (folder / ".done").touch()
    return folder / "bin/python"


def main() -> None:
    """Run the tests in every configuration, and say in the end which went well."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", nargs="*", help=f"some of {', '.join([*SETS, *PYTHONS])}")
    parser.add_argument("--list", action="store_true", help="say what is at hand")
    parser.add_argument("--pytest", default="-q -n 3 --dist worksteal", help="its options")
    arguments = parser.parse_args()
    if unknown := set(arguments.which) - {*SETS, *PYTHONS}:
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join([*SETS, *PYTHONS])}")
    said, failed = [], False
    for name in arguments.which or [*SETS, *PYTHONS]:
        began = time.monotonic()
        if name in SETS and platform.machine() not in ("x86_64", "AMD64"):
            said.append(f"{name}: left out, this is no x86 processor")
            continue
        python: str | Path | None = sys.executable if name in SETS else interpreter(name)
        if python is None or arguments.list:
            said.append(f"{name}: {python or 'there is none here'}")
            continue
        if name not in SETS:
            python = environment(name, str(python))
        if python is None:
            said.append(f"{name}: left out, not everything could be installed (above)")
            continue
        print(f"=== {name}", flush=True)
        more = instructions(name) if name in SETS else {}
        done = subprocess.run([python, "-m", "pytest", *arguments.pytest.split()], cwd=ROOT, env=os.environ | more)
        failed |= done.returncode != 0
        words = "passed" if done.returncode == 0 else "FAILED"
        said.append(f"{name}: {words} in {(time.monotonic() - began) / 60:.1f} minutes")
    print("\n".join(said))
    sys.exit(failed)


if __name__ == "__main__":
    main()
