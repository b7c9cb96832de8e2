//! CPython 3.8 to 3.15: where it keeps a thread's frames, and what their code is.
//!
//! Nothing of the interpreter runs but three functions that read a word each (the thread's state from thread-local storage, the holder of the
//! lock, whether the interpreter ends). Everything else is read where the version's own headers put it.
//!
//! Why the reads cannot fault: a thread's state belongs to the thread. Only the thread itself links and unlinks its frames, with or without the
//! interpreter's lock, and only it frees the state, but for the interpreter's end, when those of daemon threads are freed: then a state counts
//! only for the holder of the lock. Before the first plain read of a process one whole list is read by the kernel's checked
//! copy, and each frame's code must be a code object; code objects are only ever read by checked copies. What is left: a
//! program that writes over its own frames, in 3.8 a signal handler that allocates between a state's end and the thread's, and a daemon thread
//! without the lock that is kept waiting *within* a read until the interpreter has ended: what it then reads is not taken for its stack
//! ([`Frames::hold`]), and is freed memory, which is mapped as long as the allocator keeps it.

use super::code_log::{self, Found, Met};
use super::cpython_layout::*;
use super::frames::{FrameState, Frames};
use super::interpreter::{self, Stage};
use super::memo::Unframed;
use super::structures::{ADDRESS_END, word};
use crate::elf::{Definition, definition_in};
use crate::objects::{self, Object};
use crate::process;
use core::ffi::CStr;
use core::mem::transmute;
use core::sync::atomic::{AtomicUsize, Ordering};
use mallow_wire::script::*;

/// The mark of an entry in a look's code.
const ENTRY: usize = 1 << 63;
/// Addresses of the module. Written before [`Python::met`] returns true.
struct Offered {
    layout: AtomicUsize,
    own_state: AtomicUsize,
    holder: AtomicUsize,
    is_ending: AtomicUsize,
    newest_interpreter: AtomicUsize,
    main_interpreter: AtomicUsize,
    code_type: AtomicUsize,
}

static OFFERED: Offered = Offered {
    layout: AtomicUsize::new(0),
    own_state: AtomicUsize::new(0),
    holder: AtomicUsize::new(0),
    is_ending: AtomicUsize::new(0),
    newest_interpreter: AtomicUsize::new(0),
    main_interpreter: AtomicUsize::new(0),
    code_type: AtomicUsize::new(0),
};

/// Looks whether a module is CPython, and makes ready to read its frames. None when it is not.
#[inline(never)]
pub fn meet(object: &Object) -> Option<Met> {
    let dynamic = objects::dynamic_around(object.start);
    let defined = |name: &CStr| definition_in(object.bias, dynamic, name);
    let address = |name: &CStr| defined(name).map_or(0, |definition| definition.address);
    let code_type = address(c"PyCode_Type");
    if code_type == 0 {
        return None;
    }
    let version = version(&defined);
    let met = |unread, interpreter| Some(Met { runtime: RUNTIME_CPYTHON, version, unread, interpreter });
    let unread = |unread| met(unread, [[0; 2]; 2]);
    let Some(layout) = LAYOUTS.iter().position(|layout| 3 << 8 | layout.minor == version) else {
        return unread(UNREAD_VERSION);
    };
    if version >= 3 << 8 | 13 {
        match as_it_says(address(c"_PyRuntime"), &LAYOUTS[layout]) {
            READ => {}
            why => return unread(why),
        }
    }
    let either = |old: &CStr, new: &CStr| match address(old) {
        0 => address(new),
        address => address,
    };
    OFFERED.layout.store(layout, Ordering::Relaxed);
    OFFERED.code_type.store(code_type, Ordering::Relaxed);
    let functions = [
        (&OFFERED.own_state, address(c"PyGILState_GetThisThreadState")),
        (&OFFERED.holder, either(c"_PyThreadState_UncheckedGet", c"PyThreadState_GetUnchecked")),
        (&OFFERED.is_ending, either(c"_Py_IsFinalizing", c"Py_IsFinalizing")),
        (&OFFERED.newest_interpreter, address(c"PyInterpreterState_Head")),
        (&OFFERED.main_interpreter, address(c"PyInterpreterState_Main")),
    ];
    functions.iter().for_each(|(place, address)| place.store(*address, Ordering::Relaxed));
    let interprets = defined(c"_PyEval_EvalFrameDefault");
    let (true, Some(interprets)) = (functions.iter().all(|(_, address)| *address != 0), interprets) else {
        return unread(UNREAD_SYMBOLS);
    };
    met(READ, interpreter::parts(object, interprets.address, interprets.bytes))
}

