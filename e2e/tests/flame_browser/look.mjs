// Looks at flame graphs as people do: opens, points, clicks, types, and holds what is seen against what the file says.
// Usage: node look.mjs chromium|firefox FOLDER
// The folder has one.svg, compared.svg, deep.svg (16,000 calls above one another) and many.svg (100,000 boxes).
import assert from "node:assert";
import fs from "node:fs";
import path from "node:path";
import { chromium } from "./chromium.mjs";
import { firefox } from "./firefox.mjs";

const [which, folder] = process.argv.slice(2), file = (name) => path.join(folder, name);
const browser = await (which === "firefox" ? firefox : chromium)();
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const SIZES = [[1200, 800], [600, 600], [1920, 1080]];

// Every box that is drawn: what it says when it is pointed at, and where it lies.
const seen = () => browser.ask(`(() => [...document.querySelectorAll(".boxes .box")].map((box) => {
  box.dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
  const { left, right, top, bottom } = box.querySelector("rect").getBoundingClientRect();
  return { lines: box.querySelector("title")?.textContent, at: Number(box.dataset.at), left, right, top, bottom, tone: box.querySelector("rect").className.baseVal };
}))()`);
const place = async (start) => {
  const found = (await seen()).find((box) => box.lines?.startsWith(start));
  assert(found, `no box that begins with ${start}`);
  await browser.ask(`(window.scrollTo(0, ${found.top} + window.scrollY - 400), 0)`);
  const again = (await seen()).find((box) => box.at === found.at);
  return [(again.left + again.right) / 2, (again.top + again.bottom) / 2];
};
const text = (selector) => browser.ask(`document.querySelector("${selector}")?.textContent ?? ""`);
const focused = () => browser.ask(`document.activeElement.getAttribute("aria-label") ?? document.activeElement.localName`);
const open = async (name) => {
  const start = Date.now();
  await browser.open(file(name));
  assert.equal(await browser.ask(`document.documentElement.dataset.ready`), "yes", `the script of ${name} did not come to its end`);
  return Date.now() - start;
};

// What the file says without a script.
const still = (name) => {
  const svg = fs.readFileSync(file(name), "utf8").split('<g class="boxes">')[1].split("</g>\n<metadata")[0];
  const plain = (escaped) => escaped.replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&quot;/g, '"').replace(/&amp;/g, "&");
  return [...svg.matchAll(/<title>([^]*?)<\/title>/g)].map((match) => plain(match[1]));
};

// The script draws what the file has, and boxes lie within their callers.
const holds = async (name) => {
  for (const [width, height] of SIZES) {
    await browser.size(width, height);
    await open(name);
    const boxes = await seen(), inner = await browser.ask("document.documentElement.clientWidth");
    await browser.picture(file(`${which}-${name}-${width}.png`));
    assert(boxes.every((box) => box.left >= 9 && box.right <= inner - 9 + 2), `${name} at ${width}: a box sticks out`);
    const rows = new Map();
    for (const box of boxes) rows.set(box.top, [...rows.get(box.top) ?? [], box]);
    for (const row of rows.values()) {
      row.sort((one, other) => one.left - other.left);
      row.forEach((box, at) => assert(at === 0 || box.left >= row[at - 1].right - 1.6, `${name}: boxes overlap: ${box.lines}`));
    }
    if (width === 1200) {
      const lines = new Set(boxes.map((box) => box.lines));
      const missing = still(name).filter((title) => !lines.has(title));
      // Half a pixel more or less at the least width.
      assert(missing.length <= still(name).length / 20, `${name}: the script says otherwise: ${missing[0]}`);
    }
  }
  await browser.size(1200, 800);
};

for (const name of ["one.svg", "compared.svg"]) await holds(name);

// Zoom, and back.
await open("one.svg");
const whole = (await seen()).length;
await browser.click(...await place("load_table"));
assert.match(await text(".details"), /^load_table/);
let boxes = await seen();
const zoomed = boxes.find((box) => box.lines.startsWith("load_table"));
assert(zoomed.right - zoomed.left > 1100, "a zoomed box is as wide as the window");
assert(boxes.length < whole && boxes.some((box) => box.lines.startsWith("main")), "its callers stay");
await browser.press("Escape");
assert.equal((await seen()).length, whole);
assert.match(await focused(), /^all, /);

