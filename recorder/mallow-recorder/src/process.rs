//! The start of recording in a process, and in every forked child.
//!
//! The first hooked call of a process makes its shared memory and hands it to the collector. All that must
//! not outlive a fork stands in one mapping that the kernel wipes in the child: the child's first call finds
//! zeros there and starts anew, whichever way the fork was made. `vfork` shares memory with its parent, is
//! not wiped, and records into the parent's rings: it is the parent's heap that it changes.
//!
//! A signal handler may interrupt the start at any instruction, and its calls are recorded like any other: so it does not
//! wait for the start that it interrupted, but makes one of its own. Whichever is installed first is the
//! process's; the other one is thrown away. Other threads do wait.

use crate::elf;
use crate::memo::Memo;
use crate::modules;
use crate::sys;
use crate::thread::{self, Thread};
use crate::tls;
use core::arch::{asm, global_asm};
use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use mallow_wire::hello::{COMMAND_BYTES_MAX, HELLO_MAGIC, Hello, SESSION_VARIABLE};
use mallow_wire::shared::*;

global_asm!(".weak environ");

/// What a fork forgets.
#[repr(C, align(64))]
struct Wiped {
    /// 0: not started; the id of the thread that is starting us; or [`READY`].
    stage: AtomicU32,
    /// The shared memory of this process; null before there is one.
    shared: AtomicPtr<u8>,
    threads: [Thread; LANE_COUNT_MAX],
}

/// No thread has this id: the kernel's are below 2^22.
const READY: u32 = u32::MAX;

static WIPED: AtomicPtr<Wiped> = AtomicPtr::new(core::ptr::null_mut());
static SHARED: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
static MEMOS: [AtomicPtr<Memo>; LANE_COUNT_MAX] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; LANE_COUNT_MAX];
/// As it was when the process was introduced: later nobody may be allowed to ask.
static ADDRESS_LIMIT_BYTES: AtomicUsize = AtomicUsize::new(usize::MAX);
/// A filter of system calls was set, in this process or one that it was forked from.
static FILTERED: AtomicBool = AtomicBool::new(false);
static MALLOC_IS_ELSEWHERE: AtomicBool = AtomicBool::new(false);
static GENERATION: AtomicU64 = AtomicU64::new(0);
/// Recording has ended, or never began: nobody asked for it, or the collector has gone.
static STOPPED: AtomicBool = AtomicBool::new(false);

/// A lane and what belongs to it.
#[derive(Debug)]
pub struct Place {
    /// Room for the thread's state.
    pub thread: *mut Thread,
    /// The lane.
    pub lane: *const Lane,
    /// Its ring.
    pub ring: *mut u64,
    /// The memo of this lane; null when there is no memory for it.
    pub memo: *mut Memo,
    /// The process id.
    pub pid: u32,
    /// Count only.
    pub counts: bool,
    /// The lane's number.
    pub index: u32,
}

/// The shared memory. Only after [`take_lane`] gave a place, or [`is_ready`] said so.
#[inline(always)]
pub fn shared() -> *mut u8 {
    SHARED.load(Ordering::Relaxed)
}

/// Its header.
#[inline(always)]
pub fn header() -> &'static Header {
    // SAFETY: set before any thread can record, and mapped from then on.
    unsafe { &*shared().cast::<Header>() }
}

/// Its node table.
#[inline(always)]
pub fn nodes() -> *const Node {
    // SAFETY: within the shared memory.
    unsafe { shared().add(NODES_OFFSET).cast() }
}

/// Whether the session wants to know of something beside the heap: one of the `WATCH_` bits. None while it is too
/// early to tell, because libc has not set the environment yet.
pub fn watches(what: u32) -> Option<bool> {
    if STOPPED.load(Ordering::Relaxed) {
        return Some(false);
    }
    if !started() {
        return environ().map(|_| false);
    }
    Some(header().watched & what != 0)
}

/// How often code was unloaded.
#[inline(always)]
pub fn generation() -> u64 {
    GENERATION.load(Ordering::Relaxed)
}

