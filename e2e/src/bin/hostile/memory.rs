//! Shared memory as a recorder makes it, written to by anybody; and the door.

use mallow_wire::handshake::{HANDSHAKE_MAGIC, Handshake, SESSION_VARIABLE};
use mallow_wire::script::{RecordHead, Scripts};
use mallow_wire::shared::*;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags,
    SocketType, connect, sendmsg, socket_with,
};
use std::io::IoSlice;
use std::mem::offset_of;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What the environment says of the collector.
pub(crate) struct Session {
    name: String,
    token: [u8; 16],
}

impl Session {
    pub(crate) fn find() -> Option<Session> {
        let value = std::env::var(SESSION_VARIABLE).ok()?;
        let mut parts = value.split(':');
        let (name, digits) = (parts.next()?.to_owned(), parts.next()?);
        let mut token = [0; 16];
        for (at, byte) in token.iter_mut().enumerate() {
            *byte = u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok()?;
        }
        Some(Session { name, token })
    }

    /// Hands a file over as if it were shared memory.
    pub(crate) fn register(&self, memory: &OwnedFd) {
        let handshake = Handshake {
            magic: HANDSHAKE_MAGIC,
            version: SHARED_VERSION,
            pid: std::process::id(),
            token: self.token,
        };
        self.send(&handshake.to_bytes(), Some(memory));
    }

    /// Says something.
    pub(crate) fn say(&self, message: &[u8]) {
        self.send(message, None);
    }

    fn send(&self, message: &[u8], file: Option<&OwnedFd>) {
        let Ok(socket) = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
        else {
            return;
        };
        let Ok(address) = SocketAddrUnix::new_abstract_name(self.name.as_bytes()) else { return };
        if connect(&socket, &address).is_err() {
            return;
        }
        let files: Vec<_> = file.iter().map(|file| file.as_fd()).collect();
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&files));
        let _ = sendmsg(&socket, &[IoSlice::new(message)], &mut control, SendFlags::NOSIGNAL);
    }
}

/// Memory in the recorder's layout.
pub(crate) struct Memory {
    base: *mut u8,
    bytes: usize,
    fd: Option<OwnedFd>,
    /// Who has not left it by then has died.
    patience: Instant,
}

const PATIENCE: Duration = Duration::from_secs(120);

/// What the real recorder shares.
pub(crate) fn own_memory() -> Option<Memory> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.contains("memfd:mallow"))?;
    let (start, rest) = line.split_once('-')?;
    let end = rest.split(' ').next()?;
    let number = |text: &str| usize::from_str_radix(text, 16).ok();
    let (start, end) = (number(start)?, number(end)?);
    Some(Memory { base: start as *mut u8, bytes: end - start, fd: None, patience: Instant::now() + PATIENCE })
}

impl Memory {
    /// As any recorder would make it, for so many threads.
    pub(crate) fn new(channels: usize) -> Memory {
        let fd = memfd_create("hostile", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
            .expect("memory can be had");
        let bytes = file_bytes(channels);
        ftruncate(&fd, bytes as u64).expect("it can be as long as a recorder's");
        fcntl_add_seals(&fd, SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW)
            .expect("its length can be sealed");
        // SAFETY: a new mapping at a place of the kernel's choice.
        let base = unsafe {
            mmap(std::ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, &fd, 0)
        };
        let base = base.expect("it can be mapped").cast();
        let memory = Memory { base, bytes, fd: Some(fd), patience: Instant::now() + PATIENCE };
        memory.put(offset_of!(Header, magic), SHARED_MAGIC);
        memory.put32(offset_of!(Header, version), SHARED_VERSION);
        memory.put32(offset_of!(Header, pid), std::process::id());
        memory.put32(offset_of!(Header, channel_count), channels as u32);
        memory.put32(offset_of!(Header, channels_high), channels as u32);
        memory.put32(CHANNELS_OFFSET + offset_of!(Channel, state), CHANNEL_OWNED);
        memory.put32(CHANNELS_OFFSET + offset_of!(Channel, tid), std::process::id());
        memory.put(CHANNELS_OFFSET + offset_of!(Channel, taken_serial), 1);
        memory
    }

    pub(crate) fn fd(&self) -> &OwnedFd {
        self.fd.as_ref().expect("it was made here")
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset + 8 <= self.bytes);
        // SAFETY: within the mapping by the check above.
        unsafe { &*self.base.add(offset).cast() }
    }

