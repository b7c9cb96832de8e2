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
globalThis.kept = { sessions, list: [...sessions.values()].filter((session) => session.id % 3) };
require("node:v8").writeHeapSnapshot(process.argv[2]);
