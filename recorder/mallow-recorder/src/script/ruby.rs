//! CRuby 2.7, 3.1, 3.3 and 3.4: where it keeps a thread's frames, and what their code is.
//!
//! A thread has a *context*, which a thread-local word of the module names; a fiber has one too, and the word follows the fiber that
//! runs. In it lies an array of frames that grows downwards, of which the outermost is none of the script's. A frame of a C function has no
//! node: its native frames show it. Nothing of the runtime is called but a function that reads whether a thread holds the lock.
//!
//! The word has no name that all builds offer, so it is looked for: among the module's thread-local words it is the one that names
//! something whose thread names it as its context, and is the calling thread. 2.7 has none: there it is the word of a `pthread_key_t`, which the C library
//! keeps behind the thread pointer, and names the thread, which names its context. The function that interprets has no name either,
//! and is told by a stack: an instruction's code, as the script's own code names it, lies in the function that carries instructions out, and its
//! caller is the one that is called once for each entry, which a stack with several of them shows.
//!
//! Why the reads cannot fault: only the thread itself changes its context's frames, with or without the lock; all of the array is mapped while the
//! context has one. The context is a block of `malloc`'s that may be freed when its thread's script has ended and its native thread has
//! not, so it is looked at by checked reads first, and again when any context or thread was freed since ([`Trusted`]). What frames point
//! at lives while they do. Code may be moved, but not while a thread holds the lock; without it, it is read by checked copies. What is left: a program
//! that writes over its own frames.

use super::code_log::{self, Found, Met};
use super::interpreter::{self, Stage};
use super::memo::{FrameState, Frames, Trusted};
use crate::cfi;
use crate::elf::{LoadedObject, definition_in};
use crate::objects::{self, Object};
use crate::process;
use crate::tls;
use core::mem::transmute;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use mallow_wire::script::*;
use mallow_wire::shared::{NODE_ROOT, is_node_cut, node_address, node_parent};

/// The layout of a version. All offsets in bytes.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    /// Of a frame.
    pub(super) frame_bytes: usize,
    /// What the thread-local word names.
    named: Named,
    /// From the context to its fiber, and to its thread.
    context_fiber: usize,
    context_thread: usize,
    /// From the thread to its context.
    thread_context: usize,
    /// From the thread to the name that the system has for it, or to what has it.
    thread_native: usize,
    /// From there to the name.
    through: Option<usize>,
    /// Of the line at which code begins; whether it is a tagged number.
    first_line_tagged: bool,
    /// From the code to what its instructions are: entries, how many, and the index of their places.
    entries: usize,
    entry_count: usize,
    index: usize,
    /// How many bytes an entry has.
    entry_bytes: usize,
    /// From what is left of a moved object to its new place.
    pub(super) moved_to: usize,
    /// A short string's length is in its flags.
    short_in_flags: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Named {
    Context,
    Thread,
}

const OLD: Layout = Layout {
    frame_bytes: 64,
    named: Named::Context,
    context_fiber: 40,
    context_thread: 48,
    thread_context: 40,
    thread_native: 80,
    through: None,
    first_line_tagged: true,
    entries: 120,
    entry_count: 136,
    index: 144,
    entry_bytes: 12,
    moved_to: 16,
    short_in_flags: true,
};

pub(super) const LAYOUTS: [Layout; 3] = [
    OLD,
    Layout {
        frame_bytes: 56,
        thread_context: 48,
        thread_native: 40,
        through: Some(16),
        first_line_tagged: false,
        entries: 112,
        entry_count: 128,
        index: 136,
        short_in_flags: false,
        ..OLD
    },
    Layout {
        frame_bytes: 56,
        named: Named::Thread,
        context_fiber: 48,
        context_thread: 56,
        thread_context: 32,
        thread_native: 72,
        entry_bytes: 8,
        moved_to: 8,
        ..OLD
    },
];

/// The layout of each version.
const VERSIONS: [(u32, usize); 4] = [(2 << 8 | 7, 2), (3 << 8 | 1, 0), (3 << 8 | 3, 1), (3 << 8 | 4, 1)];

