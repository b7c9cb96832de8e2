// Twelve functions, each of which has a processor for 80 ms, whoever else wants it, and is thrown away: soon the place of its code is another's.
const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

async function main() {
  for (let at = 0; at < 12; at += 1) {
    const source = `return function step_${at}() { const end = process.cpuUsage().user + 80000; let n = 0; do { for (let i = 0; i < 1e6; i += 1) n += i & 1; } while (process.cpuUsage().user < end); return n; }`;
    let step = new Function(source)();
    step();
    step = null;
    // Its samples have been read when the next one takes its place.
    await pause(150);
    gc();
    gc();
  }
}

main();
