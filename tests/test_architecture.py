"""The rooms of the library, and that it keeps to them: docs/contributing/architecture.md says why."""

import ast
import re
import runpy
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.walk import CALLS, Visit, switches, walk

ROOT = Path(__file__).parent.parent
FILES = {
    ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file
    for file in sorted((ROOT / "pcces").rglob("*.py"))
}
FRONT_DOORS = {"pcces", "pcces.limits", "pcces.minimize", "pcces.policies"}
FOR_STUDIES = "pcces.integrations.optuna"  # of other libraries, where `pcces.Optimizer` is asked: a front door, too
# A room may import itself and the rooms below it, nothing beside or above it.
LEVELS = (
    {"cli"}, {"studies"}, {"front doors"}, {"baselines"}, {"rl", "blackbox"}, {"report", "integrations"}, {"envs"},
    {"engines"}, {"strategies"}, {"core"}, {"support"},
)  # fmt: skip
LEVEL = {room: number for number, rooms in enumerate(LEVELS) for room in rooms}
LINES, FUNCTION, PARAMETERS = 400, 60, 8
MODULE = re.compile(r"(pcces(?:\.\w+)+)(?:\.|:\w+)?")  # also the beginning of one, and a function in one
KINDS = ("imports", "long files", "long functions", "many parameters", "names of classes")


def room_of(module):
    """The room of a module by its full name."""
    if module == "pcces.__main__":
        return "cli"
    if f"{module}.".startswith(f"{FOR_STUDIES}."):
        return "front doors"
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in LEVEL else "front doors"  # of which `pcces` shows functions, too


def imported(module, text, package):
    """Full names of the modules of pcces that a module imports, wherever in it, type checking included; and those it has
    in a text, for `import_module`, an entry point or another process."""
    here = module.split(".") if package else module.split(".")[:-1]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "pcces")
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else []
            source = ".".join(base + (node.module.split(".") if node.module else []))
            if source == "pcces":
                yield from (f"pcces.{alias.name}" for alias in node.names)
            elif source.startswith("pcces."):
                yield source
        elif isinstance(node, ast.Constant) and (named := MODULE.fullmatch(str(node.value))):
            yield named[1]


def forbidden(module, text, package=False):
    """The rooms that a module imports and must not."""
    own = room_of(module)
    rooms = {room_of(target) for target in imported(module, text, package)} - {own}
    if module == "pcces":  # what the library shows to the world comes from all rooms but these
        return rooms & {"cli", "studies"}
    return {room for room in rooms if LEVEL[room] <= LEVEL[own]}


def functions(text):
    """Every function with its full name, its docstring and its lines without it, and how many parameters it has."""

    def below(node, path):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = [*path, child.name]
                if not isinstance(child, ast.ClassDef):
                    yield ".".join(name), *measures(child)
                yield from below(child, name)
            else:
                yield from below(child, path)

    return below(ast.parse(text), [])


def measures(function):
    doc = ast.get_docstring(function) or ""
    first = function.body[0]
    lines = function.end_lineno - function.lineno + 1 - (first.end_lineno - first.lineno + 1 if doc else 0)
    a = function.args
    names = [p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg) if p is not None]
    return doc, lines, len([name for name in names if name not in ("self", "cls")])


def excused(doc, word):
    """Whether a docstring gives a reason: 'Long: ...' or 'Many parameters: ...', and then at least three words."""
    _, given, reason = doc.partition(f"{word}: ")
    return bool(given) and len(reason.split()) >= 3