// Of a context, which begins with the array of frames and its length in words.
pub(super) const INNERMOST: usize = 16;
const CONTEXT_WORDS: usize = 8;

// Of a frame.
pub(super) const CODE: usize = 16;
pub(super) const SCOPE: usize = 32;

/// A bit in the first word of a frame's scope: the interpreter's function was called for it.
pub(super) const ENTRY: usize = 0x20;
/// It is one of a C function, which has no program counter; compiled code leaves an old one there.
pub(super) const OF_C: usize = 0x80;

// Of an object, and of what code has beside it.
pub(super) const BODY: usize = 16;
const BODY_WORDS: usize = 19;
pub(super) const FILE: usize = 64;
pub(super) const NAME: usize = 80;
pub(super) const FIRST_LINE: usize = 88;

/// Programs have addresses below this.
const ADDRESS_END: usize = 1 << 47;

/// Addresses of the module: written before [`super::meet`] returns.
struct Offered {
    start: AtomicUsize,
    /// From the thread pointer down to the module's thread-local words, and how many there are.
    words_below: AtomicUsize,
    word_count: AtomicUsize,
    /// From the thread pointer down to the word that names the context; 0 while it is not known.
    context_below: AtomicUsize,
    /// The offset of a context in its fiber.
    context_in_fiber: AtomicUsize,
    holds_lock: AtomicUsize,
    layout: AtomicUsize,
    version: AtomicU32,
    /// How often it was searched in vain for what is missing.
    tries: AtomicU32,
}

static OFFERED: Offered = Offered {
    start: AtomicUsize::new(0),
    words_below: AtomicUsize::new(0),
    word_count: AtomicUsize::new(0),
    context_below: AtomicUsize::new(0),
    context_in_fiber: AtomicUsize::new(0),
    holds_lock: AtomicUsize::new(0),
    layout: AtomicUsize::new(0),
    version: AtomicU32::new(0),
    tries: AtomicU32::new(0),
};

/// Returns whether a loaded object is CRuby.
pub fn is_module(bias: usize, dynamic: usize) -> bool {
    definition_in(bias, dynamic, c"ruby_api_version").is_some()
}

/// Before the program's own code: an object that is loaded now has its thread-local words at one distance from the thread pointer, in
/// every thread.
pub fn note_loaded(object: &LoadedObject) {
    /// Loaders keep these words near the thread pointer.
    const FAR_BYTES: usize = 16 << 20;
    if !is_module(object.bias, object.dynamic()) {
        return;
    }
    let mut words = (0, 0);
    if let Some((at, bytes)) = object.thread_local() {
        let below = tls::control_block().wrapping_sub(at);
        if below >= FAR_BYTES || !at.is_multiple_of(8) {
            return;
        }
        words = (below, bytes.min(below) / 8);
    }
    OFFERED.words_below.store(words.0, Ordering::Relaxed);
    OFFERED.word_count.store(words.1, Ordering::Relaxed);
    OFFERED.start.store(object.range().0, Ordering::Relaxed);
}

