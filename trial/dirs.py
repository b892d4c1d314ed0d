import sys, pickle, time
sys.path.insert(0, ".")
import numpy as np, jax, jax.numpy as jnp, dataclasses
from pcces.policies import prepare
from pcces.engines.device import alone
from pcces.rl import epochs, critics as cr, batches
from pcces.rl.policy import Policy
from pcces.rl.improvement import acted, centred, ratios
from pcces.rl.settings import BatchSettings
which = (sys.argv+["200"])[1]
tr = prepare("PointGoal1-v0", [2000], steps=3e6, engine="device")
run = tr.runs[0]; task, pol = run.task, run.shape
st = pickle.load(open(f"st{which}.pkl","rb"))
leaves = [np.asarray(a)[0] for a in jax.tree.leaves(st)]
tmpl = jax.tree.structure(st)
L = jax.tree.unflatten(tmpl, leaves)
x, norm = jnp.asarray(L.x_trial), L.normalizer
settings = BatchSettings()
net = cr.network(task.observation_size, settings)
E = 10
play = alone(lambda x, norm, keys: epochs.epoch_of(norm, *epochs.on_device(task, pol, x, norm, keys, 0.99)[0]))
def batch(i): return play(x, norm, jax.random.split(jax.random.key(i), E))
t=time.time(); eps = [batch(i) for i in range(48)]; print("played", time.time()-t, "cost", float(np.mean([e.costs[0] for e in eps])), "ret", float(np.mean([(e.signals[0]*e.played).sum()/E for e in eps])))
def mc(sig, gamma):
    def f(c, s): c = s + gamma*c; return c, c
    return jax.lax.scan(f, jnp.zeros(sig.shape[1:]), sig, reverse=True)[1]
# explained variance of current critics
def ev(value, target, skip=200):
    return float(1 - jnp.var(target[:-skip]-value[:-1][:-skip])/jnp.var(target[:-skip]))
V = [cr.values(net, L.critics, e.observations) for e in eps[:8]]
for s, n in enumerate(("reward","cost")):
    print(n, "EV of critic vs MC(.99):", np.mean([ev(v[s], mc(e.signals[s], .99)) for v, e in zip(V, eps)]))
@jax.jit
def grad_of(adv, e):
    did = acted(pol, x, e)
    g = jax.grad(lambda y: (ratios(pol, y, did) * epochs.step_columns(adv)) @ did.weights)(x)
    return g
grad_of = alone(lambda adv, e: jax.grad(lambda y: (ratios(pol, y, acted(pol, x, e)) * epochs.step_columns(adv)) @ acted(pol, x, e).weights)(x))
def snr(G):  # share of signal in squared norm of one batch's gradient
    G = np.array(G); n = len(G); tot = (G**2).sum(1).mean(); m = G.mean(0); cross = ((m@m)*n*n - (G**2).sum())/(n*(n-1))
    return cross/tot
def align(G, R):  # mean inner product with independent reference halves / lengths
    G, R = np.array(G), np.array(R); n = len(G); S = R.sum(0)
    vals = [(G[i]@(S-R[i]))/np.linalg.norm(G[i])/np.linalg.norm(S-R[i]) for i in range(n)]
    return np.mean(vals)
adv = jax.jit(lambda sig, v, pl, go, d, g: cr.advantages(sig[None], v[None], pl, go, d, g)[0])
cent = jax.jit(lambda a, w: (a-(a*w).sum())/jnp.sqrt((((a-(a*w).sum())**2)*w).sum()))
def grads(s, values, d, g):
    return [np.asarray(grad_of(cent(adv(e.signals[s], v, e.played, e.going, d, g), e.weights), e)) for e, v in zip(eps, values)]
Vall = [cr.values(net, L.critics, e.observations) for e in eps]

@jax.jit
def grad_of(adv, e):
    did = acted(pol, x, e)
    g = jax.grad(lambda y: (ratios(pol, y, did) * epochs.step_columns(adv)) @ did.weights)(x)
    return g
grad_of = alone(lambda adv, e: jax.grad(lambda y: (ratios(pol, y, acted(pol, x, e)) * epochs.step_columns(adv)) @ acted(pol, x, e).weights)(x))
adv = jax.jit(lambda sig, v, pl, go, d, g: cr.advantages(sig[None], v[None], pl, go, d, g)[0])
cent = jax.jit(lambda a, w: (a-(a*w).sum())/jnp.sqrt((((a-(a*w).sum())**2)*w).sum()))
def grads(s, values, d, g):
    return [np.asarray(grad_of(cent(adv(e.signals[s], v, e.played, e.going, d, g), e.weights), e)) for e, v in zip(eps, values)]

play_out = alone(lambda x, keys: epochs.on_device(task, pol, x, norm, keys, 0.99)[1])
from pcces.rl.device_arena import play_batch
def outcome(y, n=1024):
    R, C = [], []
    for i in range(n//256):
        o = play_batch(task, pol, y, norm, jax.random.split(jax.random.key(777+i), 256)); R.append(np.asarray(o.returns)); C.append(np.asarray(o.costs[0]))
    return np.concatenate(R), np.concatenate(C)
kl_of = alone(lambda y, e: (lambda did: pol.divergence(did.head, did.log_std, *((lambda l, s: (epochs.forward(l, did.observations), s))(*pol.unpack(y)))) @ did.weights)(acted(pol, x, e)))
def scaled(u, kl=0.02):
    u = u/np.linalg.norm(u); a = 0.1
    for _ in range(4): a *= np.sqrt(kl/float(kl_of(x + a*u, eps[0])))
    return a*u
def test(name, u):
    u = scaled(u); (r1,c1),(r0,c0) = outcome(x+u), outcome(x-u)
    d, dr = (c1-c0)/2, (r1-r0)/2
    print(f"{name}: cost {d.mean():.2f} +- {d.std()/np.sqrt(len(d)):.2f}, return {dr.mean():.2f} +- {dr.std()/np.sqrt(len(d)):.2f}", flush=True)
Vall = [cr.values(net, L.critics, e.observations) for e in eps]
for lam in (.95,.8,.5):
    G = np.array(grads(1, [v[1] for v in Vall], .99, lam)); test(f"cost 48 batches lam {lam}", G.mean(0)); test(f"cost 3 batches lam {lam}", G[:3].mean(0))
for lam in (.95,.5):
    G = np.array(grads(0, [v[0] for v in Vall], .99, lam)); test(f"return 48 batches lam {lam}", G.mean(0)); test(f"return 3 batches lam {lam}", G[:3].mean(0))
for gamma in (.9,):
    pass
