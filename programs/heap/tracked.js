// Keeps a thousand visits while V8 tracks who allocates, and writes a snapshot into the file that is named.
const fs = require('fs');
const { Session: Inspector } = require('inspector');

class Visit {
  constructor(number) {
    this.list = [number, number + 1];
  }
}

const kept = [];

function keep(number) {
  kept.push(new Visit(number));
}

const inspector = new Inspector();
inspector.connect();
const out = fs.openSync(process.argv[2], 'w', 0o600);
inspector.on('HeapProfiler.addHeapSnapshotChunk', (message) => fs.writeSync(out, message.params.chunk));
inspector.post('HeapProfiler.startTrackingHeapObjects', { trackAllocations: true }, () => {
  for (let number = 0; number < 1000; number++) keep(number);
  inspector.post('HeapProfiler.takeHeapSnapshot', {}, () => process.exit(kept.length === 1000 ? 0 : 1));
});
