//! Executes the instructions of the tables.

use super::bytes::Bytes;
use super::entries::Cie;
use super::{Expression, FrameAddress, RBP, RETURN_ADDRESS, Row, Saved};

const UNSAID: Row = Row { frame: FrameAddress::Unsaid, bp: Saved::Unsaid, ra: Saved::Unsaid };

/// How many rows can be remembered at once. Compilers remember one.
const DEPTH_MAX: usize = 2;

/// The frame's distance from its register (`DW_CFA_def_cfa_offset`).
const FRAME_SIZE: u8 = 0x0e;

/// The machine, which knows the rules of three registers.
pub(super) struct Machine {
    pub(super) row: Row,
    /// The row after the common instructions, to which registers are restored.
    initial: Row,
    saved: [Row; DEPTH_MAX],
    depth: usize,
    /// The code address for which the row holds.
    at: usize,
}

impl Machine {
    pub(super) fn new() -> Machine {
        Machine { row: UNSAID, initial: UNSAID, saved: [UNSAID; DEPTH_MAX], depth: 0, at: 0 }
    }

    /// The common instructions have run: those of a function follow, which begins at `start`.
    pub(super) fn begin_function(&mut self, start: usize) {
        self.initial = self.row;
        self.at = start;
    }

    /// Executes instructions up to the first that applies after `pc` only.
    ///
    /// Nearly all of them are three, in turns: an address, the frame's size, a saved register. Each has a branch of its own, which a processor
    /// that has not met the table before guesses right more often than the target of one jump for all.
    pub(super) fn run(&mut self, mut code: Bytes, cie: &Cie, pc: usize) -> Option<()> {
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
