//! Interprets call frame information (`.eh_frame`) for one code address at a time.
//!
//! It supports only what a stack walk needs: the canonical frame address, and where rbp and the return address were saved.
//! It runs on the program's own stack, which may be a coroutine's of a few kilobytes, so its state is small: three rules where a
//! general interpreter keeps a table of all registers. All reads stay within the object that the tables belong to. A table that
//! ends early or is invalid yields no rule, and no input makes it panic.
//!
//! The format: Linux Standard Base, "Exception Frames"; the instructions: DWARF 5, section 6.4.2.

mod bytes;
mod entries;
mod machine;

use crate::objects::Object;
pub use entries::note_table;
use entries::{entry_around, find, range};
use machine::Machine;

/// DWARF's numbers of the registers that matter.
pub const RBP: u8 = 6;
/// See [`RBP`].
pub const RSP: u8 = 7;
const RETURN_ADDRESS: u8 = 16;
/// Any register that the walk does not need.
const OTHER_REGISTER: u8 = u8::MAX;

/// Where the caller's value of a register was saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saved {
    /// The table does not say.
    Unsaid,
    /// There is none: the frame is the outermost.
    Undefined,
    /// It is what it was.
    Same,
    /// At this distance from the frame's address.
    At(i32),
    /// At the address that an expression computes.
    AtExpression(Expression),
    /// By a rule that no compiler uses for these registers.
    Other,
}

/// The frame's address: the stack pointer before the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameAddress {
    /// The table does not say.
    Unsaid,
    /// A register and a distance.
    Register(u8, i32),
    /// The value of an expression.
    Expression(Expression),
}

/// The expressions that compilers write: a register and a distance, which may be read through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expression {
    /// The register; none when it is another kind of expression.
    pub register: Option<u8>,
    /// The distance.
    pub offset: i32,
    /// Whether the word at that address is read.
    pub is_read: bool,
}

/// The rules at one code address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The frame's address.
    pub frame: FrameAddress,
    /// rbp.
    pub bp: Saved,
    /// The return address.
    pub ra: Saved,
}

/// Returns the row of an object's tables for a code address, and whether it is a signal trampoline. `None` if the
/// tables do not cover it.
pub fn row_at(object: &Object, pc: usize) -> Option<(Row, bool)> {
    let fde = find(object, pc)?;
    let mut machine = Machine::new();
    machine.run(fde.cie.instructions, &fde.cie, usize::MAX)?;
    machine.begin_function(fde.start);
    machine.run(fde.instructions, &fde.cie, pc)?;
    Some((machine.row, fde.cie.is_signal))
}

/// Returns the bounds of the function, or the part of one, around a code address: its first byte and its end. `None`
/// if the tables do not cover it.
pub fn function_around(object: &Object, pc: usize) -> Option<(usize, usize)> {
    let (mut entry, cie) = entry_around(object, pc)?;
    let (start, length) = range(&mut entry, &cie)?;
    (pc.wrapping_sub(start) < length).then(|| (start, start.wrapping_add(length)))
}
