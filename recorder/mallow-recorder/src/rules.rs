//! Unwind rules: the unwind tables (`.eh_frame`), compiled into one word per code address and cached.
//!
//! On x86-64 nearly every frame is unwound in one of five ways (kinds), because compilers address the frame through
//! `rsp` or `rbp` and save `rbp`, the only register that later rules may need, at a fixed place. A rule packs
//! the kind and two offsets into 32 bits:
//!
//! ```text
//! 31              20 19               4 3    0
//! |   b / 8, signed  |  a / 8, signed  | kind |
//! ```
//!
//! The cache is shared by all threads without locks. An entry is one word: the rule, and above it the bits of the address that
//! its index does not determine. It has no room for a generation. So when code is unloaded, its rules are removed
//! ([`forget_vacated`]).

use crate::bounds::at;
use crate::cfi::{self, FrameAddress, Row, Saved};
use crate::modules;
use crate::objects::{self, Object};
use crate::script;
use crate::sys;
use crate::unloads;
use core::sync::atomic::{AtomicU64, Ordering};
use mallow_wire::shared::PAGE_BYTES;

/// The plain kinds are distinguished by bits, so that a step needs no jump.
const PLAIN: u32 = 8;
const BASE_IS_BP: u32 = 1;
const SAVES_BP: u32 = 2;

/// How to unwind a frame. `cfa` is the canonical frame address, the stack pointer before the call: the return address
/// is 8 bytes below it.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleKind {
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
    Root = 3,
    /// Code that was made at run time, or in which a program or a thread begins. rbp is used as a frame pointer if it can be one.
    FramePointer = 4,
    /// The table has a rule that does not fit above.
    Unsupported = 5,
    /// A plain kind whose offsets do not fit into a rule: the tables are read each time ([`full_at`]).
    Wide = 6,
    /// Code of a file that has no table for it. As [`RuleKind::FramePointer`], and noted.
    NoTable = 7,
}

/// How unwinding a frame uses rbp: the bits of a plain rule that say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FpUse(u8);

impl FpUse {
    /// It is not read, and the caller's frame has the same value.
    pub const PRESERVED: FpUse = FpUse(0);
    /// Its value decides where the caller's frame is.
    pub const REQUIRED: FpUse = FpUse(BASE_IS_BP as u8);
    /// It is not read; the caller's value is restored from the stack.
    pub const RESTORED: FpUse = FpUse(SAVES_BP as u8);

    /// Returns whether a frame's rbp matters, whose caller's does or not.
    #[inline(always)]
    pub fn bp_matters(self, of_caller: bool) -> bool {
        self.0 & FpUse::REQUIRED.0 != 0 || self == FpUse::PRESERVED && of_caller
    }
}

/// A kind with its offsets, as the tables have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FullRule {
    /// Its kind.
    pub kind: RuleKind,
    /// The first offset.
    pub a: i32,
    /// The second offset.
    pub b: i32,
}

impl FullRule {
    const UNSUPPORTED: FullRule = FullRule { kind: RuleKind::Unsupported, a: 0, b: 0 };
    const FRAME_POINTER: FullRule = FullRule { kind: RuleKind::FramePointer, a: 0, b: 0 };
    const NO_TABLE: FullRule = FullRule { kind: RuleKind::NoTable, a: 0, b: 0 };

    fn packed(self) -> Rule {
        const A_LIMIT: i32 = 8 << 15;
        const B_LIMIT: i32 = 8 << 11;
        let fits = (-A_LIMIT..A_LIMIT).contains(&self.a) && (-B_LIMIT..B_LIMIT).contains(&self.b);
        if fits && (self.a | self.b) % 8 == 0 {
            return Rule(
                self.kind as u32 | ((self.a / 8) as u32 & 0xffff) << 4 | ((self.b / 8) as u32) << 20,
            );
        }
        Rule(if self.kind as u32 & PLAIN != 0 { RuleKind::Wide } else { RuleKind::Unsupported } as u32)
    }
}

/// A rule of one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule(u32);

impl Rule {
    /// Returns its kind.
    #[inline(always)]
    pub fn kind(self) -> RuleKind {
        match self.0 & 0xf {
            0x8 => RuleKind::Sp,
            0x9 => RuleKind::Bp,
            0xa => RuleKind::SpSavesBp,
            0xb => RuleKind::BpSavesBp,
            1 => RuleKind::Realigned,
            2 => RuleKind::Signal,
            3 => RuleKind::Root,
            4 => RuleKind::FramePointer,
            6 => RuleKind::Wide,
            7 => RuleKind::NoTable,
            _ => RuleKind::Unsupported,
        }
    }

    /// Returns whether it is one of the four plain kinds.
    #[inline(always)]
    pub fn is_plain(self) -> bool {
        self.0 & PLAIN != 0
    }

    /// For a plain kind: returns whether the frame is addressed through rbp.
    #[inline(always)]
    pub fn base_is_bp(self) -> bool {
        self.0 & BASE_IS_BP != 0
    }

    /// For a plain kind: returns whether rbp was saved.
    #[inline(always)]
    pub fn saves_bp(self) -> bool {
        self.0 & SAVES_BP != 0
    }

