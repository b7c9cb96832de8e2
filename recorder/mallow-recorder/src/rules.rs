//! How to leave a frame: unwind tables, compiled into one word per code address and cached.
//!
//! On x86-64 nearly every frame is left in one of five ways, because compilers address the frame through
//! `rsp` or `rbp` and save `rbp`, the only register that later rules may need, at a fixed place. A rule packs
//! the way and two offsets into 64 bits:
//!
//! ```text
//! 63                    34 33                     4 3    0
//! |   b, 30 bits, signed  |   a, 30 bits, signed   |  way |
//! ```
//!
//! The cache is shared by all threads without locks. An entry is two words, the rule and (address ^ rule): a
//! reader that sees halves of two writes finds that they do not fit and takes it for a miss.

use crate::cfi::{self, FrameAddress, Row, Saved};
use crate::modules;
use crate::objects::{self, Object};
use crate::unloads;
use core::sync::atomic::{AtomicU64, Ordering};

/// The plain ways are told apart by bits, so that a step needs no jump.
const PLAIN: u64 = 8;
const BASE_IS_BP: u64 = 1;
const SAVES_BP: u64 = 2;

/// How to leave a frame. `cfa` is the stack pointer before the call: the return address lies 8 bytes below
/// it.
#[repr(u64)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// `cfa = rsp + a`, rbp unchanged.
    Sp = PLAIN,
    /// `cfa = rbp + a`, rbp unchanged.
    Bp = PLAIN | BASE_IS_BP,
    /// `cfa = rsp + a`, rbp saved at `cfa + b`.
    SpSavesBp = PLAIN | SAVES_BP,
    /// `cfa = rbp + a`, rbp saved at `cfa + b`.
    BpSavesBp = PLAIN | BASE_IS_BP | SAVES_BP,
    /// `cfa = *(rbp + a)`, rbp saved at `rbp + b`: a frame whose stack was realigned.
    Realigned = 1,
    /// A signal's frame: rip, rsp and rbp lie in the context that the kernel saved, `a` bytes above rsp.
    Signal = 2,
    /// The outermost frame.
    End = 3,
    /// No table covers the address: code made at run time or by hand. rbp is taken for a frame pointer if it
    /// can be one.
    Guess = 4,
    /// The table says something that does not fit above.
    Foreign = 5,
}

/// What leaving a frame has to do with rbp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BpUse {
    /// Its value decides where the caller's frame is.
    Needed,
    /// It is not looked at, and handed on to the caller's frame.
    HandedOn,
    /// It is not looked at; the caller's value comes from the stack.
    Replaced,
}

/// A way with its offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule(u64);

impl Rule {
    fn new(way: Way, a: i32, b: i32) -> Rule {
        const LIMIT: i32 = 1 << 29;
        if !(-LIMIT..LIMIT).contains(&a) || !(-LIMIT..LIMIT).contains(&b) {
            return Rule(Way::Foreign as u64);
        }
        Rule(way as u64 | (i64::from(a) as u64 & 0x3fff_ffff) << 4 | (i64::from(b) as u64) << 34)
    }

    /// How.
    #[inline(always)]
    pub fn way(self) -> Way {
        match self.0 & 0xf {
            0x8 => Way::Sp,
            0x9 => Way::Bp,
            0xa => Way::SpSavesBp,
            0xb => Way::BpSavesBp,
            1 => Way::Realigned,
            2 => Way::Signal,
            3 => Way::End,
            4 => Way::Guess,
            _ => Way::Foreign,
        }
    }

    /// Whether it is one of the four plain ways.
    #[inline(always)]
    pub fn is_plain(self) -> bool {
        self.0 & PLAIN != 0
    }

    /// In a plain way: whether the frame is addressed through rbp.
    #[inline(always)]
    pub fn base_is_bp(self) -> bool {
        self.0 & BASE_IS_BP != 0
    }

    /// In a plain way: whether rbp was saved.
    #[inline(always)]
    pub fn saves_bp(self) -> bool {
        self.0 & SAVES_BP != 0
    }

    /// What leaving has to do with rbp.
    #[inline(always)]
    pub fn bp_use(self) -> BpUse {
        let plain = if self.saves_bp() { BpUse::Replaced } else { BpUse::HandedOn };
        match self.is_plain() {
            true if self.0 & BASE_IS_BP != 0 => BpUse::Needed,
            true => plain,
            false => match self.way() {
                Way::End => BpUse::HandedOn,
                Way::Signal => BpUse::Replaced,
                _ => BpUse::Needed,
            },
        }
    }