    pub(crate) fn put(&self, offset: usize, value: u64) {
        self.word(offset).store(value, Ordering::Release);
    }

    fn word32(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4) && offset + 4 <= self.bytes);
        // SAFETY: within the mapping by the check above.
        unsafe { &*self.base.add(offset).cast() }
    }

    pub(crate) fn put32(&self, offset: usize, value: u32) {
        self.word32(offset).store(value, Ordering::Release);
    }

    pub(crate) fn node(&self, id: u32, key: u64, parent: u64) {
        let at = NODES_OFFSET + id as usize * size_of::<Node>();
        self.put(at, key);
        self.put(at + 8, parent);
    }

    /// Returns whether nobody reads it any more, or that is to be supposed.
    pub(crate) fn is_left(&self) -> bool {
        let heartbeat = self.word32(offset_of!(Header, heartbeat)).load(Ordering::Acquire);
        heartbeat == HEARTBEAT_LEFT || Instant::now() >= self.patience
    }

    /// Waits until nobody reads it any more.
    pub(crate) fn wait_until_left(&self) {
        while !self.is_left() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Writes words at a ring's head as a recorder does, waiting for room for as long as somebody reads.
    pub(crate) fn publish(&self, channel: usize, words: &[u64]) {
        let at = CHANNELS_OFFSET + channel * size_of::<Channel>();
        let (head, tail) =
            (self.word(at + offset_of!(Channel, head)), self.word(at + offset_of!(Channel, tail)));
        let position = head.load(Ordering::Relaxed);
        while position + words.len() as u64 > tail.load(Ordering::Acquire) + RING_WORDS as u64 {
            if self.is_left() {
                return;
            }
            std::thread::yield_now();
        }
        for (position, word) in (position..).zip(words) {
            self.put(RINGS_OFFSET + channel * RING_BYTES + (position as usize & (RING_WORDS - 1)) * 8, *word);
        }
        head.store(position + words.len() as u64, Ordering::Release);
    }

    /// Writes a module into the log; gives its record's length.
    pub(crate) fn module(&self, at: usize, path: &[u8], generation: u64, [start, end]: [u64; 2]) -> usize {
        let fixed = size_of::<ModuleRecord>();
        let bytes = (fixed + path.len()).next_multiple_of(8);
        let at = MODULES_OFFSET + at;
        for (place, chunk) in (at + fixed..).step_by(8).zip(path.chunks(8)) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.put(place, u64::from_le_bytes(word));
        }
        self.put(at + offset_of!(ModuleRecord, start_avma), start);
        self.put(at + offset_of!(ModuleRecord, end_avma), end);
        self.put(at + offset_of!(ModuleRecord, generation), generation);
        let length = offset_of!(ModuleRecord, path_bytes);
        self.put32(at + length / 4 * 4, (path.len() as u32) << (length % 4 * 8));
        self.put32(at + offset_of!(ModuleRecord, record_bytes), bytes as u32);
        bytes
    }

    /// Writes that a module was met again.
    pub(crate) fn module_again(&self, at: usize, of: u32, generation: u64) -> usize {
        let at = MODULES_OFFSET + at;
        self.put32(at + offset_of!(ModuleAgain, offset), of);
        self.put(at + offset_of!(ModuleAgain, generation), generation);
        self.put32(at + offset_of!(ModuleAgain, record_bytes), size_of::<ModuleAgain>() as u32);
        size_of::<ModuleAgain>()
    }

    /// Writes a record of the log of code; gives its length.
    pub(crate) fn code(
        &self,
        at: usize,
        runtime: u16,
        kind: u16,
        fill: impl Fn(&dyn Fn(usize, u32)),
        bytes: usize,
    ) -> usize {
        let bytes = bytes.next_multiple_of(8);
        let at = CODES_OFFSET + at;
        fill(&|offset, value| self.put32(at + offset, value));
        let head = offset_of!(RecordHead, kind);
        self.put32(at + head / 4 * 4, u32::from(kind) | u32::from(runtime) << 16);
        self.put32(at + offset_of!(RecordHead, record_bytes), bytes as u32);
        bytes
    }

    pub(crate) fn code_reserved(&self, bytes: usize) {
        self.put(offset_of!(Header, scripts) + offset_of!(Scripts, log_reserved), bytes as u64);
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.fd.is_some() {
            // SAFETY: the mapping is ours, and nobody looks at it any more.
            let _ = unsafe { munmap(self.base.cast(), self.bytes) };
        }
    }
}