/// Returns whether a loaded object is CPython.
pub fn is_module(bias: usize, dynamic: usize) -> bool {
    definition_in(bias, dynamic, c"PyCode_Type").is_some()
}

/// Returns whether the module is still loaded.
pub fn is_loaded() -> bool {
    let code_type = OFFERED.code_type.load(Ordering::Relaxed);
    objects::find(code_type).is_some_and(|object| {
        let found = definition_in(object.bias, objects::dynamic_around(object.start), c"PyCode_Type");
        found.is_some_and(|definition| definition.address == code_type)
    })
}

/// Up to 3.10 no symbol has the version; it follows from what each version added.
#[inline(never)]
fn version(defined: &impl Fn(&CStr) -> Option<Definition>) -> u32 {
    if let Some(version) = defined(c"Py_Version") {
        // SAFETY: a constant of this type by the interpreter's headers.
        return unsafe { *(version.address as *const usize) as u32 >> 16 };
    }
    let came_with = [
        (c"Py_NewRef", 3 << 8 | 10),
        (c"PyThreadState_GetFrame", 3 << 8 | 9),
        (c"PyCode_NewWithPosOnlyArgs", 3 << 8 | 8),
    ];
    came_with.iter().find(|(name, _)| defined(name).is_some()).map_or(0, |(_, version)| *version)
}

/// From 3.13 on the runtime begins with a table of its own offsets: [`READ`] when they are those of a release build with the
/// interpreter's lock, or what they are instead.
fn as_it_says(runtime: usize, layout: &Layout) -> u32 {
    const FREE_THREADED: usize = 2;
    if runtime == 0 {
        return UNREAD_SYMBOLS;
    }
    // SAFETY: the table is constant data at the beginning of the exported variable, which is much longer.
    let word = |at: usize| unsafe { *(runtime as *const usize).add(at) };
    if word(0) != usize::from_le_bytes(*b"xdebugpy") {
        return UNREAD_LAYOUT;
    }
    // Where in the table, in words, what it has of threads, frames and code begins, and where it names a thread.
    let (state, thread_id, frame, code) = match layout.minor {
        13 => (19, 24, 28, 34),
        14 => (22, 27, 31, 39),
        _ => (22, 30, 39, 47),
    };
    let (Entry::Shim(owner) | Entry::ShimAndEnd(owner)) = layout.entry else { return UNREAD_LAYOUT };
    let release = [
        (state + 4, layout.state_frame),
        (thread_id, layout.state_thread_id),
        (frame + 1, layout.frame_outward),
        (frame + 2, layout.frame_code),
        (frame + 3, layout.frame_place),
        (frame + 5, owner),
        (code + 1, layout.code_file),
        (code + 3, layout.code_name),
        (code + 4, layout.code_lines),
        (code + 5, layout.code_first_line),
        (code + 9, layout.code_first),
    ];
    match release.iter().all(|(at, offset)| word(*at) == *offset) {
        _ if word(FREE_THREADED) != 0 => UNREAD_FREE_THREADED,
        true => READ,
        false => UNREAD_LAYOUT,
    }
}

