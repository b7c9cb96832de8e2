//! Interprets call frame information (`.eh_frame`) for one code address at a time.
//!
//! It supports only what a stack walk needs: the canonical frame address, and where rbp and the return address were saved.
//! It runs on the program's own stack, which may be a coroutine's of a few kilobytes, so its state is small: three rules where a
//! general interpreter keeps a table of all registers. All reads stay within the object that the tables belong to. A table that
//! ends early or is invalid yields no rule, and no input makes it panic.
//!
//! The format: Linux Standard Base, "Exception Frames"; the instructions: DWARF 5, section 6.4.2.

use crate::objects::Object;
use core::sync::atomic::{AtomicUsize, Ordering};

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

const UNSAID: Row = Row { frame: FrameAddress::Unsaid, bp: Saved::Unsaid, ra: Saved::Unsaid };

/// Returns the row of an object's tables for a code address, and whether it is a signal trampoline. `None` if the
/// tables do not cover it.
pub fn row_at(object: &Object, pc: usize) -> Option<(Row, bool)> {
    let fde = find(object, pc)?;
    let mut machine = Machine { row: UNSAID, initial: UNSAID, saved: [UNSAID; DEPTH_MAX], depth: 0, at: 0 };
    machine.run(fde.cie.instructions, &fde.cie, usize::MAX)?;
    machine.initial = machine.row;
    machine.at = fde.start;
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

/// Bytes that can be read, from the front.
#[derive(Clone, Copy)]
struct Bytes {
    at: usize,
    end: usize,
}

impl Bytes {
    /// From `at` to the end of the object; none when that lies elsewhere.
    fn of(object: &Object, at: usize) -> Option<Bytes> {
        (object.start..object.end).contains(&at).then_some(Bytes { at, end: object.end })
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let next = self.at.checked_add(N).filter(|next| *next <= self.end)?;
        // SAFETY: within the object, whose tables are mapped while code of it is on a stack. Bytes have no alignment.
        let bytes = unsafe { core::ptr::read_unaligned(self.at as *const [u8; N]) };
        self.at = next;
        Some(bytes)
    }

    fn skip(&mut self, bytes: u64) -> Option<()> {
        self.at = self.at.checked_add(usize::try_from(bytes).ok()?).filter(|next| *next <= self.end)?;
        Some(())
    }

    /// The next bytes by themselves.
    fn part(&mut self, bytes: u64) -> Option<Bytes> {
        let at = self.at;
        self.skip(bytes)?;
        Some(Bytes { at, end: self.at })
    }

    fn u8(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn register(&mut self) -> Option<u8> {
        self.uleb().map(|number| u8::try_from(number).unwrap_or(OTHER_REGISTER))
    }

    /// A distance without a sign; none when no frame is that large.
    fn distance(&mut self) -> Option<i32> {
        i32::try_from(self.uleb()?).ok()
    }

    fn uleb(&mut self) -> Option<u64> {
        self.leb().map(|(value, _, _)| value)
    }

    fn sleb(&mut self) -> Option<i64> {
        let (value, bits, is_negative) = self.leb()?;
        let extension = if is_negative && bits < 64 { u64::MAX << bits } else { 0 };
        Some((value | extension) as i64)
    }

    /// Groups of seven bits, the lowest first; how many bits there were, and the sign bit of the last group.
    #[inline(always)]
    fn leb(&mut self) -> Option<(u64, u32, bool)> {
        let first = self.u8()?;
        if first & 0x80 == 0 {
            return Some((first.into(), 7, first & 0x40 != 0));
        }
        self.leb_beyond(first)
    }

    /// The same behind its first group.
    #[inline(never)]
    fn leb_beyond(&mut self, first: u8) -> Option<(u64, u32, bool)> {
        let (mut value, mut bits) = (u64::from(first & 0x7f), 7u32);
        loop {
            let byte = self.u8()?;
            if bits < 64 {
                value |= u64::from(byte & 0x7f) << bits;
            }
            bits = bits.saturating_add(7);
            if byte & 0x80 == 0 {
                return Some((value, bits, byte & 0x40 != 0));
            }
        }
    }

    /// A pointer in one of the encodings of `.eh_frame`: how it is stored, in the low four bits, and what it is relative to.
    fn pointer(&mut self, encoding: u8) -> Option<u64> {
        let base = match encoding & 0xf0 {
            0x00 => 0,
            0x10 => self.at as u64,
            _ => return None,
        };
        Some(base.wrapping_add(self.stored(encoding)?))
    }

    fn stored(&mut self, encoding: u8) -> Option<u64> {
        Some(match encoding & 0x0f {
            0x0 | 0x4 | 0xc => self.u64()?,
            0x1 => self.uleb()?,
            0x2 => self.u16()?.into(),
            0x3 => self.u32()?.into(),
            0x9 => self.sleb()? as u64,
            0xa => i64::from(self.u16()? as i16) as u64,
            0xb => i64::from(self.u32()? as i32) as u64,
            _ => return None,
        })
    }

    /// The length at the front of an entry, and the entry itself.
    fn entry(&mut self) -> Option<Bytes> {
        const LONG: u32 = u32::MAX;
        let bytes = match self.u32()? {
            LONG => self.u64()?,
            bytes => bytes.into(),
        };
        self.part(bytes)
    }
}

/// The part that many functions share (common information entry).
struct Cie {
    code_align: u64,
    data_align: i64,
    pointer_encoding: u8,
    has_augmentation: bool,
    is_signal: bool,
    instructions: Bytes,
}

/// The entry of one function.
struct Fde {
    start: usize,
    instructions: Bytes,
    cie: Cie,
}

/// Finds the entry that covers `pc`.
#[inline(always)]
fn find(object: &Object, pc: usize) -> Option<Fde> {
    let (mut entry, cie) = entry_around(object, pc)?;
    let (start, length) = range(&mut entry, &cie)?;
    if pc.wrapping_sub(start) >= length {
        return None;
    }
    if cie.has_augmentation {
        let bytes = entry.uleb()?;
        entry.skip(bytes)?;
    }
    Some(Fde { start, instructions: entry, cie })
}

/// The first address that an entry covers, and how many bytes.
#[inline(always)]
fn range(entry: &mut Bytes, cie: &Cie) -> Option<(usize, usize)> {
    let start = entry.pointer(cie.pointer_encoding)? as usize;
    Some((start, entry.stored(cie.pointer_encoding)? as usize))
}

/// The entry that covers `pc` if one does, from its range on, by the sorted table of `.eh_frame_hdr`.
#[inline(always)]
fn entry_around(object: &Object, pc: usize) -> Option<(Bytes, Cie)> {
    let at = entry_before(object, pc)?;
    let mut bytes = Bytes::of(object, at)?;
    let mut entry = bytes.entry()?;
    let id_at = entry.at;
    let distance = entry.u32()? as usize;
    if distance == 0 {
        return None;
    }
    let cie = cie(Bytes::of(object, id_at.checked_sub(distance)?)?)?;
    Some((entry, cie))
}

/// A table of an object's functions: rows of two distances, of 4 bytes each and signed, to where a function and its entry begin.
struct Table {
    rows: Bytes,
    /// The base of relative distances.
    base: usize,
}

const ROW_BYTES: usize = 8;

/// The table that mallow made for a static executable whose linker made none: the executable's first byte, the
/// table's first byte and its end.
static OF_STATIC: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];

/// Notes a table for the object that begins at `start`.
///
/// # Safety
/// There are so many rows of 8 bytes, which stay.
pub unsafe fn note_table(start: usize, rows: usize, count: usize) {
    let words = [start, rows, rows + count * ROW_BYTES];
    OF_STATIC.iter().zip(words).for_each(|(place, word)| place.store(word, Ordering::Relaxed));
}

/// The table of `.eh_frame_hdr`, or the one that mallow made.
#[inline(always)]
fn table(object: &Object) -> Option<Table> {
    /// 4 bytes, signed, relative to the table's own address: what every linker writes.
    const TABLE_ENCODING: u8 = 0x3b;
    let header = object.eh_frame_header;
    if header == 0 {
        let [base, at, end] = OF_STATIC.each_ref().map(|place| place.load(Ordering::Relaxed));
        return (base == object.start).then_some(Table { rows: Bytes { at, end }, base });
    }
    let mut rows = Bytes::of(object, header)?;
    let [version, frames_encoding, count_encoding, table_encoding] = rows.take()?;
    if version != 1 || table_encoding != TABLE_ENCODING {
        return None;
    }
    rows.pointer(frames_encoding)?;
    let count = usize::try_from(rows.stored(count_encoding)?).ok()?;
    let bytes = count.min((rows.end - rows.at) / ROW_BYTES) * ROW_BYTES;
    Some(Table { rows: Bytes { end: rows.at + bytes, ..rows }, base: header })
}

/// Returns the address of the last entry that begins at or before `pc`.
fn entry_before(object: &Object, pc: usize) -> Option<usize> {
    let Table { rows, base } = table(object)?;
    let count = (rows.end - rows.at) / ROW_BYTES;
    let row = |index: usize| -> Option<(usize, usize)> {
        let mut row = Bytes { at: rows.at + index * ROW_BYTES, ..rows };
        let mut address = || Some(base.wrapping_add_signed(row.u32()? as i32 as isize));
        Some((address()?, address()?))
    };
    // All rows below `low` begin at or before `pc`, all from `high` on after it.
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if row(middle)?.0 <= pc { low = middle + 1 } else { high = middle }
    }
    row(low.checked_sub(1)?).map(|(_, entry)| entry)
}

