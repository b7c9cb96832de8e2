// Objects of a class, in a Map and in an array, with strings that are equal and strings that are not.
"use strict";
class Session {
  constructor(id) {
    this.id = id;
    this.key = "session " + id;
    this.tags = ["tag " + (id % 10), "all"];
    this.owner = { name: "owner " + (id % 7), since: id / 3 };
  }
}
const sessions = new Map();
for (let id = 0; id < 1000; id++) sessions.set(id, new Session(id));
// Plain objects: of two shapes one within the other, of names that need quotes, of more letters than a name has, with a prototype's name, and maps.
const many = (count, make) => Array.from({ length: count }, (_, n) => make(n));
const long = (n) => Object.fromEntries(many(12, (at) => [`property number ${at} of twelve`, `${n}`]));
globalThis.plain = [
  many(50, (n) => ({ left: `${n}`, right: "r" })),
  many(60, (n) => ({ right: "r", left: `${n}` })),
  many(70, (n) => ({ left: `${n}`, right: "r", above: "a" })),
  many(40, (n) => ({ "a,b": `${n}`, "it's": "x", '"': "y", "{": "z" })),
  many(40, (n) => ({ ["__proto__"]: `${n}`, only: "x" })),
  many(30, long),
  many(30, (n) => ({ ["x".repeat(200)]: `${n}`, second: "y" })),
  many(5, (n) => Object.fromEntries(many(500, (at) => [`key ${n} ${at}`, "v"]))),
  many(20, () => ({})),
  many(20, (n) => ({ ü: `${n}`, "日本": "j", "\u{1f600}": "k" })),
];
globalThis.kept = { sessions, list: [...sessions.values()].filter((session) => session.id % 3) };
require("node:v8").writeHeapSnapshot(process.argv[2]);
