// What has rules of its own: WeakMaps, WeakSets, WeakRefs, closures that share a context, Buffers, generators, proxies, symbols, bigints,
// sliced and concatenated strings, strings outside of the heap, a finalizer, timers, a pending promise, cycles.
"use strict";
const fs = require("node:fs");
const kept = (globalThis.kept = []);
const byKey = new WeakMap(), marked = new WeakSet(), nested = new WeakMap();
const registry = new FinalizationRegistry(() => {});
for (let at = 0; at < 500; at++) {
  const key = { at };
  const value = { text: "value " + at, inner: new Array(at % 20).fill(at), key: at % 2 ? key : null };
  byKey.set(key, value);
  nested.set(value, { deep: [value, "deep " + at] });
  if (at % 5) marked.add(value);
  if (at % 3) kept.push(key);
  registry.register(key, "token " + at);
  kept.push(new WeakRef({ only: "weak " + at }));
}
kept.push(byKey, marked, nested, registry);
for (let at = 0; at < 200; at++) {
  const shared = new Uint8Array(100 + at), large = "large " + at;
  kept.push(() => shared.length, () => large, function* () { yield shared; });
  const generator = kept.at(-1)();
  generator.next();
  kept.push(generator, Buffer.alloc(5000 + at), Buffer.from("pooled " + at), Buffer.allocUnsafeSlow(at * 10 + 1));
}
const text = fs.readFileSync(__filename, "latin1");
for (let at = 0; at < 50; at++) {
  kept.push(text.slice(at, at + 100), text + at, Symbol("symbol " + at), 2n ** BigInt(at * 10), /x/g);
  kept.push(new Proxy({ at }, {}), new Error("error " + at), new Date(at), new Promise(() => {}));
  const ring = { next: null };
  ring.next = { next: { next: ring } };
  kept.push(ring);
}
kept.push("é", "\u{1f600}", "a".repeat(3000), "control \u0001 \" \\ \n", new Map([[{}, new Set([1, "two"])]]));
setTimeout(() => kept.length, 1e6).unref();
process.on("exit", () => kept);
require("node:v8").writeHeapSnapshot(process.argv[2]);
