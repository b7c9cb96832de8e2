'use strict';

// Region markers for allocation tests in Node. One file: copy it, or put its folder into NODE_PATH.
//
// A region is a stretch of a program whose allocations, leaks and file descriptors `mallow check` counts:
//
//     const mallow = require('./mallow');
//
//     mallow.ops(1000);
//     mallow.measure('encode', () => { for (const message of messages) encode(message); });
//
// A test of any framework counts what a function allocates, and asserts on it:
//
//     const { result, counts } = mallow.count(() => encode(message));
//     if (counts !== null) assert.ok(counts.allocations <= 12);
//
// Node cannot call a C function of its own process, so a marker is the attempt to open a file below /proc/mallow,
// which mallow sees. The file does not exist, with mallow or without; only a count is answered by one. Without mallow no file is tried at all.
//
// What is counted are the calls of malloc and its family: buffers, handles, sockets, compiled code. Objects of
// JavaScript live in V8's own pages, which are mapped and not malloc'ed: of these V8 itself says how many bytes a run has
// made, and how many more there are after it than before. For that node has to be started with --expose-gc, as mallow
// starts it, and must be 18.15 or newer; otherwise nothing is told of objects.

const fs = require('fs');
const v8 = require('v8');

// mallow sets this for every program that it checks.
const watching = process.env.MALLOW_RUNS !== undefined;

/** Opens a path that only mallow knows. */
function mark(path) {
  if (!watching) return;
  try {
    fs.closeSync(fs.openSync(path, 'r'));
  } catch {
    // ENOENT, always.
  }
}

/** A name as a part of a path: at most 127 bytes, and no slash in it. */
function label(name) {
  return Buffer.from(name.replace(/\//g, '_')).subarray(0, 127).toString();
}

/** Collects garbage if node was started with --expose-gc. */
function collect() {
  if (typeof globalThis.gc === 'function') globalThis.gc();
}

/** The number in an environment variable if it is one below one million. */
function numberIn(variable, otherwise) {
  const text = process.env[variable] ?? '';
  return /^[0-9]{1,6}$/.test(text) ? Number(text) : otherwise;
}

/** The runs that mallow asks for: MALLOW_WARMUP for warming up and MALLOW_RUNS for counting; without these, once. */
function runs() {
  return numberIn('MALLOW_WARMUP', 0) + numberIn('MALLOW_RUNS', 1);
}

/**
 * Collects garbage and begins to write down what V8's heap holds before and after each collection. Everything that is
 * made between two of them is what the heap has grown by.
 */
function watchObjects() {
  const canTell = watching && typeof globalThis.gc === 'function' && typeof v8.GCProfiler === 'function';
  const profiler = canTell ? new v8.GCProfiler() : undefined;
  // What the last collection let go of may hold something that only the next one can free.
  collect();
  profiler?.start();
  collect();
  return profiler;
}

/** Tells what came of it, behind the region. Its last collection was the region's. */
function tellObjects(profiler) {
  const collections = profiler?.stop().statistics ?? [];
  if (collections.length < 2) return;
  const used = (side) => side.heapStatistics.usedHeapSize;
  let made = 0;
  for (let at = 1; at < collections.length; at++) {
    made += used(collections[at].beforeGC) - used(collections[at - 1].afterGC);
  }
  const remaining = used(collections[collections.length - 1].afterGC) - used(collections[0].afterGC);
  mark(`/proc/mallow/tell/object_bytes/${Math.max(made, 0)}`);
  mark(`/proc/mallow/tell/remaining_object_bytes/${Math.max(remaining, 0)}`);
}

/** Calls `body()` as one run of the region `name` and returns what it returned. */
function region(name, body) {
  const begin = `/proc/mallow/begin/${label(name)}`;
  const end = `/proc/mallow/end/${label(name)}`;
  const profiler = watchObjects();
  mark(begin);
  try {
    return body();
  } finally {
    collect();
    mark(end);
    tellObjects(profiler);
  }
}

/** Like `region`, for a body that returns a promise: the run ends when the promise is settled. */
async function regionAsync(name, body) {
  const begin = `/proc/mallow/begin/${label(name)}`;
  const end = `/proc/mallow/end/${label(name)}`;
  const profiler = watchObjects();
  mark(begin);
  try {
    return await body();
  } finally {
    collect();
    mark(end);
    tellObjects(profiler);
  }
}

/**
 * Calls `body()` as often as mallow asks for, each time as one run of the region `name`. Every call has to do the
 * same work.
 */
function measure(name, body) {
  for (let left = runs(); left > 0; left--) region(name, body);
}

/** Like `measure`, for a body that returns a promise; one run after the other. */
async function measureAsync(name, body) {
  for (let left = runs(); left > 0; left--) await regionAsync(name, body);
}

/** Says how many operations one run consists of, so that figures are printed per operation as well. */
function ops(opsPerRun) {
  mark(`/proc/mallow/ops/${opsPerRun}`);
}

/**
 * How many operations a run should do: the number in MALLOW_OPS, which mallow sets when it derives the figure per
 * operation from runs of different length, else `usual`.
 */
function opsWanted(usual) {
  return numberIn('MALLOW_OPS', usual);
}

/** Waits, inside a region, until what it holds stands still. The end of a region does it by itself. */
function quiesce() {
  mark('/proc/mallow/quiesce/0');
}

// mallow sets this for every program that it runs.
const counting = process.env.MALLOW_SESSION !== undefined;

/** What a count has, in the order in which mallow writes it. */
const COUNTS = ['allocations', 'bytes', 'reallocations', 'temporary', 'peakBytes', 'remainingBlocks', 'remainingBytes'];

/**
 * Calls `body()` and counts what the main thread allocates meanwhile: calls of malloc and its family, exactly, whatever other threads do.
 * Returns `{ result, counts }`.
 *
 * `counts` is null when nothing was counted: the program does not run under `mallow record`, `check` or `soak`, or not every call was
 * recorded. Garbage is collected before the count begins and before it ends, if node was started with --expose-gc. V8's own compiler and
 * collector allocate too: a function that has not run before costs more than one that has.
 */
function count(body) {
  if (!counting) return { result: body(), counts: null };
  collect();
  let begun;
  try {
    begun = fs.openSync('/proc/mallow/count/begin', 'r');
  } catch {
    // Nothing will be counted.
    return { result: body(), counts: null };
  }
  let result;
  let file;
  try {
    result = body();
  } finally {
    collect();
    try {
      file = fs.openSync('/proc/mallow/count/end', 'r');
    } catch {
      // Nothing was counted.
    }
    fs.closeSync(begun);
  }
  if (file === undefined) return { result, counts: null };
  const values = fs.readFileSync(file, 'latin1').trim().split(/ +/).map(Number);
  fs.closeSync(file);
  return { result, counts: Object.fromEntries(COUNTS.map((name, at) => [name, values[at]])) };
}

module.exports = { region, regionAsync, measure, measureAsync, ops, opsWanted, quiesce, count };
