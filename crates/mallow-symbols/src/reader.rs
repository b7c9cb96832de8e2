//! Bytes of a section as gimli and addr2line read them, with an end to how deeply a parser may call itself.
//!
//! addr2line calls itself once for each inlined call that is nested in another one. Two bytes of a file are such a call, and a stack that
//! overflows ends the program: nothing catches that. Depth cannot be seen from here, but the stack can: each entry begins with a number of
//! variable length, and whoever reads one far below the place where the look-up began gets an error instead.

use std::borrow::Cow;
use std::cell::Cell;

use gimli::{EndianSlice, Error, Reader, ReaderOffsetId, Result, RunTimeEndian};

/// The maximal stack usage of one look-up. Compilers nest some ten inlined calls, parsers use 2 KB for each at most.
pub(crate) const STACK_BYTES_MAX: usize = 512 << 10;

thread_local! {
    /// The address below which the stack of this thread must not grow; 0 where it may.
    static FLOOR: Cell<usize> = const { Cell::new(0) };
    /// Whether it would have exceeded it.
    static IS_TOO_DEEP: Cell<bool> = const { Cell::new(false) };
}

/// Runs a parser that may call itself; whether it was stopped because it did so too often.
pub(crate) fn bounded<T>(parse: impl FnOnce() -> T) -> (T, bool) {
    /// Parsers may panic.
    struct Before(usize);
    impl Drop for Before {
        fn drop(&mut self) {
            FLOOR.set(self.0);
        }
    }
    IS_TOO_DEEP.set(false);
    let _before = Before(FLOOR.replace(stack_address().saturating_sub(STACK_BYTES_MAX)));
    (parse(), IS_TOO_DEEP.get())
}

/// About where the stack of this thread ends now. It grows downwards wherever Linux runs.
#[inline]
fn stack_address() -> usize {
    let here = std::mem::MaybeUninit::<u8>::uninit();
    here.as_ptr().addr()
}

#[cold]
fn too_deep() -> Error {
    IS_TOO_DEEP.set(true);
    Error::Io
}

/// Bytes of a section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slice<'a>(EndianSlice<'a, RunTimeEndian>);

impl<'a> Slice<'a> {
    pub(crate) fn new(bytes: &'a [u8], order: RunTimeEndian) -> Slice<'a> {
        Slice(EndianSlice::new(bytes, order))
    }

    /// Little-endian ones.
    pub(crate) fn little(bytes: &'a [u8]) -> Slice<'a> {
        Slice::new(bytes, RunTimeEndian::Little)
    }

    pub(crate) fn slice(&self) -> &'a [u8] {
        self.0.slice()
    }
}

impl Reader for Slice<'_> {
    type Endian = RunTimeEndian;
    type Offset = usize;

    #[inline]
    fn endian(&self) -> RunTimeEndian {
        self.0.endian()
    }

    #[inline]
    fn len(&self) -> usize {
        self.0.slice().len()
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.0.slice().is_empty()
    }

    #[inline]
    fn empty(&mut self) {
        self.0.empty();
    }

    #[inline]
    fn truncate(&mut self, len: usize) -> Result<()> {
        self.0.truncate(len)
    }

    #[inline]
    fn offset_from(&self, base: &Self) -> usize {
        self.0.offset_from(base.0)
    }

    #[inline]
    fn offset_id(&self) -> ReaderOffsetId {
        self.0.offset_id()
    }

    #[inline]
    fn lookup_offset_id(&self, id: ReaderOffsetId) -> Option<usize> {
        self.0.lookup_offset_id(id)
    }

    #[inline]
    fn find(&self, byte: u8) -> Result<usize> {
        Reader::find(&self.0, byte)
    }

    #[inline]
    fn skip(&mut self, len: usize) -> Result<()> {
        self.0.skip(len)
    }

    #[inline]
    fn split(&mut self, len: usize) -> Result<Self> {
        self.0.split(len).map(Slice)
    }

    #[inline]
    fn to_slice(&self) -> Result<Cow<'_, [u8]>> {
        Ok(self.0.slice().into())
    }

    #[inline]
    fn to_string(&self) -> Result<Cow<'_, str>> {
        Reader::to_string(&self.0)
    }

    #[inline]
    fn to_string_lossy(&self) -> Result<Cow<'_, str>> {
        Ok(String::from_utf8_lossy(self.0.slice()))
    }

    #[inline]
    fn read_slice(&mut self, buf: &mut [u8]) -> Result<()> {
        Reader::read_slice(&mut self.0, buf)
    }

    #[inline]
    fn read_uleb128(&mut self) -> Result<u64> {
        if stack_address() < FLOOR.get() {
            return Err(too_deep());
        }
        // Nearly all numbers are one byte, so checking the stack costs nothing over what it replaces.
        match self.0.slice().first() {
            Some(&byte) if byte < 0x80 => self.0.skip(1).map(|()| u64::from(byte)),
            _ => self.0.read_uleb128(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{STACK_BYTES_MAX, Slice, bounded};
    use gimli::{Error, Reader, RunTimeEndian};

    /// Reads a number at the end of so many calls, each with a kilobyte on the stack.
    fn read_below(calls: usize) -> gimli::Result<u64> {
        let room = std::hint::black_box([1_u8; 1 << 10]);
        let number = match calls {
            0 => Slice::new(&[7], RunTimeEndian::Little).read_uleb128()?,
            _ => read_below(calls - 1)?,
        };
        Ok(number.min(u64::from(room[calls % room.len()]) * 7))
    }

    #[test]
    fn a_number_is_read_within_the_bound_and_refused_below_it() {
        assert_eq!(bounded(|| read_below(10)), (Ok(7), false));
        let below = STACK_BYTES_MAX >> 10;
        assert_eq!(bounded(|| read_below(below)), (Err(Error::Io), true));
        assert_eq!(bounded(|| read_below(10)), (Ok(7), false), "the next look-up begins anew");
        assert_eq!(read_below(below), Ok(7), "nothing is bounded that did not ask for it");
    }
}
