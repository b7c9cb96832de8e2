// Loads DHAT files into the viewer that ships with Valgrind, without a browser, and prints what it made of each:
// one line of JSON per file. Usage: node drive.js DH_VIEW_JS FILE…
//
// The page below is as small as the viewer allows. Whatever the viewer throws ends this program.
"use strict";
const fs = require("fs");
const vm = require("vm");

class Element {
  constructor(tag, text) {
    this.tagName = tag;
    this.ownText = text;
    this.childNodes = [];
    this.parentNode = null;
  }
  appendChild(child) {
    child.parentNode = this;
    this.childNodes.push(child);
  }
  replaceChild(fresh, old) {
    fresh.parentNode = this;
    this.childNodes[this.childNodes.indexOf(old)] = fresh;
  }
  cloneNode() {
    return new Element(this.tagName);
  }
  get textContent() {
    return this.ownText ?? this.childNodes.map((child) => child.textContent).join("");
  }
  set textContent(text) {
    this.ownText = text;
  }
  get selectedIndex() {
    return this.childNodes.findIndex((option) => option.isSelected);
  }
  set selected(isSelected) {
    for (const option of this.parentNode.childNodes) option.isSelected = false;
    this.isSelected = isSelected;
  }
}

const page = new Element("body");
const context = vm.createContext({
  document: {
    body: page,
    title: "",
    location: { search: "" },
    createElement: (tag) => new Element(tag),
    createTextNode: (text) => new Element("", text),
  },
  performance,
  URLSearchParams,
  FileReader: class {
    readAsText(file) {
      this.onload({ target: { result: fs.readFileSync(file.name, "utf8") } });
    }
  },
});

const [viewer, ...files] = process.argv.slice(2);
vm.runInContext(fs.readFileSync(viewer, "utf8"), context, { filename: viewer });
vm.runInContext("onLoad()", context);

// The tree's leaves, each with all its frames, and the text of every sort metric that the file allows.
const ask = `
  gInput.files = [{ name: given }];
  loadFile();
  const figures = (node) => ({
    tb: node._totalBytes, tbk: node._totalBlocks, tl: node._totalLifetimes, mb: node._maxBytes, mbk: node._maxBlocks,
    rb: node._readsBytes, wb: node._writesBytes,
    acc: node._accesses ? node._accesses.map((count) => (count === Infinity ? 65535 : count)) : null,
    gb: node._atTGmaxBytes, gbk: node._atTGmaxBlocks, eb: node._atTEndBytes, ebk: node._atTEndBlocks,
  });
  const leaves = [];
  const walk = (node, above) => {
    const frames = above.concat(node._frames);
    if (node._kids) node._kids.forEach((kid) => walk(kid, frames));
    else leaves.push({ ...figures(node), frames: frames.slice(1).map((frame) => gData.ftbl[frame]) });
  };
  walk(gRoot, []);
  const shown = {};
  for (const option of gSelect.childNodes) {
    if (option.disabled) continue;
    option.selected = true;
    changeSortMetric();
    shown[option.textContent] = gMainDiv.textContent;
  }
  JSON.stringify({ root: figures(gRoot), leaves, shown });
`;
for (const file of files) {
  context.given = file;
  console.log(vm.runInContext(`{ ${ask} }`, context));
}
