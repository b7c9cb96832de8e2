'use strict';

// Writes into a buffer that has room and reads from it; two of the reads copy.
//
// A Buffer of more than 64 bytes is 4 blocks: its bytes, the backing store that owns them, the shared pointer to that, and what
// the collector knows of it. A smaller one lies in V8's own pages and is none.
// 1000 operations x (1 buffer of 136 bytes x 4 + 1 buffer of 64 bytes x 0) = 4000.
//
// Exact is the figure per operation. The collector, which runs before the region ends, allocates about 400 blocks for its own
// lists and keeps some of them; how many depends on the version of Node. mallow passes the flags that make it collect and
// compile in the same way each time.
//
// expect: allocations_per_op=4 descriptors=0 ops=1000

const fs = require('fs');
const mallow = require('mallow');
const gate = require('./gate');

const OPS = 1000;
const buffer = Buffer.alloc(256);

function copy(from, to) {
  const bytes = Buffer.allocUnsafeSlow(to - from);
  buffer.copy(bytes, 0, from, to);
  return bytes;
}

function run() {
  if (gate.seedFd) fs.openSync('/dev/null'); // SEED_FD
  for (let operation = 0; operation < OPS; operation++) {
    buffer.writeUInt32BE(operation, 0);
    buffer.fill(0x61, 4, 200);
    const data = copy(0, 64);
    const text = copy(64, 200);
    if (data.readUInt32BE(0) !== operation || text[0] !== 0x61) process.exit(91);
    if (gate.seedAlloc) Buffer.allocUnsafeSlow(100); // SEED_ALLOC
    if (gate.seedLeak && operation % 100 === 0) gate.leaked.push(Buffer.allocUnsafeSlow(100)); // SEED_LEAK
  }
}

mallow.ops(OPS);
mallow.measure('buffer_rw', run);
