//! Reads the tables, within the object that they belong to.

use super::OTHER_REGISTER;
use crate::objects::Object;

/// Bytes that can be read, from the front.
#[derive(Clone, Copy)]
pub(super) struct Bytes {
    pub(super) at: usize,
    pub(super) end: usize,
}

impl Bytes {
    /// From `at` to the end of the object; none when that lies elsewhere.
    pub(super) fn of(object: &Object, at: usize) -> Option<Bytes> {
        (object.start..object.end).contains(&at).then_some(Bytes { at, end: object.end })
    }

    pub(super) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let next = self.at.checked_add(N).filter(|next| *next <= self.end)?;
        // SAFETY: within the object, whose tables are mapped while code of it is on a stack. Bytes have no alignment.
        let bytes = unsafe { core::ptr::read_unaligned(self.at as *const [u8; N]) };
        self.at = next;
        Some(bytes)
    }

    pub(super) fn skip(&mut self, bytes: u64) -> Option<()> {
        self.at = self.at.checked_add(usize::try_from(bytes).ok()?).filter(|next| *next <= self.end)?;
        Some(())
    }

    /// The next bytes by themselves.
    pub(super) fn part(&mut self, bytes: u64) -> Option<Bytes> {
        let at = self.at;
        self.skip(bytes)?;
        Some(Bytes { at, end: self.at })
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    pub(super) fn register(&mut self) -> Option<u8> {
        self.uleb().map(|number| u8::try_from(number).unwrap_or(OTHER_REGISTER))
    }

    /// A distance without a sign; none when no frame is that large.
    pub(super) fn distance(&mut self) -> Option<i32> {
        i32::try_from(self.uleb()?).ok()
    }

    pub(super) fn uleb(&mut self) -> Option<u64> {
        self.leb().map(|(value, _, _)| value)
    }

    pub(super) fn sleb(&mut self) -> Option<i64> {
        let (value, bits, is_negative) = self.leb()?;
        let extension = if is_negative && bits < 64 { u64::MAX << bits } else { 0 };
        Some((value | extension) as i64)
    }

    /// Groups of seven bits, the lowest first; how many bits there were, and the sign bit of the last group.
    #[inline(always)]
    pub(super) fn leb(&mut self) -> Option<(u64, u32, bool)> {
        let first = self.u8()?;
        if first & 0x80 == 0 {
            return Some((first.into(), 7, first & 0x40 != 0));
        }
        self.leb_beyond(first)
    }

    /// The same behind its first group.
    #[inline(never)]
    pub(super) fn leb_beyond(&mut self, first: u8) -> Option<(u64, u32, bool)> {
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
    pub(super) fn pointer(&mut self, encoding: u8) -> Option<u64> {
        let base = match encoding & 0xf0 {
            0x00 => 0,
            0x10 => self.at as u64,
            _ => return None,
        };
        Some(base.wrapping_add(self.stored(encoding)?))
    }

    pub(super) fn stored(&mut self, encoding: u8) -> Option<u64> {
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
    pub(super) fn entry(&mut self) -> Option<Bytes> {
        const LONG: u32 = u32::MAX;
        let bytes = match self.u32()? {
            LONG => self.u64()?,
            bytes => bytes.into(),
        };
        self.part(bytes)
    }
}
