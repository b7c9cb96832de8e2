//! One record of a hooked call, as it stands in a thread's ring.
//!
//! Records are whole 64-bit words, one to three of them:
//!
//! ```text
//!            63                               48 47                      4 3    0
//! word 0    |            time stamp counter, 60 bits                      | kind |
//! word 1    |        size, bits 0..16           |           address, 48 bits     |
//! word 2    |        size, bits 16..48          |  stack node, 32 bits           |
//! ```
//!
//! A time stamp of 0 stands for that of the record before it in the ring: see [`crate::shared::Order`].
//!
//! The address is the block's. Addresses of user space and sizes of possible blocks both fit in 48 bits on
//! x86-64 with four-level page tables and, unless a program asks the kernel for more by hint, with five. A
//! record that says "failed" keeps the requested size saturated at 48 bits.

/// What a record says. The numbers are part of the layout.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A block was allocated. Three words. Written after the allocator returned.
    Alloc = 1,
    /// A block is about to be freed. Two words, the size bits are zero. Written before the allocator is
    /// called.
    Free = 2,
    /// `realloc` of a live block is about to run. Two words: the old block, and in the place of the size 1 when a
    /// signal handler began it during another one of the same thread. Exactly one of the next three follows from the
    /// same thread, unless the call was left by a jump.
    ReallocBegin = 3,
    /// ... and returned the block given here. Three words.
    ReallocMoved = 4,
    /// ... and freed the block, because the new size was 0. One word.
    ReallocFreed = 5,
    /// ... and failed, the old block lives on. Three words, address 0.
    ReallocFailed = 6,
    /// An allocating call failed. Three words, address 0.
    Failed = 7,
    /// The program said where it stands: see [`Mark`]. Three words: the second holds its value in 48 bits, the
    /// third its number.
    Mark = 8,
    /// Sixteen bytes of the name that the next [`Kind::Mark`] of the same thread has; the last ones are padded
    /// with zeros. Three words.
    Text = 9,
    /// A file descriptor was opened. Three words: the descriptor stands for the address, the size is 0.
    Opened = 10,
    /// Nothing happened here: a call was left by a jump before its record was whole. As many words as stand in the place
    /// of the time stamp, see [`skip_word`].
    Skip = 11,
}

/// What a [`Kind::Mark`] says. The numbers are part of the layout.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A region begins. The thread waits for an answer.
    Begin = 1,
    /// A region ends. The thread waits until what the region left behind stands still.
    End = 2,
    /// One run of the regions of this program does so many operations: the value.
    Operations = 3,
    /// The thread waits until what the innermost region left behind stands still; nothing ends.
    Settle = 4,
    /// `main` is about to be called.
    Main = 5,
}

impl Mark {
    /// The mark of a number; none when the ring is damaged.
    pub const fn of(number: u32) -> Option<Mark> {
        Some(match number {
            1 => Mark::Begin,
            2 => Mark::End,
            3 => Mark::Operations,
            4 => Mark::Settle,
            5 => Mark::Main,
            _ => return None,
        })
    }

    /// Whether the thread that wrote it waits for an answer.
    pub const fn wants_answer(self) -> bool {
        !matches!(self, Mark::Operations | Mark::Main)
    }
}

/// Bytes of a name in one [`Kind::Text`] record.
pub const TEXT_BYTES: usize = 16;

/// Bytes of the longest name that a mark can have; longer ones are cut.
pub const MARK_NAME_BYTES_MAX: usize = 128;

impl Kind {
    /// The number of words of a record of this kind; of those that a [`Kind::Skip`] skips, the first.
    #[inline(always)]
    pub const fn words(self) -> usize {
        match self {
            Kind::ReallocFreed | Kind::Skip => 1,
            Kind::Free | Kind::ReallocBegin => 2,
            Kind::Alloc
            | Kind::ReallocMoved
            | Kind::ReallocFailed
            | Kind::Failed
            | Kind::Mark
            | Kind::Text
            | Kind::Opened => 3,
        }
    }