    /// The first offset.
    #[inline(always)]
    pub fn a(self) -> isize {
        ((self.0 << 30) as i64 >> 34) as isize
    }

    /// The second offset.
    #[inline(always)]
    pub fn b(self) -> isize {
        (self.0 as i64 >> 34) as isize
    }
}

/// Entries of the cache. A quarter of that is known to be too small for a compiler: clang missed it so often
/// that reading the tables again cost more than the walks.
const CACHE_ENTRIES: usize = 1 << 16;

#[repr(C, align(16))]
struct Entry {
    tag: AtomicU64,
    rule: AtomicU64,
}

static CACHE: [Entry; CACHE_ENTRIES] =
    [const { Entry { tag: AtomicU64::new(0), rule: AtomicU64::new(0) } }; CACHE_ENTRIES];

/// The rule for a program counter, which must point into the instruction that is being executed. `generation` is that of the code
/// around it ([`unloads::since`]).
#[inline(always)]
pub fn rule_at(pc: usize, generation: u64) -> Rule {
    let tag = pc as u64 | generation << 48;
    // Call sites lie anywhere, so the low bits are as good as a hash, and are there at once: each frame of a walk waits for the one
    // before it.
    let index = pc % CACHE_ENTRIES;
    for entry in [&CACHE[index], &CACHE[index ^ 1]] {
        let rule = entry.rule.load(Ordering::Relaxed);
        if entry.tag.load(Ordering::Relaxed) ^ rule == tag && rule != 0 {
            return Rule(rule);
        }
    }
    miss(pc, generation, tag, index)
}

#[cold]
#[inline(never)]
fn miss(pc: usize, generation: u64, tag: u64, index: usize) -> Rule {
    let object = objects::find(pc);
    if let Some(object) = &object {
        // Before anything is known of its addresses.
        unloads::meet(object);
        modules::log(object, generation);
    }
    let rule = object.and_then(|object| compile(&object, pc)).unwrap_or(Rule::new(Way::Guess, 0, 0));
    // The pair of entries is a tiny set: prefer the empty one, else replace the second.
    let entry =
        if CACHE[index].rule.load(Ordering::Relaxed) == 0 { &CACHE[index] } else { &CACHE[index ^ 1] };
    entry.rule.store(rule.0, Ordering::Relaxed);
    entry.tag.store(tag ^ rule.0, Ordering::Relaxed);
    rule
}

/// Reads the tables of an object; none when they do not cover `pc`. Out of line: its room on the program's stack and that of the
/// look-up before it are not wanted at once.
#[inline(never)]
fn compile(object: &Object, pc: usize) -> Option<Rule> {
    let (row, is_signal) = cfi::row_at(object, pc)?;
    Some(if is_signal { signal_rule(&row) } else { plain_rule(&row) })
}

fn plain_rule(row: &Row) -> Rule {
    let foreign = Rule(Way::Foreign as u64);
    match row.ra {
        Saved::Undefined => return Rule::new(Way::End, 0, 0),
        // The rows of this ABI start with "the return address is at cfa - 8"; anything else is hand-written.
        Saved::At(-8) => {}
        _ => return foreign,
    }
    match (row.frame, row.bp) {
        (FrameAddress::Register(register, offset), bp) => {
            let (keeps, saves) = match register {
                cfi::RSP => (Way::Sp, Way::SpSavesBp),
                cfi::RBP => (Way::Bp, Way::BpSavesBp),
                _ => return foreign,
            };
            match bp {
                Saved::Unsaid | Saved::Undefined | Saved::Same => Rule::new(keeps, offset, 0),
                Saved::At(saved) => Rule::new(saves, offset, saved),
                _ => foreign,
            }
        }
        (FrameAddress::Expression(frame), Saved::AtExpression(bp)) => {
            let by_bp = frame.register == Some(cfi::RBP) && bp.register == Some(cfi::RBP);
            match (by_bp, frame.is_read, bp.is_read) {
                (true, true, false) => Rule::new(Way::Realigned, frame.offset, bp.offset),
                _ => foreign,
            }
        }
        _ => foreign,
    }
}

/// The kernel's `ucontext` keeps the registers in a fixed order; the rule needs only the place of the saved
/// rsp.
fn signal_rule(row: &Row) -> Rule {
    match row.frame {
        FrameAddress::Expression(frame) if frame.register == Some(cfi::RSP) && frame.is_read => {
            Rule::new(Way::Signal, frame.offset, 0)
        }
        _ => Rule(Way::Foreign as u64),
    }
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
