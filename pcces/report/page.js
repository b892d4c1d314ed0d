"use strict";
// Draws every <figure class="chart"> from the JSON inside it: curves with bands, bars, limits, a legend that hides, values on hover.
// Where the charts of a section know several axes, buttons above them choose one.

const SVG = "http://www.w3.org/2000/svg";
const COLOURS = 8;
const HEIGHT = 230;
const BAND_BEYOND = 0.4; // of the range of the lines: bands may extend the axis by so much on each side
const MARGIN = { top: 12, right: 12, bottom: 36 };
const groups = new Map(); // group name -> colour, the same in all charts of the page

function colourOf(series) {
  if (series.colour !== null) return `var(--c${series.colour % COLOURS})`;
  if (!groups.has(series.group)) groups.set(series.group, `var(--c${groups.size % COLOURS})`);
  return groups.get(series.group);
}

function element(parent, name, attributes = {}, text = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text) made.textContent = text;
  parent.append(made);
  return made;
}

function short(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) return value.toExponential(2).replace(/\.?0*e\+?/, "e");
  return String(Number(value.toPrecision(4)));
}

function kindOf(limit) {
  return limit.goal ? "good" : "limit";
}

function isNumber(value) {
  return value !== null && Number.isFinite(value);
}

// Round numbers that cut [low, high] into about `count` parts.
function ticks(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(Number((k * step).toPrecision(12)));
  return found;
}

// Powers of ten, with round numbers between them where there is room.
function logTicks(low, high) {
  const decades = Math.log10(high / low);
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
    for (const m of decades < 1 ? [1, 1.5, 2, 3, 4, 5, 7] : decades < 3 ? [1, 2, 5] : [1]) {
      const value = Number((m * 10 ** power).toPrecision(12));
      if (value >= low && value <= high) found.push(value);
    }
  }
  if (found.length < 2) return [low, high];
  const every = Math.ceil(found.length / 7);
  return found.filter((_, i) => i % every === 0);
}

class ChartView {
  constructor(figure) {
    this.figure = figure;
    this.data = JSON.parse(figure.querySelector("script").textContent);
    this.hidden = new Set();
    this.axis = this.data.xLabel;
    this.makeLegend();
    this.svg = element(figure, "svg", { role: "img", tabindex: "0", "aria-label": this.summary() });
    this.tip = document.createElement("div");
    this.tip.className = "tip";
    figure.append(this.tip);
    this.svg.addEventListener("pointermove", (event) => this.point(event));
    this.svg.addEventListener("pointerdown", (event) => this.point(event));
    this.svg.addEventListener("pointerleave", (event) => {
      if (event.pointerType === "mouse") this.leave(); // a finger that is lifted leaves its values to be read
    });
    this.svg.addEventListener("blur", () => this.leave());
    this.svg.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(this.svg);
    this.draw();
  }

  summary() {
    const last = this.lines(this.data.series).map((s) => {
      const y = s.y.filter(isNumber);
      return y.length ? `${s.name} ends at ${short(y[y.length - 1])}` : s.name;
    });
    return `${this.data.title}: ${last.join(", ")}`;
  }

  // What the chart can be drawn over.
  axes() {
    return [this.data.xLabel, ...new Set(this.data.series.flatMap((s) => Object.keys(s.others)))];
  }

  over(axis) {
    this.axis = this.axes().includes(axis) ? axis : this.data.xLabel;
    this.draw();
  }

  xs(series) {
    return this.axis === this.data.xLabel ? series.x : series.others[this.axis] ?? [];
  }