def offences():
    """All that is not in order, by kind."""
    texts = {module: file.read_text() for module, file in FILES.items()}
    classes = Counter(
        node.name
        for text in texts.values()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    found = {kind: set() for kind in KINDS}
    found["names of classes"] = {name for name, times in classes.items() if times > 1}
    for module, text in texts.items():
        package = FILES[module].name == "__init__.py"
        found["imports"] |= {f"{module} -> {room}" for room in forbidden(module, text, package)}
        if len(text.splitlines()) > LINES:
            found["long files"].add(module)
        for name, doc, lines, parameters in functions(text):
            if lines > FUNCTION and not excused(doc, "Long"):
                found["long functions"].add(f"{module}.{name}")
            if parameters > PARAMETERS and not excused(doc, "Many parameters"):
                found["many parameters"].add(f"{module}.{name}")
    return found


OFFENCES = offences()


@pytest.mark.parametrize("kind", KINDS)
def test_the_library_is_in_order(kind):
    assert not OFFENCES[kind], f"{kind}: {sorted(OFFENCES[kind])}"


def test_every_module_is_in_a_room():
    assert {room_of(module) for module in FILES} == set(LEVEL)
    doors = {module for module in FILES if room_of(module) == "front doors"}
    assert {module for module in doors if not module.startswith(FOR_STUDIES)} == FRONT_DOORS and FOR_STUDIES in doors


@pytest.mark.parametrize(
    ("module", "text", "rooms"),
    [
        ("pcces.core.algorithm", "def f():\n    from pcces.engines.keys import key", {"engines"}),
        ("pcces.envs.safety.batch", "from ...rl import policy", {"rl"}),
        ("pcces.envs.safety.batch", "from .tasks import scene\nfrom ..task import Task", set()),
        ("pcces.rl.policy", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pcces.blackbox.options", {"blackbox"}),
        ("pcces.rl.policy", "from pcces import train, envs", {"front doors"}),
        ("pcces.rl.policy", "import importlib\nimportlib.import_module('pcces.studies.arms')", {"studies"}),
        ("pcces.rl.policy", "import importlib\nimportlib.import_module(f'pcces.cli.{command}')", {"cli"}),
        ("pcces.envs.registry", "run([sys.executable, '-m', 'pcces.studies.worker'])", {"studies"}),
        ("pcces.envs.registry", "gymnasium.register('A-v0', entry_point='pcces.rl.film:film')", {"rl"}),
        ("pcces", "from pcces.rl.folder import load\n_HOMES = {'study': 'pcces.studies.study'}", {"studies"}),
        ("pcces.cli.train", "from pcces import train\nfrom pcces.core.theory import Constants\nimport numpy", set()),
        ("pcces.minimize", "from pcces.cli import app", {"cli"}),
    ],
)  # fmt: skip
def test_an_import_upwards_would_be_seen(module, text, rooms):
    assert forbidden(module, text) == rooms


def test_long_functions_and_many_parameters_would_be_seen():
    body = "    x = 1\n" * 60
    long = f"class A:\n  async def f(self, a, *b, c, **d):\n    '''One.\n\n    Long: it is a table of cases.\n    '''\n{body}"
    [(name, doc, lines, parameters)] = functions(long)
    assert (name, lines, parameters) == ("A.f", 61, 4) and excused(doc, "Long")
    assert not excused(doc, "Many parameters") and not excused("Long: yes.", "Long")
    assert [name for name, *_ in functions("def f():\n    def g():\n        pass")] == ["f", "f.g"]


def test_a_walk_counts_each_function_once_and_the_steps_into_another_module(tmp_path):
    (tmp_path / "door.py").write_text(
        "def enter(work, *others):\n    opened()\n    work(*others)\n    opened()\n\ndef opened():\n    return [i for i in '1']\n"
    )
    (tmp_path / "room.py").write_text(
        "class Work:\n    def __call__(self, *others):\n        list(map(callable, others))\n"
    )
    door, room = (runpy.run_path(str(tmp_path / f"{name}.py")) for name in ("door", "room"))
    visits = walk(lambda: door["enter"](room["Work"](), sorted), tmp_path)
    assert [f"{visit.module} {visit.function}" for visit in visits] == [
        "door.py enter", "door.py opened", "room.py Work.__call__",
    ]  # fmt: skip
    assert switches(visits) == 1 and switches([*visits, visits[0]]) == 2


def test_a_walk_through_a_search_begins_at_its_front_door():
    visits = walk(CALLS["minimize without noise"], ROOT / "pcces")
    assert Visit("minimize.py", "minimize") in visits[:20]
    assert 0 < switches(visits) < len(visits) and {"core/algorithm.py"} < {visit.module for visit in visits}