/// Subscribes to frees of code objects: our function is called before their type's own one. The type is static,
/// cannot be inherited from, and is in memory that the interpreter writes itself.
pub fn watch_deaths() {
    /// The offset of `tp_dealloc` in a type.
    const DEALLOC: usize = 48;
    let slot = OFFERED.code_type.load(Ordering::Relaxed) + DEALLOC;
    let ours = code_dies as *const () as usize;
    // SAFETY: a word of the type, which is aligned; the interpreter reads it whole.
    let slot = unsafe { &*(slot as *const AtomicUsize) };
    let original = slot.load(Ordering::Relaxed);
    if original != ours {
        ORIGINAL_DEALLOC.store(original, Ordering::SeqCst);
        slot.store(ours, Ordering::SeqCst);
    }
}

static ORIGINAL_DEALLOC: AtomicUsize = AtomicUsize::new(0);

extern "C" fn forget(code: usize) {
    code_log::forget(code);
}

/// The function in the type's slot. It leaves no frame of ours: the code that frees the object may call the program.
#[unsafe(naked)]
unsafe extern "C" fn code_dies() {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "push rdi",
        ".cfi_adjust_cfa_offset 8",
        "call {forget}",
        "pop rdi",
        ".cfi_adjust_cfa_offset -8",
        "jmp qword ptr [rip + {original}]",
        ".cfi_endproc",
        forget = sym forget,
        original = sym ORIGINAL_DEALLOC,
    )
}

/// Returns the index of the module's layout.
#[inline(always)]
pub fn layout() -> usize {
    OFFERED.layout.load(Ordering::Relaxed)
}

/// The calling thread's frames, of the version whose layout has the index `V`.
pub struct Python<const V: usize> {
    /// What points at the innermost frame, less the layout's offset; 0 without one.
    at: usize,
}

impl<const V: usize> Python<V> {
    const LAYOUT: Layout = LAYOUTS[V];

    /// The calling thread's.
    ///
    /// # Safety
    /// [`meet`] has said that they are read, and `V` is [`layout`].
    #[inline(always)]
    pub unsafe fn of_this_thread() -> Python<V> {
        // SAFETY: by contract.
        Python { at: unsafe { thread_state(Self::LAYOUT.minor, Self::LAYOUT.state_thread_id) } }
    }

    /// Of no thread: enough to compute the key of a frame that was read.
    pub(super) const NOBODY: Python<V> = Python { at: 0 };

    /// Returns whether the frames are what they should be, read by checked copies. `unframed` is the calling thread's, zeroed at first.
    pub fn look_at_first(&self, interpreter: [[u64; 2]; 2], unframed: &mut Unframed) -> Stage {
        const FRAMES: usize = 100;
        /// What points at the frame is in the first half of these bytes of a state, where it is a part of the state.
        const STATE_BYTES: usize = 1024;
        let read = |at: usize, offset: usize| process::word_checked(at.wrapping_add(offset));
        let layout = Self::LAYOUT;
        if self.at == 0 || self.is_still(*unframed) {
            return Stage::Unknown;
        }
        let code_type = OFFERED.code_type.load(Ordering::Relaxed);
        let step = |frame: usize| -> Option<usize> {
            let is_shim = match layout.entry {
                Entry::Shim(offset) | Entry::ShimAndEnd(offset) => read(frame, offset)? & 0xff >= SHIM,
                _ => false,
            };
            let code = read(frame, layout.frame_code)? & CODE_BITS;
            (is_shim || read(code, 8)? == code_type).then_some(())?;
            read(frame, layout.frame_place)?;
            read(frame, layout.frame_outward)
        };
        let (holder, offset) = match layout.through {
            None => (Some(self.at), layout.state_frame),
            Some(offset) => (read(self.at, layout.state_frame), offset),
        };
        let Some(holder) = holder else { return Stage::Elsewhere };
        let Some(mut frame) = read(holder, offset) else { return Stage::Elsewhere };
        if frame == 0 {
            if holder.wrapping_sub(self.at) < STATE_BYTES {
                *unframed = Unframed { state: self.at, holder };
            }
            return Stage::Unknown;
        }
        for _ in 0..FRAMES {
            match step(frame) {
                None => return Stage::Elsewhere,
                Some(0) => break,
                Some(outward) => frame = outward,
            }
        }
        Stage::Found(interpreter)
    }

