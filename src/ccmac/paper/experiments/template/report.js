"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $$ = (id) => document.getElementById(id);
  const svg = $$("chart").querySelector("svg");
  const NS = "http://www.w3.org/2000/svg";
  const AXES = [["gradients", "gradients (or local argmins)"], ["products", "block products"], ["rounds", "neighbor rounds"], ["bytes", "bytes of the busiest agent"], ["seconds", "seconds"]];
  const state = {group: 0, axis: "rounds", log: false, hidden: new Set(), view: null};
  const element = (name, attributes, parent) => {
    const node = document.createElementNS(NS, name);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    if (parent) parent.appendChild(node);
    return node;
  };
  const short = (v) => {
    if (v === null || v === undefined || Number.isNaN(v)) return "–";
    const a = Math.abs(v);
    if (a !== 0 && (a < 0.01 || a >= 1e7)) return v.toExponential(2);
    return v.toLocaleString("en", {maximumFractionDigits: a < 10 ? 3 : a < 1000 ? 1 : 0});
  };
  const runs = data.runs.filter((r) => r.trace && r.trace.error.length);
  const groups = [...new Set(runs.map((r) => r.group))];
  const labels = [...new Set(runs.map((r) => r.series))];
  const colour = (label) => `var(--c${labels.indexOf(label) % 8})`;

  // -- the chart ----------------------------------------------------------------------------------
  const margin = {left: 58, right: 14, top: 10, bottom: 40};
  let frame = {};
  const visible = () => runs.filter((r) => r.group === groups[state.group] && !state.hidden.has(r.series));
  const points = (r) => {
    const x = r.trace[state.axis], y = r.trace.error, out = [];
    for (let k = 0; k < y.length; k++) if (y[k] > 0 && x[k] !== null && (!state.log || x[k] > 0)) out.push([x[k], Math.log10(y[k]), k]);
    return out;
  };
  const fx = (v) => (state.log ? Math.log10(v) : v);
  const extent = () => {
    let x0 = Infinity, x1 = -Infinity, y0 = Infinity, y1 = -Infinity;
    for (const r of visible()) for (const [x, y] of points(r)) {
      x0 = Math.min(x0, fx(x)); x1 = Math.max(x1, fx(x)); y0 = Math.min(y0, y); y1 = Math.max(y1, y);
    }
    if (!(x1 >= x0)) return {x0: 0, x1: 1, y0: -6, y1: 0};
    if (!state.log) x0 = Math.min(0, x0);
    if (x1 === x0) x1 = x0 + 1;
    return {x0, x1, y0: Math.floor(y0 - 0.05), y1: Math.max(Math.ceil(y1), Math.floor(y0) + 1)};
  };
  const ticks = (low, high, count) => {
    const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw), out = [];
    for (let v = Math.ceil(low / step) * step; v <= high + 1e-9 * step; v += step) out.push(Math.abs(v) < 1e-9 * step ? 0 : v);
    return out;
  };
  const draw = () => {
    svg.replaceChildren();
    const width = svg.clientWidth || 600, height = svg.clientHeight || 400;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const v = state.view || extent();
    const w = width - margin.left - margin.right, h = height - margin.top - margin.bottom;
    const X = (x) => margin.left + (fx(x) - v.x0) / (v.x1 - v.x0) * w;
    const Y = (y) => margin.top + (v.y1 - y) / (v.y1 - v.y0) * h;
    frame = {v, w, h, X, Y, width, height};
    const clip = element("clipPath", {id: "clip"}, svg);
    element("rect", {x: margin.left, y: margin.top, width: w, height: h}, clip);
    let ys = [...new Set(ticks(v.y0, v.y1, 7).map(Math.round))].filter((t) => t >= v.y0 && t <= v.y1);
    if (ys.length < 2) ys = ticks(v.y0, v.y1, 5);
    for (const t of ys) {
      element("line", {class: "grid", x1: margin.left, x2: margin.left + w, y1: Y(t), y2: Y(t)}, svg);
      element("text", {x: margin.left - 8, y: Y(t) + 4, "text-anchor": "end"}, svg).textContent = Number.isInteger(t) ? `1e${t}` : (10 ** t).toExponential(1);
    }
    let xs = ticks(v.x0, v.x1, Math.max(3, Math.floor(w / 90)));
    if (state.log && xs.filter(Number.isInteger).length > 1) xs = xs.filter(Number.isInteger);
    for (const t of xs) {
      const at = margin.left + (t - v.x0) / (v.x1 - v.x0) * w;
      element("line", {class: "grid", x1: at, x2: at, y1: margin.top, y2: margin.top + h}, svg);
      element("text", {x: at, y: height - margin.bottom + 16, "text-anchor": "middle"}, svg).textContent = short(state.log ? 10 ** t : t);
    }
    element("text", {x: margin.left + w / 2, y: height - 4, "text-anchor": "middle"}, svg).textContent = AXES.find((a) => a[0] === state.axis)[1];
    element("text", {x: 12, y: margin.top + h / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${margin.top + h / 2})`}, svg).textContent = visible().some((r) => r.certified) ? "certified bound" : "relative squared error";
    const body = element("g", {"clip-path": "url(#clip)"}, svg);
    for (const tol of new Set(visible().map((r) => r.tol))) element("line", {class: "target", x1: margin.left, x2: margin.left + w, y1: Y(Math.log10(tol)), y2: Y(Math.log10(tol))}, body);
    for (const r of visible()) {
      const path = points(r).map(([x, y]) => `${X(x).toFixed(1)},${Y(y).toFixed(1)}`).join(" ");
      const line = element("polyline", {class: "curve" + (r.modelled && state.axis === "rounds" ? " modelled" : ""), points: path, "data-run": r.id}, body);
      line.style.stroke = colour(r.series);
    }
  };
  const local = (event) => {
    const box = svg.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const hover = (px, py) => {
    let best = null, least = 60 * 60;
    for (const r of visible()) for (const [x, y, k] of points(r)) {
      const d = (frame.X(x) - px) ** 2 + (frame.Y(y) - py) ** 2;
      if (d < least) { least = d; best = [r, k, frame.X(x), frame.Y(y)]; }
    }
    svg.querySelectorAll(".hot").forEach((n) => n.classList.remove("hot"));
    svg.querySelectorAll(".mark").forEach((n) => n.remove());
    const tip = $$("tip");
    tip.hidden = best === null;
    if (!best) return;
    const [r, k, x, y] = best;
    svg.querySelector(`[data-run="${CSS.escape(r.id)}"]`).classList.add("hot");
    element("circle", {class: "mark", cx: x, cy: y, r: 4, fill: colour(r.series)}, svg).style.fill = colour(r.series);
    tip.replaceChildren();
    const head = document.createElement("b");
    head.textContent = r.label;
    tip.append(head, document.createElement("br"), `${r.network}, seed ${r.seed}${r.alpha ? ", " + r.alpha : ""}`);
    for (const [text, value] of [["error", r.trace.error[k]], ...AXES.map(([a]) => [a === "rounds" && r.modelled ? "rounds (modelled)" : a, r.trace[a][k]])]) tip.append(document.createElement("br"), `${text} ${short(value)}`);
    tip.style.left = Math.max(0, Math.min(x + 14, frame.width - tip.offsetWidth - 4)) + "px";
    tip.style.top = Math.max(0, Math.min(y + 14, frame.height - tip.offsetHeight - 4)) + "px";
  };
  let drag = null;
  svg.addEventListener("pointerdown", (e) => { drag = {from: local(e), box: element("rect", {class: "zoom"}, svg)}; });
  svg.addEventListener("pointermove", (e) => {
    const at = local(e);
    if (!drag) return hover(...at);
    const [x0, y0] = drag.from;
    for (const [key, value] of [["x", Math.min(x0, at[0])], ["y", Math.min(y0, at[1])], ["width", Math.abs(at[0] - x0)], ["height", Math.abs(at[1] - y0)]]) drag.box.setAttribute(key, value);
  });
  svg.addEventListener("pointerup", (e) => {
    if (!drag) return;
    const [x0, y0] = drag.from, [x1, y1] = local(e), {v, w, h} = frame;
    drag.box.remove();
    drag = null;
    if (Math.abs(x1 - x0) < 8 || Math.abs(y1 - y0) < 8) return hover(x1, y1);
    const ux = (p) => v.x0 + (p - margin.left) / w * (v.x1 - v.x0), uy = (p) => v.y1 - (p - margin.top) / h * (v.y1 - v.y0);
    state.view = {x0: ux(Math.min(x0, x1)), x1: ux(Math.max(x0, x1)), y0: uy(Math.max(y0, y1)), y1: uy(Math.min(y0, y1))};
    draw();
  });
  svg.addEventListener("pointerleave", () => { $$("tip").hidden = true; if (drag) { drag.box.remove(); drag = null; } });
  const reset = () => { state.view = null; $$("tip").hidden = true; draw(); };
  svg.addEventListener("dblclick", reset);
  $$("reset").addEventListener("click", reset);
  groups.forEach((g, k) => $$("group").add(new Option(g, k)));
  AXES.forEach(([a, text]) => $$("axis").add(new Option(text, a, a === state.axis, a === state.axis)));
  $$("group").addEventListener("change", (e) => { state.group = Number(e.target.value); reset(); });
  $$("axis").addEventListener("change", (e) => { state.axis = e.target.value; reset(); });
  // Methods whose runs differ by decades are seen together on a logarithmic axis only.
  const lengths = runs.map((r) => r.trace[state.axis].at(-1)).filter((v) => v > 0);
  state.log = $$("logx").checked = Math.max(...lengths) > 20 * Math.min(...lengths);
  $$("logx").addEventListener("change", (e) => { state.log = e.target.checked; reset(); });
  for (const label of labels) {
    const button = document.createElement("button"), swatch = document.createElement("i");
    swatch.style.background = colour(label);
    button.type = "button";
    button.setAttribute("aria-pressed", "true");
    button.append(swatch, label);
    button.addEventListener("click", () => {
      const shown = state.hidden.delete(label) || (state.hidden.add(label), false);
      button.setAttribute("aria-pressed", String(shown));
      reset();
    });
    $$("legend").append(button);
  }
  if (!runs.length) $$("curves").hidden = true;
  else { draw(); new ResizeObserver(draw).observe($$("chart")); }

  // -- the table of runs --------------------------------------------------------------------------
  const COLUMNS = [["data", "data", 1], ["agents", "agents", 0], ["network", "network", 1], ["alpha", "alpha", 1], ["seed", "seed", 0], ["label", "method", 1], ["status", "status", 1], ["chi", "χ", 0], ["work", "gradients", 0], ["affine", "affine", 0], ["products", "products", 0], ["rounds", "rounds", 0], ["error", "error", 0], ["seconds", "seconds", 0]];
  let order = [null, 1];
  const head = document.createElement("tr");
  for (const [key, text, isText] of COLUMNS) {
    const cell = document.createElement("th");
    cell.textContent = text;
    cell.tabIndex = 0;
    if (isText) cell.className = "t";
    const sort = () => {
      order = [key, order[0] === key ? -order[1] : 1];
      head.querySelectorAll("th").forEach((n) => n.removeAttribute("aria-sort"));
      cell.setAttribute("aria-sort", order[1] > 0 ? "ascending" : "descending");
      fill();
    };
    cell.addEventListener("click", sort);
    cell.addEventListener("keydown", (e) => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); sort(); } });
    head.append(cell);
  }
  const last = document.createElement("th");
  last.textContent = "records";
  last.className = "t";
  head.append(last);
  $$("table").tHead.append(head);
  const fill = () => {
    const words = $$("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = data.runs.filter((r) => { const text = [r.data, `n${r.agents}`, r.network, r.alpha, r.label, r.status, r.id].join(" ").toLowerCase(); return words.every((w) => text.includes(w)); });
    const [key, sign] = order;
    if (key) rows.sort((a, b) => {
      const p = a[key], q = b[key];
      if (p === null || q === null) return (p === null) - (q === null);
      return sign * (typeof p === "number" ? p - q : String(p).localeCompare(String(q)));
    });
    const body = $$("table").tBodies[0];
    body.replaceChildren(...rows.map((r) => {
      const row = document.createElement("tr");
      if (r.status !== "optimal") row.className = "bad";
      for (const [name, , isText] of COLUMNS) {
        const cell = row.insertCell();
        if (isText) cell.className = "t";
        cell.textContent = isText || name === "agents" || name === "seed" ? r[name] ?? "" : short(r[name]);
        if (name === "rounds" && r.modelled) cell.textContent += " mod.";
        if (name === "work" && r.argmins) cell.textContent += " argmins";
        if (name === "status" && r.message) cell.title = r.message;
      }
      const links = row.insertCell();
      links.className = "t";
      for (const file of ["summary.json", "trace.csv"]) {
        const link = document.createElement("a");
        link.href = `${data.records}/${encodeURIComponent(r.id)}/${file}`;
        link.textContent = file.split(".")[0];
        links.append(link, " ");
      }
      return row;
    }));
    $$("shown").textContent = `${rows.length} of ${data.runs.length} runs`;
  };
  $$("filter").addEventListener("input", fill);
  fill();

  $$("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
})();
