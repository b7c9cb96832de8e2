// Chromium without a window, through two pipes, in the messages of its DevTools protocol, each of which ends with a zero.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { spawn } from "node:child_process";

const CODES = { Enter: 13, Escape: 27, ArrowLeft: 37, ArrowUp: 38, ArrowRight: 39, ArrowDown: 40 };

export async function chromium() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "chromium-"));
  const browser = spawn("chromium", [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--user-data-dir=" + folder, "--remote-debugging-pipe",
  ], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
  const [input, output] = [browser.stdio[3], browser.stdio[4]], waiting = new Map(), faults = [];
  let rest = Buffer.alloc(0), calls = 0;
  output.on("data", (bytes) => {
    rest = Buffer.concat([rest, bytes]);
    for (let end; (end = rest.indexOf(0)) >= 0; rest = rest.subarray(end + 1)) {
      const message = JSON.parse(rest.subarray(0, end));
      if (message.method === "Runtime.exceptionThrown") faults.push(JSON.stringify(message.params.exceptionDetails));
      const { done, failed } = waiting.get(message.id) ?? {};
      message.error ? failed?.(new Error(message.error.message)) : done?.(message.result);
    }
  });
  const send = (method, params = {}, sessionId = undefined) => new Promise((done, failed) => {
    waiting.set(++calls, { done, failed });
    input.write(JSON.stringify({ id: calls, method, params, sessionId }) + "\0");
  });
  const { targetId } = await send("Target.createTarget", { url: "about:blank" });
  const { sessionId } = await send("Target.attachToTarget", { targetId, flatten: true });
  const call = (method, params) => send(method, params, sessionId);
  await call("Page.enable");
  await call("Runtime.enable");
  const ask = async (expression) => {
    const answer = await call("Runtime.evaluate", { expression, returnByValue: true });
    if (answer.exceptionDetails) throw new Error(JSON.stringify(answer.exceptionDetails));
    return answer.result.value;
  };
  return {
    faults,
    ask,
    size: (width, height) =>
      call("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false }),
    dark: (isDark) =>
      call("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: isDark ? "dark" : "light" }] }),
    async open(file) {
      await call("Page.navigate", { url: "file://" + file });
      for (let turn = 0; await ask("document.readyState") !== "complete"; turn++) {
        if (turn === 600) throw new Error("it was not loaded");
        await new Promise((done) => setTimeout(done, 50));
      }
    },
    async click(x, y) {
      for (const type of ["mouseMoved", "mousePressed", "mouseReleased"]) {
        await call("Input.dispatchMouseEvent", { type, x, y, button: type === "mouseMoved" ? "none" : "left", clickCount: 1 });
      }
    },
    async press(key) {
      const text = key.length === 1 ? key : key === "Enter" ? "\r" : undefined;
      await call("Input.dispatchKeyEvent", { type: "keyDown", key, text, windowsVirtualKeyCode: CODES[key] });
      await call("Input.dispatchKeyEvent", { type: "keyUp", key });
    },
    async picture(file) {
      const { data } = await call("Page.captureScreenshot", { format: "png" });
      fs.writeFileSync(file, Buffer.from(data, "base64"));
    },
    async close() {
      await send("Browser.close").catch(() => {});
      await new Promise((done) => browser.exitCode === null ? browser.on("exit", done) : done());
      fs.rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
