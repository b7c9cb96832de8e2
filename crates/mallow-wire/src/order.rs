//! What every event of a process reads: whether it needs a time stamp, and whether its stack is wanted.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// Which events need time stamps: while one thread alone has recorded, its ring is the order of things, and the counter need be read
/// now and then only. Events without a stamp happened between the one before them and the next beat.
///
/// ```text
///   63   62            32 31                 0
/// | busy |     beat      |      owner        |
/// ```
///
/// `busy` is set while so many events come that reading the counter for each is a burden.
/// `owner` is 0 at first, the number of the channel that recorded first plus 1 after it, and [`ORDER_MANY`] as soon as
/// another channel records, for ever. On a cache line of its own: every event reads it, the collector writes it.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Order {
    /// Beat and owner.
    pub word: AtomicU64,
    /// Not 0 while nobody wants stacks: only regions count, and none is open. Here because every event reads this line.
    pub without_stacks: AtomicU32,
}

/// The owner once there have been two: every event has a stamp.
pub const ORDER_MANY: u32 = u32::MAX;

/// Set in the word of an [`Order`]: events may go without a stamp.
pub const ORDER_BUSY: u64 = 1 << 63;

/// The word of an [`Order`] after another pass of the collector: a thread that finds it changed stamps its next event.
#[inline(always)]
pub const fn next_order(word: u64, is_busy: bool) -> u64 {
    let beat = word.wrapping_add(1 << 32) & !ORDER_BUSY;
    if is_busy { beat | ORDER_BUSY } else { beat }
}

/// The owner in an order's word.
#[inline(always)]
pub const fn order_owner(word: u64) -> u32 {
    word as u32
}

/// The word with another owner.
#[inline(always)]
pub const fn with_order_owner(word: u64, owner: u32) -> u64 {
    word >> 32 << 32 | owner as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beat_changes_the_word_and_leaves_the_owner_alone() {
        for owner in [0, 7, ORDER_MANY] {
            for (before, is_busy) in [(u64::MAX, true), (u64::MAX, false), (0, true), (0, false)] {
                let word = with_order_owner(before, owner);
                let next = next_order(word, is_busy);
                assert_eq!((order_owner(next), next & ORDER_BUSY != 0), (owner, is_busy));
                assert_ne!(next, word);
            }
        }
    }
}
