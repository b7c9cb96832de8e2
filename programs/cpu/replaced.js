// Twelve functions, each of which works for 80 ms and is thrown away: soon the place of its code is another's.
const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

async function main() {
  for (let at = 0; at < 12; at += 1) {
    const source = `return function step_${at}() { const end = Date.now() + 80; let n = 0; while (Date.now() < end) n += 1; return n; }`;
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
