//! What programs do with memory: each mode of `programs/soak`, and some that no program there has, as a formula.

use crate::noise::Chance;
use mallow_growth::Verdict::{
    self, Clean, Fragmentation, GrowsWhenIdle, Leaking, Mappings, Plateau, Retention,
};

/// What a program holds, beside what it always holds. In bytes and pieces.
#[derive(Clone, Copy, Default)]
pub(crate) struct Held {
    /// Live heap.
    pub(crate) live: f64,
    /// Resident, and not the allocator's.
    pub(crate) mapped: f64,
    /// Free, with the allocator, given back on demand.
    pub(crate) kept: f64,
    /// Free, with the allocator, and stuck.
    pub(crate) stuck: f64,
    /// Descriptors.
    pub(crate) descriptors: f64,
    /// Threads.
    pub(crate) threads: f64,
}

/// When a program is looked at.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    /// Requests so far.
    pub(crate) requests: f64,
    /// Requests of one iteration.
    pub(crate) piece: f64,
    /// Seconds so far.
    pub(crate) seconds: f64,
    /// A number above 0, at most 1, that stays the same for a run: where steps lie, when bursts come.
    pub(crate) phase: f64,
}

/// One kind of program.
pub(crate) struct Mode {
    /// Its name.
    pub(crate) name: &'static str,
    /// It loses memory with each request, on the heap.
    pub(crate) leaks: bool,
    /// It loses 1 KiB with each request, or half of that: resident memory alone must show it too.
    pub(crate) is_large: bool,
    /// What may be said of it, beside that it cannot be told.
    pub(crate) accepted: &'static [Verdict],
    /// What it holds.
    pub(crate) held: fn(Moment) -> Held,
    /// A part that only grows, by chance: the scale of a request's largest need.
    pub(crate) ratchet: f64,
}

const LEAKS: &[Verdict] = &[Leaking];
const RESTS: &[Verdict] = &[Clean, Plateau];

const fn leak(name: &'static str, held: fn(Moment) -> Held) -> Mode {
    Mode { name, leaks: true, is_large: false, accepted: LEAKS, held, ratchet: 0.0 }
}

const fn large(mode: Mode) -> Mode {
    Mode { is_large: true, ..mode }
}

const fn ratchet(name: &'static str, scale: f64) -> Mode {
    Mode { ratchet: scale, ..other(name, RESTS, |_| Held::default()) }
}

const fn other(name: &'static str, accepted: &'static [Verdict], held: fn(Moment) -> Held) -> Mode {
    Mode { name, leaks: false, is_large: false, accepted, held, ratchet: 0.0 }
}

fn live(live: f64) -> Held {
    Held { live, ..Held::default() }
}

/// Capacity of a container that doubles: the first power of two, times a phase, that holds `filled`.
fn doubled(filled: f64, phase: f64) -> f64 {
    let unit = 1.0 + phase;
    unit * (filled / unit).max(1.0).log2().ceil().exp2()
}

fn warm_up(moment: Moment, bytes: f64, pieces: f64) -> f64 {
    bytes * (1.0 - (-moment.requests / (pieces * moment.piece)).exp())
}

/// The modes of `programs/soak`, in its order, then more.
pub(crate) const MODES: &[Mode] = &[
    other("clean", RESTS, |_| Held::default()),
    leak("leak16", |at| live(16.0 * at.requests)),
    large(leak("leak1k", |at| live(1024.0 * at.requests))),
    leak("leak1k_every64", |at| live(1024.0 * (at.requests / 64.0).floor())),
    leak("leak_vec", |at| live(16.0 * doubled(at.requests, at.phase))),
    leak("leak_map", |at| live(17.0 * doubled(at.requests / 0.875, at.phase))),
    leak("leak_thread_local", |at| live(32.0 * at.requests)),
    other("leak_fd", RESTS, |at| Held { descriptors: (at.requests / 200.0).floor(), ..Held::default() }),
    large(other("leak_mmap", &[Mappings], |at| Held {
        mapped: 4096.0 * (at.requests / 4.0).floor(),
        ..Held::default()
    })),
    large(other("leak_threads", &[Mappings], |at| {
        let threads = (at.requests / 500.0).floor();
        Held { threads, mapped: 262_144.0 * threads, live: 400.0 * threads, ..Held::default() }
    })),
    other("leak_idle", &[GrowsWhenIdle], |at| live(102_400.0 * at.seconds)),
    other("cache_small", RESTS, |at| live(512.0 * at.requests.min(2.0 * at.piece))),
    other("cache_large", RESTS, |at| live(256.0 * at.requests.min(14.0 * at.piece))),
    other("cache_keyspace", RESTS, |at| live(warm_up(at, 1024.0 * at.piece, 1.0))),
    other("pool_highwater", &[Clean, Plateau, Retention], |_| live(3.3e6)),
    ratchet("ratchet", 16_384.0),
    other("frag", &[Fragmentation], |at| Held { stuck: 600.0 * at.requests, ..Held::default() }),
    other("arena_retain", &[Retention], |at| Held { kept: 1_300.0 * at.requests, ..Held::default() }),
    other("lazy_init", RESTS, |at| live(if at.requests > 5.0 * at.piece { 2.1e7 } else { 0.0 })),
    other("sawtooth", RESTS, |at| live(256.0 * (at.requests % (2.7 * at.piece)))),
    large(leak("pins_buffer", |at| live(8192.0 * (at.requests / 8.0).floor()))),
    other("slow_decay", RESTS, |at| live(warm_up(at, 8_388_608.0, 5.0))),
    // Not among the programs.
    leak("leak16 after warm-up", |at| live(16.0 * at.requests + warm_up(at, 4e6, 3.0))),
    leak("leak16 under a sawtooth", |at| live(16.0 * at.requests + 32.0 * (at.requests % (1.3 * at.piece)))),
    Mode { name: "leak16 beside a ratchet", ratchet: 65_536.0, ..leak("", |at| live(16.0 * at.requests)) },
    ratchet("ratchet of 1 MiB", 1e6),
    other("decay over 10 pieces", RESTS, |at| live(warm_up(at, 3.2e7, 10.0))),
    other("logarithm", RESTS, |at| live(1e6 * at.requests.ln())),
    other("late burst", RESTS, |at| live(if at.requests > 84.0 * at.phase * at.piece { 4.2e6 } else { 0.0 })),
    other("sawtooth of 8 MiB", RESTS, |at| live(8.4e6 * (at.requests / (3.6 * at.piece)).fract())),
    other("retained from the start", &[Retention], |_| Held { kept: 6e7, ..Held::default() }),
    other("fragmented from the start", &[Fragmentation], |_| Held { stuck: 6e7, ..Held::default() }),
    other("resident warm-up", RESTS, |at| Held { stuck: warm_up(at, 4e6, 4.0), ..Held::default() }),
];

/// The largest of as many exponentially distributed needs as there are in a piece, if it exceeds what there was.
pub(crate) fn ratcheted(before: f64, scale: f64, piece: f64, chance: &mut Chance) -> f64 {
    let largest = scale * (piece.ln() - (-chance.uniform().ln()).max(1e-12).ln());
    before.max(largest)
}
