//! CRuby 2.7, 3.1, 3.3 and 3.4: where it keeps a thread's frames, and what their code is.
//!
//! A thread has a *context*, which a thread-local word of the module names; a fiber has one too, and the word follows the fiber that
//! runs. In it lies an array of frames that grows downwards, of which the outermost is none of the script's. A frame of a C function has no
//! node: its native frames show it. Nothing of the runtime is called but a function that reads whether a thread holds the lock.
//!
//! The function that interprets has no name that all builds offer, and is told by a stack: an instruction's code, as the script's own code names it, lies in
//! the function that carries instructions out, and its caller is the one that is called once for each entry, which a stack with several of them shows.
//!
//! Why the reads cannot fault: only the thread itself changes its context's frames, with or without the lock; all of the array is mapped while the
//! context has one. What frames point at lives while they do. Code may be moved, but not while a thread holds the lock; without it, it is read by
//! checked copies. What is left: a program that writes over its own frames.

use super::code_log::{self, Met};
use super::frames::{FrameState, Frames};
use super::interpreter::{self, Stage};
use super::ruby_code::describe;
use super::ruby_context;
use super::ruby_layout::*;
use super::structures::{is_address, word, words_at};
use super::trusted::Trusted;
use crate::cfi;
use crate::elf::{LoadedObject, definition_in};
use crate::objects::{self, Object};
use crate::process;
use crate::tls;
use core::mem::transmute;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use mallow_wire::script::*;
use mallow_wire::shared::{NODE_ROOT, is_node_cut, node_address, node_parent};

/// Addresses of the module: written before [`super::meet`] returns.
struct Offered {
    start: AtomicUsize,
    holds_lock: AtomicUsize,
    layout: AtomicUsize,
    version: AtomicU32,
    /// How often it was searched in vain for what is missing.
    tries: AtomicU32,
}

static OFFERED: Offered = Offered {
    start: AtomicUsize::new(0),
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
    ruby_context::search_in(words.0, words.1);
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
    if !LAYOUTS.get(*layout).is_some_and(ruby_context::offer) {
        return unread(UNREAD_SYMBOLS);
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

impl<const V: usize> Ruby<V> {
    const LAYOUT: Layout = LAYOUTS[V];

    /// Returns those of the calling thread.
    ///
    /// # Safety
    /// [`Ruby::look_at_first`] has found the addresses, and `V` is [`layout`]. `trusted` is the calling thread's.
    #[inline(always)]
    pub unsafe fn of_this_thread(trusted: &mut Trusted) -> Ruby<V> {
        // SAFETY: by contract.
        let (innermost, end) = match unsafe { ruby_context::context::<V>(trusted) } {
            0 => (0, 0),
            // SAFETY: a live context.
            context => unsafe {
                let (array, words, innermost) =
                    (word(context, 0), word(context, 8), word(context, INNERMOST));
                within(array, words, innermost, Self::LAYOUT.frame_bytes).unwrap_or((0, 0))
            },
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
        if !ruby_context::is_found::<V>() {
            let is_hopeless = ruby_context::is_hopeless(&Self::LAYOUT);
            return if is_hopeless { Stage::Elsewhere } else { Stage::Unknown };
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
        let Some(number) = describe::<V>(OFFERED.version.load(Ordering::Relaxed), body).and_then(|found| {
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
        (is_code(flags)
            && is_within
            && describe::<V>(OFFERED.version.load(Ordering::Relaxed), body).is_some())
        .then_some(())?;
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
