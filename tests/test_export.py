"""Policies outside the library: files that give the same actions, and distributions to draw them from."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_acting import run_of

from pcces.core.certificate import Certificate
from pcces.envs.task import Continuous, Discrete
from pcces.rl.normalizer import CLIP
from pcces.rl.policy import LOG_STD, Policy, forward

SPACES = {
    "choice": Discrete(3),
    "torque": Continuous((-0.25, 2.0), (0.25, 8.0)),
    "half a line": Continuous((0.0, -np.inf), (np.inf, np.inf)),
}
ROOT = Path(__file__).parent.parent


@pytest.fixture(params=SPACES)
def run(request):
    """A run of a policy that leaves its box, some of whose deviations are beyond their limits, and sees what it clips."""
    made = run_of(SPACES[request.param])
    made.config, made.final = {"task": "Mill\nimport os"}, {"costs": [], "return": 1.0, "entropy": 0.0}
    made.problem, made.certificate = Named(), Certificate(True, 0.95, (), 50, "t")
    if not made.shape.discrete:
        made.x[-2:] = -9.0, 2.5
    return made


class Named:
    cost_names, limits, cost_limits, on_means = (), (), (), True


def observations(count=300):
    seen = np.random.default_rng(4).normal(size=(count, 3)) * [2.0, 1.0, 5.0]
    seen[0] = 1e3  # far outside: normalised, it is clipped
    return seen.astype(np.float32)


def module_of(path):
    names = {"__name__": "exported"}
    exec(compile(path.read_text(), path.name, "exec"), names)
    return names


def test_a_python_file_gives_the_same_actions_to_the_bit(run, tmp_path):
    names = module_of(run.export(tmp_path / "policy.py"))
    ours, theirs = (np.random.default_rng(7) for _ in range(2))
    for o in observations():
        for mine, rng in ((None, None), (ours, theirs)):
            expected, action = run.policy(o, mine), names["policy"](o, rng)
            assert type(action) is type(expected) and np.array_equal(action, expected)
    for mine, rng in ((None, None), (ours, theirs)):
        expected, actions = run.policy(observations(), mine), names["policy"](observations(), rng)
        assert actions.dtype == expected.dtype and np.array_equal(actions, expected)
    with pytest.raises(ValueError, match=r"\(3,\), or \(N, 3\), not \(1,\)"):
        names["policy"]([0.0])


def test_a_python_file_needs_numpy_alone(run, tmp_path):
    run.export(tmp_path / "policy.py")
    code = (
        "import sys, numpy as np, policy; rng = np.random.default_rng(3);"
        "print(np.asarray(policy.policy(np.ones(3), rng), float).tolist());"
        "assert not {'jax', 'pcces', 'scipy'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, '.'); {code}"], cwd=tmp_path, capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    expected = run.policy(np.ones(3), np.random.default_rng(3))
    assert np.array_equal(eval(done.stdout), np.asarray(expected, float))


def test_what_drawn_actions_come_from(run, tmp_path):
    parts = module_of(run.export(tmp_path / "policy.py"))["distribution"](observations())
    head, _ = head_of(run, observations())
    if run.shape.discrete:
        assert np.array_equal(parts[0], head.T)
        return
    mean, std = parts
    middle, half = (np.float32(part) for part in run.shape.scale())
    assert mean == pytest.approx(middle + half * head.T, rel=1e-6)
    assert std.shape == mean.shape and std[0] == pytest.approx(half * np.exp([-5.0, 2.0]), rel=1e-6)
    low, high = run.shape.actions.ends
    drawn = [np.clip(mean + std * z, low, high) for z in np.random.default_rng(1).normal(size=(4000, 1, 2))]
    ours = run.policy(np.repeat(observations()[5:6], 4000, axis=0), np.random.default_rng(2))
    assert np.mean(drawn, axis=0)[5] == pytest.approx(ours.mean(0), abs=5 * ours.std(0).max() / np.sqrt(4000) + 1e-6)


def head_of(run, seen):
    layers, log_std = run.shape.unpack(run.x)
    mean, std = run.normalizer.mean[:, None], run.normalizer.std[:, None]
    return forward(layers, np.clip((seen.T - mean) / std, -CLIP, CLIP)), log_std


def test_an_onnx_model_gives_the_same_actions(run, tmp_path):
    onnx, runtime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    path = run.export(str(tmp_path / "policy.onnx"))
    model = onnx.load(path)
    page = (ROOT / "docs" / "how-to" / "using-a-policy.md").read_text()
    assert model.opset_import[0].version == 17 and "opset 17" in page
    assert {p.key: p.value for p in model.metadata_props} == {"task": "Mill\nimport os", "certificate": run.words()}
    session = runtime.InferenceSession(path)
    found = dict(zip([o.name for o in session.get_outputs()], session.run(None, {"observation": observations()})))
    expected = run.policy(observations())
    head, log_std = head_of(run, observations())
    if run.shape.discrete:
        assert list(found) == ["action", "logits"] and found["action"].dtype == np.int64
        assert np.array_equal(found["action"], expected) and found["logits"] == pytest.approx(head.T, abs=1e-4)
        return
    middle, half = (np.float32(part) for part in run.shape.scale())
    assert list(found) == ["action", "mean", "std"] and found["action"].dtype == np.float32
    assert found["action"] == pytest.approx(expected, abs=1e-4) and not np.array_equal(found["mean"], found["action"])
    assert found["mean"] == pytest.approx(middle + half * head.T, abs=1e-4)
    assert found["std"] == pytest.approx(np.broadcast_to(half * np.exp(log_std), expected.shape), rel=1e-5)
    low, high = run.shape.actions.ends
    assert (found["action"] >= low).all() and (found["action"] <= high).all()
    assert len(session.run(["action"], {"observation": observations()[:1]})[0]) == 1


def test_a_torch_module_gives_the_same_actions(run):
    torch = pytest.importorskip("torch")
    module, seen = run.to_torch(), torch.from_numpy(observations())
    with torch.no_grad():
        actions, parts, drawn = module(seen), module.distribution(seen), module.draw(seen)
    assert actions.numpy() == pytest.approx(run.policy(observations()), abs=1e-4)
    assert module(seen[3]).shape == actions[3].shape and drawn.shape == actions.shape
    head, log_std = head_of(run, observations())
    if run.shape.discrete:
        p = np.exp(head - head.max(0)) / np.exp(head - head.max(0)).sum(0)
        assert parts.probs.numpy() == pytest.approx(p.T, abs=1e-4)
    else:
        low, high = run.shape.actions.ends
        assert (drawn.numpy() >= low).all() and (drawn.numpy() <= high).all()
        assert parts.stddev[0].numpy() == pytest.approx(np.float32(run.shape.scale()[1]) * np.exp(log_std), rel=1e-5)
    assert sum(p.numel() for p in module.parameters()) == run.shape.size


def test_the_recipe_of_the_documentation_gives_the_same_actions_to_the_bit(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run.export("policy.npz")
    page = (ROOT / "docs" / "how-to" / "using-a-policy.md").read_text()
    (recipe,) = re.findall(
        r"^```python\n(import numpy as np\n\np = dict\(np\.load.*?)\n\n\nassert", page, re.DOTALL | re.MULTILINE
    )
    names = {}
    exec(re.sub(r'np\.load\(".*?"\)', 'np.load("policy.npz")', recipe), names)
    assert len([line for line in recipe.splitlines() if line.strip()]) <= 20
    ours, theirs = (np.random.default_rng(7) for _ in range(2))
    for o in observations():
        assert np.array_equal(names["act"](o), run.policy(o))
        assert np.array_equal(names["act"](o, theirs), run.policy(o, ours))


def test_exports_that_cannot_be_are_refused(tmp_path, monkeypatch):
    run = run_of(Discrete(2))
    run.config, run.problem, run.final = {"task": "T"}, Named(), {"costs": [], "return": 1.0, "entropy": 0.0}
    with pytest.raises(ValueError, match=r"exported as \.onnx, \.py or \.npz, .* got 'policy\.pt'"):
        run.export(tmp_path / "policy.pt")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'pcces\[export\]'"):
        run.export(tmp_path / "policy.onnx")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"pip install 'pcces\[torch\]'"):
        run.to_torch()
    run.x = None
    with pytest.raises(ValueError, match="not finished"):
        run.export(tmp_path / "policy.py")
    assert not list(tmp_path.iterdir())


def test_limits_that_files_hold_are_those_of_the_library():
    text = (ROOT / "pcces" / "integrations" / "standalone.py").read_text()
    assert CLIP == 10 and LOG_STD == (-5.0, 2.0) and "-10, 10)" in text and "-5, 2)" in text
    assert Policy(2, Continuous(0.0, 1.0)).scale() == ([0.5], [0.5])
