//! What grows, and stops: caches, pools, buffers, warm-up. None of it is a leak.

use crate::modes::Mode;
use std::collections::{HashMap, VecDeque};
use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError};

/// A cache of 256 bytes an entry that forgets the oldest when it is full. Every request brings a new key.
pub struct Cache {
    entries: VecDeque<Box<[u8; 256]>>,
    max: usize,
}

impl Cache {
    /// A cache that is full after `max` requests. Its table is made at once, so that it fills evenly.
    pub fn new(max: u64) -> Cache {
        Cache { entries: VecDeque::with_capacity(max as usize), max: max as usize }
    }

    /// One entry more; one less when it is full.
    #[inline(never)]
    pub fn remember(&mut self, _number: u64) {
        if self.entries.len() == self.max {
            self.entries.pop_front();
        }
        self.entries.push_back(Box::new([1; 256])); // FILLS
    }
}

/// A cache over a fixed number of keys that are asked for by chance: it fills more and more slowly.
pub struct KeySpace {
    entries: HashMap<u64, Box<[u8; 1024]>>,
    keys: u64,
}

impl KeySpace {
    /// For so many keys.
    pub fn new(keys: u64) -> KeySpace {
        KeySpace { entries: HashMap::new(), keys }
    }

    /// Adds the key of this request if it is new.
    #[inline(never)]
    pub fn look_up(&mut self, number: u64) {
        self.entries.entry(scrambled(number) % self.keys).or_insert_with(|| Box::new([1; 1024])); // FILLS
    }
}

/// Every connection has a buffer of 64 KiB, from a pool that keeps as many as there ever were connections at once.
pub fn pool() -> Mode {
    let free: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
    let connection = move || {
        let buffer = free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let buffer = buffer.unwrap_or_else(|| vec![1; 64 << 10]); // FILLS
        Some(Box::new(Pooled { buffer, free: Arc::clone(&free) }) as Box<_>)
    };
    Mode { request: Box::new(|_| true), connection: Box::new(connection) }
}

struct Pooled {
    buffer: Vec<u8>,
    free: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Drop for Pooled {
    fn drop(&mut self) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push(std::mem::take(&mut self.buffer));
    }
}

/// Keeps the buffer of the largest answer so far. Sizes are exponentially distributed around 16 KiB, so the largest of n
/// is about 16 KiB times ln n: it never stops growing, and soon nobody sees it.
#[derive(Default)]
pub struct Ratchet(Vec<u8>);

impl Ratchet {
    /// An answer of this request's size.
    #[inline(never)]
    pub fn answer(&mut self, number: u64) {
        let uniform = (scrambled(number) >> 11) as f64 / (1_u64 << 53) as f64;
        let size = (-(1.0 - uniform).ln() * 16_384.0) as usize;
        if size > self.0.capacity() {
            self.0 = Vec::with_capacity(size); // FILLS
        }
        black_box(&self.0);
    }
}

/// 20 MiB that are made when they are first needed.
#[derive(Default)]
pub struct Lazy(Vec<u8>);

impl Lazy {
    /// Makes them at this request.
    #[inline(never)]
    pub fn initialise_at(&mut self, number: u64, at: u64) {
        if number == at {
            self.0 = vec![1; 20 << 20]; // FILLS
        }
    }
}

/// Garbage of 256 bytes a request that is thrown away all at once, every so many requests.
#[derive(Default)]
#[allow(clippy::vec_box, reason = "each is a block of its own")]
pub struct Batch(Vec<Box<[u8; 256]>>);

impl Batch {
    /// One more, or none at all.
    #[inline(never)]
    pub fn collect_every(&mut self, number: u64, every: u64) {
        if number.is_multiple_of(every) {
            self.0.clear();
        }
        self.0.push(Box::new([1; 256])); // FILLS
    }
}

/// Learns most in the beginning: 8 MiB × (1 − e^(−requests / tau)), in blocks of 256 bytes.
pub struct WarmUp {
    #[allow(clippy::vec_box, reason = "each is a block of its own")]
    blocks: Vec<Box<[u8; 256]>>,
    tau: f64,
}

impl WarmUp {
    const BLOCKS: f64 = 32_768.0;

    /// With this many requests to 63 % of the whole.
    pub fn new(tau: u64) -> WarmUp {
        WarmUp { blocks: Vec::with_capacity(Self::BLOCKS as usize), tau: tau as f64 }
    }

    /// As much as there is to learn until this request.
    #[inline(never)]
    pub fn learn(&mut self, number: u64) {
        let due = (Self::BLOCKS * (1.0 - (-(number as f64) / self.tau).exp())) as usize;
        while self.blocks.len() < due {
            self.blocks.push(Box::new([1; 256])); // FILLS
        }
    }
}

/// Steele, Lea and Flood's mixing function of SplitMix64: the same sequence in every run.
fn scrambled(number: u64) -> u64 {
    let mut z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
