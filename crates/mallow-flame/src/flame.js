// Zooms, searches and turns around the picture that it stands in. The picture is complete without it.
//
// The boxes that it draws come from the data in the picture, which has those too that are too narrow to be seen at first.
// Of a view only what is at least half a pixel wide is drawn, so the number of boxes does not matter.
(() => {
"use strict";
const SVG = "http://www.w3.org/2000/svg", HTML = "http://www.w3.org/1999/xhtml";
const ROW = 18, MARGIN = 10, SEEN = 0.5, TEXT_WIDTH = 18, TOOLS = 34, DETAILS = 20;
// Rows above the box that is zoomed to, and callers below it that are named.
const ROWS_MAX = 400, CALLERS_MAX = 6;

const script = document.currentScript;
const root = (script && script.ownerSVGElement) || document.documentElement;
const data = JSON.parse(root.querySelector(".data").textContent);
const count = data.depth.length;
const width = data.width || data.after;

// ---- The tree: boxes stand before those that they call.
const parent = new Int32Array(count).fill(-1), end = new Int32Array(count).fill(count);
const left = new Float64Array(count), filled = new Float64Array(count);
for (let at = 0, open = []; at < count; at++) {
  while (open.length > data.depth[at]) end[open.pop()] = at;
  if (open.length) {
    const caller = parent[at] = open[open.length - 1];
    left[at] = filled[caller];
    filled[caller] += width[at];
  }
  filled[at] = left[at];
  open.push(at);
}

// ---- What is written.
const grouped = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");
const digits = (v) => v < 9.995 ? v.toFixed(2) : v < 99.95 ? v.toFixed(1) : v.toFixed(0);
const scaled = (v, base, units) => {
  let unit = 0;
  for (; unit < units.length - 1 && v >= base - 0.5; unit++) v /= base;
  return digits(v) + " " + units[unit];
};
const written = (v) => {
  if (data.unit === "bytes") return v < 1024 ? v + " B" : scaled(v, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]);
  if (data.unit === "count") return v < 1e8 ? grouped(v) : scaled(v, 1000, ["", "k", "M", "G", "T", "P", "E"]);
  const us = Math.floor(v / 1000);
  if (us < 1e3) return us + " µs";
  if (us < 1e6) return digits(us / 1e3) + " ms";
  if (us < 6e7) return digits(us / 1e6) + " s";
  const s = Math.floor(us / 1e6);
  return s < 3600 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${Math.floor(s / 3600)} h ${Math.floor(s % 3600 / 60)} min`;
};
const counted = (v) => written(v) + (data.counted && " " + data.counted);
const share = (part, whole) => {
  const text = whole ? (part * 100 / whole).toFixed(1) + "%" : "-";
  return text === "0.0%" && part > 0 ? "<0.1%" : text;
};
const sign = (before, after) => after < before ? "−" : after > before ? "+" : "±";
const difference = (before, after) => sign(before, after) + written(Math.abs(after - before));
const judged = (before, after) => {
  if (before === after) return "no difference";
  if (!before || !after) return difference(before, after) + (before ? ", gone" : ", new");
  return `${difference(before, after)}, ${sign(before, after)}${(Math.abs(after - before) * 100 / before).toFixed(1)}%`;
};
const both = (before, after) => `${counted(before)} before, ${written(after)} after`;
const nameOf = (at) => data.function[at] < 0 ? "all" : data.names[data.function[at]];
const languageOf = (at) => data.function[at] < 0 ? null : data.languages[data.language[data.function[at]]];
const tagOf = (at) => { const language = languageOf(at); return language ? " · " + language : ""; };
const labelOf = (at) => nameOf(at) + (data.times[at] ? " × " + grouped(data.times[at]) : "");
const figuresOf = (at) => {
  const after = data.after[at];
  if (!data.compared) return `${written(after)}, ${share(after, data.after[0])}${tagOf(at)}`;
  const before = data.before[at], text = before === after ? "as before" : difference(before, after);
  return !before ? text + ", new" : !after ? text + ", gone" : text;
};
const linesOf = (at) => {
  const after = data.after[at], own = data.own_after[at], lines = [labelOf(at) + tagOf(at)];
  if (data.compared) {
    const before = data.before[at], ownBefore = data.own_before[at];
    lines.push(`${both(before, after)}: ${judged(before, after)}`);
    if ((own || ownBefore) && (own !== after || ownBefore !== before)) {
      lines.push(`itself ${both(ownBefore, own)}: ${judged(ownBefore, own)}`);
    }
  } else {
    const ofWhole = (v) => `${counted(v)}, ${share(v, data.after[0])}`;
    lines.push(ofWhole(after) + (!own ? "" : own === after ? ", all of it its own" : "; itself " + ofWhole(own)));
  }
  if (data.times[at]) lines.push(`stands up to ${grouped(data.times[at])} times on a stack`);
  for (const place of [data.at[at]].flat()) {
    const text = place >= 0 ? data.places[place] : "";
    if (text) lines.push(text);
  }
  const last = Array.isArray(data.at[at]) ? data.at[at][data.at[at].length - 1] : 0;
  if (last < 0) lines.push(`and ${-last} more places`);
  return lines;
};
const toneOf = (at) => {
  if (data.function[at] < 0) return "root";
  if (!data.compared) return data.tones[data.function[at]];
  const before = data.before[at], after = data.after[at];
  if (before === after) return "same";
  if (!before || !after) return before ? "gone" : "new";
  const part = Math.floor(Math.abs(after - before) * 100 / Math.max(before, after));
  return (after > before ? "m" : "l") + (part < 5 ? 1 : part < 20 ? 2 : part < 50 ? 3 : 4);
};

// ---- The parts of the page.
const make = (name, attributes = {}, text) => {
  const element = document.createElementNS(SVG, name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  if (text !== undefined) element.textContent = text;
  return element;
};
const boxes = root.querySelector(".boxes"), head = root.querySelector(".head");
const headHeight = Number(head.dataset.height), top = headHeight + TOOLS + DETAILS;
const details = make("text", { class: "quiet details", x: MARGIN, y: headHeight + TOOLS + 13 });
const tools = make("foreignObject", { x: MARGIN, y: headHeight, height: TOOLS });
const bar = document.createElementNS(HTML, "div");
const part = (name, attributes, text = "") => {
  const element = document.createElementNS(HTML, name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  element.textContent = text;
  bar.append(element);
  return element;
};
bar.className = "tools";
const search = part("input", { type: "search", placeholder: "Search functions (/)", "aria-label": "Search functions; regular expressions work" });
const back = part("button", { type: "button", title: "Esc" }, "Reset zoom");
const turn = part("button", { type: "button", title: "i" }, "Turn around");
const result = part("output", {});
const said = part("div", { class: "unseen", "aria-live": "polite" });
tools.append(bar);
head.append(tools, details);
const paper = head.querySelector(".paper");
paper.setAttribute("height", top);
root.removeAttribute("viewBox");
root.setAttribute("width", "100%");
boxes.setAttribute("role", "tree");
boxes.setAttribute("aria-label", "Boxes: arrow keys move, Enter zooms");
// What is wide covers what is scrolled below it.
root.append(head);

// ---- The view.
let zoom = 0, focus = 0, icicle = data.icicle, hits = null, hitsBefore = null, drawn = new Map();
const hint = "Point at a box, or move with the arrow keys. Click or Enter zooms, / searches, Esc goes back.";

// How wide letters are, each measured once.
const pen = document.createElementNS(HTML, "canvas").getContext("2d"), letters = new Map();
pen.font = getComputedStyle(root).font;
const wideOf = (letter) => {
  let wide = letters.get(letter);
  if (wide === undefined) letters.set(letter, wide = pen.measureText(letter).width);
  return wide;
};
const lengthOf = (text) => { let sum = 0; for (const letter of text) sum += wideOf(letter); return sum; };
// The end of a name tells more than its beginning.
const fitted = (text, room) => {
  if (lengthOf(text) <= room) return text;
  const all = [...text];
  let left = room - wideOf("…"), from = all.length;
  while (from > 0 && (left -= wideOf(all[from - 1])) >= 0) from--;
  return from < all.length ? (all[from] === "…" ? "" : "…") + all.slice(from).join("") : "";
};

const draw = (at, x, y, wide, kind) => {
  const box = make("g", { class: "box" + (kind ? " " + kind : ""), tabindex: -1, role: "treeitem", "aria-level": data.depth[at] + 1 });
  if (hits && hits[at]) box.classList.add("hit");
  else if (hits && kind !== "hit") box.classList.add("dim");
  const shown = Math.max(wide - 0.5, 0.3);
  if (wide < TEXT_WIDTH) {
    box.append(make("rect", { class: toneOf(at), x, y, width: shown, height: ROW - 1 }));
  } else {
    const within = make("svg", { class: "wide", x, y, width: shown, height: ROW - 1 });
    const room = wide - 7, label = (kind === "deep" ? "⋯ " : "") + labelOf(at), figures = figuresOf(at);
    const text = make("text", { x: 4, y: 12.5 }, fitted(label, room));
    if (lengthOf(label) + lengthOf(figures) + 8 <= room) text.append(make("tspan", { class: "quiet", dx: 8 }, figures));
    within.append(make("rect", { class: toneOf(at), width: "100%", height: "100%" }), text);
    box.append(within);
  }
  box.dataset.at = at;
  drawn.set(at, box);
  return box;
};

// Stands for callers that are not shown; leads to the innermost of them.
const between = (at, callers, y, wide) => {
  const box = make("g", { class: "box caller", "aria-label": `${grouped(callers)} callers between` });
  box.append(make("rect", { class: "root", x: MARGIN, y, width: wide, height: ROW - 1 }));
  box.append(make("text", { x: MARGIN + 4, y: y + 12.5 }, `⋯ ${grouped(callers)} callers between`));
  box.dataset.at = at;
  return box;
};

// The callers of the zoomed box, outermost first, the middle ones left out where there are many.
const callersOf = (at) => {
  const callers = [];
  for (let next = parent[at]; next >= 0; next = parent[next]) callers.unshift(next);
  if (callers.length <= CALLERS_MAX) return callers;
  return [callers[0], -(callers.length - CALLERS_MAX + 1), ...callers.slice(2 - CALLERS_MAX)];
};

const render = () => {
  const total = root.getBoundingClientRect().width || 1200, inner = Math.max(total - 2 * MARGIN, 50);
  const scale = inner / width[zoom], callers = callersOf(zoom), base = callers.length, rows = [];
  let deepest = 0, narrow = 0, deep = 0, marked = new Set();
  for (let at = zoom; at < end[zoom];) {
    const depth = data.depth[at] - data.depth[zoom], wide = width[at] * scale;
    const x = MARGIN + (left[at] - left[zoom]) * scale;
    if (wide < SEEN || depth >= ROWS_MAX) {
      // What is searched for leaves a mark, however narrow it is.
      const column = depth * 10000 + Math.floor(x);
      if (hitsBefore && hitsBefore[end[at]] > hitsBefore[at] && depth < ROWS_MAX && !marked.has(column)) {
        marked.add(column);
        rows.push([at, x, depth, 1.5, "hit"]);
        deepest = Math.max(deepest, depth);
      }
      depth >= ROWS_MAX ? deep += end[at] - at : narrow += end[at] - at;
      at = end[at];
      continue;
    }
    rows.push([at, x, depth, wide, depth === ROWS_MAX - 1 && end[at] > at + 1 ? "deep" : ""]);
    deepest = Math.max(deepest, depth);
    at++;
  }
  const height = top + (base + deepest + 1) * ROW + MARGIN;
  const yOf = (row) => icicle ? top + row * ROW : height - MARGIN - (row + 1) * ROW;
  const page = document.createDocumentFragment();
  drawn = new Map();
  callers.forEach((at, row) => {
    if (at >= 0) page.append(draw(at, MARGIN, yOf(row), inner, "caller"));
    else page.append(between(parent[callers[row + 1]], -at, yOf(row), inner));
  });
  for (const [at, x, depth, wide, kind] of rows) page.append(draw(at, x, yOf(base + depth), wide, kind));
  boxes.replaceChildren(page);
  root.setAttribute("height", height);
  root.style.height = `max(${height}px, 100vh)`;
  tools.setAttribute("width", inner);
  note(narrow, deep);
  if (!drawn.has(focus)) focus = zoom;
  aim(focus, false);
  back.disabled = zoom === 0;
  stick();
};

const note = (narrow, deep) => {
  const parts = [];
  const of = (n) => n === 1 ? "1 box" : grouped(n) + " boxes";
  if (narrow) parts.push(`${of(narrow)} too narrow to be drawn: zoom in`);
  if (deep) parts.push(`${of(deep)} deeper than ${ROWS_MAX} calls: zoom to a box marked ⋯`);
  let element = head.querySelector(".hidden");
  if (!element && parts.length) {
    element = make("text", { class: "quiet hidden", y: headHeight - 10, "text-anchor": "end" });
    head.append(element);
  }
  if (!element) return;
  const before = [...head.querySelectorAll("text.quiet:not(.hidden):not(.details)")].filter((text) => text.getAttribute("y") === "62");
  const last = Math.max(MARGIN, ...before.map((text) => text.getBBox().x + text.getBBox().width + 18));
  element.setAttribute("text-anchor", "start");
  element.setAttribute("x", last);
  element.textContent = parts.join("; ");
};

// The head stays in sight when the page is scrolled.
const stick = () => {
  const up = document.documentElement === root ? window.scrollY : 0;
  head.setAttribute("transform", `translate(0,${up})`);
};
const tell = (at) => {
  const text = at === null ? hint : linesOf(at).join(" | "), room = root.getBoundingClientRect().width - 2 * MARGIN;
  let left = room - wideOf("…"), to = 0;
  const all = [...text];
  while (to < all.length && (left -= wideOf(all[to])) >= 0) to++;
  details.textContent = lengthOf(text) <= room ? text : all.slice(0, to).join("") + "…";
};
const name = (at) => {
  const box = drawn.get(at);
  if (!box || box.dataset.named) return;
  box.dataset.named = "yes";
  box.prepend(make("title", {}, linesOf(at).join("\n")));
  box.setAttribute("aria-label", linesOf(at).join(", "));
};

// Moves the keyboard's place.
const aim = (at, isMoved) => {
  const before = drawn.get(focus), box = drawn.get(at);
  if (!box) return;
  if (before) { before.setAttribute("tabindex", -1); before.classList.remove("focus"); }
  focus = at;
  box.setAttribute("tabindex", 0);
  name(at);
  if (!isMoved) return;
  box.classList.add("focus");
  box.focus({ preventScroll: true });
  const place = box.getBoundingClientRect(), hidden = top - place.top;
  if (hidden > 0) window.scrollBy(0, -hidden);
  else if (place.bottom > window.innerHeight) window.scrollBy(0, place.bottom - window.innerHeight + MARGIN);
  tell(at);
};
const zoomTo = (at, isByKey) => {
  zoom = Math.max(at, 0);
  focus = zoom;
  render();
  if (!icicle) window.scrollTo(0, document.documentElement.scrollHeight);
  else window.scrollTo(0, 0);
  aim(zoom, isByKey);
  tell(zoom);
  said.textContent = `Zoomed to ${labelOf(zoom)}`;
};
const beside = (at, step) => {
  const here = drawn.get(at).getBoundingClientRect();
  const row = [...drawn.entries()].filter(([other]) => data.depth[other] === data.depth[at]).map(([other]) => other);
  return here && row[row.indexOf(at) + step];
};
const inward = (at) => {
  let widest;
  for (let next = at + 1; next < end[at]; next = end[next]) {
    if (drawn.has(next) && (widest === undefined || width[next] > width[widest])) widest = next;
  }
  return widest;
};
const outward = (at) => {
  let next = parent[at];
  while (next >= 0 && !drawn.has(next)) next = parent[next];
  return next >= 0 ? next : undefined;
};

// ---- The search.
const find = () => {
  const text = search.value.trim();
  let matches = null;
  if (text) {
    try { const pattern = new RegExp(text, "i"); matches = (it) => pattern.test(it); }
    catch { const plain = text.toLowerCase(); matches = (it) => it.toLowerCase().includes(plain); }
  }
  hits = hitsBefore = null;
  result.textContent = "";
  if (matches) {
    const isHit = data.names.map(matches);
    hits = new Uint8Array(count);
    hitsBefore = new Int32Array(count + 1);
    let found = 0, before = 0, after = 0, outside = 0;
    for (let at = 0; at < count; at++) {
      hits[at] = data.function[at] >= 0 && isHit[data.function[at]] ? 1 : 0;
      hitsBefore[at + 1] = hitsBefore[at] + hits[at];
      if (!hits[at]) continue;
      found++;
      if (at < outside) continue;
      outside = end[at];
      after += data.after[at];
      if (data.compared) before += data.before[at];
    }
    const sum = data.compared ? `${both(before, after)}: ${judged(before, after)}` : `${counted(after)}, ${share(after, data.after[0])}`;
    result.textContent = found ? `${grouped(found)} ${found === 1 ? "box" : "boxes"}, ${sum}` : "no box has such a name";
    said.textContent = result.textContent;
  }
  render();
};
// The next hit after the keyboard's place; what is too narrow to be seen is zoomed to.
const next = () => {
  if (!hits) return;
  for (let step = 1; step <= count; step++) {
    const at = (focus + step) % count;
    if (!hits[at]) continue;
    if (at < zoom || at >= end[zoom]) { zoom = 0; render(); }
    const box = drawn.get(at);
    if (!box || box.getBoundingClientRect().width < 4) zoomTo(at, false);
    focus = at;
    const found = drawn.get(at);
    if (found) { for (const old of boxes.querySelectorAll(".focus")) old.classList.remove("focus"); found.classList.add("focus"); }
    tell(at);
    return;
  }
};

// ---- What people do.
const boxOf = (event) => {
  const box = event.target instanceof Element && event.target.closest(".box");
  return box && boxes.contains(box) ? Number(box.dataset.at) : null;
};
boxes.addEventListener("click", (event) => { const at = boxOf(event); if (at !== null) zoomTo(at, true); });
boxes.addEventListener("mouseover", (event) => { const at = boxOf(event); if (drawn.has(at)) { name(at); tell(at); } });
boxes.addEventListener("mouseout", () => tell(null));
boxes.addEventListener("focusin", (event) => {
  const at = boxOf(event);
  if (!drawn.has(at)) return;
  if (at !== focus) aim(at, false);
  if (event.target.matches(":focus-visible")) { drawn.get(at).classList.add("focus"); tell(at); }
});
boxes.addEventListener("focusout", (event) => { if (event.target.classList) event.target.classList.remove("focus"); });
back.addEventListener("click", () => zoomTo(0, false));
turn.addEventListener("click", () => { icicle = !icicle; render(); });
let waiting = 0;
search.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(find, 120); });
search.addEventListener("keydown", (event) => {
  if (event.key === "Enter") { clearTimeout(waiting); if (!hits) find(); next(); }
  else if (event.key === "Escape") { search.value = ""; clearTimeout(waiting); find(); drawn.get(focus)?.focus({ preventScroll: true }); }
  else return;
  event.preventDefault();
  event.stopPropagation();
});
const keys = {
  ArrowUp: () => icicle ? outward(focus) : inward(focus),
  ArrowDown: () => icicle ? inward(focus) : outward(focus),
  ArrowLeft: () => beside(focus, -1),
  ArrowRight: () => beside(focus, 1),
  Home: () => zoom,
};
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target === search) return;
  const isButton = event.target.localName === "button";
  if (keys[event.key]) { const at = keys[event.key](); if (at !== undefined) aim(at, true); }
  else if ((event.key === "Enter" || event.key === " ") && !isButton) zoomTo(focus, true);
  else if (event.key === "Escape" || event.key === "Backspace") zoomTo(event.key === "Escape" ? 0 : parent[zoom], true);
  else if (event.key === "/") search.focus();
  else if (event.key === "i") { icicle = !icicle; render(); aim(focus, true); }
  else return;
  event.preventDefault();
});
window.addEventListener("resize", render);
window.addEventListener("scroll", stick, { passive: true });
render();
tell(null);
if (!icicle && document.documentElement === root) window.scrollTo(0, document.documentElement.scrollHeight);
root.dataset.ready = "yes";
})();