fn cie(mut bytes: Bytes) -> Option<Cie> {
    let mut entry = bytes.entry()?;
    let (id, version) = (entry.u32()?, entry.u8()?);
    if id != 0 || !matches!(version, 1 | 3) {
        return None;
    }
    let mut letters = entry;
    while entry.u8()? != 0 {}
    let code_align = entry.uleb()?;
    let data_align = entry.sleb()?;
    let return_address = if version == 1 { entry.u8()?.into() } else { entry.uleb()? };
    if return_address != u64::from(RETURN_ADDRESS) {
        return None;
    }
    let mut cie = Cie {
        code_align,
        data_align,
        pointer_encoding: 0,
        has_augmentation: false,
        is_signal: false,
        instructions: entry,
    };
    match letters.u8()? {
        0 => return Some(cie),
        b'z' => cie.has_augmentation = true,
        _ => return None,
    }
    let bytes = entry.uleb()?;
    let mut data = entry.part(bytes)?;
    cie.instructions = entry;
    loop {
        match letters.u8()? {
            0 => return Some(cie),
            b'R' => cie.pointer_encoding = data.u8()?,
            b'S' => cie.is_signal = true,
            b'L' => _ = data.u8()?,
            b'P' => {
                let encoding = data.u8()?;
                data.stored(encoding)?;
            }
            // The following augmentation is unknown, and is skipped by its length.
            _ => return Some(cie),
        }
    }
}