/// Looks whether a module is CRuby, and makes ready to read its frames. None when it is not.
#[inline(never)]
pub fn meet(object: &Object) -> Option<Met> {
    let dynamic = objects::dynamic_around(object.start);
    let defined = |name| definition_in(object.bias, dynamic, name);
    let version = defined(c"ruby_api_version")?;
    // SAFETY: three constant numbers by the runtime's headers.
    let [major, minor, _] = unsafe { *(version.address as *const [u32; 3]) };
    let version = (major & 0xff) << 8 | minor & 0xff;
    let met = |unread, interpreter| Some(Met { runtime: RUNTIME_RUBY, version, unread, interpreter });
    let unread = |unread| met(unread, [[0; 2]; 2]);
    let Some((_, layout)) = VERSIONS.iter().find(|(known, _)| *known == version) else {
        return unread(UNREAD_VERSION);
    };
    if OFFERED.start.load(Ordering::Relaxed) != object.start {
        return unread(UNREAD_LATE);
    }
    let Some(holds_lock) = defined(c"ruby_thread_has_gvl_p") else { return unread(UNREAD_SYMBOLS) };
    if LAYOUTS.get(*layout).is_some_and(|layout| layout.named == Named::Thread) {
        // The C library's own words of a thread, which hold those of its first 32 keys.
        const LIBRARY_WORDS: usize = 288;
        OFFERED.words_below.store(0, Ordering::Relaxed);
        OFFERED.word_count.store(LIBRARY_WORDS, Ordering::Relaxed);
    }
    OFFERED.version.store(version, Ordering::Relaxed);
    OFFERED.holds_lock.store(holds_lock.address, Ordering::Relaxed);
    OFFERED.layout.store(*layout, Ordering::Relaxed);
    let named = defined(c"rb_vm_exec").map(|it| interpreter::parts(object, it.address, it.bytes));
    met(READ, named.unwrap_or_default())
}

/// Returns the index of the module's layout.
#[inline(always)]
pub fn layout() -> usize {
    OFFERED.layout.load(Ordering::Relaxed)
}

/// The calling thread's frames, of the version whose layout has the index `V`.
pub struct Ruby<const V: usize> {
    /// 0 without one.
    innermost: usize,
    end: usize,
}

/// Reads a word of a runtime's structure.
///
/// # Safety
/// The structure is live.
#[inline(always)]
unsafe fn word(at: usize, offset: usize) -> usize {
    // SAFETY: by contract. Words in these structures are aligned.
    unsafe { *((at + offset) as *const usize) }
}

fn is_address(value: usize) -> bool {
    value.is_multiple_of(8) && (1 << 12..ADDRESS_END).contains(&value)
}

/// A thread-local word, so many bytes below the thread pointer; one above it has the negative of its distance.
#[inline(always)]
pub(super) unsafe fn thread_word(below: usize) -> usize {
    // SAFETY: by contract of the callers there is a word in every thread.
    unsafe { *(tls::control_block().wrapping_sub(below) as *const usize) }
}

impl<const V: usize> Ruby<V> {
    const LAYOUT: Layout = LAYOUTS[V];

    /// Returns those of the calling thread.
    ///
    /// # Safety
    /// [`Ruby::look_at_first`] has found the addresses, and `V` is [`layout`]. `trusted` is the calling thread's.
    #[inline(always)]
    pub unsafe fn of_this_thread(trusted: &mut Trusted) -> Ruby<V> {
        const NONE: (usize, usize) = (0, 0);
        // SAFETY: by contract.
        let mut context = unsafe { thread_word(OFFERED.context_below.load(Ordering::Relaxed)) };
        if Self::LAYOUT.named == Named::Thread {
            let is_ours = context != 0 && trusted.holds(context, |thread, _| is_own_thread::<V>(thread));
            // SAFETY: a live thread.
            context = if is_ours { unsafe { word(context, Self::LAYOUT.thread_context) } } else { 0 };
        }
        let (innermost, end) = if context != 0 && trusted.holds(context, is_live::<V>) {
            // SAFETY: a live context.
            let (array, words, innermost) =
                unsafe { (word(context, 0), word(context, 8), word(context, INNERMOST)) };
            within(array, words, innermost, Self::LAYOUT.frame_bytes).unwrap_or(NONE)
        } else {
            NONE
        };
        Ruby { innermost, end }
    }