/// Says that code was unloaded: what is known about addresses is no longer true.
pub fn code_was_unloaded() {
    let generation = GENERATION.fetch_add(1, Ordering::SeqCst) + 1;
    if is_ready() {
        header().generation.store(generation, Ordering::Release);
    }
}

/// Whether this process, not one that it was forked from, has shared memory.
pub fn is_ready() -> bool {
    let wiped = WIPED.load(Ordering::Acquire);
    // SAFETY: mapped for the process's life.
    !wiped.is_null() && unsafe { !(*wiped).shared.load(Ordering::Acquire).is_null() }
}

/// Says how the process is about to end.
pub fn will_exit(status: i32) {
    if is_ready() {
        header().exit_status.store(status as u32, Ordering::Relaxed);
        header().exit_kind.store(EXIT_STATUS, Ordering::Release);
    }
}

/// Ends recording: on this thread now, on others when their rings are full.
pub fn stop() {
    STOPPED.store(true, Ordering::Relaxed);
    let thread = tls::get();
    if !thread.is_null() {
        // SAFETY: this thread's own state.
        unsafe { thread::switch_off(thread) };
    }
}

/// Finds out whether calls of `malloc` come to us at all. `own` is an address in our library, and not that of an exported
/// function: the name would lead to the program's. Takes the loader's lock; what comes in front of us is settled when we are loaded.
pub fn note_malloc(own: usize) {
    MALLOC_IS_ELSEWHERE.store(elf::defined_before(c"malloc", own), Ordering::Relaxed);
}

/// Starts recording, when a session asked for it, before the program's own code runs.
pub fn start() {
    if !STOPPED.load(Ordering::Relaxed) {
        started();
    }
}

/// How much address space the process may have.
pub fn address_limit_bytes() -> usize {
    ADDRESS_LIMIT_BYTES.load(Ordering::Relaxed)
}

/// A filter of system calls is about to be set: no file is opened from here on, and no forked child is introduced.
pub fn note_filter() {
    FILTERED.store(true, Ordering::Relaxed);
}

/// Whether the caller is a `vfork` child, which has its parent's memory: what it does to itself does not become of the parent.
pub fn is_borrowed() -> bool {
    is_ready() && header().pid != sys::getpid()
}

/// Whether there is one.
pub fn is_filtered() -> bool {
    FILTERED.load(Ordering::Relaxed)
}

/// Why a thread has no lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoLane {
    /// All are taken by threads that live. The call is counted as lost.
    Full,
    /// The process is not recorded, or it is too early to tell.
    NotRecorded,
}

/// A lane for the calling thread, starting the process first if need be.
///
/// # Errors
/// Why there is none.
pub fn take_lane() -> Result<Place, NoLane> {
    if STOPPED.load(Ordering::Relaxed) || !started() {
        return Err(NoLane::NotRecorded);
    }
    let header = header();
    // SAFETY: the lanes lie in the shared memory.
    let lanes = unsafe {
        core::slice::from_raw_parts(shared().add(LANES_OFFSET).cast::<Lane>(), header.lane_count as usize)
    };
    let index = claim(header, lanes).ok_or(NoLane::Full)?;
    let lane = &lanes[index];
    // An owner that died while it waited at a mark may have left one that nobody will answer: it is not ours.
    lane.marks_asked.store(lane.marks_answered.load(Ordering::Relaxed), Ordering::Relaxed);
    lane.tid.store(sys::gettid(), Ordering::Relaxed);
    header.lanes_high.fetch_max(index as u32 + 1, Ordering::Relaxed);
    lane.taken_serial.store(header.lanes_taken.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Release);
    let counts = header.mode == MODE_STAT;
    if counts && index > 0 {
        header.threads_many.store(1, Ordering::SeqCst);
    }
    Ok(Place {
        // SAFETY: one state and one ring for each lane.
        thread: unsafe { (&raw mut (*WIPED.load(Ordering::Relaxed)).threads).cast::<Thread>().add(index) },
        lane,
        // SAFETY: as above.
        ring: unsafe { shared().add(RINGS_OFFSET + index * RING_BYTES).cast() },
        memo: if counts { core::ptr::null_mut() } else { memo_of(index) },
        pid: header.pid,
        counts,
        index: index as u32,
    })
}

