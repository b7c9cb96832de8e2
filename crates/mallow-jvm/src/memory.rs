//! The memory of a process, in copies.

use nix::errno::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::io::IoSliceMut;

/// Why bytes cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// The kernel does not let us.
    Refused,
    /// The process has ended.
    Gone,
    /// Nothing is there.
    Absent,
}

/// Memory of a process, or what stands for it.
pub trait Memory {
    /// Fills `into` with what lies at an address, all of it or nothing that counts.
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable>;
}

/// The memory of a process that runs.
#[derive(Clone, Copy, Debug)]
pub struct Process(Pid);

impl Process {
    /// The process with this number.
    pub fn new(pid: u32) -> Process {
        Process(Pid::from_raw(i32::try_from(pid).unwrap_or(0)))
    }
}

impl Memory for Process {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        let Ok(base) = usize::try_from(address) else { return Err(Unreadable::Absent) };
        let len = into.len();
        match process_vm_readv(self.0, &mut [IoSliceMut::new(into)], &[RemoteIoVec { base, len }]) {
            Ok(bytes) if bytes == len => Ok(()),
            Err(Errno::EPERM | Errno::EACCES | Errno::ENOSYS) => Err(Unreadable::Refused),
            Err(Errno::ESRCH) => Err(Unreadable::Gone),
            _ => Err(Unreadable::Absent),
        }
    }
}

/// Some bytes as an array.
pub(crate) fn array<const N: usize>(memory: &impl Memory, address: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    memory.read(address, &mut bytes).ok().map(|()| bytes)
}

/// A word.
pub(crate) fn word(memory: &impl Memory, address: u64) -> Option<u64> {
    array(memory, address).map(u64::from_le_bytes)
}

/// Four bytes with a sign.
pub(crate) fn int(memory: &impl Memory, address: u64) -> Option<i32> {
    array(memory, address).map(i32::from_le_bytes)
}

/// Two bytes.
pub(crate) fn short(memory: &impl Memory, address: u64) -> Option<u16> {
    array(memory, address).map(u16::from_le_bytes)
}

/// So many bytes; no more than `bytes_max`.
pub(crate) fn bytes(memory: &impl Memory, address: u64, bytes: u64, bytes_max: usize) -> Option<Vec<u8>> {
    let mut copy = vec![0; usize::try_from(bytes).ok().filter(|bytes| *bytes <= bytes_max)?];
    memory.read(address, &mut copy).ok().map(|()| copy)
}

/// A text that ends with a zero, as far as `bytes_max`.
pub(crate) fn text(memory: &impl Memory, address: u64, bytes_max: usize) -> Option<Vec<u8>> {
    const STEP: u64 = 16;
    let mut text: Vec<u8> = Vec::new();
    while text.len() < bytes_max {
        let at = address.checked_add(text.len() as u64)?;
        // No step goes into another page, which may not be there.
        let step = bytes(memory, at, STEP - at % STEP, STEP as usize)?;
        if let Some(end) = step.iter().position(|byte| *byte == 0) {
            text.extend(&step[..end]);
            break;
        }
        text.extend(step);
    }
    text.truncate(bytes_max);
    Some(text)
}

/// The first bytes of a structure, which are read at once; those behind them are read one by one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    start: u64,
    bytes: Vec<u8>,
}

impl Head {
    pub(crate) fn read(start: u64, memory: &impl Memory) -> Head {
        // Where memory ends there may be less of it.
        const BYTES: [u64; 2] = [384, 96];
        let read = BYTES.into_iter().find_map(|count| bytes(memory, start, count, BYTES[0] as usize));
        Head { start, bytes: read.unwrap_or_default() }
    }

    fn array<const N: usize>(&self, offset: u64, memory: &impl Memory) -> Option<[u8; N]> {
        let at = usize::try_from(offset).ok()?;
        match at.checked_add(N).and_then(|end| self.bytes.get(at..end)) {
            Some(bytes) => bytes.try_into().ok(),
            None => array(memory, self.start.wrapping_add(offset)),
        }
    }

    pub(crate) fn word(&self, offset: u64, memory: &impl Memory) -> Option<u64> {
        self.array(offset, memory).map(u64::from_le_bytes)
    }

    pub(crate) fn int(&self, offset: u64, memory: &impl Memory) -> Option<i32> {
        self.array(offset, memory).map(i32::from_le_bytes)
    }

    pub(crate) fn short(&self, offset: u64, memory: &impl Memory) -> Option<u16> {
        self.array(offset, memory).map(u16::from_le_bytes)
    }
}

/// Whole pages that were read once, for what is read in many small pieces.
pub(crate) struct Pages<'a, M> {
    memory: &'a M,
    kept: RefCell<FxHashMap<u64, Option<Box<[u8; PAGE_BYTES]>>>>,
}