    /// Returns whether the thread is where it was found without a frame, and has none yet. An interpreter that starts allocates thousands of blocks
    /// before its first frame, and a checked copy is a system call.
    fn is_still(&self, unframed: Unframed) -> bool {
        let layout = Self::LAYOUT;
        if unframed.state != self.at {
            return false;
        }
        // SAFETY: checked copies have read these words, and both are in the thread's state: also what it points at, which is in it before the first frame.
        // Only the thread frees its state, which is then no longer its own.
        unsafe {
            match layout.through {
                None => word(self.at, layout.state_frame) == 0,
                Some(offset) => {
                    word(self.at, layout.state_frame) == unframed.holder && word(unframed.holder, offset) == 0
                }
            }
        }
    }

    /// Returns the number of code, and assigns one if it has none; 0 if the code cannot be read.
    #[inline(never)]
    fn log(&self, code: usize) -> u32 {
        const HEAD_WORDS: usize = 5;
        const NAME_BYTES_MAX: usize = 4 << 10;
        const LINES_BYTES_MAX: usize = 1 << 20;
        let layout = Self::LAYOUT;
        let words = fields::<V>(code);
        let is_code = words[1] == OFFERED.code_type.load(Ordering::Relaxed);
        let mut heads = [[0usize; HEAD_WORDS]; 3];
        let field = |offset: usize| *crate::bounds::at(&words, offset / 8);
        let strings = [layout.code_file, layout.code_name, layout.code_lines].map(field);
        // SAFETY: there is room.
        let is_read = is_code
            && unsafe {
                let pieces = strings.map(|string| [string, HEAD_WORDS * 8]);
                process::copy_checked(&pieces, heads.as_mut_ptr().cast())
            };
        if !is_read {
            if self.hold() {
                code_log::unread();
            }
            return 0;
        }
        let [file, name, lines] = heads;
        let text = |at: usize, head: [usize; HEAD_WORDS]| {
            // Kind in bits 2 to 4, whether it is ASCII in bit 6.
            let (length, state) = (head[2], head[4]);
            let width = (state >> 2 & 7).clamp(1, 4);
            let data = if state >> 6 & 1 != 0 { layout.ascii_text } else { layout.other_text };
            ([at + data, length.min(NAME_BYTES_MAX / width) * width], width as u8)
        };
        let ((file, file_width), (name, name_width)) = (text(strings[0], file), text(strings[1], name));
        // SAFETY: `u32` at an offset of eight bytes or four.
        let first_line = (field(layout.code_first_line) >> (layout.code_first_line % 8 * 8)) as u32;
        let found = Found {
            runtime: RUNTIME_CPYTHON,
            version: 3 << 8 | layout.minor,
            first_line,
            pieces: [file, name, [strings[2] + 32, lines[2].min(LINES_BYTES_MAX)], [0; 2], [0; 2]],
            widths: [file_width, name_width],
        };
        code_log::log(code, &found).unwrap_or(0)
    }
}

/// How many words of a code object are wanted at most.
const CODE_WORDS: usize = 18;

/// A code object's words up to the last one that is wanted; zeros if they cannot be read. Nothing behind them is read: the object may be the last thing in
/// its mapping.
fn fields<const V: usize>(code: usize) -> [usize; CODE_WORDS] {
    let mut words = [0; CODE_WORDS];
    let layout = const {
        let layout = LAYOUTS[V];
        let last = layout.code_lines;
        assert!(layout.code_file <= last && layout.code_name <= last && layout.code_first_line <= last);
        assert!(last < CODE_WORDS * 8);
        layout
    };
    // SAFETY: there is room, as was asserted.
    let is_read =
        unsafe { process::copy_checked(&[[code, layout.code_lines + 8]], words.as_mut_ptr().cast()) };
    if is_read { words } else { [0; CODE_WORDS] }
}

