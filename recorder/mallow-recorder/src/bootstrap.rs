//! Starts recording in a process, and in every forked child.
//!
//! The first hooked call of a process creates its shared memory and sends it to the collector. All state that must
//! not survive a fork is in one mapping that the kernel clears in the child: the child's first call finds
//! zeros there and starts anew, however the fork was made. A child of `vfork` shares its parent's memory, which is
//! not cleared, and records into the parent's rings: it is the parent's heap that it changes.
//!
//! Signals are blocked until the start is over, except synchronous ones (traps and faults, a debugger's trap among them). Such a
//! handler may interrupt the start at any instruction, and its calls are recorded like any other. It does not
//! wait for the start that it interrupted, but makes one of its own. Whichever is installed first is the
//! process's; the other one is discarded. Other threads do wait.
//!
//! Known limit: if the handler of a trap or a fault in our own start leaves by a jump, that start never ends. Other
//! threads would wait for it for ever.

use crate::asking;
use crate::bounds::first;
use crate::elf;
use crate::filters;
use crate::loads;
use crate::modules;
use crate::patches;
use crate::process::{self, ForkCleared, READY, fork_cleared, use_installed};
use crate::resident;
use crate::script;
use crate::session::{Begin, Session, environ, variable};
use crate::sys::{self, SocketName, Timeout};
use core::arch::asm;
use core::ffi::c_ulong;
use core::sync::atomic::{AtomicU32, Ordering};
use mallow_wire::executable::{CORE_NOTE_NAME, CORE_NOTE_NAME_BYTES, CORE_NOTE_TYPE};
use mallow_wire::handshake::{COMMAND_BYTES_MAX, HANDSHAKE_MAGIC, Handshake, SESSION_VARIABLE};
use mallow_wire::shared::*;

static MALLOC_IN_FRONT: AtomicU32 = AtomicU32::new(MALLOC_OURS);

/// Finds out whether calls of `malloc` reach us at all. `own` is an address in our library, and not that of an
/// exported function: that symbol would resolve to the program's. Takes the loader's lock; which objects precede ours
/// is settled when we are loaded.
pub fn note_malloc(own: usize) {
    /// What valgrind's memcheck, massif, dhat, helgrind and drd put in the place of libc's: in their names stands whose they replace.
    const OF_VALGRIND: &[u8] = b"_vgr10010ZU_libcZdsoZa_malloc";
    let (mut in_front, mut is_executable) = (MALLOC_OURS, true);
    elf::each_object(|object| {
        if object.contains(own) {
            return true;
        }
        in_front = match in_front {
            _ if object.defines(OF_VALGRIND) => MALLOC_OF_VALGRIND,
            MALLOC_OURS if !object.defines(b"malloc") => MALLOC_OURS,
            MALLOC_OURS if is_executable => MALLOC_OF_EXECUTABLE,
            MALLOC_OURS => MALLOC_OF_LIBRARY,
            known => known,
        };
        is_executable = false;
        in_front == MALLOC_OF_VALGRIND
    });
    MALLOC_IN_FRONT.store(in_front, Ordering::Relaxed);
}

/// Starts recording, if a session requests it, before the program's own code runs.
pub fn start() {
    if !process::has_ended() {
        started();
    }
}

/// Returns whether the session requests something beside the heap: one of the `WATCH_` bits. `None` while it is too
/// early to know, because libc has not set the environment yet.
pub fn watches(what: u32) -> Option<bool> {
    if process::has_ended() {
        return Some(false);
    }
    if !started() {
        return environ().map(|_| false);
    }
    Some(process::header().features & what != 0)
}

/// Returns whether the process has shared memory, making it if no other thread does.
pub(crate) fn started() -> bool {
    const WAIT_MS: u64 = 1;
    let Some(fork_cleared) = fork_cleared() else { return false };
    if fork_cleared.stage.load(Ordering::Acquire) == READY {
        return true;
    }
    if filters::stop_ours() {
        // Forked after the filter was set: only the parent can be told, whose memory we still have.
        if process::end_first() && !process::shared().is_null() {
            process::header().children_filtered.fetch_add(1, Ordering::Relaxed);
        }
        return false;
    }
    // A handler that left by a jump would leave a start behind that never ends, and for which other threads wait.
    let _undisturbed = process::undisturbed();
    let own_tid = sys::gettid();
    loop {
        match fork_cleared.stage.compare_exchange(0, own_tid, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => break,
            Err(READY) => return true,
            // A signal handler during our own start: it makes one of its own.
            Err(tid) if tid == own_tid => return register(fork_cleared).unwrap_or(false),
            Err(_) if process::has_ended() => return false,
            Err(tid) => sys::futex_wait(&fork_cleared.stage, tid, WAIT_MS),
        }
    }
    // The loader allocates before libc has set the environment: then it is too early to know.
    let before = process::shared().cast::<Header>();
    let outcome = register(fork_cleared);
    if outcome == Some(false) {
        process::end();
        if !before.is_null() {
            // Nobody can be told but the process that we were forked from, as above.
            // SAFETY: its memory, which we still have.
            unsafe { (*before).children_missing.fetch_add(1, Ordering::Relaxed) };
        }
    }
    fork_cleared.stage.store(if outcome == Some(true) { READY } else { 0 }, Ordering::Release);
    outcome == Some(true)
}

