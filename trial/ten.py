import os
os.environ["CACT"]="relu"; os.environ["CPREV"]="1"
src=open('steps.py').read()
pre=src.split("def trial(")[0].split("src=open")[1]
exec(compile("src=open"+pre,"pre","exec"))
def fitted(gamma, lam, hidden, passes=2, mb=16, rounds=2, prev=True, act=jax.nn.relu):
    cr.PREV=prev; cr.ACT=act
    st=dataclasses.replace(settings, critic_hidden=hidden, critic_rate=3e-3, passes=passes, minibatches=mb)
    n2=cr.network(task.observation_size + (2 if prev else 0), st); c=cr.init_critics(n2,2,st,jax.random.key(1))
    step=alone(lambda c,e,key: (lambda v: cr.fit(n2,st,c,e,cr.advantages(e.signals,v,e.played,e.going,gamma,lam)+v[:,:-1],key))(cr.values(n2,c,cr.view(e))))
    for r in range(rounds):
        for i,e in enumerate(train_eps): c=step(c,e,jax.random.key(1000*r+i))
    f=alone(lambda e: cr.values(n2,c,cr.view(e)))
    f(eps[0]); return f
imp2=alone(lambda a,e,x,x0,ad,key: improve(pol,s2,x,ad,acted(pol,x,e),a,jnp.int32(0),key))
def mc(sig, gamma):
    def f(c, s): c = s + gamma*c; return c, c
    return jax.lax.scan(f, jnp.zeros(sig.shape[1:]), sig, reverse=True)[1]
def ten(name, f, gamma, lam, steps=15, per=1, price=None):
    y=x; ad=optax.scale_by_adam().init(x); kls=[]
    for k in range(steps):
        e=join([play(y,norm,jax.random.split(jax.random.key(5000+100*k+j),E)) for j in range(per)])
        v=f(e)
        a=-cent(adv(e.signals[1], v[1], e.played, e.going, gamma, lam), e.weights)
        if price is not None:
            ar=cent(adv(e.signals[0], v[0], e.played, e.going, .99 if gamma==.99 else gamma, .95), e.weights); a=(ar+price*a)/(1+price)
        z,ad,own=imp2(a,e,y,x,ad,jax.random.key(k)); kl=float(own["kl"]); kls.append(kl)
        y=y+(z-y)*np.sqrt(min(1,0.02/kl))
    r,c=outcome(y,1024); n=len(c)
    print(f"{name} g{gamma} lam{lam} x{steps} per {per} price {price}: cost {c.mean():.1f} +- {c.std()/np.sqrt(n):.1f} (from {c0.mean():.1f}) ret {r.mean():.2f} kl {np.mean(kls):.3f}", flush=True)
for spec in ("tanh64 .99","relu128 .99","relu128 .95","relu128 .9","relu256 .97"):
    nm,g=spec.split(); g=float(g)
    h=int(nm[4:]); f=fitted(g,.95,(h,h),prev=nm.startswith("relu"),act=jax.nn.relu if nm.startswith("relu") else jnp.tanh)
    evs=[]
    for e in eps[:6]:
        v=f(e)[1]; t=mc(e.signals[1],g); evs.append(float(1-jnp.var(t[:-150]-v[:-1][:-150])/jnp.var(t[:-150])))
    print(spec,"EV cost",np.mean(evs),flush=True)
    for lam in (.95,.5,0.):
        ten(nm,f,g,lam)
