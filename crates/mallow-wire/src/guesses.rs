//! Frames whose callers were guessed: code of a file that has no unwind table for it.
//!
//! A hash table of keys as [`crate::shared::node_key`] makes them; 0 is an empty entry. Nothing is ever removed.

/// How many fit: of a large program that has no tables at all the first ones.
pub const GUESSES: usize = 1 << 14;
/// How many places a key may have, from [`guess_place`] on.
pub const GUESS_PROBES: usize = 8;

/// The first place of a key.
#[inline(always)]
pub const fn guess_place(key: u64) -> usize {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    (key.wrapping_mul(GOLDEN) >> (u64::BITS - GUESSES.ilog2())) as usize
}
