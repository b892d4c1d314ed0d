import os
os.environ["CACT"]="relu"; os.environ["CPREV"]="1"
src=open('dirs.py').read()
pre=src.split("t=time.time(); eps = [batch(i)")[0]
exec(compile(pre,"pre","exec"))
from pcces.rl.improvement import improve
from pcces.rl.device_arena import play_batch
import optax
adv = jax.jit(lambda sig, v, pl, go, d, g: cr.advantages(sig[None], v[None], pl, go, d, g)[0])
def outcome(y, n=1536):
    R, C = [], []
    for i in range(n//256):
        o = play_batch(task, pol, y, norm, jax.random.split(jax.random.key(777+i), 256)); R.append(np.asarray(o.returns)); C.append(np.asarray(o.costs[0]))
    return np.concatenate(R), np.concatenate(C)
r0,c0=outcome(x); print("base", r0.mean(), c0.mean(), c0.std()/np.sqrt(len(c0)), flush=True)
def join(es):
    cat=lambda f: jnp.concatenate([getattr(e,f) for e in es], -1)
    return es[0]._replace(observations=cat("observations"),actions=cat("actions"),signals=cat("signals"),played=cat("played"),going=cat("going"),weights=cat("weights")/len(es))
eps=[batch(i) for i in range(20)]; train_eps=[batch(1000+i) for i in range(60)]
s2=dataclasses.replace(settings, passes=5, minibatches=8, target_kl=0.02, rate=1e-3, anneal=False)
imp=alone(lambda a, e, key: improve(pol, s2, x, optax.scale_by_adam().init(x), acted(pol,x,e), a, jnp.int32(0), key))
cent=lambda a,w:(a-(a*w).sum())/jnp.sqrt((((a-(a*w).sum())**2)*w).sum())
def trial(name, value_of, gamma, lam, mix=None):
    for size, starts in ((1,(0,1)),(10,(0,))):
        for b in starts:
            es=[eps[b]] if size==1 else eps[10*b:10*b+10]
            e=join(es); v=value_of(e)
            a=-cent(adv(e.signals[1], v[1], e.played, e.going, gamma, lam), e.weights)
            if mix is not None:
                ar=cent(adv(e.signals[0], v[0], e.played, e.going, .99, .95), e.weights); a=(ar+mix*a)/(1+mix)
            y,_,own=imp(a,e,jax.random.key(5))
            d=(y-x)*np.sqrt(min(1,0.02/float(own["kl"])))
            r,c=outcome(x+d); dc=c-c0; dr=r-r0
            print(f"{name} batches {size}: dcost {dc.mean():.2f} +- {dc.std()/np.sqrt(len(dc)):.2f} dret {dr.mean():.2f} +- {dr.std()/np.sqrt(len(dr)):.2f} kl {float(own['kl']):.3f} passes {int(own['passes'])}", flush=True)
# old critics
old = lambda e: None
def fitted(gamma, lam, hidden, passes=2, mb=16, rounds=2):
    st=dataclasses.replace(settings, critic_hidden=hidden, critic_rate=3e-3, passes=passes, minibatches=mb)
    n2=cr.network(task.observation_size + (2 if cr.PREV else 0), st); c=cr.init_critics(n2,2,st,jax.random.key(1))
    step=alone(lambda c,e,key: (lambda v: cr.fit(n2,st,c,e,cr.advantages(e.signals,v,e.played,e.going,gamma,lam)+v[:,:-1],key))(cr.values(n2,c,cr.view(e))))
    for r in range(rounds):
        for i,e in enumerate(train_eps): c=step(c,e,jax.random.key(1000*r+i))
    return lambda e: cr.values(n2,c,cr.view(e))
cr.PREV=False; cr.ACT=jnp.tanh
V=fitted(.99,.95,(64,64)); 
for lam in (.95,.8): trial(f"tanh64 g.99 lam{lam}", V, .99, lam)
cr.PREV=True; cr.ACT=jax.nn.relu
for g in (.99,.95,.9):
    V=fitted(g,.95,(128,128))
    for lam in (.95,.8,.5): trial(f"relu128prev g{g} lam{lam}", V, g, lam)