/// Starts recording in a program that the recorder is linked into, if a session requests it; returns whether it did.
/// Only where no library can be preloaded, and not in a program with other rights than those of its caller, who wrote
/// the environment.
///
/// A note in the program's file says so before it is started.
#[cold]
#[inline(never)]
pub fn start_linked() -> bool {
    const AT_BASE: c_ulong = 7;
    const AT_SECURE: c_ulong = 23;
    // SAFETY: no instruction. The note stands here so that who can call this has it.
    #[cfg(not(miri))]
    unsafe {
        asm!(
            ".pushsection .note.mallow, \"a\", @note",
            ".balign 4",
            ".long {name_bytes}, 4, {kind}",
            ".quad {name}",
            ".long {version}",
            ".popsection",
            name_bytes = const CORE_NOTE_NAME_BYTES,
            kind = const CORE_NOTE_TYPE,
            name = const u64::from_le_bytes(CORE_NOTE_NAME),
            version = const SHARED_VERSION,
            options(nomem, nostack, preserves_flags)
        );
    }
    // The loader's place is 0 where there is none.
    let is_ours = handed_over(AT_BASE) == 0 && handed_over(AT_SECURE) == 0;
    if !is_ours || has_another_recorder() || variable(SESSION_VARIABLE).is_none() {
        return false;
    }
    modules::note_executable();
    start();
    process::is_ready()
}

/// What the kernel handed to libc at the start, or mallow in its place; 0 for what it did not.
fn handed_over(kind: c_ulong) -> c_ulong {
    unsafe extern "C" {
        fn getauxval(kind: c_ulong) -> c_ulong;
    }
    // SAFETY: reads a list that stays as it is.
    unsafe { getauxval(kind) }
}

/// Returns whether mallow has written a recorder into this static program, as it does where the note is missing or of another version. libc was then led to other
/// program headers than the program's own.
fn has_another_recorder() -> bool {
    const AT_PHDR: c_ulong = 3;
    /// Where the header of an ELF file says at which offset they are.
    const HEADERS_OFFSET: usize = 32;
    let own: usize;
    // SAFETY: reads the global offset table; linkers define the symbol where the file's header is in memory.
    unsafe {
        asm!(
            ".weak __ehdr_start",
            "mov {}, qword ptr [rip + __ehdr_start@GOTPCREL]",
            out(reg) own,
            options(nostack, preserves_flags, pure, readonly)
        );
    }
    if own == 0 {
        return false;
    }
    // SAFETY: the program's own header.
    let offset = unsafe { *((own + HEADERS_OFFSET) as *const u64) };
    handed_over(AT_PHDR) != own as u64 + offset
}

/// Starts recording for a collector in this very process, and returns the shared memory's file descriptor, which the
/// caller closes. `None` if there is one already, or no memory for it. A forked child, in which recording has ended,
/// starts anew.
pub fn start_inside() -> Option<i32> {
    modules::note_executable();
    let fork_cleared = fork_cleared()?;
    let _undisturbed = process::undisturbed();
    let own_tid = sys::gettid();
    fork_cleared.stage.compare_exchange(0, own_tid, Ordering::AcqRel, Ordering::Acquire).ok()?;
    let fd = sys::memfd_create(c"mallow");
    let begin = Begin::default();
    let session = Session { name: b"", path: b"", token: [0; 16], mode: MODE_RECORD, features: 0, begin };
    let made = (fd >= 0).then(|| map(fd as i32)).flatten();
    if let Some((shared, channel_count)) = made {
        // A new process for every reader, whatever it was forked from.
        fill(shared, &session, channel_count);
        fork_cleared.shared.store(shared, Ordering::Release);
        process::resume();
    } else if fd >= 0 {
        sys::close(fd as i32);
    }
    let is_ready = made.is_some() && use_installed(fork_cleared);
    fork_cleared.stage.store(if is_ready { READY } else { 0 }, Ordering::Release);
    is_ready.then_some(fd as i32)
}