/// How many rows can be remembered at once. Compilers remember one.
const DEPTH_MAX: usize = 2;

/// The frame's distance from its register (`DW_CFA_def_cfa_offset`).
const FRAME_SIZE: u8 = 0x0e;

struct Machine {
    row: Row,
    /// The row after the common instructions, to which registers are restored.
    initial: Row,
    saved: [Row; DEPTH_MAX],
    depth: usize,
    /// The code address for which the row holds.
    at: usize,
}

impl Machine {
    /// Executes instructions up to the first that applies after `pc` only.
    ///
    /// Nearly all of them are three, in turns: an address, the frame's size, a saved register. Each has a branch of its own, which a processor
    /// that has not met the table before guesses right more often than the target of one jump for all.
    fn run(&mut self, mut code: Bytes, cie: &Cie, pc: usize) -> Option<()> {
        const KIND: u8 = 0xc0;
        while code.at < code.end {
            let byte = code.u8()?;
            let low = byte & !KIND;
            if byte & KIND == 0x40 {
                self.advance(low.into(), cie);
            } else if byte == FRAME_SIZE {
                self.resize(&mut code)?;
                continue;
            } else if byte & KIND == 0x80 {
                let value = code.uleb()?;
                if matches!(low, RBP | RETURN_ADDRESS) {
                    self.save(low, at_scaled(value as i64, cie));
                }
                continue;
            } else if byte & KIND == KIND {
                self.restore(low);
                continue;
            } else {
                self.extended(byte, &mut code, cie)?;
            }
            if self.at > pc {
                // The instruction that went past changed nothing but the address.
                break;
            }
        }
        Some(())
    }

    #[inline(always)]
    fn resize(&mut self, bytes: &mut Bytes) -> Option<()> {
        self.row.frame = FrameAddress::Register(self.register()?, bytes.distance()?);
        Some(())
    }

