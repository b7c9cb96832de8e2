// Some hundred thousand objects that refer to each other at random, though in each run in the same way.
"use strict";
let state = 12345;
const random = (below) => {
  state = (Math.imul(state, 1103515245) + 12345) >>> 0;
  return (state >>> 8) % below;
};
class Node {
  constructor(id) {
    this.id = id;
    this.label = "node " + random(5000);
    this.edges = [];
    this.cache = id % 10 ? null : new Map([[id, "cached"]]);
  }
}
const nodes = Array.from({ length: 60000 }, (_, id) => new Node(id));
for (const node of nodes) {
  for (let edges = random(4); edges > 0; edges--) node.edges.push(nodes[random(nodes.length)]);
  node.near = nodes[Math.min(node.id + random(3), nodes.length - 1)];
}
globalThis.kept = [nodes[0], ...nodes.filter((node) => node.id % 500 === 0)];
require("node:v8").writeHeapSnapshot(process.argv[2]);