/// Makes the shared memory and hands it to the collector, unless there is one. None while libc has not set the environment.
fn register(fork_cleared: &ForkCleared) -> Option<bool> {
    environ()?;
    if use_installed(fork_cleared) {
        return Some(true);
    }
    let Some(session) = Session::find() else { return Some(false) };
    let fd = sys::memfd_create(c"mallow");
    if fd < 0 {
        return Some(false);
    }
    let introduced = map(fd as i32).is_some_and(|(shared, channel_count)| {
        fill(shared, &session, channel_count);
        let installed = fork_cleared.shared.compare_exchange(
            core::ptr::null_mut(),
            shared,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        if installed.is_err() {
            // SAFETY: the mapping is ours, and nobody has seen it.
            unsafe { sys::unmap(shared, file_bytes(channel_count)) };
        }
        use_installed(fork_cleared) && (installed.is_err() || announce(&session, fd as i32))
    });
    sys::close(fd as i32);
    Some(introduced)
}

/// Initialises fresh shared memory before any other process sees it.
#[inline(never)]
fn fill(shared: *mut u8, session: &Session, channel_count: usize) {
    let parent = process::shared();
    // SAFETY: fresh zeroed memory of the right size, seen by nobody else yet; `parent` is the memory of the process
    // that we were forked from, or the one that a signal handler has installed since: then this one is thrown away.
    unsafe {
        let header = &mut *shared.cast::<Header>();
        fill_header(header, session, channel_count);
        header.is_forked = u32::from(!parent.is_null());
        if !parent.is_null() {
            modules::inherit(parent, shared);
            script::inherit(shared);
        }
    }
}

/// Hands the shared memory to the collector; false when it has gone.
#[inline(never)]
fn announce(session: &Session, fd: i32) -> bool {
    let handshake = Handshake {
        magic: HANDSHAKE_MAGIC,
        version: SHARED_VERSION,
        pid: sys::getpid(),
        token: session.token,
    };
    let Some(mut scratch) = sys::Scratch::map() else { return false };
    let (message, _) = scratch.bytes().split_at_mut(Handshake::BYTES + COMMAND_BYTES_MAX);
    let (start, command) = message.split_at_mut(Handshake::BYTES);
    start.copy_from_slice(&handshake.to_bytes());
    let command_bytes = read_command(command);
    let message = first(message, Handshake::BYTES + command_bytes);
    // Where both queues are full mallow stands still, or has as many files open as it may. It is waited for, and then the process runs without it.
    const TIMEOUT: Timeout = Timeout::Seconds(3);
    let through = |timeout| {
        sys::send_with_fd(SocketName::File(session.path), timeout, message, fd)
            || sys::send_with_fd(SocketName::Name(session.name), timeout, message, fd)
    };
    through(Timeout::AtOnce) || through(TIMEOUT)
}

/// Reads our own command line. It is read here because a short-lived process may have ended before the collector
/// could read it.
fn read_command(into: &mut [u8]) -> usize {
    let fd = sys::open_read(c"/proc/self/cmdline");
    if fd < 0 {
        return 0;
    }
    let read = sys::read(fd as i32, into);
    sys::close(fd as i32);
    read.max(0) as usize
}

/// Maps the file with as many channels as the limits on file sizes and on the address space allow. The kernel kills a
/// process that makes a file longer than its limit, so that limit is read first.
#[inline(never)]
fn map(fd: i32) -> Option<(*mut u8, usize)> {
    // Of a limited address space the program keeps most.
    process::note_memory_limits();
    let limit_bytes = sys::file_limit_bytes().min(process::address_limit_bytes() / ADDRESS_PARTS);
    let mut channel_count = CHANNEL_COUNT_MAX;
    while channel_count > 0 {
        if file_bytes(channel_count) <= limit_bytes && sys::ftruncate(fd, file_bytes(channel_count)) == 0 {
            let shared = sys::map_shared(fd, file_bytes(channel_count));
            if !shared.is_null() {
                // Refused only where a filter of system calls refuses it: then the collector says that nothing is recorded.
                sys::seal_length(fd);
                // SAFETY: the mapping is ours.
                unsafe { sys::keep_small(shared, file_bytes(channel_count), sys::Sharing::Shared) };
                return Some((shared, channel_count));
            }
        }
        channel_count /= 2;
    }
    None
}

/// Fills in a header that is all zeros. In place, because a header on the stack would be most of a call's stack
/// usage.
fn fill_header(header: &mut Header, session: &Session, channel_count: usize) {
    header.magic = SHARED_MAGIC;
    header.version = SHARED_VERSION;
    header.mode = session.mode;
    header.features = session.features;
    header.malloc_in_front = MALLOC_IN_FRONT.load(Ordering::Relaxed);
    header.pid = sys::getpid();
    header.parent_pid = sys::getppid();
    header.channel_count = channel_count as u32;
    // SAFETY: the instruction is there on every x86-64 processor.
    header.started_tsc = unsafe { core::arch::x86_64::_rdtsc() };
    header.started_ns = sys::monotonic_ns();
    header.clock = sys::file_number(c"/proc/self/ns/time").unwrap_or(0);
    header
        .is_early
        .store(session.begin.is_to_come(header.started_ns, header.clock).into(), Ordering::Relaxed);
    (header.patches_state, header.patches_made, header.patches_unseen) = patches::outcome();
    header.is_locked.store(process::is_locked().into(), Ordering::Relaxed);
    header.objects_unanswered.store(asking::unanswered(), Ordering::Relaxed);
    header.namespaces.store(loads::has_namespaces().into(), Ordering::Relaxed);
    let executable = modules::executable();
    if executable.len() <= EXECUTABLE_BYTES_MAX {
        header.executable_bytes = executable.len() as u32;
        header.executable.iter_mut().zip(executable).for_each(|(place, byte)| *place = *byte);
    }
    header.anonymous_bytes_at_start.store(resident::anonymous_bytes(), Ordering::Relaxed);
}

#[cfg(test)]
#[path = "bootstrap_tests.rs"]
mod tests;
