//! The shared memory of a process, seen from outside.
//!
//! The only unsafe code of the collector's data path. The memory is written by a program that may do anything
//! at any time, so it is only ever read through atomics, through bounds that were fixed when it was mapped,
//! and nothing read from it is used unchecked.

use crate::error::CollectError;
use crate::guesses::Guesses;
use crate::moment::Moment;
use crate::prefetch::prefetch;
use mallow_scripts::CodeLog;
use mallow_trace::MappedModule;
use mallow_wire::script::{CODE_LOG_BYTES, Scripts};
use mallow_wire::shared::*;
use mallow_wire::starts::*;
use rustix::fs::SealFlags;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// A note that was taken out of the shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Noted {
    pub(crate) pid: u32,
    pub(crate) at: Moment,
    pub(crate) network: u64,
    pub(crate) found: u32,
    pub(crate) path: String,
}

/// A file as tables of mappings name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

/// A mapping of a process's shared memory.
#[derive(Debug)]
pub(crate) struct Mapping {
    memory: Arc<Memory>,
    channel_count: usize,
    /// The header at the start.
    at_start: Box<Header>,
    file: FileId,
}

/// The bytes themselves.
#[derive(Debug)]
pub(crate) struct Memory {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping is owned, and all access goes through atomics.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// The first page, of which only atomics may be read: the program can write it at any time.
    pub(crate) fn header(&self) -> &Header {
        // SAFETY: the mapping begins with it.
        unsafe { &*self.base.as_ptr().cast::<Header>() }
    }

    /// Returns a copy of bytes. The program may write them meanwhile: they are copied once, and only the copy is
    /// used.
    fn copied(&self, offset: usize, bytes: usize) -> Vec<u8> {
        assert!(offset.checked_add(bytes).is_some_and(|end| end <= self.bytes));
        // SAFETY: within the mapping by the check above; a byte is read as an atomic.
        let byte = |at| unsafe { (*self.base.as_ptr().add(at).cast::<AtomicU8>()).load(Ordering::Relaxed) };
        (offset..offset + bytes).map(byte).collect()
    }