impl<const V: usize> Frames for Python<V> {
    #[inline(always)]
    fn innermost(&self) -> usize {
        if self.at == 0 {
            return 0;
        }
        // SAFETY: a live thread's state, and what it points at.
        unsafe {
            match Self::LAYOUT.through {
                None => address(word(self.at, Self::LAYOUT.state_frame)),
                Some(offset) => match address(word(self.at, Self::LAYOUT.state_frame)) {
                    0 => 0,
                    through => address(word(through, offset)),
                },
            }
        }
    }

    /// A thread without the interpreter's lock may have been suspended between the check whether it ends and reading
    /// its frames.
    fn hold(&self) -> bool {
        ask(&OFFERED.is_ending) as u32 == 0 || ask(&OFFERED.holder) == ask(&OFFERED.own_state)
    }

    #[inline(always)]
    unsafe fn look(&self, frame: usize) -> FrameState {
        let layout = Self::LAYOUT;
        // SAFETY: by contract. Code lies at addresses of programs, so the mark's bit is free.
        unsafe {
            let byte = |offset: usize| *((frame + offset) as *const u8);
            let code = word(frame, layout.frame_code) & CODE_BITS;
            let mark = match layout.entry {
                Entry::Every => ENTRY,
                Entry::Flag(offset) => usize::from(byte(offset)) << 63,
                Entry::Shim(offset) | Entry::ShimAndEnd(offset) => match usize::from(byte(offset)) {
                    owner @ SHIM.. => {
                        let is_call = layout.entry.is_call(owner, word(frame, layout.frame_outward));
                        return FrameState { place: 0, code: usize::from(is_call) << 63 };
                    }
                    _ => 0,
                },
            };
            let place = word(frame, layout.frame_place);
            let place = if layout.place == Place::Address { place } else { place & 0xffff_ffff };
            FrameState { place, code: code | mark }
        }
    }

    #[inline(always)]
    unsafe fn outward(&self, frame: usize) -> usize {
        // SAFETY: by contract.
        address(unsafe { word(frame, Self::LAYOUT.frame_outward) })
    }

    /// Nearly always what was an address, or 0, is one.
    #[inline(always)]
    unsafe fn is_called_by(&self, frame: usize, outside: usize) -> bool {
        // SAFETY: by contract.
        unsafe { word(frame, Self::LAYOUT.frame_outward) == outside }
    }

    /// Compares the words, without putting a state together.
    #[inline(always)]
    unsafe fn is_unchanged(&self, frame: usize, look: FrameState, outside: usize) -> bool {
        let layout = Self::LAYOUT;
        // SAFETY: by contract.
        unsafe {
            let byte = |offset: usize| usize::from(*((frame + offset) as *const u8));
            let mark = match layout.entry {
                Entry::Every => ENTRY,
                Entry::Flag(offset) => byte(offset) << 63,
                Entry::Shim(offset) | Entry::ShimAndEnd(offset) if byte(offset) >= SHIM => {
                    return self.look(frame) == look && self.is_called_by(frame, outside);
                }
                Entry::Shim(_) | Entry::ShimAndEnd(_) => 0,
            };
            let code_bits = if layout.minor < 14 { usize::MAX } else { CODE_BITS };
            let place_bits = if layout.place == Place::Address { usize::MAX } else { 0xffff_ffff };
            self.is_called_by(frame, outside)
                && (word(frame, layout.frame_place) ^ look.place) & place_bits == 0
                && word(frame, layout.frame_code) & code_bits | mark == look.code
        }
    }