    #[inline(never)]
    fn extended(&mut self, code: u8, bytes: &mut Bytes, cie: &Cie) -> Option<()> {
        match code {
            0x00 => {}
            0x01 => self.at = bytes.pointer(cie.pointer_encoding)? as usize,
            0x02 => self.advance(bytes.u8()?.into(), cie),
            0x03 => self.advance(bytes.u16()?.into(), cie),
            0x04 => self.advance(bytes.u32()?.into(), cie),
            0x05 => {
                let register = bytes.register()?;
                self.save(register, at_scaled(bytes.uleb()? as i64, cie));
            }
            0x06 => self.restore(bytes.register()?),
            0x07 => self.save(bytes.register()?, Saved::Undefined),
            0x08 => self.save(bytes.register()?, Saved::Same),
            0x09 | 0x14 | 0x15 => {
                let register = bytes.register()?;
                bytes.uleb()?;
                self.save(register, Saved::Other);
            }
            0x0a => {
                *self.saved.get_mut(self.depth)? = self.row;
                self.depth += 1;
            }
            0x0b => {
                self.depth = self.depth.checked_sub(1)?;
                self.row = *self.saved.get(self.depth)?;
            }
            0x0c => self.row.frame = FrameAddress::Register(bytes.register()?, bytes.distance()?),
            0x0d => self.row.frame = FrameAddress::Register(bytes.register()?, self.offset()?),
            FRAME_SIZE => self.resize(bytes)?,
            0x0f => self.row.frame = FrameAddress::Expression(expression(bytes)?),
            0x10 => {
                let register = bytes.register()?;
                self.save(register, Saved::AtExpression(expression(bytes)?));
            }
            0x11 => {
                let register = bytes.register()?;
                self.save(register, at_scaled(bytes.sleb()?, cie));
            }
            0x12 => self.row.frame = FrameAddress::Register(bytes.register()?, scaled(bytes.sleb()?, cie)?),
            0x13 => self.row.frame = FrameAddress::Register(self.register()?, scaled(bytes.sleb()?, cie)?),
            0x16 => {
                let register = bytes.register()?;
                expression(bytes)?;
                self.save(register, Saved::Other);
            }
            // The size of arguments on the stack: for those who unwind into a handler.
            0x2e => _ = bytes.uleb()?,
            0x2f => {
                let register = bytes.register()?;
                self.save(register, at_scaled((bytes.uleb()? as i64).wrapping_neg(), cie));
            }
            _ => return None,
        }
        Some(())
    }

    fn advance(&mut self, steps: u64, cie: &Cie) {
        self.at = self.at.saturating_add(steps.saturating_mul(cie.code_align) as usize);
    }

    fn save(&mut self, register: u8, how: Saved) {
        match register {
            RBP => self.row.bp = how,
            RETURN_ADDRESS => self.row.ra = how,
            _ => {}
        }
    }

    fn restore(&mut self, register: u8) {
        match register {
            RBP => self.row.bp = self.initial.bp,
            RETURN_ADDRESS => self.row.ra = self.initial.ra,
            _ => {}
        }
    }

    fn register(&self) -> Option<u8> {
        match self.row.frame {
            FrameAddress::Register(register, _) => Some(register),
            _ => None,
        }
    }

    fn offset(&self) -> Option<i32> {
        match self.row.frame {
            FrameAddress::Register(_, offset) => Some(offset),
            _ => None,
        }
    }
}

/// A distance in the unit of the table; none when no frame is that large.
fn scaled(value: i64, cie: &Cie) -> Option<i32> {
    i32::try_from(value.wrapping_mul(cie.data_align)).ok()
}

fn at_scaled(value: i64, cie: &Cie) -> Saved {
    scaled(value, cie).map_or(Saved::Other, Saved::At)
}

/// Reads an expression with its length in front. Some expressions begin with the canonical frame address on the
/// stack; those that we support do not use it.
fn expression(bytes: &mut Bytes) -> Option<Expression> {
    const FIRST_BASE: u8 = 0x70;
    const LAST_BASE: u8 = 0x8f;
    const BASE: u8 = 0x92;
    const READ: u8 = 0x06;
    let length = bytes.uleb()?;
    let mut code = bytes.part(length)?;
    let mut known = || -> Option<Expression> {
        let register = match code.u8()? {
            base @ FIRST_BASE..=LAST_BASE => base - FIRST_BASE,
            BASE => code.register()?,
            _ => return None,
        };
        let offset = i32::try_from(code.sleb()?).ok()?;
        let is_read = code.at < code.end;
        if is_read && (code.u8()? != READ || code.at < code.end) {
            return None;
        }
        Some(Expression { register: Some(register), offset, is_read })
    };
    Some(known().unwrap_or(Expression { register: None, offset: 0, is_read: false }))
}
