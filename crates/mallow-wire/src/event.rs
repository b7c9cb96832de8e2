//! One record of a hooked call, as it stands in a thread's ring.
//!
//! Records are whole 64-bit words, one or two of them:
//!
//! ```text
//!            63          52 51                                    4 3    0
//! word 0    | size, 0..12  |            address, 48 bits           | kind |
//! word 1    |     size, bits 12..48      |      stack node, 28 bits       |
//!            63                        28 27                             0
//! ```
//!
//! The address is the block's. Addresses of user space and sizes of possible blocks both fit in 48 bits on
//! x86-64 with four-level page tables and, unless a program asks the kernel for more by hint, with five. A
//! record that says "failed" keeps the requested size saturated at 48 bits.
//!
//! When a record was written says the [`Kind::Time`] before it, at once or further back: see [`crate::shared::Order`].

use crate::shared::{NODE_ROOT, PAGE_BYTES};

/// The kind of a record. The numbers are part of the layout.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A block was allocated. Two words. Written after the allocator returned.
    Alloc = 1,
    /// A block is about to be freed. One word, the size bits are zero. Written before the allocator is
    /// called.
    Free = 2,
    /// `realloc` of a live block is about to run. One word: the old block, and instead of the size 1 if a signal
    /// handler called it during another one of the same thread. Exactly one of the next three follows from the same
    /// thread, unless the call was left by a jump.
    ReallocBegin = 3,
    /// ... and returned this block. Two words.
    ReallocDone = 4,
    /// ... and freed the block, because the new size was 0. One word.
    ReallocFreed = 5,
    /// ... and failed, the old block is still live. Two words, address 0.
    ReallocFailed = 6,
    /// An allocating call failed. Two words, address 0.
    Failed = 7,
    /// A mark of the program: see [`Mark`]. Two words: its value is in place of the size, its number in place of the
    /// stack node.
    Mark = 8,
    /// Fifteen bytes of the name of the next [`Kind::Mark`] of the same thread; the last ones are padded with zeros.
    /// Two words: the bytes after the first.
    Text = 9,
    /// A file descriptor was opened. Two words: the descriptor is in place of the address, the size is 0.
    Opened = 10,
    /// Nothing happened here: a call was left by a jump before its record was complete. Its length in words is in
    /// place of address and size, see [`skip_word`].
    Skip = 11,
    /// The time of the next record, and of those after it without a time of their own. One word: the time stamp
    /// counter in place of address and size.
    Time = 12,
    /// Memory was mapped or unmapped by the program itself: see [`Mapping`]. Two words: pages begin at multiples of 4,096, so the low
    /// twelve bits of the address say what happened.
    Mapping = 13,
    /// As [`Kind::Alloc`], of zeroed memory: `calloc`.
    Zeroed = 14,
    /// As [`Kind::Alloc`], of memory for which an alignment was requested: `posix_memalign`, `aligned_alloc` and their like.
    Aligned = 15,
}

/// The meaning of a [`Kind::Mapping`]. The numbers are part of the layout.
///
/// `munmap` and `mremap` write two of them, as `realloc` does: one before the call, because another thread may get the addresses
/// before it returns, and one behind it.
#[repr(u16)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mapping {
    /// Memory was mapped, in place of all that was there. With the caller's stack.
    Mapped = 1,
    /// Addresses were reserved (`PROT_NONE`), in place of all that was there.
    Reserved = 2,
    /// What is mapped in this range is about to be unmapped or moved. [`Mapping::Unmapped`], [`Mapping::Remapped`], [`Mapping::Kept`] or
    /// [`Mapping::RemapFailed`] follows from the same thread, unless the call was left by a jump.
    Leaving = 3,
    /// `mremap` is about to make another mapping of what is mapped in this range, and leaves that in place. Followed as above.
    Staying = 4,
    /// ... and it was unmapped.
    Unmapped = 5,
    /// ... and `mremap` returned this range. With the caller's stack.
    Remapped = 6,
    /// ... and `munmap` failed: all is where it was.
    Kept = 7,
    /// ... and `mremap` failed: all is where it was. With the requested size and the caller's stack.
    RemapFailed = 8,
}

/// In the low bits of the address of [`Mapping::Leaving`] and [`Mapping::Staying`]: a signal handler called it during another call of the
/// same thread.
pub const MAPPING_NESTED: u64 = 0x800;

impl Mapping {
    /// What happened, by the address of a [`Kind::Mapping`]; none when the ring is damaged.
    pub const fn of(address: u64) -> Option<Mapping> {
        Some(match address & 0xf {
            1 => Mapping::Mapped,
            2 => Mapping::Reserved,
            3 => Mapping::Leaving,
            4 => Mapping::Staying,
            5 => Mapping::Unmapped,
            6 => Mapping::Remapped,
            7 => Mapping::Kept,
            8 => Mapping::RemapFailed,
            _ => return None,
        })
    }

