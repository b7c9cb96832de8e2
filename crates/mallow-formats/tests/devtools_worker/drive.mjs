// Opens a heap snapshot in the worker of Chrome's DevTools, without a browser, and prints a line for each node: its id, its self size, its retained
// size, and as JSON its class.
// Usage: node drive.mjs PACKAGE FILE, with the unpacked npm package.
//
// The worker is talked to as its page talks to it, by messages; a second one computes the retained sizes. Columns of the snapshot cannot be
// asked for by a message, so a method that prints them is added to it by the message that DevTools' own tests use. Nothing else is changed.
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { MessageChannel, Worker } from "node:worker_threads";

const [folder, file, ...options] = process.argv.slice(2);
const script = pathToFileURL(path.join(folder, "build/src/third_party/devtools-heap-snapshot-worker.js")).href;
// What Chrome has and Node 20 has not: the worker's global object by this name, in which the message of the tests evaluates, and a function.
const prelude = `globalThis.self = globalThis;
  Promise.withResolvers ??= function () {
    const it = {};
    it.promise = new Promise((resolve, reject) => Object.assign(it, { resolve, reject }));
    return it;
  };
  await import(${JSON.stringify(script)});`;

function start() {
  const worker = new Worker(new URL("data:text/javascript," + encodeURIComponent(prelude)), {
    resourceLimits: { maxOldGenerationSizeMb: 8000 },
  });
  const waiting = new Map();
  const ready = new Promise((resolve) => {
    worker.on("message", (message) => {
      if (message === "workerReady") resolve();
      if (message?.callId === undefined) return;
      const { done, failed } = waiting.get(message.callId);
      message.error ? failed(new Error(message.errorCallStack ?? message.error)) : done(message.result);
    });
  });
  worker.on("error", (error) => { throw error; });
  let calls = 0;
  const call = async (message, ports = []) => {
    await ready;
    const callId = ++calls;
    const answer = new Promise((done, failed) => waiting.set(callId, { done, failed }));
    worker.postMessage({ callId, ...message }, ports);
    return answer;
  };
  return { worker, call };
}

const [first, second] = [start(), start()];
const { port1, port2 } = new MessageChannel();
const LOADER = 1, SNAPSHOT = 2, HELPER = 1;
await second.call({ disposition: "setupForSecondaryInit", objectId: HELPER }, [port2]).catch(() => {});
await first.call({ disposition: "createLoader", objectId: LOADER });
const method = (objectId, methodName, ...methodArguments) =>
  first.call({ disposition: "method", objectId, methodName, methodArguments });
for await (const chunk of fs.createReadStream(file, { encoding: "utf8", highWaterMark: 1 << 20 })) {
  await method(LOADER, "write", chunk);
}
await method(LOADER, "close");
const factory = { disposition: "factory", objectId: LOADER, newObjectId: SNAPSHOT, methodName: "buildSnapshot", methodArguments: [] };
if (!(await first.call(factory, [port1]))) throw new Error("no snapshot was built");

if (!options.includes("--no-rows")) {
  const source = `HeapSnapshotWorker.HeapSnapshot.JSHeapSnapshot.prototype.allRows = function () {
    const rows = [];
    const node = this.createNode(0);
    for (let at = 0; at < this.nodes.length; at += this.nodeFieldCount) {
      node.nodeIndex = at;
      rows.push(node.id() + " " + node.selfSize() + " " + node.retainedSize() + " " + JSON.stringify(node.className()));
    }
    return rows.join("\\n");
  }; "added"`;
  const added = await first.call({ disposition: "evaluateForTest", source });
  if (added !== "added") throw new Error(added);
  process.stdout.write((await method(SNAPSHOT, "allRows")) + "\n");
}
await Promise.all([first.worker.terminate(), second.worker.terminate()]);
