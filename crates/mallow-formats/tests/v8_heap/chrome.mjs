// Has a browser write a snapshot of a page with elements that are kept without being in it.
// Usage: node chrome.mjs FILE
//
// The browser is talked to through two pipes, in the messages of Chrome's DevTools protocol, each of which ends with a zero.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { spawn } from "node:child_process";

const file = process.argv[2];
const page = `<title>page</title><ul id="list"></ul><script>
  class Visit { constructor(n) { this.n = n; this.element = document.createElement("li"); this.text = "visit " + n; } }
  window.kept = [];
  for (let n = 0; n < 1000; n++) {
    const visit = new Visit(n);
    if (n % 2) list.append(visit.element);
    else visit.element.append(document.createElement("b"));
    kept.push(visit);
  }
  window.weak = new WeakMap(kept.map((visit) => [visit, { of: visit.n }]));
</script>`;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "chrome-"));
const browser = spawn("chromium", [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--user-data-dir=" + folder, "--remote-debugging-pipe",
], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
const [input, output] = [browser.stdio[3], browser.stdio[4]];
const waiting = new Map();
const chunks = [];
let rest = Buffer.alloc(0);
output.on("data", (bytes) => {
  rest = Buffer.concat([rest, bytes]);
  for (let end; (end = rest.indexOf(0)) >= 0; rest = rest.subarray(end + 1)) {
    const message = JSON.parse(rest.subarray(0, end));
    if (message.method === "HeapProfiler.addHeapSnapshotChunk") chunks.push(message.params.chunk);
    const { done, failed } = waiting.get(message.id) ?? {};
    message.error ? failed?.(new Error(message.error.message)) : done?.(message.result);
  }
});
let calls = 0;
const call = (method, params = {}, sessionId = undefined) => new Promise((done, failed) => {
  waiting.set(++calls, { done, failed });
  input.write(JSON.stringify({ id: calls, method, params, sessionId }) + "\0");
});
const url = "data:text/html," + encodeURIComponent(page);
const { targetId } = await call("Target.createTarget", { url: "about:blank" });
const { sessionId } = await call("Target.attachToTarget", { targetId, flatten: true });
await call("Page.enable", {}, sessionId);
await call("Page.navigate", { url }, sessionId);
const expression = "new Promise((done) => { const look = () => window.weak ? done(kept.length) : setTimeout(look, 10); look(); })";
const answer = await call("Runtime.evaluate", { expression, awaitPromise: true }, sessionId);
if (answer.result.value !== 1000) throw new Error(JSON.stringify(answer));
await call("HeapProfiler.enable", {}, sessionId);
await call("HeapProfiler.takeHeapSnapshot", { reportProgress: false }, sessionId);
fs.writeFileSync(file, chunks.join(""));
await call("Browser.close").catch(() => {});
await new Promise((done) => browser.exitCode === null ? browser.on("exit", done) : done());
fs.rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