    /// Returns whether its second word holds a stack node.
    pub const fn has_stack(self) -> bool {
        matches!(self, Mapping::Mapped | Mapping::Remapped | Mapping::RemapFailed)
    }

    /// The page of the address of a [`Kind::Mapping`].
    pub const fn page_of(address: u64) -> u64 {
        address & !(PAGE_BYTES as u64 - 1)
    }

    /// Returns the size of whole pages that a size takes, as the kernel rounds it up.
    pub const fn paged(size: u64) -> u64 {
        size.saturating_add(PAGE_BYTES as u64 - 1) & !(PAGE_BYTES as u64 - 1)
    }
}

/// The meaning of a [`Kind::Mark`]. The numbers are part of the layout.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A region begins. The thread waits for an answer.
    Begin = 1,
    /// A region ends. The thread waits until its left-over blocks are stable.
    End = 2,
    /// One run of the regions of this program does so many operations: the value.
    Operations = 3,
    /// The thread waits until the left-over blocks of the innermost region are stable; nothing ends.
    Settle = 4,
    /// `main` is about to be called.
    Main = 5,
    /// A runtime reports a value about the run of a region that its thread ended last, such as how many objects it
    /// made: the name says which value.
    Reported = 6,
    /// The thread is counted from here on. The value is how many of its channel's calls are lost by now.
    CountBegins = 7,
    /// The thread is not counted any more, and waits for what was counted since the [`Mark::CountBegins`] before it that has no end
    /// yet. The value is as there: if it has changed, what was counted is not all.
    CountEnds = 8,
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
            6 => Mark::Reported,
            7 => Mark::CountBegins,
            8 => Mark::CountEnds,
            _ => return None,
        })
    }

    /// Returns whether the thread that wrote it waits for an answer.
    pub const fn wants_answer(self) -> bool {
        !matches!(self, Mark::Operations | Mark::Main | Mark::Reported | Mark::CountBegins)
    }
}

/// Bytes of a name in one [`Kind::Text`] record.
pub const TEXT_BYTES: usize = 15;

/// Bytes of the longest name that a mark can have; longer ones are cut.
pub const MARK_NAME_BYTES_MAX: usize = 128;

impl Kind {
    /// The number of words of a record of this kind; of those that a [`Kind::Skip`] skips, the first.
    #[inline(always)]
    pub const fn words(self) -> usize {
        match self {
            Kind::Free | Kind::ReallocBegin | Kind::ReallocFreed | Kind::Skip | Kind::Time => 1,
            Kind::Alloc
            | Kind::Zeroed
            | Kind::Aligned
            | Kind::ReallocDone
            | Kind::ReallocFailed
            | Kind::Failed
            | Kind::Mark
            | Kind::Text
            | Kind::Opened
            | Kind::Mapping => 2,
        }
    }

    /// Returns whether a block was allocated, and none replaced.
    #[inline(always)]
    pub const fn is_allocation(self) -> bool {
        matches!(self, Kind::Alloc | Kind::Zeroed | Kind::Aligned)
    }

    /// Returns whether its second word holds a stack node; of a [`Kind::Mapping`], [`Mapping::has_stack`] says so.
    #[inline(always)]
    pub const fn has_stack(self) -> bool {
        self.words() == 2 && !matches!(self, Kind::Mark | Kind::Text | Kind::Mapping)
    }

    /// The kind in the low bits of a record's first word; none when the ring is damaged.
    #[inline(always)]
    pub const fn of(word0: u64) -> Option<Kind> {
        Some(match word0 & 0xf {
            1 => Kind::Alloc,
            2 => Kind::Free,
            3 => Kind::ReallocBegin,
            4 => Kind::ReallocDone,
            5 => Kind::ReallocFreed,
            6 => Kind::ReallocFailed,
            7 => Kind::Failed,
            8 => Kind::Mark,
            9 => Kind::Text,
            10 => Kind::Opened,
            11 => Kind::Skip,
            12 => Kind::Time,
            13 => Kind::Mapping,
            14 => Kind::Zeroed,
            15 => Kind::Aligned,
            _ => return None,
        })
    }
}

/// The longest record, in words.
pub const RECORD_WORDS_MAX: usize = 2;

const LOW_48: u64 = (1 << 48) - 1;
/// Bits of the size in word 0.
const SIZE_BITS: u32 = 12;
/// Bits of the stack node in word 1.
const NODE_BITS: u32 = 28;

const _: () = assert!(NODE_ROOT == (1 << NODE_BITS) - 1);

