//! For tests: a process's shared memory as a recorder would write it.

use crate::mapping::Mapping;
use mallow_wire::event::{self, Kind};
use mallow_wire::shared::*;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;

/// A memfd in the layout of this version.
pub(crate) struct SharedMemory {
    file: std::fs::File,
    fd: OwnedFd,
}

impl SharedMemory {
    /// One with an empty ring for each channel, of a process with our own id.
    pub(crate) fn new(channel_count: usize) -> SharedMemory {
        let fd = rustix::fs::memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        let file = std::fs::File::from(fd.try_clone().unwrap());
        file.set_len(file_bytes(channel_count) as u64).unwrap();
        fcntl_add_seals(&fd, SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW).unwrap();
        let memory = SharedMemory { file, fd };
        memory.write(std::mem::offset_of!(Header, magic), &SHARED_MAGIC.to_le_bytes());
        memory.write(std::mem::offset_of!(Header, version), &SHARED_VERSION.to_le_bytes());
        memory.write(std::mem::offset_of!(Header, pid), &std::process::id().to_le_bytes());
        memory.write(std::mem::offset_of!(Header, channel_count), &(channel_count as u32).to_le_bytes());
        memory.write(std::mem::offset_of!(Header, channels_high), &(channel_count as u32).to_le_bytes());
        memory
    }

    /// Returns the descriptor that a process sends to the collector.
    pub(crate) fn handed_over(&self) -> OwnedFd {
        self.fd.try_clone().unwrap()
    }

    /// Puts bytes at an offset of the file.
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) {
        self.file.write_all_at(bytes, offset as u64).unwrap();
    }

    /// The collector's view.
    pub(crate) fn map(&self) -> Mapping {
        Mapping::new(&self.fd).unwrap()
    }

    /// Says who owns a channel.
    pub(crate) fn own(&self, channel: usize, tid: u32, taken_serial: u64) {
        let mapping = self.map();
        let channel = mapping.channel(channel);
        channel.state.store(CHANNEL_OWNED, Ordering::Relaxed);
        channel.tid.store(tid, Ordering::Relaxed);
        channel.taken_serial.store(taken_serial, Ordering::Release);
    }

    /// Puts words at a ring's head and publishes them.
    pub(crate) fn push(&self, channel: usize, words: &[u64]) {
        let mapping = self.map();
        let head = mapping.channel(channel).head.load(Ordering::Relaxed);
        for (position, word) in (head..).zip(words) {
            let index = position as usize & (RING_WORDS - 1);
            self.write(RINGS_OFFSET + channel * RING_BYTES + index * 8, &word.to_le_bytes());
        }
        mapping.channel(channel).head.store(head + words.len() as u64, Ordering::Release);
    }

    /// Publishes an allocation, without a time of its own when the stamp is 0.
    pub(crate) fn alloc(&self, channel: usize, tsc: u64, address: u64, size: u64, node: u32) {
        let words = [event::word0(Kind::Alloc, address, size), event::word1(size, node)];
        self.push_at(channel, tsc, &words);
    }

    /// Publishes a free.
    pub(crate) fn free(&self, channel: usize, tsc: u64, address: u64) {
        self.push_at(channel, tsc, &[event::word0(Kind::Free, address, 0)]);
    }

    fn push_at(&self, channel: usize, tsc: u64, words: &[u64]) {
        let time = (tsc != 0).then(|| event::time_word(tsc));
        self.push(channel, &Vec::from_iter(time.into_iter().chain(words.iter().copied())));
    }

    /// Writes a node; `parent` is its parent's id plus 1.
    pub(crate) fn node(&self, id: u32, key: u64, parent: u64) {
        let offset = NODES_OFFSET + id as usize * size_of::<Node>();
        self.write(offset, &key.to_le_bytes());
        self.write(offset + 8, &parent.to_le_bytes());
    }
}