    /// A copy of a record: a `T` of `mallow-wire`, which consists of numbers alone.
    fn record<T>(&self, offset: usize) -> T {
        let bytes = self.copied(offset, size_of::<T>());
        // SAFETY: as many bytes as it has, and any bytes are numbers.
        unsafe { bytes.as_ptr().cast::<T>().read_unaligned() }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference outlives `self`.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

impl Mapping {
    /// Maps the file that a process handed over, after checking that it has the layout of this version.
    pub(crate) fn new(fd: &OwnedFd) -> Result<Mapping, CollectError> {
        use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap};
        // A process with the token can send any file; truncating a mapped file would kill us by a signal.
        let lasting = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW;
        // What is made of huge pages can be without a page when it is read.
        const SHMEM_MAGIC: rustix::fs::FsWord = 0x0102_1994;
        if !rustix::fs::fstatfs(fd).is_ok_and(|system| system.f_type == SHMEM_MAGIC) {
            return Err(unsealed());
        }
        if !rustix::fs::fcntl_get_seals(fd).is_ok_and(|seals| seals.contains(lasting)) {
            return Err(unsealed());
        }
        let about = rustix::fs::fstat(fd).map_err(CollectError::system("inspect the shared memory"))?;
        let size = about.st_size as usize;
        let channel_count = size.saturating_sub(RINGS_OFFSET) / RING_BYTES;
        if size < file_bytes(1) || channel_count > CHANNEL_COUNT_MAX {
            return Err(odd_layout());
        }
        // SAFETY: a fresh mapping at an address of the kernel's choice, of a file that keeps its length.
        let base = unsafe {
            mmap(std::ptr::null_mut(), size, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, fd, 0)
                .map_err(CollectError::system("map the shared memory"))?
        };
        // As in the process itself: what is read here first must not be backed by large pages.
        // SAFETY: advice on how a mapping of ours is backed.
        let _ = unsafe { madvise(base, size, Advice::LinuxNoHugepage) };
        let base = NonNull::new(base.cast()).ok_or_else(odd_layout)?;
        let memory = Arc::new(Memory { base, bytes: size });
        let file = FileId { device: about.st_dev, inode: about.st_ino };
        let mapping = Mapping { at_start: Box::new(memory.record(0)), memory, channel_count, file };
        let header = mapping.at_start();
        if header.magic != SHARED_MAGIC
            || header.version != SHARED_VERSION
            || header.channel_count as usize > channel_count
        {
            return Err(odd_layout());
        }
        Ok(mapping)
    }

    /// As [`Memory::header`].
    pub(crate) fn header(&self) -> &Header {
        self.memory.header()
    }

    /// Returns the first page as it was when the memory was sent: it contains the constants.
    pub(crate) fn at_start(&self) -> &Header {
        &self.at_start
    }

    /// The file of the memory.
    pub(crate) fn file(&self) -> FileId {
        self.file
    }

    /// The memory, for whoever looks at it after the process is closed as well.
    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// Tells the recorder whether the collector may sleep behind the pass that begins.
    pub(crate) fn want_doorbell(&self, is_wanted: bool) {
        let doorbell = &self.header().doorbell;
        // Who fills a ring reads it, and would wait for the line if it was written each time.
        if doorbell.is_wanted.load(Ordering::Relaxed) != u32::from(is_wanted) {
            doorbell.is_wanted.store(u32::from(is_wanted), Ordering::SeqCst);
        }
    }

    /// Tells the recorder that the collector is alive, that the next event of each thread needs a stamp, and whether
    /// later events may go without.
    pub(crate) fn beat(&self, is_busy: bool) {
        self.header().heartbeat.fetch_add(1, Ordering::Relaxed);
        let order = &self.header().order.word;
        let word = order.load(Ordering::Relaxed);
        if order_owner(word) != ORDER_MANY {
            // It changes between the two when a thread takes it, once or twice in a process: then the next pass will
            // do it.
            let next = next_order(word, is_busy);
            let _ = order.compare_exchange(word, next, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Channels that have been used.
    pub(crate) fn channels_high(&self) -> usize {
        (self.header().channels_high.load(Ordering::Acquire) as usize).min(self.channel_count)
    }

    /// A channel below [`Mapping::channels_high`].
    pub(crate) fn channel(&self, index: usize) -> &Channel {
        assert!(index < self.channel_count);
        // SAFETY: within the mapping by the check above and that of `new`.
        unsafe { &*self.base().add(CHANNELS_OFFSET).cast::<Channel>().add(index) }
    }

    /// Calls that the recorder counted and did not record.
    pub(crate) fn events_lost(&self) -> u64 {
        let of_channels =
            (0..self.channels_high()).map(|index| self.channel(index).lost.load(Ordering::Relaxed));
        of_channels.fold(self.header().events_lost.load(Ordering::Relaxed), u64::saturating_add)
    }

    /// A channel's ring.
    pub(crate) fn ring(&self, index: usize) -> Ring<'_> {
        assert!(index < self.channel_count);
        // SAFETY: as for `channel`; the words are only read as atomics.
        let words = unsafe {
            let start = self.base().add(RINGS_OFFSET + index * RING_BYTES).cast::<AtomicU64>();
            &*start.cast::<[AtomicU64; RING_WORDS]>()
        };
        Ring { words }
    }

    /// The path of the executable; none when it is not known.
    pub(crate) fn executable(&self) -> Option<&Path> {
        let header = self.at_start();
        let path = header.executable.get(..header.executable_bytes as usize)?;
        (!path.is_empty()).then(|| Path::new(OsStr::from_bytes(path)))
    }

    /// The command line that a process has sent, or its executable: one in a sandbox cannot read its own, and a program may have wiped it.
    pub(crate) fn command(&self, sent: String) -> String {
        match self.executable() {
            Some(executable) if sent.is_empty() => executable.to_string_lossy().into_owned(),
            _ => sent,
        }
    }

    /// Takes a note of a program that is started; none when there is none at this place. The process was that number of all to register.
    pub(crate) fn take_start(&self, place: usize, index: u32) -> Option<Noted> {
        assert!(place < START_NOTES);
        // SAFETY: within the mapping by the check above; all fields are atomics.
        let note = unsafe { &*self.base().add(STARTS_OFFSET).cast::<StartNote>().add(place) };
        if note.state.load(Ordering::Acquire) != START_NOTED {
            return None;
        }
        let path_bytes = (note.path_bytes.load(Ordering::Relaxed) as usize).min(note.path.len());
        let path: Vec<u8> = note.path[..path_bytes].iter().map(|byte| byte.load(Ordering::Relaxed)).collect();
        let noted = Noted {
            pid: note.pid.load(Ordering::Relaxed),
            at: Moment::of_note(&self.at_start, index, note.time_ns.load(Ordering::Relaxed)),
            network: note.network.load(Ordering::Relaxed),
            found: note.found.load(Ordering::Relaxed),
            path: String::from_utf8_lossy(&path).into_owned(),
        };
        // Its writer may withdraw it at the same time: then it was never there.
        let taken = note.state.compare_exchange(START_NOTED, START_FREE, Ordering::AcqRel, Ordering::Relaxed);
        taken.is_ok().then_some(noted)
    }

    /// The frames whose callers were guessed.
    pub(crate) fn guesses(&self) -> Guesses {
        let header = self.header();
        if header.has_guesses.load(Ordering::Relaxed) == 0 {
            return Guesses::default();
        }
        // SAFETY: within the mapping; the entries are only read as atomics.
        let table = unsafe { &*self.base().add(GUESSES_OFFSET).cast::<[AtomicU64; GUESSES]>() };
        let keys = table.iter().map(|key| key.load(Ordering::Relaxed)).filter(|key| *key != 0).collect();
        let or_more = header.has_more_guesses.load(Ordering::Relaxed) != 0;
        let executable = self.executable().and_then(Path::file_name);
        let executable = executable.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Guesses { keys, or_more, executable, is_go: false }
    }

    /// A stack node; none when the id is not one.
    pub(crate) fn node(&self, id: u32) -> Option<&Node> {
        if id as usize >= NODE_COUNT {
            return None;
        }
        // SAFETY: within the table by the check above.
        Some(unsafe { &*self.base().add(NODES_OFFSET).cast::<Node>().add(id as usize) })
    }

    /// Returns the next record of the module log after `offset`, and the offset after it. `None` if it is not there
    /// yet.
    pub(crate) fn module(&self, offset: usize) -> Option<(MappedModule, usize)> {
        let again_bytes = size_of::<ModuleAgain>();
        if let Some((module, record_bytes)) = self.whole_module(offset) {
            return Some((module, offset + record_bytes));
        }
        if !offset.is_multiple_of(8) || offset + again_bytes > self.log_used() {
            return None;
        }
        // SAFETY: it lies within the log; its length is an atomic.
        let length =
            unsafe { &(*self.base().add(MODULES_OFFSET + offset).cast::<ModuleAgain>()).record_bytes };
        if length.load(Ordering::Acquire) as usize != again_bytes {
            return None;
        }
        let again: ModuleAgain = self.memory.record(MODULES_OFFSET + offset);
        let (module, _) = self.whole_module(again.offset as usize)?;
        Some((MappedModule { generation: again.generation, ..module }, offset + again_bytes))
    }

    /// The module whose own record begins at an offset of the log, and the record's length.
    fn whole_module(&self, offset: usize) -> Option<(MappedModule, usize)> {
        let (used, fixed) = (self.log_used(), size_of::<ModuleRecord>());
        if !offset.is_multiple_of(8) || offset + fixed > used {
            return None;
        }
        // SAFETY: the record's fixed part lies within the log; its length is an atomic.
        let length =
            unsafe { &(*self.base().add(MODULES_OFFSET + offset).cast::<ModuleRecord>()).record_bytes };
        let record_bytes = length.load(Ordering::Acquire) as usize;
        // What is whole is never written again, by a program that means well.
        let record: ModuleRecord = self.memory.record(MODULES_OFFSET + offset);
        let (path_bytes, id_bytes) = (record.path_bytes as usize, record.build_id_bytes as usize);
        if !record_bytes.is_multiple_of(8)
            || record_bytes < fixed + path_bytes + id_bytes
            || path_bytes > PATH_BYTES_MAX
            || offset + record_bytes > used
        {
            return None;
        }
        let text = self.memory.copied(MODULES_OFFSET + offset + fixed, path_bytes + id_bytes);
        let (path, build_id) = text.split_at(path_bytes);
        let module = MappedModule {
            path: String::from_utf8_lossy(path).into_owned(),
            build_id: build_id.to_vec(),
            start_avma: record.start_avma,
            end_avma: record.end_avma,
            bias: record.bias,
            generation: record.generation,
        };
        Some((module, record_bytes))
    }

    fn base(&self) -> *mut u8 {
        self.memory.base.as_ptr()
    }

    /// Returns the offset after an unfinished record of the module log; `None` if it is finished, or none is there.
    /// To be called when no thread can finish it any more.
    pub(crate) fn behind_unfilled_module(&self, offset: usize) -> Option<usize> {
        self.behind_unfilled(MODULES_OFFSET, self.log_used(), offset)
    }

    fn behind_unfilled(&self, log: usize, used: usize, offset: usize) -> Option<usize> {
        if !offset.is_multiple_of(8) || offset + size_of::<u64>() > used {
            return None;
        }
        // SAFETY: a record's length lies within the log.
        let length = unsafe { &*self.base().add(log + offset).cast::<AtomicU32>() };
        let length = length.load(Ordering::Acquire);
        let bytes = (length & !UNFILLED) as usize;
        let is_one = length & UNFILLED != 0 && bytes > 0 && bytes.is_multiple_of(8);
        Some(offset + bytes).filter(|behind| is_one && *behind <= used)
    }

    /// Bytes of the module log that have been taken.
    fn log_used(&self) -> usize {
        (self.header().modules_reserved.load(Ordering::Acquire) as usize).min(MODULE_LOG_BYTES)
    }
}

impl CodeLog for Mapping {
    fn counted(&self) -> &Scripts {
        &self.header().scripts
    }

    fn length(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(8) && offset + size_of::<u32>() <= CODE_LOG_BYTES);
        // SAFETY: it lies within the log by the check above, and is an atomic.
        unsafe { &*self.base().add(CODES_OFFSET + offset).cast::<AtomicU32>() }
    }

    fn copied(&self, offset: usize, bytes: usize) -> Vec<u8> {
        self.memory.copied(CODES_OFFSET + offset, bytes)
    }
}

/// The longest path that there is.
const PATH_BYTES_MAX: usize = 4096;

fn unsealed() -> CollectError {
    CollectError::System {
        what: "use the shared memory of a child whose length is not sealed",
        cause: std::io::ErrorKind::InvalidData.into(),
    }
}

fn odd_layout() -> CollectError {
    CollectError::System {
        what: "use the shared memory of a child that was started by another version of mallow",
        cause: std::io::ErrorKind::InvalidData.into(),
    }
}

/// A ring's words. Positions count on for ever; the ring has the last [`RING_WORDS`] of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ring<'a> {
    words: &'a [AtomicU64; RING_WORDS],
}

impl Ring<'_> {
    /// The word at a position.
    #[inline(always)]
    pub(crate) fn word(&self, position: u64) -> u64 {
        self.words[position as usize & (RING_WORDS - 1)].load(Ordering::Relaxed)
    }

    /// Asks for the cache line of a position that will be read soon.
    #[inline(always)]
    pub(crate) fn prefetch(&self, position: u64) {
        prefetch(&raw const self.words[position as usize & (RING_WORDS - 1)]);
    }
}

#[cfg(test)]
#[path = "mapping_tests.rs"]
mod tests;
