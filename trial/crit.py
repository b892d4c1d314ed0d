exec(open('dirs.py').read().split("print(\"played\"")[0].replace("t=time.time(); eps = [batch(i) for i in range(48)]; ",""))
import optax
def mc(sig, gamma):
    def f(c, s): c = s + gamma*c; return c, c
    return jax.lax.scan(f, jnp.zeros(sig.shape[1:]), sig, reverse=True)[1]
G=(.9,.95,.99)
def rows(ids):
    X,Y,P=[],[],[]
    for i in ids:
        e=batch(i); T=800
        X.append(np.asarray(e.observations[:,:T]).reshape(e.observations.shape[0],-1).T)
        c=e.signals[1]
        Y.append(np.stack([np.asarray(mc(c,g)*(1-g))[:T].reshape(-1) for g in G],1))
        prev=np.concatenate([np.zeros((1,E)),np.asarray(c)[:-1]])[:T].reshape(-1); P.append(prev)
    return np.concatenate(X),np.concatenate(Y),np.concatenate(P)
X,Y,P=rows(range(1000,1040)); Xt,Yt,Pt=rows(range(10)); print(X.shape, "cost rate", Y.mean(0))
print("EV of prev cost alone", [round(float(np.corrcoef(Pt,Yt[:,j])[0,1]**2),3) for j in range(3)])
def run(name, X, Xt, hid, act, lr, epochs=4, bs=2000):
    key=jax.random.key(0); sizes=(X.shape[1],*hid,3); ps=[]
    for a,b in zip(sizes[:-1],sizes[1:]):
        key,k=jax.random.split(key); ps.append((jax.random.normal(k,(a,b))/np.sqrt(a),jnp.zeros(b)))
    mu,sd=Y.mean(0),Y.std(0)
    def net(ps,x):
        for w,b in ps[:-1]: x=act(x@w+b)
        w,b=ps[-1]; return x@w+b
    opt=optax.adam(lr); st=opt.init(ps); Xj,Yj=jnp.array(X),jnp.array((Y-mu)/sd)
    @jax.jit
    def epoch(ps,st,key):
        o=jax.random.permutation(key,len(Xj))[:len(Xj)//bs*bs].reshape(-1,bs)
        def f(c,i):
            ps,st=c; g=jax.grad(lambda p:((net(p,Xj[i])-Yj[i])**2).mean())(ps); u,st=opt.update(g,st); return (optax.apply_updates(ps,u),st),None
        return jax.lax.scan(f,(ps,st),o)[0]
    t=time.time()
    for ep in range(epochs):
        key,k=jax.random.split(key); ps,st=epoch(ps,st,k)
        if ep in (0,epochs-1):
            R=(Yt-mu)/sd-np.asarray(net(ps,jnp.array(Xt))); print(name,"epoch",ep+1,"EV",(1-R.var(0)/((Yt)/sd).var(0)).round(3),f"{time.time()-t:.0f}s",flush=True)
run("tanh64 1e-3",X,Xt,(64,64),jnp.tanh,1e-3)
run("tanh64 3e-3",X,Xt,(64,64),jnp.tanh,3e-3)
run("relu64 1e-3",X,Xt,(64,64),jax.nn.relu,1e-3)
run("relu256 1e-3",X,Xt,(256,256),jax.nn.relu,1e-3)
Xp,Xtp=np.c_[X,P*3],np.c_[Xt,Pt*3]
run("tanh64+prev 1e-3",Xp,Xtp,(64,64),jnp.tanh,1e-3)
run("relu256+prev 1e-3",Xp,Xtp,(256,256),jax.nn.relu,1e-3)
