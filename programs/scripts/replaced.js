// Twenty functions, each of which takes one buffer of a size of its own and is thrown away: soon the place of its code is another's.
const kept = [];
const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

async function main() {
  for (let at = 0; at < 20; at += 1) {
    const source = `return function step_${at}() { kept.push(Buffer.allocUnsafeSlow(${5000 + at})); }`;
    let step = new Function('kept', source)(kept);
    step();
    step = null;
    // What it did has been read when the next one takes its place.
    await pause(100);
    gc();
    gc();
  }
}

main();
