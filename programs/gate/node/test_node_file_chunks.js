'use strict';

// Reads a file in chunks, each into a buffer of its own.
//
// A Buffer of more than 64 bytes is 4 blocks: its bytes, the backing store that owns them, the shared pointer to that, and what
// the collector knows of it. A smaller one lies in V8's own pages and is none.
// 1000 operations x 1 buffer of 100 bytes x 4 = 4000. Reading into it = 0.
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

function run() {
  if (gate.seedFd) fs.openSync('/dev/null'); // SEED_FD
  const fd = fs.openSync('/dev/zero');
  for (let operation = 0; operation < OPS; operation++) {
    const chunk = Buffer.allocUnsafeSlow(100);
    if (fs.readSync(fd, chunk, 0, 100, null) !== 100 || chunk[99] !== 0) process.exit(91);
    if (gate.seedAlloc) Buffer.allocUnsafeSlow(100); // SEED_ALLOC
    if (gate.seedLeak && operation % 100 === 0) gate.leaked.push(Buffer.allocUnsafeSlow(100)); // SEED_LEAK
  }
  fs.closeSync(fd);
}

mallow.ops(OPS);
mallow.measure('file_chunks', run);
