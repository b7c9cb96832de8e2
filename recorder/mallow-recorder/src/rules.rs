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

use crate::modules;
use crate::objects::{self, Object};
use core::sync::atomic::{AtomicU64, Ordering};
use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, NativeEndian, Operation, Register,
    RegisterRule, UnwindContext, UnwindContextStorage, UnwindExpression, UnwindSection, UnwindTableRow,
    X86_64,
};

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
    fn new(way: Way, a: i64, b: i64) -> Rule {
        const LIMIT: i64 = 1 << 29;
        if !(-LIMIT..LIMIT).contains(&a) || !(-LIMIT..LIMIT).contains(&b) {
            return Rule(Way::Foreign as u64);
        }
        Rule(way as u64 | (a as u64 & 0x3fff_ffff) << 4 | (b as u64) << 34)
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

/// The rule for a program counter, which must point into the instruction that is being executed. `generation`
/// changes when code is unloaded.
#[inline(always)]
pub fn rule_at(pc: usize, generation: u64) -> Rule {
    let tag = pc as u64 | generation << 48;
    let index = (tag.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as usize;
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

/// Room for evaluating a table row on the stack: x86-64 has 17 registers, `remember_state` is rarely nested.
struct OnStack;

impl UnwindContextStorage<usize> for OnStack {
    type Rules = [(Register, RegisterRule<usize>); 20];
    type Stack = [UnwindTableRow<usize, Self>; 3];
}

type Bytes = EndianSlice<'static, NativeEndian>;

/// Reads the tables of an object; none when they do not cover `pc`.
fn compile(object: &Object, pc: usize) -> Option<Rule> {
    if object.eh_frame_header == 0 || !(object.start..object.end).contains(&object.eh_frame_header) {
        return None;
    }
    let header_bytes = mapped(object, object.eh_frame_header);
    let bases = BaseAddresses::default().set_eh_frame_hdr(object.eh_frame_header as u64);
    let header = EhFrameHdr::new(header_bytes.slice(), NativeEndian).parse(&bases, 8).ok()?;
    let frames_at = header.eh_frame_ptr().direct().ok()? as usize;
    if !(object.start..object.end).contains(&frames_at) {
        return None;
    }
    let frames: EhFrame<Bytes> = EhFrame::new(mapped(object, frames_at).slice(), NativeEndian);
    let bases = bases.set_eh_frame(frames_at as u64);
    let fde = header.table()?.fde_for_address(&frames, &bases, pc as u64, EhFrame::cie_from_offset).ok()?;
    let mut context = UnwindContext::<usize, OnStack>::new_in();
    let row = fde.unwind_info_for_address(&frames, &bases, &mut context, pc as u64).ok()?;
    Some(if fde.is_signal_trampoline() { signal_rule(row, &frames) } else { plain_rule(row, &frames) })
}

fn plain_rule(row: &UnwindTableRow<usize, OnStack>, frames: &EhFrame<Bytes>) -> Rule {
    let foreign = Rule(Way::Foreign as u64);
    match row.register(X86_64::RA) {
        Some(RegisterRule::Undefined) => return Rule::new(Way::End, 0, 0),
        // The rows of this ABI start with "the return address is at cfa - 8"; anything else is hand-written.
        Some(RegisterRule::Offset(-8)) => {}
        _ => return foreign,
    }
    match (row.cfa(), row.register(X86_64::RBP)) {
        (CfaRule::RegisterAndOffset { register, offset }, bp) => {
            let (keeps, saves) = match *register {
                X86_64::RSP => (Way::Sp, Way::SpSavesBp),
                X86_64::RBP => (Way::Bp, Way::BpSavesBp),
                _ => return foreign,
            };
            match bp {
                None | Some(RegisterRule::Undefined | RegisterRule::SameValue) => {
                    Rule::new(keeps, *offset, 0)
                }
                Some(RegisterRule::Offset(saved)) => Rule::new(saves, *offset, saved),
                _ => foreign,
            }
        }
        (CfaRule::Expression(cfa), Some(RegisterRule::Expression(bp))) => {
            match (bp_relative(cfa, frames), bp_relative(&bp, frames)) {
                (Some((a, true)), Some((b, false))) => Rule::new(Way::Realigned, a, b),
                _ => foreign,
            }
        }
        _ => foreign,
    }
}

/// An expression `rbp + offset`, and whether it is then read through.
fn bp_relative(expression: &UnwindExpression<usize>, frames: &EhFrame<Bytes>) -> Option<(i64, bool)> {
    let (register, offset, deref) = register_relative(expression, frames)?;
    (register == X86_64::RBP).then_some((offset, deref))
}

fn register_relative(
    expression: &UnwindExpression<usize>,
    frames: &EhFrame<Bytes>,
) -> Option<(Register, i64, bool)> {
    let encoding = gimli::Encoding { address_size: 8, format: gimli::Format::Dwarf32, version: 4 };
    let mut operations = expression.get(frames).ok()?.operations(encoding);
    let Some(Operation::RegisterOffset { register, offset, .. }) = operations.next().ok()? else {
        return None;
    };
    let deref = match operations.next().ok()? {
        None => return Some((register, offset, false)),
        Some(Operation::Deref { size: 8, .. }) => true,
        Some(_) => return None,
    };
    operations.next().ok()?.is_none().then_some((register, offset, deref))
}

/// The kernel's `ucontext` keeps the registers in a fixed order; the rule needs only the place of the saved
/// rsp.
fn signal_rule(row: &UnwindTableRow<usize, OnStack>, frames: &EhFrame<Bytes>) -> Rule {
    let CfaRule::Expression(cfa) = row.cfa() else { return Rule(Way::Foreign as u64) };
    match register_relative(cfa, frames) {
        Some((X86_64::RSP, offset, true)) => Rule::new(Way::Signal, offset, 0),
        _ => Rule(Way::Foreign as u64),
    }
}

/// The bytes from `at` to the object's end.
struct Mapped(&'static [u8]);

impl Mapped {
    fn slice(&self) -> &'static [u8] {
        self.0
    }
}

fn mapped(object: &Object, at: usize) -> Mapped {
    // SAFETY: the tables lie in the object's mapping, which stays while code of the object is on a stack. The
    // slice may span gaps between segments, but the parser reads only within the tables, whose own lengths it
    // follows; it is dropped before this call returns.
    Mapped(unsafe { core::slice::from_raw_parts(at as *const u8, object.end - at) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_give_back_their_offsets() {
        for (a, b) in [(8, 0), (16, -16), ((1 << 29) - 1, -(1 << 29)), (-8, 7)] {
            let rule = Rule::new(Way::BpSavesBp, a as i64, b as i64);
            assert_eq!((rule.way(), rule.a(), rule.b()), (Way::BpSavesBp, a, b));
        }
        assert_eq!(Rule::new(Way::Sp, 1 << 29, 0).way(), Way::Foreign);
    }

    #[test]
    fn own_code_has_a_rule_and_nowhere_has_none() {
        let here = own_code_has_a_rule_and_nowhere_has_none as *const () as usize;
        assert!(matches!(rule_at(here + 1, 0).way(), Way::Sp | Way::SpSavesBp | Way::Bp | Way::BpSavesBp));
        assert_eq!(rule_at(16, 0).way(), Way::Guess);
    }
}
