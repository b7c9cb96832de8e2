// Opens a file in speedscope's own page, without a browser, and prints as one line of JSON what its importer made of it.
// Usage: node drive.js PACKAGE FILE, with the unpacked npm package.
//
// The page is asked in its address for a local file, as the command `speedscope FILE` asks it; it then offers a function
// that takes the file. What was imported is read where the page keeps it: in the properties of the components that it
// shows. Nothing of speedscope is changed. The document below is as small as the page allows.
"use strict";
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const nothing = () => {};

class Element {
  constructor(tag, text) {
    this.localName = this.nodeName = tag;
    this.data = text;
    this.childNodes = [];
    this.attributes = [];
    this.parentNode = null;
    this.style = this.sheet = {};
  }
  get firstChild() {
    return this.childNodes[0] ?? null;
  }
  get lastElementChild() {
    return this.childNodes.at(-1) ?? null;
  }
  get nextSibling() {
    const siblings = this.parentNode?.childNodes ?? [];
    return siblings[siblings.indexOf(this) + 1] ?? null;
  }
  get textContent() {
    return this.data ?? this.childNodes.map((child) => child.textContent).join("");
  }
  appendChild(child) {
    return this.insertBefore(child, null);
  }
  insertBefore(child, next) {
    child.parentNode?.removeChild(child);
    this.childNodes.splice(next ? this.childNodes.indexOf(next) : this.childNodes.length, 0, child);
    child.parentNode = this;
    return child;
  }
  removeChild(child) {
    this.childNodes.splice(this.childNodes.indexOf(child), 1);
    child.parentNode = null;
  }
  getBoundingClientRect() {
    return { left: 0, top: 0, width: 1000, height: 1000 };
  }
  all(tag) {
    const below = this.childNodes.flatMap((child) => child.all(tag));
    return this.localName === tag ? [this, ...below] : below;
  }
}
for (const name of ["setAttribute", "removeAttribute", "addEventListener", "removeEventListener"]) {
  Element.prototype[name] = nothing;
}
for (const name of ["blur", "scrollTo", "scrollIntoView"]) Element.prototype[name] = nothing;

// There is no WebGL, so the page draws no flame graph. Its tables need none.
class Canvas extends Element {
  getContext() {
    return null;
  }
}

const said = [];
const say = (...words) => said.push(words.map((word) => word?.stack ?? String(word)).join(" "));
const document = {
  head: new Element("head"),
  body: new Element("body"),
  createElement: (tag) => (tag === "canvas" ? new Canvas(tag) : new Element(tag)),
  createElementNS: (_, tag) => new Element(tag),
  createTextNode: (text) => new Element("#text", text),
  querySelector: () => null,
  addEventListener: nothing,
};
const window = Object.assign(new Element("window"), {
  document,
  location: { protocol: "file:", hash: "#view=sandwich&localProfilePath=given" },
  devicePixelRatio: 1,
  HTMLElement: Element,
  HTMLCanvasElement: Canvas,
  alert: say,
  atob,
  TextDecoder,
  TextEncoder,
  setTimeout,
  clearTimeout,
  setInterval,
  clearInterval,
  requestAnimationFrame: (call) => setTimeout(call, 0),
  cancelAnimationFrame: clearTimeout,
  matchMedia: () => new Element("media"),
  console: {
    log: say,
    warn: say,
    error: say,
    time: nothing,
    timeEnd: nothing,
    assert: (holds, ...words) => {
      if (!holds) throw new Error(`an assertion of speedscope's does not hold: ${words.join(" ")}`);
    },
  },
});
window.window = window.self = window;

// A property that the first component with one was given, at or below a node of preact's.
function property(node, name) {
  const own = node?.props?.[name];
  if (own) return own;
  for (const child of node?.__k ?? []) {
    const found = property(child, name);
    if (found) return found;
  }
  return null;
}

function figures({ profile }) {
  const frames = [];
  profile.forEachFrame((frame) => {
    const { name, file, line } = frame;
    frames.push({ name, file, line, self: frame.getSelfWeight(), total: frame.getTotalWeight() });
  });
  const stacks = [];
  const open = [];
  const enter = (node) => {
    open.push(node.frame.name);
    if (node.getSelfWeight() > 0) stacks.push([open.join(";"), node.getSelfWeight()]);
  };
  profile.forEachCallGrouped(enter, () => open.pop());
  return { name: profile.getName(), unit: profile.getWeightUnit(), total: profile.getTotalWeight(), frames, stacks };
}

const [folder, file] = process.argv.slice(2);
const release = path.join(folder, "dist/release");
const [script] = fs.readdirSync(release).filter((name) => /^speedscope-.*\.js$/.test(name));
vm.runInContext(fs.readFileSync(path.join(release, script), "utf8"), vm.createContext(window), { filename: script });

// Twice the page comes to rest: when it stands, and when it shows the file.
process.once("beforeExit", () => {
  window.speedscope.loadFileFromBase64(path.basename(file), fs.readFileSync(file, "base64"));
  process.once("beforeExit", () => {
    const group = property(document.body.__k, "profileGroup");
    if (!group) {
      console.error(said.join("\n"));
      process.exit(1);
    }
    const rows = document.body.all("tr").map((row) => row.childNodes.map((cell) => cell.textContent));
    const importer = said.filter((line) => line.startsWith("Importing as "));
    console.log(
      JSON.stringify({
        version: said[0],
        importer,
        name: group.name,
        active: group.indexToView,
        profiles: group.profiles.map(figures),
        shown: rows,
      }),
    );
  });
});