    /// Checks the first stack with frames of a script, by checked reads.
    ///
    /// # Safety
    /// [`meet`] has said that they may be read, and `V` is [`layout`]. `trusted` is the calling thread's.
    pub unsafe fn look_at_first(trusted: &mut Trusted, native: u32, interpreter: [[u64; 2]; 2]) -> Stage {
        /// How many stacks to wait for one with a second entry, and for one that shows anything.
        const PATIENCE: u32 = 64;
        const TRIES: u32 = 1000;
        if OFFERED.context_below.load(Ordering::Relaxed) == 0
            && !find_context::<V>(|context| is_live::<V>(context, &mut 0))
        {
            return Stage::Unknown;
        }
        // SAFETY: by contract, and the context's word is known.
        let frames = unsafe { Self::of_this_thread(trusted) };
        if frames.innermost == 0 {
            return Stage::Unknown;
        }
        let Some((entries, handler)) = entries::<V>(frames.innermost, frames.end) else {
            return Stage::Elsewhere;
        };
        if entries == 0 {
            return Stage::Unknown;
        }
        if interpreter[0][1] != 0 {
            return Stage::Found(interpreter);
        }
        let tries = OFFERED.tries.fetch_add(1, Ordering::Relaxed);
        let is_telling = entries > 1 || tries > PATIENCE;
        match told_by(native, handler, entries).filter(|_| is_telling) {
            Some(interpreter) => Stage::Found(interpreter),
            None if tries < TRIES => Stage::Unknown,
            None => Stage::Elsewhere,
        }
    }

    /// Returns the code of a frame, and its instructions: their address, and how many words they are. `None` if it
    /// cannot be determined.
    unsafe fn code_of(&self, frame: usize) -> Option<(usize, usize, usize)> {
        const MOVED: usize = 0x1e;
        type Ask = unsafe extern "C" fn() -> i32;
        // SAFETY: the function reads a word of the thread's.
        let holds_lock =
            unsafe { transmute::<usize, Ask>(OFFERED.holds_lock.load(Ordering::Relaxed))() != 0 };
        let read = |at: usize| {
            if !is_address(at) {
                None
            } else if holds_lock {
                // SAFETY: code of a live frame, or what it points at; nothing is moved or freed while this thread holds the lock, but by itself:
                // then the old place, which is still mapped, says so.
                Some(unsafe { *(at as *const usize) })
            } else {
                process::word_checked(at)
            }
        };
        // SAFETY: by contract the frame is live.
        let mut code = unsafe { word(frame, CODE) };
        let mut flags = read(code)?;
        if flags & 0x1f == MOVED {
            code = read(code + Self::LAYOUT.moved_to)?;
            flags = read(code)?;
        }
        is_code(flags).then_some(())?;
        let body = read(code + BODY)?;
        Some((body, read(body + 8)?, read(body)? >> 32))
    }

    /// Assigns a number to code; returns 0 if the code cannot be read.
    #[inline(never)]
    pub(super) fn log(body: usize) -> u32 {
        let Some(number) = describe::<V>(body).and_then(|found| {
            let (counts, mut found) = found;
            found.pieces[2] = [counts.as_ptr() as usize, size_of_val(&counts)];
            code_log::log(body, &found)
        }) else {
            code_log::unread();
            return 0;
        };
        code_log::watch(body);
        number
    }
}

/// Returns whether an object's first word is that of code.
pub(super) fn is_code(flags: usize) -> bool {
    const INTERNAL: usize = 0x1a;
    const CODE_KIND: usize = 7;
    flags & 0x1f == INTERNAL && flags >> 12 & 15 == CODE_KIND
}

/// Words at an address, by a checked read.
pub(super) fn words_at<const N: usize>(at: usize) -> Option<[usize; N]> {
    let mut words = [0; N];
    // SAFETY: there is room.
    let is_read =
        is_address(at) && unsafe { process::copy_checked(&[[at, N * 8]], words.as_mut_ptr().cast()) };
    is_read.then_some(words)
}

