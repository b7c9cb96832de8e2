// Firefox without a window, through its own protocol, Marionette: lengths and lists of JSON over a socket on loopback.
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { spawn } from "node:child_process";

const KEYS = { Enter: "\uE007", Escape: "\uE00C", ArrowLeft: "\uE012", ArrowUp: "\uE013", ArrowRight: "\uE014", ArrowDown: "\uE015" };
// It must ask nobody and change nothing outside of its folder.
const SETTINGS = {
  "browser.shell.checkDefaultBrowser": false, "datareporting.policy.dataSubmissionEnabled": false, "app.update.enabled": false,
  "network.captive-portal-service.enabled": false, "network.connectivity-service.enabled": false,
};

const freePort = () => new Promise((done) => {
  const server = net.createServer().listen(0, "127.0.0.1", () => {
    const { port } = server.address();
    server.close(() => done(port));
  });
});
const connected = async (port) => {
  for (let turn = 0; ; turn++) {
    try {
      return await new Promise((done, failed) => {
        const socket = net.connect(port, "127.0.0.1", () => done(socket));
        socket.on("error", failed);
      });
    } catch (error) {
      if (turn === 300) throw error;
      await new Promise((done) => setTimeout(done, 100));
    }
  }
};

export async function firefox() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "firefox-")), port = await freePort();
  const settings = Object.entries({ ...SETTINGS, "marionette.port": port });
  const lines = settings.map(([name, value]) => `user_pref("${name}", ${JSON.stringify(value)});\n`);
  fs.writeFileSync(path.join(folder, "user.js"), lines.join(""));
  const words = ["--headless", "--marionette", "--no-remote", "--profile", folder];
  const browser = spawn("firefox-esr", words, { stdio: "ignore", env: { ...process.env, HOME: folder } });
  const socket = await connected(port), waiting = new Map();
  let rest = Buffer.alloc(0), calls = 0;
  socket.on("data", (bytes) => {
    rest = Buffer.concat([rest, bytes]);
    for (let colon; (colon = rest.indexOf(":")) >= 0;) {
      const end = colon + 1 + Number(rest.subarray(0, colon));
      if (rest.length < end) return;
      const message = JSON.parse(rest.subarray(colon + 1, end));
      rest = rest.subarray(end);
      if (!Array.isArray(message)) continue;
      const [, id, error, result] = message, { done, failed } = waiting.get(id);
      error ? failed(new Error(JSON.stringify(error))) : done(result);
    }
  });
  const call = (name, params = {}) => new Promise((done, failed) => {
    waiting.set(++calls, { done, failed });
    const text = JSON.stringify([0, calls, name, params]);
    socket.write(Buffer.byteLength(text) + ":" + text);
  });
  await call("WebDriver:NewSession");
  const ask = async (expression) => (await call("WebDriver:ExecuteScript", { script: "return " + expression, args: [] })).value;
  return {
    // What goes wrong in the page's script leaves it without its mark of readiness.
    faults: [],
    ask,
    size: (width, height) => call("WebDriver:SetWindowRect", { width, height }),
    dark: null,
    open: (file) => call("WebDriver:Navigate", { url: "file://" + file }),
    click: (x, y) => call("WebDriver:PerformActions", { actions: [{
      type: "pointer", id: "mouse", parameters: { pointerType: "mouse" },
      actions: [
        { type: "pointerMove", x: Math.round(x), y: Math.round(y), origin: "viewport" },
        { type: "pointerDown", button: 0 }, { type: "pointerUp", button: 0 },
      ],
    }] }),
    press: (key) => call("WebDriver:PerformActions", { actions: [{
      type: "key", id: "keys",
      actions: [{ type: "keyDown", value: KEYS[key] ?? key }, { type: "keyUp", value: KEYS[key] ?? key }],
    }] }),
    async picture(file) {
      const { value } = await call("WebDriver:TakeScreenshot", { full: false });
      fs.writeFileSync(file, Buffer.from(value, "base64"));
    },
    async close() {
      await call("Marionette:Quit", { flags: ["eForceQuit"] }).catch(() => {});
      await new Promise((done) => browser.exitCode === null ? browser.on("exit", done) : done());
      fs.rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