    #[inline]
    unsafe fn key(&self, _frame: usize, look: FrameState) -> u64 {
        let (code, is_entry) = (look.code & !ENTRY, look.code & ENTRY != 0);
        if code == 0 {
            return if is_entry { script_key(0, 0, true) } else { 0 };
        }
        let number = code_log::number(code).unwrap_or_else(|| self.log(code));
        let instruction = match Self::LAYOUT.place {
            Place::Bytes => look.place as i32 as isize / 2,
            Place::Instructions => look.place as i32 as isize,
            Place::Address => look.place.wrapping_sub(code + Self::LAYOUT.code_first) as isize / 2,
        };
        let place = instruction.clamp(0, PLACE_MAX as isize) as u32;
        if number == 0 { script_key(0, 0, is_entry) } else { script_key(number, place, is_entry) }
    }
}

/// An address as it can be one of a frame; 0 for what cannot.
#[inline(always)]
pub(super) fn address(value: usize) -> usize {
    if value.is_multiple_of(8) && value < ADDRESS_END { value } else { 0 }
}

/// Calls one of the interpreter's functions, which [`meet`] has found.
#[inline(always)]
fn ask(function: &AtomicUsize) -> usize {
    type Ask = unsafe extern "C" fn() -> usize;
    // SAFETY: these functions take nothing, give a word, take no lock and allocate nothing.
    unsafe { transmute::<usize, Ask>(function.load(Ordering::Relaxed))() }
}

/// The same as [`thread_state`] for a signal handler that may interrupt anything: from 3.12 on it calls no function
/// that accesses thread-local storage, which the loader may be about to create. The caller checks that the state is
/// this thread's.
pub(super) fn thread_state_at_signal(layout: &Layout) -> usize {
    if layout.minor < 12 {
        // SAFETY: what it calls reads a word each.
        return unsafe { thread_state(layout.minor, layout.state_thread_id) };
    }
    ask(&OFFERED.own_state)
}

/// The calling thread's state; 0 when it has none, or one that may be freed under it.
#[inline(always)]
unsafe fn thread_state(minor: u32, thread_id: usize) -> usize {
    let own = ask(&OFFERED.own_state);
    if own == 0 {
        return 0;
    }
    let is_ending = || ask(&OFFERED.is_ending) as u32 != 0;
    // From 3.12 on the own state is that of the interpreter at work, and to ask for the holder goes through thread-local storage.
    if minor >= 12 {
        return if is_ending() && ask(&OFFERED.holder) != own { 0 } else { own };
    }
    let holder = ask(&OFFERED.holder);
    if holder == own {
        return own;
    }
    if holder != 0 && ask(&OFFERED.newest_interpreter) != ask(&OFFERED.main_interpreter) {
        // The own state is the first that the thread had: in another interpreter it is the holder, if that is this thread. It
        // may be another one's, which may be about to end.
        let thread = |state: usize| process::word_checked(state + thread_id);
        if !process::is_filtered() && thread(holder).is_some_and(|id| Some(id) == thread(own)) {
            return holder;
        }
    }
    if is_ending() { 0 } else { own }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys;
    use mallow_wire::shared::PAGE_BYTES;

    /// The size of a code object of 3.9, behind which an allocator's memory may end.
    #[test]
    fn a_code_object_at_the_end_of_its_mapping_is_read() {
        const CODE_BYTES: usize = 176;
        const V: usize = 1;
        let pages = sys::map_private(2 * PAGE_BYTES) as usize;
        let code = pages + PAGE_BYTES - CODE_BYTES;
        // SAFETY: fresh memory, of which the first page stays.
        unsafe {
            sys::unmap((pages + PAGE_BYTES) as *mut u8, PAGE_BYTES);
            *((code + LAYOUTS[V].code_lines) as *mut usize) = 7;
        }
        assert_eq!(fields::<V>(code)[LAYOUTS[V].code_lines / 8], 7);
        assert_eq!(fields::<V>(pages + PAGE_BYTES), [0; CODE_WORDS]);
    }
}
