'use strict';

// What every test of the suite in Node shares: which fault is seeded, and where seeded leaks are kept.
//
// A fault is seeded with GATE_SEED=alloc, leak or fd. The line that the gate must then name is the one that ends with the
// comment of that name.

const seed = process.env.GATE_SEED;

module.exports = {
  seedAlloc: seed === 'alloc',
  seedLeak: seed === 'leak',
  seedFd: seed === 'fd',
  leaked: [],
};

// A test that hangs ends by itself.
setTimeout(() => process.exit(90), 60_000).unref();
