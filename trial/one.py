"""python one.py TASK STEPS SEEDS NAME key=value ... : trains and prints windows of the course, and the certified ends."""
import sys, json, time, os, importlib
t0 = time.time()
sys.path.insert(0, os.getcwd())
import numpy as np
import pcces
task, steps, seeds, name, *pairs = sys.argv[1:]
given = {}
algorithm = "pcces"
for pair in pairs:
    k, v = pair.split("=", 1)
    if k == "algorithm":
        algorithm = v
    elif k == "import":
        sys.path.insert(0, "examples"); importlib.import_module(v)
    else:
        try: v = json.loads(v)
        except ValueError: pass
        given[k] = tuple(v) if isinstance(v, list) else v
lo, hi = map(int, seeds.split("-"))
steps = float(steps)
deadline = float(os.environ.get("DEADLINE", "1e9"))
marks = {}
def cb(runs):
    if time.time() - t0 > deadline: return True
certify = os.environ.get("CERTIFY")
if certify: given["certify_episodes"] = int(certify)
if task.startswith(("Point", "Car")) and "Goal" in task or "Button" in task: given["engine"] = "device"
runs = pcces.train_seeds(task, range(lo, hi + 1), algorithm, steps=steps, report=False, progress=False, callback=cb, **given)
out = {"name": name, "task": task, "steps": steps, "seconds": round(time.time() - t0, 1), "rows": []}
for r in runs:
    m = r.metrics
    s = np.array(m["steps"]); ret = np.array(m["return"]); cost = [np.array(m[f"cost_{c}"]) for c in r.problem.cost_names]
    over = np.array(m["over_threshold"]) if "over_threshold" in m else np.zeros(len(s))
    windows = []
    for q in (1/15, 0.2, 1/3, 2/3, 1.0):
        sel = (s <= q * s[-1] * 1.0001) & (s > (q - 0.04) * s[-1])
        if sel.any(): windows.append([round(float(s[sel][-1]) / 1e6, 2), round(float(ret[sel].mean()), 2), [round(float(c[sel].mean()), 2) for c in cost]])
    final = r.final
    out["rows"].append({"seed": r.config["seed"], "windows": windows, "over": round(float(over.mean()), 3), "return": round(final["return"], 2),
        "costs": [round(c, 2) for c in final["costs"]], "ok": bool(r.certificate.holds), "n": r.certificate.samples, "it": len(s),
        "kl": round(float(np.mean(m["kl"][-20:])), 4) if "kl" in m else None, "price": round(float(m["price"][-1]), 2) if "price" in m else None,
        "success": round(float(np.mean(m["success"])), 2) if "success" in m else None})
rows = out["rows"]
def avg(f): return round(float(np.mean([f(x) for x in rows])), 2)
line = f"{name}: {task} {steps/1e6:g}M it {rows[0]['it']} {out['seconds']}s | " + "; ".join(f"{rows[0]['windows'][j][0]}M {avg(lambda x: x['windows'][j][1])}/" + ",".join(str(avg(lambda x: x['windows'][j][2][c])) for c in range(len(rows[0]['costs']))) for j in range(min(len(x['windows']) for x in rows))) + f" | final {avg(lambda x: x['return'])}/" + ",".join(str(avg(lambda x: x['costs'][c])) for c in range(len(rows[0]['costs']))) + f" ok {sum(x['ok'] for x in rows)}/{len(rows)} over {avg(lambda x: x['over'])} price {[x['price'] for x in rows]} kl {rows[0]['kl']} rets {[x['return'] for x in rows]}"
print(line, flush=True)
if os.environ.get("OUT"):
    with open(os.path.join(os.environ["OUT"], "trials.jsonl"), "a") as f: f.write(json.dumps(out) + "\n")
