"""How far a reader walks: how often control enters another module, as a call reaches functions for the first time.

    make walk
    python -m benchmarks.walk --show minimize      # the walk itself, a line a function

The definition. A call is profiled. Each named function of the package counts once, when it is first entered; comprehensions,
lambdas and the bodies of modules and classes do not count. So there is a row of functions, as somebody reads them who follows
the call and reads each function once. A switch is a step in this row from one module to another. Work in other processes is
not seen. Every call has a process of its own, so that nothing is imported or cached before.

The package is the one that Python finds: `PYTHONPATH=OTHER python benchmarks/walk.py` measures another version.
"""

import argparse
import inspect
import subprocess
import sys
import tempfile
from collections.abc import Callable
from itertools import groupby, pairwise
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple


class Visit(NamedTuple):
    """A function that was entered for the first time, and the module it is in."""

    module: str
    function: str


def walk(call: Callable[[], Any], package: Path) -> list[Visit]:
    """The functions below `package` that a call enters, in the order in which they are entered first.

    >>> import json
    >>> visits = walk(lambda: json.loads("[1]"), Path(json.__file__).parent)
    >>> [f"{visit.module}: {visit.function}" for visit in visits]
    ['__init__.py: loads', 'decoder.py: JSONDecoder.decode', 'decoder.py: JSONDecoder.raw_decode']
    >>> switches(visits)
    1
    """
    seen, visits = set(), []

    def enter(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or code in seen:
            return
        seen.add(code)
        named = (
            not code.co_name.startswith("<") and code.co_flags & inspect.CO_OPTIMIZED
        )  # a class's body is not optimised
        if named and Path(code.co_filename).is_relative_to(package):
            visits.append(Visit(Path(code.co_filename).relative_to(package).as_posix(), code.co_qualname))

    sys.setprofile(enter)
    try:
        call()
    finally:
        sys.setprofile(None)
    return visits


def switches(visits: list[Visit]) -> int:
    """How often a step leads into another module."""
    return sum(before.module != after.module for before, after in pairwise(visits))


def black_box(noise: float) -> None:
    """The README's black box, with or without its noise."""
    import numpy as np

    import pcces

    rng = np.random.default_rng(0)

    def process(x: Any) -> tuple[float, float]:
        loss = (x[0] - 1) ** 2 + (x[1] - 1) ** 2 + noise * rng.standard_normal()
        return loss, x[0] + x[1] - 1 + noise * rng.standard_normal()

    pcces.minimize(process, x0=[0.0, 0.0], bounds=[(-2, 2), (-2, 2)], max_evaluations=1000, rng=0)


def policy(**asked: Any) -> None:
    """A few iterations on CartSafe-v0, with certificate and run folder, but without the page."""
    import pcces

    with tempfile.TemporaryDirectory() as folder:
        pcces.train("CartSafe-v0", iterations=3, out=Path(folder) / "run", report=False, **asked)


CALLS: dict[str, Callable[[], None]] = {
    "minimize": lambda: black_box(0.01),
    "minimize without noise": lambda: black_box(0.0),
    "train": policy,
    "train on a worker": lambda: policy(engine="local", workers=1),
}


def main() -> None:
    """Print a table of all walks, or one walk."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--show", choices=list(CALLS), help="print this walk, a line a function")
    parser.add_argument("--row", choices=list(CALLS), help="print the row of this walk")
    asked = parser.parse_args()
    name = asked.show or asked.row
    if name is None:
        print("| call | switches | modules | functions |\n| --- | --- | --- | --- |", flush=True)
        for each in CALLS:
            subprocess.run([sys.executable, __file__, "--row", each], check=True, stderr=subprocess.DEVNULL)
        return
    import pcces

    visits = walk(CALLS[name], Path(pcces.__file__).parent)
    if asked.row:
        print(f"| {name} | {switches(visits)} | {len({visit.module for visit in visits})} | {len(visits)} |")
        return
    for module, functions in groupby(visits, key=lambda visit: visit.module):
        for i, visit in enumerate(functions):
            print(f"{'' if i else module:36}{visit.function}")


if __name__ == "__main__":
    main()