    /// Whether its third word holds a stack node.
    #[inline(always)]
    pub const fn has_stack(self) -> bool {
        self.words() == 3 && !matches!(self, Kind::Mark | Kind::Text)
    }

    /// The kind in the low bits of a record's first word; none when the ring is damaged.
    #[inline(always)]
    pub const fn of(word0: u64) -> Option<Kind> {
        Some(match word0 & 0xf {
            1 => Kind::Alloc,
            2 => Kind::Free,
            3 => Kind::ReallocBegin,
            4 => Kind::ReallocMoved,
            5 => Kind::ReallocFreed,
            6 => Kind::ReallocFailed,
            7 => Kind::Failed,
            8 => Kind::Mark,
            9 => Kind::Text,
            10 => Kind::Opened,
            11 => Kind::Skip,
            _ => return None,
        })
    }
}

/// The longest record, in words.
pub const RECORD_WORDS_MAX: usize = 3;

const LOW_48: u64 = (1 << 48) - 1;

/// Packs word 0.
#[inline(always)]
pub const fn word0(kind: Kind, tsc: u64) -> u64 {
    tsc << 4 | kind as u64
}

/// The word that stands for `words` words without meaning, itself included.
#[inline(always)]
pub const fn skip_word(words: u64) -> u64 {
    words << 4 | Kind::Skip as u64
}

/// How many words a [`Kind::Skip`] stands for.
#[inline(always)]
pub const fn skipped_words(word0: u64) -> u64 {
    word0 >> 4
}

/// Packs word 1. The size is saturated at 48 bits by the caller through [`size_saturated`].
#[inline(always)]
pub const fn word1(address: u64, size: u64) -> u64 {
    size << 48 | (address & LOW_48)
}

/// Packs word 2.
#[inline(always)]
pub const fn word2(size: u64, node: u32) -> u64 {
    (size >> 16) << 32 | node as u64
}

/// The largest size that a record can hold, or `size` when it is smaller.
#[inline(always)]
pub const fn size_saturated(size: u64) -> u64 {
    if size > LOW_48 { LOW_48 } else { size }
}

/// The time stamp in word 0; 0 when the record has none of its own.
#[inline(always)]
pub const fn tsc_of(word0: u64) -> u64 {
    word0 >> 4
}

/// The address in word 1.
#[inline(always)]
pub const fn address_of(word1: u64) -> u64 {
    word1 & LOW_48
}

/// The size that words 1 and 2 hold together.
#[inline(always)]
pub const fn size_of(word1: u64, word2: u64) -> u64 {
    word1 >> 48 | (word2 >> 32) << 16
}

/// The stack node in word 2.
#[inline(always)]
pub const fn node_of(word2: u64) -> u32 {
    word2 as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_gives_back_what_was_packed() {
        for address in [0, 16, 0x7fff_ffff_fff0, LOW_48] {
            for size in [0, 1, 0xffff, 0x1_0000, 0x1234_5678_9abc, LOW_48] {
                for node in [0, 7, u32::MAX] {
                    let (one, two) = (word1(address, size), word2(size, node));
                    assert_eq!((address_of(one), size_of(one, two), node_of(two)), (address, size, node));
                }
            }
        }
    }

    #[test]
    fn kinds_survive_the_trip_and_nothing_else_is_a_kind() {
        for number in 0..16u64 {
            match Kind::of(number) {
                Some(kind) => assert_eq!(word0(kind, 99) & 0xf, number),
                None => assert!(number == 0 || number > 11),
            }
        }
        assert_eq!(tsc_of(word0(Kind::Free, (1 << 60) - 1)), (1 << 60) - 1);
    }

    #[test]
    fn sizes_beyond_the_record_are_saturated() {
        assert_eq!(size_saturated(u64::MAX), LOW_48);
        assert_eq!(size_saturated(5), 5);
    }
}