    /// Returns how unwinding uses rbp.
    #[inline(always)]
    pub fn fp_use(self) -> FpUse {
        match self.kind() {
            _ if self.is_plain() => FpUse((self.0 & (BASE_IS_BP | SAVES_BP)) as u8),
            RuleKind::Root => FpUse::PRESERVED,
            RuleKind::Signal => FpUse::RESTORED,
            _ => FpUse::REQUIRED,
        }
    }

    /// The first offset.
    #[inline(always)]
    pub fn a(self) -> isize {
        (((self.0 << 12) as i32 >> 13) & !7) as isize
    }

    /// The second offset.
    #[inline(always)]
    pub fn b(self) -> isize {
        ((self.0 as i32 >> 17) & !7) as isize
    }
}

/// Entries of the cache. A quarter of that is known to be too small for a compiler: clang missed it so often
/// that reading the tables again cost more than the walks.
const CACHE_ENTRIES: usize = 1 << 16;

static CACHE: [AtomicU64; CACHE_ENTRIES] = [const { AtomicU64::new(0) }; CACHE_ENTRIES];

/// Returns the first index for a program counter's rule; the other one is its neighbour in the pair. Call sites lie
/// anywhere, so the low bits are as good as a hash, and are available at once: each frame of a walk waits for the one
/// before it. (Putting the call sites of a function into one cache line, by places of 2 to 16 bytes of code, is no
/// faster: cc1plus.)
#[inline(always)]
fn place(pc: usize) -> usize {
    pc % CACHE_ENTRIES
}

/// Returns the bits of a program counter that its index does not determine: 31 above it, and the lowest, by which the
/// places of a pair differ. More than 32 for an invalid address, which matches no entry.
#[inline(always)]
fn tag(pc: usize) -> u64 {
    ((pc / CACHE_ENTRIES * 2) | (pc % 2)) as u64
}

/// The program counter of a place and a tag.
fn pc_of(place: usize, tag: u64) -> usize {
    (tag as usize / 2 * CACHE_ENTRIES) | (place & !1) | (tag as usize % 2)
}

/// The rule for a program counter, which must point into the instruction that is being executed. `generation` is that of the code
/// around it ([`unloads::since`]).
#[inline(always)]
pub fn rule_at(pc: usize, generation: u64) -> Rule {
    cached(pc).unwrap_or_else(|| miss(pc, generation))
}

/// The rule for such a program counter, if it is in the cache.
#[inline(always)]
fn cached(pc: usize) -> Option<Rule> {
    cached_such(pc, |rule| rule.0 != 0)
}

/// The rule for such a program counter, if it is plain and in the cache.
#[inline(always)]
pub(crate) fn cached_plain(pc: usize) -> Option<Rule> {
    cached_such(pc, Rule::is_plain)
}

/// `is_such` is false of the rule 0, which an empty entry has.
#[inline(always)]
fn cached_such(pc: usize, is_such: impl Fn(Rule) -> bool) -> Option<Rule> {
    for place in [place(pc), place(pc) ^ 1] {
        let entry = at(&CACHE, place).load(Ordering::Relaxed);
        if entry >> 32 == tag(pc) && is_such(Rule(entry as u32)) {
            return Some(Rule(entry as u32));
        }
    }
    None
}

#[cold]
#[inline(never)]
fn miss(pc: usize, generation: u64) -> Rule {
    let object = objects::find(pc);
    if let Some(object) = &object {
        // Before anything is known of its addresses.
        unloads::meet(object);
        if modules::log(object, generation) {
            script::meet(object);
        }
    }
    let full = object.map(|object| compile(&object, pc).unwrap_or_else(|| without_table(&object, pc)));
    let rule = full.unwrap_or(FullRule::FRAME_POINTER).packed();
    if tag(pc) >> 32 == 0 {
        // The pair of entries is a tiny set: prefer the empty one, else replace the second.
        let first = at(&CACHE, place(pc));
        let is_free = first.load(Ordering::Relaxed) == 0;
        let entry = if is_free { first } else { at(&CACHE, place(pc) ^ 1) };
        entry.store(tag(pc) << 32 | u64::from(rule.0), Ordering::SeqCst);
        // The rules of code that was unloaded meanwhile were removed before this one was inserted.
        if unloads::since(pc) != generation {
            entry.store(0, Ordering::Relaxed);
        }
    }
    rule
}

/// Reads the unwind tables for a program counter whose rule is [`RuleKind::Wide`].
#[inline(never)]
pub fn full_at(pc: usize) -> Option<FullRule> {
    compile(&objects::find(pc)?, pc)
}

/// Takes out the rules of addresses that were just vacated, whose stamp is `generation`. Called where nothing can be loaded meanwhile.
pub fn forget_vacated(generation: u64) {
    for (place, entry) in CACHE.iter().enumerate() {
        let word = entry.load(Ordering::Relaxed);
        if word != 0 && unloads::since(pc_of(place, word >> 32)) == generation {
            entry.store(0, Ordering::Relaxed);
        }
    }
}

