// Keeps a thousand visits, and writes a snapshot as the runtime at hand does it.
class Visit {
  constructor(n) {
    this.n = n;
    this.text = "visit " + n;
    this.of = { at: n };
  }
}
globalThis.kept = [];
for (let n = 0; n < 1000; n++) kept.push(new Visit(n));
globalThis.weak = new WeakMap(kept.map((visit) => [visit, { of: visit.n }]));
const file = process.argv[2];
if (globalThis.Bun) require("fs").writeFileSync(file, Bun.generateHeapSnapshot("v8"));
else require("v8").writeHeapSnapshot(file);
