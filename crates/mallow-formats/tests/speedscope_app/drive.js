// Opens a file in speedscope's own page, without a browser, and prints as one line of JSON what its importer made of it.
// Usage: node drive.js PACKAGE FILE, with the folder of the npm package.
//
// The file comes in as from the command `speedscope FILE`: by a script that the page is told of in its address. What was
// imported is read where the page keeps it, in the properties of the components that it shows; nothing of speedscope is
// changed. The document below is as small as the page allows, and what it throws or complains of ends this program.
"use strict";
const fs = require("fs");
const path = require("path");
const vm = require("vm");

class Element {
  constructor(tag, text) {
    this.localName = this.nodeName = tag;
    this.data = text;
    this.childNodes = [];
    this.attributes = [];
    this.parentNode = null;
    this.style = this.sheet = {};
    this.listeners = {};
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
    const at = next ? this.childNodes.indexOf(next) : this.childNodes.length;
    this.childNodes.splice(at, 0, child);
    child.parentNode = this;
    child.wasInserted?.();
    return child;
  }
  removeChild(child) {
    this.childNodes.splice(this.childNodes.indexOf(child), 1);
    child.parentNode = null;
  }
  blur() {}
  scrollTo() {}
  scrollIntoView() {}
  setAttribute() {}
  removeAttribute() {}
  addEventListener(kind, listener) {
    this.listeners[kind] = listener;
  }
  removeEventListener(kind) {
    delete this.listeners[kind];
  }
  getBoundingClientRect() {
    return { left: 0, top: 0, width: 1000, height: 1000 };
  }
}

class Canvas extends Element {
  getContext() {
    return null;
  }
}

const [folder, file] = process.argv.slice(2);
const release = path.join(folder, "dist/release");
const bundle = fs.readdirSync(release).filter((name) => /^speedscope-.*\.js$/.test(name));
if (bundle.length !== 1) throw new Error(`${release} has the scripts ${bundle}`);

const complaints = [];
const complain = (...words) => complaints.push(words.map((word) => word?.stack ?? String(word)).join(" "));
const quiet = () => {};
const page = {
  head: new Element("head"),
  body: new Element("body"),
  createElement: (tag) => {
    if (tag === "canvas") return new Canvas(tag);
    return new Element(tag);
  },
  createTextNode: (text) => new Element("#text", text),
  createElementNS: (_, tag) => new Element(tag),
  getElementsByTagName: (tag) => [page[tag]],
  querySelector: () => null,
  addEventListener: quiet,
};
const window = new Element("window");
Object.assign(window, {
  window,
  self: window,
  document: page,
  location: { protocol: "file:", hash: "#view=sandwich&localProfilePath=given.js", href: "file:///index.html" },
  devicePixelRatio: 1,
  HTMLElement: Element,
  HTMLCanvasElement: Canvas,
  alert: complain,
  atob,
  performance,
  TextDecoder,
  TextEncoder,
  setTimeout,
  setInterval,
  clearInterval,
  clearTimeout,
  requestAnimationFrame: (call) => setTimeout(call, 0),
  cancelAnimationFrame: clearTimeout,
  matchMedia: () => ({ matches: false, addListener: quiet, removeListener: quiet, addEventListener: quiet }),
  console: { log: complain, warn: complain, error: complain, assert: console.assert, time: quiet, timeEnd: quiet },
});

/// The first component below one of preact's nodes that has been given a property, which is returned.
function property(node, name) {
  if (node?.props?.[name]) return node.props[name];
  for (const child of node?.__k ?? []) {
    const found = property(child, name);
    if (found) return found;
  }
  return null;
}

function figures(profile) {
  const frames = [];
  profile.forEachFrame(({ name, file, line, ...rest }) => frames.push({ name, file, line }));
  return { name: profile.getName(), frames };
}

vm.runInContext(fs.readFileSync(path.join(release, bundle[0]), "utf8"), vm.createContext(window), { filename: bundle[0] });
process.once("beforeExit", () => {
  window.speedscope.loadFileFromBase64(path.basename(file), fs.readFileSync(file, "base64"));
  process.once("beforeExit", () => {
  const group = property(page.body.__k, "profileGroup");
  console.log(complaints, page.title);
  for (const {profile} of group.profiles) {
    profile.forEachFrame((f) => console.log(f));
    profile.forEachCallGrouped((n, at) => console.log("open", n.frame.name, at, n.getSelfWeight()), (n, at) => console.log("close", n.frame.name, at)); }
  console.log(page.body.textContent)
  });
});