  makeLegend() {
    const legend = document.createElement("div");
    legend.className = "legend";
    const entries = new Map();
    for (const s of this.data.series) entries.set(s.group, { colour: colourOf(s), kind: s.dots ? "dotted" : s.bars ? "barred" : "" });
    for (const m of [...this.data.limits, ...this.data.limitsX]) entries.set(m.name, { colour: `var(--${kindOf(m)})`, kind: "dashed" });
    for (const [name, { colour, kind }] of entries) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = name;
      button.style.setProperty("--key", colour);
      if (kind) button.classList.add(kind);
      button.setAttribute("aria-pressed", "true");
      button.addEventListener("click", () => {
        const hide = !this.hidden.has(name);
        if (hide) this.hidden.add(name);
        else this.hidden.delete(name);
        button.setAttribute("aria-pressed", String(!hide));
        this.draw();
      });
      legend.append(button);
    }
    this.figure.append(legend);
  }

  // Series with a line; of a chart that has none, all.
  lines(series) {
    const lines = series.filter((s) => !s.dots);
    return lines.length ? lines : series;
  }

  visible() {
    return this.data.series.filter((s) => !this.hidden.has(s.group));
  }

  // The ranges of both axes; limits belong to the data unless they are far away and do not insist.
  measure() {
    const series = this.visible();
    const usable = (v) => isNumber(v) && (!this.data.log || v > 0);
    const xs = series.flatMap((s) => this.xs(s).flatMap((v) => [v - s.bars / 2, v + s.bars / 2])).filter((v) => isNumber(v) && (!this.data.logX || v > 0));
    const main = this.lines(series).filter((s) => !s.aside);
    let ys = (main.length ? main : this.lines(series)).flatMap((s) => s.y).filter(usable);
    const limits = this.data.limits.filter((m) => !this.hidden.has(m.name) && usable(m.value));
    const span = (values) => values.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);
    const [least, most] = span(ys); // a band that goes far beyond the lines is cut off
    const room = this.data.log ? Infinity : BAND_BEYOND * (most - least || Math.abs(most) || 1);
    const within = (v) => Math.min(most + room, Math.max(least - room, v));
    ys = ys.concat(this.lines(series).flatMap((s) => [...s.y, ...(s.low ?? []), ...(s.high ?? [])]).filter(usable).map(within));
    const [bottom, top] = ys.length ? span(ys) : [0, 1];
    const reach = 0.75 * (top - bottom || Math.abs(top) || 1);
    const beside = series.filter((s) => s.dots).flatMap((s) => s.y).filter(usable);
    ys = ys.concat(beside.filter((v) => v >= bottom - 0.5 * reach && v <= top + 0.5 * reach));
    const near = limits.filter((m) => m.always || !ys.length || (m.value >= bottom - reach && m.value <= top + reach));
    ys = ys.concat(near.map((m) => m.value), series.some((s) => s.bars) ? [0] : []);
    let [low, high] = ys.length ? span(ys) : [0, 1];
    if (this.data.log) {
      const room = high / low > 1.001 ? (high / low) ** 0.06 : 1.5;
      [low, high] = [low / room, high * room];
    } else {
      const room = high > low ? 0.06 * (high - low) : Math.abs(high) * 0.1 || 1;
      [low, high] = [low >= 0 && low - room < 0 ? 0 : low - room, high + room];
    }
    let [left, right] = xs.length ? span(xs) : [0, 1];
    const beyond = 0.75 * (right - left);
    const across = this.data.limitsX.filter((m) => !this.hidden.has(m.name)).map((m) => ({ ...m, near: m.always || (m.value >= left - beyond && m.value <= right + beyond) }));
    [left, right] = span([left, right, ...across.filter((m) => m.near).map((m) => m.value)]);
    if (left === right) [left, right] = this.data.logX ? [left / 2, right * 2] : [left - 0.5, right + 0.5];
    return { left, right, low, high, near, far: limits.filter((m) => !near.includes(m)), across };
  }

  draw() {
    const width = this.svg.clientWidth || this.figure.clientWidth - 24;
    if (width <= 0) return;
    const { left, right, low, high, near, far, across } = this.measure();
    const yTicks = this.data.log ? logTicks(low, high) : ticks(low, high, 5);
    const labels = yTicks.map(short);
    const margin = { ...MARGIN, left: 12 + 7 * Math.max(...labels.map((label) => label.length)) };
    const bottom = HEIGHT - margin.bottom;
    const f = this.data.log ? Math.log : (v) => v;
    const g = this.data.logX ? Math.log : (v) => v;
    this.toX = (v) => margin.left + ((g(v) - g(left)) / (g(right) - g(left))) * (width - margin.left - margin.right);
    this.toY = (v) => bottom - ((f(v) - f(low)) / (f(high) - f(low))) * (bottom - margin.top);
    this.svg.replaceChildren();
    this.svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    this.svg.setAttribute("height", HEIGHT);

    yTicks.forEach((v, i) => {
      element(this.svg, "line", { class: "grid", x1: margin.left, x2: width - margin.right, y1: this.toY(v), y2: this.toY(v) });
      element(this.svg, "text", { x: margin.left - 7, y: this.toY(v) + 4, "text-anchor": "end" }, labels[i]);
    });
    for (const v of this.data.logX ? logTicks(left, right) : ticks(left, right, Math.max(2, Math.min(6, width / 90)))) {
      const label = short(v);
      const x = Math.min(this.toX(v), width - 3.6 * label.length - 1); // all of it is seen
      element(this.svg, "text", { x, y: bottom + 16, "text-anchor": "middle" }, label);
    }
    const middle = (margin.left + width - margin.right) / 2;
    element(this.svg, "text", { x: middle, y: HEIGHT - 4, "text-anchor": "middle" }, this.axis);

    for (const s of this.visible().filter((s) => s.bars)) {
      const bars = element(this.svg, "g", { class: "bar", fill: colourOf(s) });
      this.xs(s).forEach((x, i) => {
        const [from, to] = [this.toX(x - s.bars / 2), this.toX(x + s.bars / 2)];
        if (s.y[i] > 0) element(bars, "rect", { x: from.toFixed(1), y: this.toY(s.y[i]).toFixed(1), width: Math.max(1, to - from - 1).toFixed(1), height: (this.toY(low) - this.toY(s.y[i])).toFixed(1) });
      });
    }
    for (const s of this.visible().filter((s) => s.low)) {
      const within = (v) => (isNumber(v) ? Math.min(high, Math.max(low, v)) : v);
      const up = this.xs(s).map((x, i) => [x, within(s.high[i])]);
      const down = this.xs(s).map((x, i) => [x, within(s.low[i])]).reverse();
      element(this.svg, "path", { class: "band", fill: colourOf(s), d: `${this.path([...up, ...down])}Z` });
    }
    if (isNumber(this.data.at)) {
      const x = this.toX(this.data.at);
      element(this.svg, "line", { class: "mark", x1: x, x2: x, y1: margin.top, y2: bottom });
    }
    for (const s of this.visible().filter((s) => s.dots)) {
      const points = element(this.svg, "g", { class: "points", fill: colourOf(s) });
      this.xs(s).forEach((x, i) => {
        if (isNumber(s.y[i]) && s.y[i] >= low && s.y[i] <= high) element(points, "circle", { cx: this.toX(x).toFixed(1), cy: this.toY(s.y[i]).toFixed(1), r: 2.5 });
      });
    }
    for (const s of this.visible().filter((s) => !s.dots && !s.bars).reverse()) { // the first on top
      element(this.svg, "path", { class: "curve", stroke: colourOf(s), d: this.path(this.xs(s).map((x, i) => [x, s.y[i] >= low && s.y[i] <= high ? s.y[i] : null])) });
      const there = (i) => isNumber(s.y[i]) && !(this.data.log && s.y[i] <= 0);
      this.xs(s).forEach((x, i) => { // a value alone makes no line
        if (there(i) && !there(i - 1) && !there(i + 1)) element(this.svg, "circle", { class: "alone", cx: this.toX(x), cy: this.toY(s.y[i]), r: 3.5, fill: colourOf(s) });
      });
    }
    for (const s of this.visible().filter((s) => s.ring !== null && isNumber(s.y[s.ring]))) {
      element(this.svg, "circle", { class: "ring", cx: this.toX(this.xs(s)[s.ring]).toFixed(1), cy: this.toY(s.y[s.ring]).toFixed(1), r: 5 });
    }
    across.forEach((m, line) => { // each name on a line of its own
      const colour = `var(--${kindOf(m)})`;
      const x = m.near ? this.toX(m.value) : m.value > right ? width - margin.right : margin.left;
      if (m.near) element(this.svg, "line", { class: "limit", stroke: colour, x1: x, x2: x, y1: margin.top, y2: bottom });
      const before = x > (margin.left + width - margin.right) / 2;
      const name = m.near ? m.name : before ? `${m.name} →` : `← ${m.name}`;
      element(this.svg, "text", { class: "limit-name", fill: colour, x: before ? x - 5 : x + 5, y: margin.top + 10 + 15 * line, "text-anchor": before ? "end" : "start" }, name);
    });
    for (const m of near) {
      const y = this.toY(m.value);
      element(this.svg, "line", { class: "limit", stroke: `var(--${kindOf(m)})`, x1: margin.left, x2: width - margin.right, y1: y, y2: y });
      const above = y > margin.top + 16;
      element(this.svg, "text", { class: "limit-name", fill: `var(--${kindOf(m)})`, x: width - margin.right - 3, y: above ? y - 5 : y + 14, "text-anchor": "end" }, m.name);
    }
    const pointedAt = { up: 0, down: 0 };
    for (const m of far) {
      const up = m.value > high;
      const line = 14 * (up ? pointedAt.up++ : pointedAt.down++);
      const y = up ? margin.top + 10 + line : bottom - 6 - line;
      element(this.svg, "text", { class: "limit-name", fill: `var(--${kindOf(m)})`, x: width - margin.right - 3, y, "text-anchor": "end" }, `${up ? "↑" : "↓"} ${m.name}`);
    }
    this.cross = element(this.svg, "line", { class: "cross", y1: margin.top, y2: bottom });
    this.dots = element(this.svg, "g");
    this.leave();
  }

  // A line that is broken where a value is missing.
  path(points) {
    let d = "";
    let pen = "M";
    for (const [x, y] of points) {
      if (!isNumber(x) || !isNumber(y) || (this.data.log && y <= 0)) {
        pen = "M";
        continue;
      }
      d += `${pen}${this.toX(x).toFixed(1)} ${this.toY(y).toFixed(1)}`;
      pen = "L";
    }
    return d;
  }

  point(event) {
    const box = this.svg.getBoundingClientRect();
    const x = event.clientX - box.left;
    let best = null;
    for (const s of this.lines(this.visible())) {
      for (const v of this.xs(s)) {
        if (best === null || Math.abs(this.toX(v) - x) < Math.abs(this.toX(best) - x)) best = v;
      }
    }
    if (best !== null) this.show(best);
  }

  key(event) {
    const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!way) return;
    event.preventDefault();
    const xs = [...new Set(this.lines(this.visible()).flatMap((s) => this.xs(s)))].sort((a, b) => a - b);
    if (!xs.length) return;
    const at = xs.indexOf(this.at);
    this.show(at < 0 ? xs[way > 0 ? 0 : xs.length - 1] : xs[Math.min(xs.length - 1, Math.max(0, at + way))]);
  }

  show(x) {
    this.at = x;
    const px = this.toX(x);
    this.cross.setAttribute("x1", px);
    this.cross.setAttribute("x2", px);
    this.cross.style.visibility = "visible";
    this.dots.replaceChildren();
    const wide = this.visible().find((s) => s.bars && this.xs(s).includes(x))?.bars;
    this.tip.replaceChildren(`${this.axis} ${wide ? `${short(x - wide / 2)} to ${short(x + wide / 2)}` : short(x)}`);
    for (const s of this.visible()) {
      const i = this.xs(s).indexOf(x);
      if (i < 0 || !isNumber(s.y[i])) continue;
      const colour = colourOf(s);
      if (!this.data.log || s.y[i] > 0) element(this.dots, "circle", { cx: px, cy: this.toY(s.y[i]), r: 3.5, fill: colour });
      const row = document.createElement("div");
      const dot = document.createElement("i");
      dot.style.background = colour;
      const band = s.low && isNumber(s.low[i]) && isNumber(s.high[i]) ? ` (${short(s.low[i])} to ${short(s.high[i])})` : "";
      row.append(dot, `${s.name}: ${short(s.y[i])}${band}${s.ring === i ? " (returned)" : ""}`);
      this.tip.append(row);
    }
    const svg = this.svg.getBoundingClientRect();
    const figure = this.figure.getBoundingClientRect();
    const atX = svg.left - figure.left + px;
    const beside = atX + 12 + this.tip.offsetWidth > figure.width ? atX - 12 - this.tip.offsetWidth : atX + 12;
    this.tip.style.left = `${Math.max(0, beside)}px`;
    this.tip.style.top = `${svg.top - figure.top + 8}px`;
    this.tip.style.visibility = "visible";
  }

  leave() {
    this.at = null;
    this.cross.style.visibility = "hidden";
    this.dots.replaceChildren();
    this.tip.style.visibility = "hidden";
  }
}

// Buttons above the charts of a section, one for each axis that some of them know.
function makeAxes(section, views) {
  const axes = [...new Set(views.flatMap((view) => view.axes()))];
  if (!views.some((view) => view.axes().length > 1)) return;
  const row = document.createElement("div");
  row.className = "axes";
  row.setAttribute("role", "group");
  row.setAttribute("aria-label", "what the charts are drawn over");
  row.append("over");
  const choose = (axis) => {
    for (const view of views) view.over(axis);
    for (const button of row.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.textContent === axis));
  };
  for (const axis of axes) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = axis;
    button.setAttribute("aria-pressed", String(axis === axes[0]));
    button.addEventListener("click", () => choose(axis));
    row.append(button);
  }
  section.before(row);
}

for (const section of document.querySelectorAll(".charts")) {
  makeAxes(section, [...section.querySelectorAll("figure.chart")].map((figure) => new ChartView(figure)));
}