const PAGE_BYTES: usize = 4096;
/// What lies in more pages is not there.
const PAGES_MAX: usize = 4096;

impl<'a, M: Memory> Pages<'a, M> {
    pub(crate) fn new(memory: &'a M) -> Pages<'a, M> {
        Pages { memory, kept: RefCell::default() }
    }
}

impl<M: Memory> Memory for Pages<'_, M> {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        let mut kept = self.kept.borrow_mut();
        let (mut at, mut left) = (address, into);
        while !left.is_empty() {
            let (page, offset) = (at / PAGE_BYTES as u64, at as usize % PAGE_BYTES);
            if !kept.contains_key(&page) && kept.len() < PAGES_MAX {
                let mut copy = Box::new([0; PAGE_BYTES]);
                let read = self.memory.read(page * PAGE_BYTES as u64, &mut copy[..]);
                kept.insert(page, read.ok().map(|()| copy));
            }
            let Some(Some(copy)) = kept.get(&page) else { return Err(Unreadable::Absent) };
            let count = left.len().min(PAGE_BYTES - offset);
            let (now, later) = left.split_at_mut(count);
            now.copy_from_slice(&copy[offset..offset + count]);
            left = later;
            at = at.wrapping_add(count as u64);
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod made_up {
    //! Memory that a test writes down.

    use super::{Memory, Unreadable};
    use std::cell::{Cell, RefCell};
    use std::collections::BTreeMap;

    /// Bytes by their addresses.
    #[derive(Default)]
    pub(crate) struct MadeUp {
        bytes: RefCell<BTreeMap<u64, u8>>,
        pub(crate) reads: Cell<u64>,
        /// Nothing is read any more, for this reason.
        pub(crate) refuses: Cell<Option<Unreadable>>,
    }

    impl MadeUp {
        pub(crate) fn put(&self, address: u64, bytes: &[u8]) {
            self.bytes.borrow_mut().extend((address..).zip(bytes.iter().copied()));
        }

        pub(crate) fn put_word(&self, address: u64, word: u64) {
            self.put(address, &word.to_le_bytes());
        }

        pub(crate) fn put_int(&self, address: u64, int: i32) {
            self.put(address, &int.to_le_bytes());
        }
    }

    impl Memory for &MadeUp {
        fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
            self.reads.set(self.reads.get() + 1);
            if let Some(why) = self.refuses.get() {
                return Err(why);
            }
            let bytes = self.bytes.borrow();
            for (at, byte) in into.iter_mut().enumerate() {
                let address = address.checked_add(at as u64).ok_or(Unreadable::Absent)?;
                *byte = *bytes.get(&address).ok_or(Unreadable::Absent)?;
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use made_up::MadeUp;

    #[test]
    fn our_own_memory_is_read_and_what_is_not_there_is_not() {
        let value = [0x1122_3344_5566_7788_u64, 7];
        let own = Process::new(std::process::id());
        assert_eq!(word(&own, value.as_ptr() as u64), Some(value[0]));
        assert_eq!(word(&own, 8), None);
        let mut byte = [0];
        assert_eq!(own.read(8, &mut byte), Err(Unreadable::Absent));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert_eq!(Process::new(child.id()).read(8, &mut byte), Err(Unreadable::Gone));
    }

    #[test]
    fn texts_end_with_a_zero_or_where_they_are_too_long() {
        let made_up = MadeUp::default();
        made_up.put(0x1ffa, b"method\0");
        made_up.put(0x2001, &[b'x'; 300]);
        let text = |address, most| text(&&made_up, address, most);
        assert_eq!(text(0x1ffa, 64).as_deref(), Some(&b"method"[..]));
        assert_eq!(text(0x1ffa, 3).as_deref(), Some(&b"met"[..]));
        assert_eq!(text(0x2001, 100).map(|text| text.len()), Some(100));
        assert_eq!(text(0x2001, 1000), None, "it goes on into nothing");
        assert_eq!((text(u64::MAX, 9), bytes(&&made_up, 0x2001, 1 << 40, 100)), (None, None));
    }

    #[test]
    fn a_page_is_read_once() {
        let made_up = MadeUp::default();
        made_up.put(0x1000, &[7; 8192]);
        let memory = &made_up;
        let pages = Pages::new(&memory);
        assert_eq!(word(&pages, 0x1ffc), Some(0x0707_0707_0707_0707));
        assert_eq!(
            (word(&pages, 0x1008), word(&pages, 0x2ffc), made_up.reads.get()),
            (Some(0x0707_0707_0707_0707), None, 3)
        );
    }
}