/// Packs word 0. The size is saturated at 48 bits by the caller through [`size_saturated`].
#[inline(always)]
pub const fn word0(kind: Kind, address: u64, size: u64) -> u64 {
    size << (64 - SIZE_BITS) | (address & LOW_48) << 4 | kind as u64
}

/// Packs word 1.
#[inline(always)]
pub const fn word1(size: u64, node: u32) -> u64 {
    size >> SIZE_BITS << NODE_BITS | (node & NODE_ROOT) as u64
}

/// Returns the word with the time of the records after it.
#[inline(always)]
pub const fn time_word(tsc: u64) -> u64 {
    tsc << 4 | Kind::Time as u64
}

/// Both words of a piece of a name.
#[inline(always)]
pub const fn text_words(text: [u8; TEXT_BYTES]) -> [u64; 2] {
    let mut bytes = [Kind::Text as u8; TEXT_BYTES + 1];
    let (_, behind) = bytes.split_at_mut(1);
    behind.copy_from_slice(&text);
    let words = u128::from_le_bytes(bytes);
    [words as u64, (words >> 64) as u64]
}

/// The piece of a name in both words.
pub const fn text_of(word0: u64, word1: u64) -> [u8; TEXT_BYTES] {
    let bytes = ((word1 as u128) << 64 | word0 as u128).to_le_bytes();
    let mut text = [0; TEXT_BYTES];
    let (_, behind) = bytes.split_at(1);
    text.copy_from_slice(behind);
    text
}

/// Returns the word for `words` words without meaning, itself included.
#[inline(always)]
pub const fn skip_word(words: u64) -> u64 {
    words << 4 | Kind::Skip as u64
}

/// Returns how many words a [`Kind::Skip`] covers.
#[inline(always)]
pub const fn skipped_words(word0: u64) -> u64 {
    word0 >> 4
}

/// The largest size that a record can hold, or `size` when it is smaller.
#[inline(always)]
pub const fn size_saturated(size: u64) -> u64 {
    if size > LOW_48 { LOW_48 } else { size }
}

/// The counter in the word of a [`Kind::Time`].
#[inline(always)]
pub const fn tsc_of(word0: u64) -> u64 {
    word0 >> 4
}

/// The address in word 0.
#[inline(always)]
pub const fn address_of(word0: u64) -> u64 {
    word0 >> 4 & LOW_48
}

/// The size that both words hold together.
#[inline(always)]
pub const fn size_of(word0: u64, word1: u64) -> u64 {
    word0 >> (64 - SIZE_BITS) | word1 >> NODE_BITS << SIZE_BITS
}

/// The stack node in word 1.
#[inline(always)]
pub const fn node_of(word1: u64) -> u32 {
    word1 as u32 & NODE_ROOT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_round_trip() {
        for address in [0, 16, 0x7fff_ffff_fff0, LOW_48] {
            for size in [0, 1, 0xfff, 0x1000, 0x1234_5678_9abc, LOW_48] {
                for node in [0, 7, NODE_ROOT] {
                    let (zero, one) = (word0(Kind::Alloc, address, size), word1(size, node));
                    assert_eq!((address_of(zero), size_of(zero, one), node_of(one)), (address, size, node));
                    assert_eq!(Kind::of(zero), Some(Kind::Alloc));
                }
            }
        }
    }

    #[test]
    fn kinds_survive_the_trip_and_nothing_else_is_a_kind() {
        for number in 0..16u64 {
            match Kind::of(number) {
                Some(kind) => assert_eq!(word0(kind, 99, 99) & 0xf, number),
                None => assert_eq!(number, 0),
            }
        }
        let word = time_word((1 << 60) - 1);
        assert_eq!((Kind::of(word), tsc_of(word)), (Some(Kind::Time), (1 << 60) - 1));
    }

    #[test]
    fn what_happened_to_a_mapping_stands_in_the_bits_below_its_page() {
        for number in 0..16u64 {
            let page = 0x7fff_ffff_f000;
            let word = word0(Kind::Mapping, page | MAPPING_NESTED | number, 0x2345);
            assert_eq!(Mapping::page_of(address_of(word)), page);
            match Mapping::of(address_of(word)) {
                Some(what) => assert_eq!(what as u64, number),
                None => assert!(number == 0 || number > 8),
            }
        }
    }

    #[test]
    fn names_come_back_in_pieces() {
        let text = *b"fifteen bytes!\xff";
        let [zero, one] = text_words(text);
        assert_eq!((Kind::of(zero), text_of(zero, one)), (Some(Kind::Text), text));
    }

    #[test]
    fn sizes_beyond_the_record_are_saturated() {
        assert_eq!(size_saturated(u64::MAX), LOW_48);
        assert_eq!(size_saturated(5), 5);
    }
}
