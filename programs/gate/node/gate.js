'use strict';

// What every test of the suite in Node shares: which fault is seeded, and where seeded leaks are kept.
//
// A fault is seeded with GATE_SEED=alloc, leak or fd, or several of them between spaces. The line that the gate must then name
// is the one that ends with the comment of that name.

const seeds = (process.env.GATE_SEED || '').split(' ');

module.exports = {
  seedAlloc: seeds.includes('alloc'),
  seedLeak: seeds.includes('leak'),
  seedFd: seeds.includes('fd'),
  leaked: [],
};

// A test that hangs ends by itself.
setTimeout(() => process.exit(90), 60_000).unref();
