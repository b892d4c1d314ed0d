"""python lanes.py NAME TASK STEPS SECONDS LANES_EACH common... -- 'label k=v k=v' 'label ...'"""
import sys, json, time, os
T0 = time.time()
sys.path.insert(0, os.getcwd())
import numpy as np
import jax
import jax.numpy as jnp
import pcces
from pcces.engines.keys import keys as make_keys
from pcces.rl import batches
from pcces.policies import prepare
name, task, steps, seconds, each, *rest = sys.argv[1:]
steps, seconds, each = float(steps), float(seconds), int(each)
cut = rest.index("--")
def parse(pairs):
    out = {}
    for pair in pairs:
        k, v = pair.split("=", 1)
        v = json.loads(v)
        out[k] = tuple(v) if isinstance(v, list) else v
    return out
common = parse(rest[:cut])
K = dict(price_kind=1, price_clip=0.25, reaction_clip=0.25, first_price=0.2)
A = dict(price_kind=0, price_clip=2.0, reaction_clip=2.0, first_price=0.0)
labels, rows = [], []
from pcces.rl.settings import BatchSettings
NAMES = ["cost_gae", "cost_discount", "kappa", "clip", "gae", "gae_ended", "price_kind", "price_rate", "price_clip", "price_reaction", "reaction_clip", "first_price", "aim", "target_kl", "rate", "weight", "doubt", "critic_rate", "entropy", "discount"]
base = BatchSettings()
for spec in rest[cut + 1:]:
    label, *pairs = spec.split()
    said = dict(A)
    if "K" in pairs: said |= K
    said |= parse([p for p in pairs if "=" in p])
    assert all(k in NAMES for k in said), said
    labels.append(label)
    rows.append([float(said.get(n, getattr(base, n))) for n in NAMES])
FS = int(os.environ.get("SEED", "2000"))
seeds = [FS + i for i in range(each * len(labels))]
batches.LANE_NAMES = NAMES
batches.LANE_KEYS = jax.random.key_data(make_keys(seeds))
batches.LANE_VALUES = jnp.repeat(jnp.array(rows, jnp.float32), each, axis=0)
training = prepare(task, seeds, steps=steps, engine="device", **common)
run = training.runs[0]
cut_limit = run.problem.thresholds
states = training.engine.start(None)
M = {"return": [], "costs": [], "steps": [], "kl": [], "price": [], "success": [], "passes": []}
def windows(final):
    S = np.cumsum(np.concatenate(M["steps"], 1), 1); R = np.concatenate(M["return"], 1); C = np.concatenate(M["costs"], 1)
    P = np.concatenate(M["price"], 1); KL = np.concatenate(M["kl"], 1); SU = np.concatenate(M["success"], 1)
    over = (C > np.array(cut_limit)).any(-1)
    n = S.shape[1]
    print(f"### {name} {task} it {n}/{training.iterations} {S[0,-1]/1e6:.2f}M steps, {time.time()-T0:.0f}s", flush=True)
    for j, label in enumerate(labels):
        sel = slice(j * each, (j + 1) * each)
        cells = []
        for q in (1/15, 0.2, 1/3, 0.5, 2/3, 5/6, 1.0):
            if S[0, -1] < q * steps * 0.93: break
            w = (S[0] <= q * steps * 1.001) & (S[0] > (q - 0.05) * steps)
            if not w.any(): continue
            cells.append(f"{R[sel][:, w].mean():.1f}/" + ",".join(f"{x:.1f}" for x in C[sel][:, w].mean((0, 1))))
        w = S[0] > S[0, -1] - 0.05 * steps
        ends = " ".join(f"{a:.1f}/{b:.1f}" for a, b in zip(R[sel][:, w].mean(1), C[sel][:, w].mean(1)[:, 0]))
        print(f"{label:10s} {' | '.join(cells)} || over {over[sel].mean():.2f} succ {SU[sel].mean():.2f} kl {KL[sel][:, w].mean():.4f} price {P[sel][:, w].mean():.2f} || {ends}", flush=True)
last = time.time()
done = 0
while done < training.iterations and time.time() - T0 < seconds:
    states, m = training.engine.advance(states, min(training.engine.chunk, training.iterations - done))
    done += m["return"].shape[1]
    for k in M: M[k].append(np.asarray(m[k]))
    if time.time() - last > 60: windows(False); last = time.time()
windows(True)
if os.environ.get("OUT"):
    np.savez_compressed(f"{os.environ['OUT']}/{name}.npz", **{k: np.concatenate(v, 1) for k, v in M.items()})
