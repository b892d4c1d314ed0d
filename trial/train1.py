import time, sys, pickle
sys.path.insert(0, ".")
from pcces.policies import prepare
import jax, numpy as np
t0=time.time()
tr = prepare("PointGoal1-v0", [2000], steps=3e6, engine="device", gae=0.95, price_kind=0, price_clip=0.25, price_rate=0.02, price_reaction=1.0, reaction_clip=1.0)
st = tr.engine.start(None); print("start", time.time()-t0, flush=True)
R=[];C=[]
for i in range(tr.iterations):
    t=time.time(); st, m = tr.engine.advance(st, 1); R.append(float(m["return"][0,0])); C.append(float(m["costs"][0,0,0]))
    if i%20==19: print(i+1, round(time.time()-t0,1), round(np.mean(R[-20:]),2), round(np.mean(C[-20:]),1), "price", float(m["price"][0,0]), "passes", int(m["passes"][0,0]), flush=True)
    if i+1 in (50,100,200,300): pickle.dump(jax.tree.map(np.asarray, st), open(f"st{i+1}.pkl","wb"))