/// Gives back a lane that was taken and not used, and counts the call that wanted it as lost.
///
/// # Safety
/// `lane` was given by [`take_lane`] to this thread, which has written nothing to its ring.
pub unsafe fn give_back(lane: *const Lane) {
    header().events_lost.fetch_add(1, Ordering::Relaxed);
    // SAFETY: by contract.
    let lane = unsafe { &*lane };
    lane.tid.store(0, Ordering::Relaxed);
    lane.state.store(LANE_FREE, Ordering::Release);
}

/// Finds a free lane, waiting a moment for the collector to give back those of dead threads. Once that was in vain nobody
/// waits, until a lane was found again.
fn claim(header: &Header, lanes: &[Lane]) -> Option<usize> {
    const WAIT_MS: u64 = 1;
    const WAITS_MAX: u32 = 50;
    static FULL: AtomicBool = AtomicBool::new(false);
    let take = || {
        lanes.iter().position(|lane| {
            lane.state.load(Ordering::Relaxed) == LANE_FREE
                && lane
                    .state
                    .compare_exchange(LANE_FREE, LANE_OWNED, Ordering::AcqRel, Ordering::Relaxed)
                    .is_ok()
        })
    };
    let mut waits = 0;
    loop {
        if let Some(index) = take() {
            if FULL.load(Ordering::Relaxed) {
                FULL.store(false, Ordering::Relaxed);
            }
            return Some(index);
        }
        if waits == WAITS_MAX || FULL.load(Ordering::Relaxed) {
            FULL.store(true, Ordering::Relaxed);
            header.events_lost.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        waits += 1;
        header.lanes_wanted.fetch_add(1, Ordering::SeqCst);
        sys::futex_wait(&header.heartbeat, header.heartbeat.load(Ordering::Relaxed), WAIT_MS);
        header.lanes_wanted.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Whether a thread without a lane should look for one again: now and then, and in a forked child, which has lanes of
/// its own. Otherwise its call is counted as lost.
pub fn wants_another_try() -> bool {
    const CALLS_BETWEEN: u64 = 1024;
    if STOPPED.load(Ordering::Relaxed) {
        return false;
    }
    if !is_ready() {
        return true;
    }
    let is_turn = header().events_lost.load(Ordering::Relaxed) % CALLS_BETWEEN == CALLS_BETWEEN - 1;
    if !is_turn {
        header().events_lost.fetch_add(1, Ordering::Relaxed);
    }
    is_turn
}

fn memo_of(index: usize) -> *mut Memo {
    let memo = MEMOS[index].load(Ordering::Acquire);
    if !memo.is_null() {
        return memo;
    }
    let memo = Memo::map();
    MEMOS[index].store(memo, Ordering::Release);
    memo
}

/// Whether the process has shared memory, making it if no other thread does.
fn started() -> bool {
    const WAIT_MS: u64 = 1;
    let Some(wiped) = wiped() else { return false };
    if wiped.stage.load(Ordering::Acquire) == READY {
        return true;
    }
    if is_filtered() {
        // Forked behind the filter: nobody can be told but the parent, whose memory we still have.
        if !STOPPED.swap(true, Ordering::Relaxed) && !shared().is_null() {
            header().children_filtered.fetch_add(1, Ordering::Relaxed);
        }
        return false;
    }
    let own_tid = sys::gettid();
    loop {
        match wiped.stage.compare_exchange(0, own_tid, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => break,
            Err(READY) => return true,
            // A signal handler during our own start: it makes one of its own.
            Err(tid) if tid == own_tid => return introduce(wiped).unwrap_or(false),
            Err(_) if STOPPED.load(Ordering::Relaxed) => return false,
            Err(tid) => sys::futex_wait(&wiped.stage, tid, WAIT_MS),
        }
    }
    // The loader allocates before libc has set the environment: then it is too early to tell.
    let outcome = introduce(wiped);
    STOPPED.store(outcome == Some(false), Ordering::Relaxed);
    wiped.stage.store(if outcome == Some(true) { READY } else { 0 }, Ordering::Release);
    outcome == Some(true)
}

/// The mapping that forks wipe, made by whichever thread comes first.
fn wiped() -> Option<&'static Wiped> {
    let known = WIPED.load(Ordering::Acquire);
    if !known.is_null() {
        // SAFETY: mapped for the process's life; zeros are a valid value.
        return Some(unsafe { &*known });
    }
    let bytes = size_of::<Wiped>().next_multiple_of(PAGE_BYTES);
    let fresh = sys::map_private(bytes);
    // SAFETY: the mapping is ours.
    if fresh.is_null() || unsafe { sys::wipe_on_fork(fresh, bytes) } != 0 {
        STOPPED.store(true, Ordering::Relaxed);
        return None;
    }
    match WIPED.compare_exchange(core::ptr::null_mut(), fresh.cast(), Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: as above. A mapping that lost the race stays unused: it costs address space only.
        Ok(_) => Some(unsafe { &*fresh.cast() }),
        // SAFETY: as above.
        Err(other) => Some(unsafe { &*other }),
    }
}

/// Makes the shared memory and hands it to the collector, unless there is one. None while libc has not set the environment.
fn introduce(wiped: &Wiped) -> Option<bool> {
    environ()?;
    if use_installed(wiped) {
        return Some(true);
    }
    let Some(session) = Session::find() else { return Some(false) };
    let fd = sys::memfd_create(c"mallow");
    if fd < 0 {
        return Some(false);
    }
    let introduced = map(fd as i32).is_some_and(|(shared, lane_count)| {
        fill(shared, &session, lane_count);
        let installed =
            wiped.shared.compare_exchange(core::ptr::null_mut(), shared, Ordering::AcqRel, Ordering::Acquire);
        if installed.is_err() {
            // SAFETY: the mapping is ours, and nobody has seen it.
            unsafe { sys::unmap(shared, file_bytes(lane_count)) };
        }
        use_installed(wiped) && (installed.is_err() || announce(&session, fd as i32))
    });
    sys::close(fd as i32);
    Some(introduced)
}

/// Makes the shared memory that was installed the one that everybody finds; false when there is none.
fn use_installed(wiped: &Wiped) -> bool {
    let shared = wiped.shared.load(Ordering::Acquire);
    if !shared.is_null() {
        SHARED.store(shared, Ordering::Release);
    }
    !shared.is_null()
}

/// Writes what stands in fresh shared memory before anybody sees it.
#[inline(never)]
fn fill(shared: *mut u8, session: &Session, lane_count: usize) {
    let parent = SHARED.load(Ordering::Relaxed);
    // SAFETY: fresh zeroed memory of the right size, seen by nobody else yet; `parent` is the memory of the process
    // that we were forked from, or the one that a signal handler has installed since: then this one is thrown away.
    unsafe {
        let header = &mut *shared.cast::<Header>();
        fill_header(header, session, lane_count);
        header.is_forked = u32::from(!parent.is_null());
        if !parent.is_null() {
            modules::inherit(parent, shared);
        }
    }
}

/// Hands the shared memory to the collector; false when it has gone.
#[inline(never)]
fn announce(session: &Session, fd: i32) -> bool {
    let hello =
        Hello { magic: HELLO_MAGIC, version: SHARED_VERSION, pid: sys::getpid(), token: session.token };
    let Some(mut scratch) = sys::Scratch::map() else { return false };
    let (message, _) = scratch.bytes().split_at_mut(Hello::BYTES + COMMAND_BYTES_MAX);
    let (start, command) = message.split_at_mut(Hello::BYTES);
    start.copy_from_slice(&hello.to_bytes());
    let command_bytes = read_command(command);
    sys::send_with_fd(session.name, &message[..Hello::BYTES + command_bytes], fd)
}

/// Our own command line. Asked for here because a short-lived process is gone before the collector could
/// look.
fn read_command(into: &mut [u8]) -> usize {
    let fd = sys::open_read(c"/proc/self/cmdline");
    if fd < 0 {
        return 0;
    }
    let read = sys::read(fd as i32, into);
    sys::close(fd as i32);
    read.max(0) as usize
}

/// Maps the file with as many lanes as the limits on files and on the address space allow. The kernel kills who makes a file
/// longer than it may, so that limit is asked for first.
#[inline(never)]
fn map(fd: i32) -> Option<(*mut u8, usize)> {
    // Of a limited address space the program keeps most.
    ADDRESS_LIMIT_BYTES.store(sys::address_limit_bytes(), Ordering::Relaxed);
    let limit_bytes = sys::file_limit_bytes().min(address_limit_bytes() / 3);
    let mut lane_count = LANE_COUNT_MAX;
    while lane_count > 0 {
        if file_bytes(lane_count) <= limit_bytes && sys::ftruncate(fd, file_bytes(lane_count)) == 0 {
            let shared = sys::map_shared(fd, file_bytes(lane_count));
            if !shared.is_null() {
                // SAFETY: the mapping is ours.
                unsafe { sys::keep_out_of_core(shared, file_bytes(lane_count)) };
                return Some((shared, lane_count));
            }
        }
        lane_count /= 2;
    }
    None
}

/// Fills in a header that is all zeros. In its place, because a header on the stack would be most of what a call takes there.
fn fill_header(header: &mut Header, session: &Session, lane_count: usize) {
    header.magic = SHARED_MAGIC;
    header.version = SHARED_VERSION;
    header.mode = session.mode;
    header.watched = session.watched;
    header.malloc_is_elsewhere = u32::from(MALLOC_IS_ELSEWHERE.load(Ordering::Relaxed));
    header.pid = sys::getpid();
    header.parent_pid = sys::getppid();
    header.lane_count = lane_count as u32;
    // SAFETY: the instruction is there on every x86-64 processor.
    header.started_tsc = unsafe { core::arch::x86_64::_rdtsc() };
}

/// What the environment says about the collector.
struct Session {
    /// As it stands in the environment: there is no room for a copy on a small stack.
    name: &'static [u8],
    token: [u8; 16],
    mode: u32,
    watched: u32,
}

impl Session {
    fn find() -> Option<Session> {
        let value = variable(SESSION_VARIABLE)?;
        let colon = value.iter().position(|byte| *byte == b':')?;
        let (name, token) = (&value[..colon], &value[colon + 1..]);
        let (mode, watched) = match variable(MODE_VARIABLE) {
            Some(b"stat") => (MODE_STAT, 0),
            Some(b"check") => (MODE_RECORD, WATCH_MARKS | WATCH_DESCRIPTORS),
            Some(b"soak") => (MODE_RECORD, WATCH_AIDE),
            _ => (MODE_RECORD, 0),
        };
        let mut session = Session { name, token: [0; 16], mode, watched };
        if token.len() != 32 {
            return None;
        }
        for (i, digit) in token.iter().enumerate() {
            session.token[i / 2] = session.token[i / 2] << 4 | (*digit as char).to_digit(16)? as u8;
        }
        Some(session)
    }
}

/// A variable of the environment; none while libc has not set `environ` yet, or when it is not there.
fn variable(name: &str) -> Option<&'static [u8]> {
    let environ = environ()?;
    let mut entry = environ;
    loop {
        // SAFETY: the environment is a null-terminated list of strings. Another thread may change it, as for
        // `getenv`.
        let text = unsafe { *entry };
        if text.is_null() {
            return None;
        }
        // SAFETY: as above.
        let bytes = unsafe { CStr::from_ptr(text) }.to_bytes();
        if let Some(value) = bytes.strip_prefix(name.as_bytes()).and_then(|rest| rest.strip_prefix(b"=")) {
            return Some(value);
        }
        // SAFETY: as above.
        entry = unsafe { entry.add(1) };
    }
}

fn environ() -> Option<*const *const c_char> {
    let variable: *const *const *const c_char;
    // SAFETY: reads the global offset table, so that an executable's own copy of the variable is found; 0
    // when nobody defines it.
    unsafe {
        asm!("mov {}, qword ptr [rip + environ@GOTPCREL]", out(reg) variable, options(nostack, preserves_flags, pure, readonly));
    }
    if variable.is_null() {
        return None;
    }
    // SAFETY: libc's variable.
    let environ = unsafe { *variable };
    (!environ.is_null()).then_some(environ)
}