/// The fiber and the thread of the calling thread's context; none for what is not that. By checked reads.
fn owners<const V: usize>(context: usize) -> Option<(usize, usize)> {
    /// A context lies in its fiber, which is a block of this size at most.
    const FIBER_BYTES: usize = 4 << 10;
    let words: [usize; CONTEXT_WORDS] = words_at(context)?;
    let [fiber, thread] = [LAYOUTS[V].context_fiber, LAYOUTS[V].context_thread]
        .map(|offset| *crate::bounds::at(&words, offset / 8));
    let at = |offset: usize| [thread.wrapping_add(offset), 8];
    let mut of_thread = [0usize; 2];
    let pieces = [at(LAYOUTS[V].thread_context), at(LAYOUTS[V].thread_native)];
    // SAFETY: there is room for two words.
    let is_read =
        is_address(thread) && unsafe { process::copy_checked(&pieces, of_thread.as_mut_ptr().cast()) };
    let [its_context, mut name] = of_thread;
    if let Some(through) = LAYOUTS[V].through {
        [name] = words_at(name.wrapping_add(through))?;
    }
    let is_within = (1..FIBER_BYTES).contains(&context.wrapping_sub(fiber));
    (is_read && its_context == context && name == tls::control_block() && is_within)
        .then_some((fiber, thread))
}

/// Returns whether something is the context of the calling thread; if so its block and that of the thread, the owner, are watched from here on.
#[cold]
fn is_live<const V: usize>(context: usize, owner: &mut usize) -> bool {
    let is_state = |block: usize| code_log::number(block) == Some(code_log::STATE);
    let in_fiber = OFFERED.context_in_fiber.load(Ordering::Relaxed);
    // SAFETY: the fiber is one that was watched, and not freed since.
    let names = |owner: usize| unsafe { word(context, LAYOUTS[V].context_thread) } == owner;
    if *owner != 0 && is_state(context.wrapping_sub(in_fiber)) && names(*owner) {
        return true;
    }
    let is_ours = || owners::<V>(context);
    let Some((fiber, thread)) = is_ours() else { return false };
    let is_new = !is_state(fiber) || !is_state(thread);
    if is_new {
        code_log::keep_state(fiber);
        code_log::keep_state(thread);
    }
    // They may have been freed before they were watched.
    if is_new && is_ours() != Some((fiber, thread)) {
        return false;
    }
    OFFERED.context_in_fiber.store(context - fiber, Ordering::Relaxed);
    *owner = thread;
    true
}

/// Returns whether something is the calling thread; if so it is watched from here on.
#[cold]
fn is_own_thread<const V: usize>(thread: usize) -> bool {
    let is_ours = || {
        let name = thread.wrapping_add(LAYOUTS[V].thread_native);
        is_address(thread) && process::word_checked(name) == Some(tls::control_block())
    };
    is_ours() && {
        code_log::keep_state(thread);
        // It may have been freed before it was watched.
        is_ours()
    }
}

/// The context that a word of the calling thread leads to, which may be none; 0 for what is no address.
fn context_by<const V: usize>(below: usize) -> usize {
    if LAYOUTS[V].named == Named::Context {
        // SAFETY: the module has this word in every thread.
        return unsafe { thread_word(below) };
    }
    // What is looked through may reach behind the C library's words.
    let thread = process::word_checked(tls::control_block().wrapping_sub(below)).filter(|at| is_address(*at));
    thread.and_then(|thread| process::word_checked(thread + LAYOUTS[V].thread_context)).unwrap_or(0)
}

/// The calling thread's context, seen to be that by checked reads; 0 without one.
pub(super) fn context_at_signal<const V: usize>() -> usize {
    let is_known = OFFERED.context_below.load(Ordering::Relaxed) != 0
        || find_context::<V>(|context| owners::<V>(context).is_some());
    if !is_known {
        return 0;
    }
    let context = context_by::<V>(OFFERED.context_below.load(Ordering::Relaxed));
    if context != 0 && owners::<V>(context).is_some() { context } else { 0 }
}

/// Finds the word that leads to the calling thread's context.
fn find_context<const V: usize>(is_it: impl Fn(usize) -> bool) -> bool {
    const WORDS_MAX: usize = 512;
    let below = OFFERED.words_below.load(Ordering::Relaxed);
    let count = OFFERED.word_count.load(Ordering::Relaxed).min(WORDS_MAX);
    let place = (0..count).map(|at| below.wrapping_sub(at * 8)).find(|below| {
        let context = context_by::<V>(*below);
        context != 0 && is_it(context)
    });
    OFFERED.context_below.store(place.unwrap_or(0), Ordering::Relaxed);
    place.is_some()
}

