// Has a Ruby that was compiled to WebAssembly evaluate a script, and writes down the string that it comes to.
// Usage: node dump_of_itself.cjs PACKAGE SCRIPT FILE
const fs = require("node:fs");
const path = require("node:path");
const { WASI } = require("node:wasi");

const [folder, script, file] = process.argv.slice(2);
const { RubyVM } = require(path.resolve(folder, "dist/index.umd.js"));
(async () => {
  const wasip1 = new WASI({ version: "preview1", preopens: {} });
  const module = await WebAssembly.compile(fs.readFileSync(path.join(folder, "dist/ruby+stdlib.wasm")));
  const { vm } = await RubyVM.instantiateModule({ module, wasip1 });
  fs.writeFileSync(file, vm.eval(fs.readFileSync(script, "utf8")).toString());
})();
