"""cont.py START seconds -- lanes; continue from a pickled state with fixed prices"""
import sys, pickle, time, os
sys.path.insert(0, os.getcwd())
import numpy as np, jax, jax.numpy as jnp
from pcces.rl import batches, critics as cr
from pcces.engines.keys import keys as make_keys
from pcces.rl.settings import BatchSettings
import json
start, its, *specs = sys.argv[1:]
its=int(its)
NAMES=["gae","gae_ended","cost_gae","cost_discount","price_kind","price_rate","price_clip","price_reaction","reaction_clip","first_price","rate","target_kl","aim"]
base=BatchSettings(); rows=[];labels=[];prices=[]
for sp in specs:
    l,*ps=sp.split(); d=dict(p.split("=") for p in ps); prices.append(float(d.pop("p",-1)));
    d={"price_kind":0,"price_rate":0,"price_reaction":0,"price_clip":2.0,"reaction_clip":2.0}|d
    labels.append(l); rows.append([float(d.get(n,getattr(base,n))) for n in NAMES])
seeds=[3000+i for i in range(len(labels))]
batches.LANE_NAMES=NAMES; batches.LANE_KEYS=jax.random.key_data(make_keys(seeds)); batches.LANE_VALUES=jnp.array(rows,jnp.float32)
from pcces.policies import prepare
kw=json.loads(os.environ.get("COMMON","{}")); kw={k:tuple(v) if isinstance(v,list) else v for k,v in kw.items()}
tr=prepare("PointGoal1-v0",seeds,steps=3e6,engine="device",**kw)
st=tr.engine.start(None)
old=pickle.load(open(f"st{start}.pkl","rb"))
n=len(labels)
rep=lambda a: np.repeat(np.asarray(a),n,axis=0)
st=st._replace(es=jax.tree.map(rep,old.es), x_trial=rep(old.x_trial), adam=jax.tree.map(rep,old.adam), normalizer=jax.tree.map(rep,old.normalizer), known=jax.tree.map(rep,old.known))
if jax.tree.map(np.shape,jax.tree.map(rep,old.critics))==jax.tree.map(np.shape,st.critics): st=st._replace(critics=jax.tree.map(rep,old.critics))
else: print("fresh critics")
P=np.zeros_like(np.asarray(st.prices.values)); P[:,0]=prices
keep=rep(old.prices.values)*0+0
st=st._replace(prices=batches.Prices(P.astype(np.float32),P.astype(np.float32)))
R,C=[],[];t=time.time()
for i in range(its):
    st,m=tr.engine.advance(st,1)
    S=globals().setdefault("S",[]); S.append((m["sigma"][:,0],m["success"][:,0],m["kl"][:,0],m["passes"][:,0],m["d"][:,0])); R.append(m["return"][:,0]);C.append(m["costs"][:,0,0])
    if (i+1)%20==0:
        print(i+1,round(time.time()-t),"  ".join(f"{l} {np.mean([r[j] for r in R[-20:]]):.1f}/{np.mean([c[j] for c in C[-20:]]):.1f}" for j,l in enumerate(labels)),"\n    sigma/succ/kl/passes/d", "  ".join(" ".join(f"{np.mean([s[q][j] for s in S[-20:]]):.3f}" for q in range(5)) for j in range(len(labels))),flush=True)