/// The innermost frame, and the end of those of scripts, of an array of so many words; none without frames.
#[inline(always)]
pub(super) fn within(
    array: usize,
    words: usize,
    innermost: usize,
    frame_bytes: usize,
) -> Option<(usize, usize)> {
    let bytes = (words << 3).saturating_sub(frame_bytes);
    let has_frames = array != 0 && innermost.wrapping_sub(array) < bytes;
    has_frames.then_some((innermost, array + bytes))
}

/// Returns how many entries there are, of frames read by checked copies, and the address of the code of an
/// instruction; `None` if what is there is no frame of a script. 0 if no frame is.
pub(super) fn entries<const V: usize>(innermost: usize, end: usize) -> Option<(usize, usize)> {
    const FRAMES: usize = 100;
    let (mut entries, mut handler) = (0, 0);
    for frame in (innermost..end).step_by(LAYOUTS[V].frame_bytes).take(FRAMES) {
        let [place, _, code, _, scope]: [usize; 5] = words_at(frame)?;
        if place == 0 {
            continue;
        }
        let [scope] = words_at(scope)?;
        if scope & OF_C != 0 {
            continue;
        }
        let [flags, _, body]: [usize; 3] = words_at(code)?;
        let [size, first]: [usize; 2] = words_at(body)?;
        let is_within = place.wrapping_sub(first) <= (size >> 32) * 8;
        (is_code(flags) && is_within && describe::<V>(body).is_some()).then_some(())?;
        entries += usize::from(scope & ENTRY != 0);
        [handler] = words_at(first)?;
    }
    Some((entries, handler))
}

/// Finds the interpreter's function by a native stack with so many entries; `handler` is in the function that it
/// calls.
#[inline(never)]
fn told_by(native: u32, handler: usize, entries: usize) -> Option<[[u64; 2]; 2]> {
    const FRAMES_MAX: usize = 10_000;
    let object = objects::find(handler)?;
    let (start, end) = cfi::function_around(&object, handler)?;
    let pcs = || {
        let mut node = native;
        core::iter::from_fn(move || {
            if node == NODE_ROOT || is_node_cut(node) {
                return None;
            }
            // SAFETY: ids come from the table.
            let at = unsafe { &*process::nodes().add(node as usize) };
            node = node_parent(at.link.load(Ordering::Relaxed));
            // A return address points behind its call.
            Some((node_address(at.key.load(Ordering::Acquire)) as usize).wrapping_sub(1))
        })
        .take(FRAMES_MAX)
    };
    let mut is_inside = false;
    let outside = pcs().find(|pc| {
        let was_inside = is_inside;
        is_inside = (start..end).contains(pc);
        was_inside && !is_inside
    })?;
    let (caller, caller_end) = cfi::function_around(&object, outside)?;
    let calls = pcs().filter(|pc| (caller..caller_end).contains(pc)).count();
    (calls == entries).then(|| interpreter::parts(&object, caller, caller_end - caller))
}