/// Reads the tables of an object; `None` if they do not cover `pc`. Not inlined, so that its stack usage and that of
/// the look-up before it do not add up.
#[inline(never)]
fn compile(object: &Object, pc: usize) -> Option<FullRule> {
    let (row, is_signal) = cfi::row_at(object, pc)?;
    Some(if is_signal { signal_rule(&row) } else { plain_rule(&row) })
}

/// Returns the rule of code without a table. Some of C libraries' is known by its instructions.
fn without_table(object: &Object, pc: usize) -> FullRule {
    /// Enough to know what follows a call, and what was called.
    const BEFORE_BYTES: usize = 2;
    const BEHIND_BYTES: usize = 9;
    /// An offset in the kernel's `ucontext`, which begins just above the handler's return address.
    const SAVED_RSP: i32 = 160;
    let first = pc.wrapping_add(1).wrapping_sub(BEFORE_BYTES);
    let last = first.wrapping_add(BEFORE_BYTES + BEHIND_BYTES - 1);
    // Behind the code there may be a gap.
    let is_mapped = first / PAGE_BYTES == last / PAGE_BYTES || sys::is_readable(last);
    if first < object.start || last >= object.end || !is_mapped {
        return FullRule::NO_TABLE;
    }
    // SAFETY: within an object that is loaded, around an address that was on the stack as one to return to.
    let (before, behind) = unsafe { *(first as *const ([u8; BEFORE_BYTES], [u8; BEHIND_BYTES])) };
    if is_sigreturn(behind) {
        return FullRule { kind: RuleKind::Signal, a: SAVED_RSP, b: 0 };
    }
    if is_call_of_pointer(before) && ends_with_result(&behind) || is_start_context(&behind) {
        FullRule::FRAME_POINTER
    } else {
        FullRule::NO_TABLE
    }
}

/// Returns whether it is `mov rax, 15` and `syscall`, to which a signal's handler returns. Other unwinders know it so, too.
fn is_sigreturn(code: [u8; 9]) -> bool {
    code == [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05]
}

/// Returns whether it is what `makecontext` of glibc lets its function return to, of which tables cannot tell a caller: it begins with `mov rsp, rbx`.
fn is_start_context(code: &[u8]) -> bool {
    code.starts_with(&[0x48, 0x89, 0xdc])
}

/// Returns whether it is a `call` of an address in a register, or in memory where one points to.
fn is_call_of_pointer(code: [u8; 2]) -> bool {
    code[0] == 0xff && matches!(code[1], 0xd0..=0xd7 | 0x10..=0x17)
}

/// Returns whether code makes the result of a call the argument of a last one, as that does which calls `main` or the function of a thread:
/// `mov edi, eax`, `mov rdi, rax` or `movsxd rdi, eax`, and a `call`, or `xor eax, eax` and `mov al, 60` for the system call `exit`.
fn ends_with_result(code: &[u8]) -> bool {
    let rest = code
        .strip_prefix(&[0x89, 0xc7])
        .or_else(|| code.strip_prefix(&[0x48, 0x89, 0xc7]))
        .or_else(|| code.strip_prefix(&[0x48, 0x63, 0xf8]));
    rest.is_some_and(|rest| rest.starts_with(&[0xe8]) || rest.starts_with(&[0x31, 0xc0, 0xb0, 0x3c]))
}

fn plain_rule(row: &Row) -> FullRule {
    let unsupported = FullRule::UNSUPPORTED;
    match row.ra {
        Saved::Undefined => return FullRule { kind: RuleKind::Root, a: 0, b: 0 },
        // The rows of this ABI start with "the return address is at cfa - 8"; anything else is hand-written.
        Saved::At(-8) => {}
        _ => return unsupported,
    }
    match (row.frame, row.bp) {
        (FrameAddress::Register(register, offset), bp) => {
            let (keeps, saves) = match register {
                cfi::RSP => (RuleKind::Sp, RuleKind::SpSavesBp),
                cfi::RBP => (RuleKind::Bp, RuleKind::BpSavesBp),
                _ => return unsupported,
            };
            match bp {
                Saved::Unsaid | Saved::Undefined | Saved::Same => FullRule { kind: keeps, a: offset, b: 0 },
                Saved::At(saved) => FullRule { kind: saves, a: offset, b: saved },
                _ => unsupported,
            }
        }
        (FrameAddress::Expression(frame), Saved::AtExpression(bp)) => {
            let by_bp = frame.register == Some(cfi::RBP) && bp.register == Some(cfi::RBP);
            match (by_bp, frame.is_read, bp.is_read) {
                (true, true, false) => FullRule { kind: RuleKind::Realigned, a: frame.offset, b: bp.offset },
                _ => unsupported,
            }
        }
        _ => unsupported,
    }
}

/// The kernel's `ucontext` keeps the registers in a fixed order; the rule needs only the place of the saved
/// rsp.
fn signal_rule(row: &Row) -> FullRule {
    match row.frame {
        FrameAddress::Expression(frame) if frame.register == Some(cfi::RSP) && frame.is_read => {
            FullRule { kind: RuleKind::Signal, a: frame.offset, b: 0 }
        }
        _ => FullRule::UNSUPPORTED,
    }
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