// The search: each figure once, whatever of it lies above another; a regular expression; what nobody is called.
const search = async (words) => {
  await browser.press("/");
  for (const letter of words) await browser.press(letter);
  await pause(300);
  const found = await text("output");
  const hits = await browser.ask(`document.querySelectorAll(".hit").length`);
  return [found, hits];
};
assert.deepEqual(await search("^load_"), ["3 boxes, 900 B, 90.0%", 3]);
await browser.press("Enter");
assert.match(await text(".details"), /^load_table/);
await browser.press("Enter");
assert.match(await text(".details"), /^load_(row|cell)/);
await browser.press("Escape");
await pause(300);
assert.deepEqual([await text("output"), await browser.ask(`document.querySelectorAll(".hit, .dim").length`)], ["", 0]);
assert.deepEqual(await search("nobody"), ["no box has such a name", 0]);
await browser.press("Escape");
await pause(300);

// By keys alone: to the widest call, beside it, back, and a zoom.
await browser.press("Escape");
for (const [key, start] of [
  ["ArrowUp", "app"], ["ArrowUp", "main"], ["ArrowUp", "load_table"], ["ArrowRight", "save"], ["ArrowLeft", "load_table"], ["ArrowDown", "main"],
]) {
  await browser.press(key);
  assert.match(await focused(), new RegExp(`^${start}`), key);
}
await browser.press("Enter");
assert.match(await focused(), /^main/);
// Turned around, callers stand above what they call.
await browser.press("i");
boxes = await seen();
const top = (start) => boxes.find((box) => box.lines.startsWith(start)).top;
assert(top("main") < top("load_table"));
await browser.press("ArrowDown");
assert.match(await focused(), /^load_table/);

// The difference: every tone has its words.
await open("compared.svg");
for (const box of await seen()) {
  const words = { new: /, new$/m, gone: /, gone$/m, same: /no difference/ }[box.tone];
  if (words) assert.match(box.lines, words);
  if (/^[ml][1-4]$/.test(box.tone)) assert.match(box.lines, /: [+−]/);
}

// 16,000 calls above one another, piece by piece.
let took = await open("deep.svg");
assert(took < 5000, `deep.svg took ${took} ms`);
for (const left of [15_204, 14_805, 14_406]) {
  const deepest = await browser.ask(`[...document.querySelectorAll(".box text")].find((it) => it.textContent.startsWith("⋯ is")).closest(".box").dataset.at`);
  await browser.ask(`(document.querySelector('[data-at="${deepest}"]').dispatchEvent(new MouseEvent("click", { bubbles: true })), 0)`);
  assert.match(await text(".hidden"), new RegExp(`^${left.toLocaleString("en-US")} boxes deeper`));
  const { length } = await seen();
  assert(length <= 407, `${length} boxes are drawn`);
}

// 100,000 boxes.
took = await open("many.svg");
assert(took < 5000, `many.svg took ${took} ms`);
console.log(`${which}: 100,000 boxes in ${took} ms`);
const start = Date.now();
const [found, hits] = await search("leaf_77777");
assert(Date.now() - start < 3000, `a search took ${Date.now() - start} ms`);
assert.equal(found, "1 box, 1 B, <0.1%");
assert(hits >= 1, "what is too narrow to be seen has a mark");
await browser.press("Enter");
assert.match(await text(".details"), /^leaf_77777/);

if (browser.dark) {
  await browser.dark(true);
  await open("one.svg");
  const colours = await browser.ask(`["text", ".paper"].map((it) => getComputedStyle(document.querySelector(it)).fill)`);
  assert.deepEqual(colours, ["rgb(242, 242, 242)", "rgb(22, 24, 28)"]);
  await browser.picture(file(`${which}-dark.png`));
}
assert.deepEqual(browser.faults, []);
await browser.close();