/// Reads code by checked copies: the numbers in front of its table of lines, and the rest.
fn describe<const V: usize>(body: usize) -> Option<([u32; 2], Found)> {
    const ENTRIES_MAX: usize = 1 << 16;
    /// How many places the index stores individually, how many to a word, and how many each block after them has.
    const SINGLE: usize = 54;
    const SINGLE_BYTES: usize = SINGLE / 9 * 8;
    const BLOCK: usize = 512;
    const BLOCK_BYTES: usize = 80;
    let layout = LAYOUTS[V];
    let words: [usize; BODY_WORDS] = words_at(body)?;
    let field = |offset: usize| *crate::bounds::at(&words, offset / 8);
    let size = words[0] >> 32;
    let entry_count = field(layout.entry_count) & 0xffff_ffff;
    if size > PLACE_MAX as usize || entry_count > ENTRIES_MAX {
        return None;
    }
    let first_line = if layout.first_line_tagged { field(FIRST_LINE) >> 1 } else { field(FIRST_LINE) };
    let index_bytes = match size {
        // One entry needs none.
        _ if entry_count <= 1 => 0,
        ..SINGLE => size.div_ceil(9) * 8,
        _ => SINGLE_BYTES + (size - SINGLE).div_ceil(BLOCK) * BLOCK_BYTES,
    };
    let found = Found {
        runtime: RUNTIME_RUBY,
        version: OFFERED.version.load(Ordering::Relaxed),
        first_line: first_line as u32,
        pieces: [
            file::<V>(field(FILE))?,
            text::<V>(field(NAME))?,
            [0; 2],
            [field(layout.entries), entry_count * layout.entry_bytes],
            [field(layout.index), index_bytes],
        ],
        widths: [0; 2],
    };
    Some(([entry_count as u32, size as u32], found))
}

/// Returns the name of a file: a string, or a pair of it as given and as resolved.
fn file<const V: usize>(object: usize) -> Option<[usize; 2]> {
    const LIST: usize = 7;
    const IS_SHORT: usize = 1 << 13;
    let head: [usize; 5] = words_at(object)?;
    if head[0] & 0x1f != LIST {
        return text::<V>(object);
    }
    let [given, real] = if head[0] & IS_SHORT != 0 { [head[2], head[3]] } else { words_at(head[4])? };
    // Code that no file holds has no other name.
    text::<V>(real).or_else(|| text::<V>(given))
}

/// Returns the address and length of a string's bytes.
fn text<const V: usize>(object: usize) -> Option<[usize; 2]> {
    const STRING: usize = 5;
    const IS_LONG: usize = 1 << 13;
    const BYTES_MAX: usize = 4 << 10;
    let head: [usize; 4] = words_at(object)?;
    let [at, bytes] = match head[0] {
        flags if flags & 0x1f != STRING => return None,
        flags if flags & IS_LONG != 0 => [head[3], head[2]],
        flags if LAYOUTS[V].short_in_flags => [object + 16, flags >> 14 & 31],
        _ => [object + 24, head[2]],
    };
    Some([at, bytes.min(BYTES_MAX)])
}

impl<const V: usize> Frames for Ruby<V> {
    #[inline(always)]
    fn innermost(&self) -> usize {
        self.innermost
    }

    #[inline(always)]
    unsafe fn look(&self, frame: usize) -> FrameState {
        // SAFETY: by contract; a frame of the script has a scope, which lives while it does.
        unsafe {
            let place = word(frame, 0);
            if place == 0 {
                return FrameState { place: 0, code: 0 };
            }
            match word(word(frame, SCOPE), 0) & (ENTRY | OF_C) {
                OF_C.. => FrameState { place: 0, code: 0 },
                mark => FrameState { place, code: mark },
            }
        }
    }

    #[inline(always)]
    unsafe fn outward(&self, frame: usize) -> usize {
        let outward = frame + Self::LAYOUT.frame_bytes;
        if outward < self.end { outward } else { 0 }
    }

    #[inline]
    unsafe fn key(&self, frame: usize, look: FrameState) -> u64 {
        if look.place == 0 {
            return 0;
        }
        let is_entry = look.code != 0;
        // SAFETY: by contract.
        let Some((body, first, words)) = (unsafe { self.code_of(frame) }) else {
            code_log::unread();
            return script_key(0, 0, is_entry);
        };
        // The counter points behind the current instruction.
        let place = (look.place.wrapping_sub(first) / 8).saturating_sub(1);
        if place > words {
            code_log::unread();
            return script_key(0, 0, is_entry);
        }
        match code_log::number(body).unwrap_or_else(|| Self::log(body)) {
            0 => script_key(0, 0, is_entry),
            number => script_key(number, place as u32, is_entry),
        }
    }
}
