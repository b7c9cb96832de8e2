//! Frames of Java, as a walk meets them in code that a JVM made.
//!
//! HotSpot has no list of frames: a thread's are those of its native stack, and where one lies in the heaps of code the JVM's own tables
//! ([`vm_tables`]) tell how it is left and which methods stand there. So they are no stack beside the native one but part of it: a
//! frame's key in the table of nodes is that of a method and the index of its bytecode, or of a *chain*, the methods that
//! a compiled one has within it. An address of the code is on no stack, so that a method that is compiled again is the same frame.
//!
//! What is found out at an address is read by checked copies, and kept for all threads: a compiled method by the number of its compilation, which
//! is looked at each time, a method by the loader of its class, a block of `malloc`'s whose end is seen. A value that does not fit
//! ends the walk there. Nothing of the JVM is called, locked or asked by its tool interface, nothing is configured.
//!
//! The doubts that remain: a class that is redefined gets other methods, and the place of an old one may be taken by another of the same loader whose
//! constants lie at the same address, with the same names' numbers; and frames of a virtual thread that has waited lie in Java's heap until they are
//! returned to: its stack has those that are on its carrier's.

use super::code_log::{self, Found, Met};
use super::hotspot_code::{self, Blob, BlobKind, INLINED_MAX, NO_BCI};
use super::remembered::Remembered;
use super::vm_tables::{self, Located, Place};
use crate::bounds::{at, at_mut, first};
use crate::elf::definition_in;
use crate::objects::{self, Object};
use crate::process;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use mallow_wire::script::*;

pub use mallow_wire::jvm::VERSIONS;

/// No JVM was seen.
const NONE: u32 = 0;
/// Its library was, which may not be ready yet.
const SEEN: u32 = 1;
/// Its tables are being read.
const MEETING: u32 = 2;
/// Its frames are read, or are not.
const MET: u32 = 3;
static STATE: AtomicU32 = AtomicU32::new(NONE);

/// The addresses of the JVM's code bounds; 0 while no frames are read.
static BOUNDS: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

struct MetJvm(UnsafeCell<Met>);

// SAFETY: written once, by the thread that brought the state to `MEETING`, and read when it has gone on.
unsafe impl Sync for MetJvm {}

static MET_JVM: MetJvm = MetJvm(UnsafeCell::new(Met {
    runtime: RUNTIME_HOTSPOT,
    version: 0,
    unread: READ,
    interpreter: [[0; 2]; 2],
}));

/// How a frame is unwound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// By the frame pointer.
    ByPointer,
    /// It is so long, and the caller's frame pointer lies below its return address.
    Sized(usize),
    /// A frame of the JVM's interpreter: the frame pointer points to it, and its words to the caller's.
    Interpreted,
}

/// A frame in code that a JVM made.
#[derive(Clone, Copy, Debug)]
pub struct JavaFrame {
    /// Its key in the node table.
    pub key: u64,
    /// How it is unwound.
    pub leave: Leave,
    /// Words that it depends on, besides those that are read to leave it: where they lie, and their values. Addresses of 0 are none.
    pub words: [[usize; 2]; 2],
}

const NO_WORD: [usize; 2] = [0; 2];
/// A frame that is none of Java's.
const NO_FRAME: u64 = script_key(0, 0, false);

/// Of interpreted frames, from the frame pointer.
pub const SENDER_SP: isize = -8;
const METHOD: isize = -24;
const BYTECODE: isize = -64;

/// Of an address of code: kind, length of the frame and offset of the original address, the method, the word with its compilation's number, the key.
const CODE_WORDS: usize = 6;
static CODE: Remembered<CODE_WORDS, { 1 << 15 }> = Remembered::empty();
const KIND_POINTER: usize = 0;
const KIND_SIZED: usize = 1;
const KIND_INTERPRETED: usize = 2;
const KIND_ABANDONED: usize = 3;

/// Of a method: the part of it that does not change, its constants, the word with its names, its class's loader and the loader's serial, its number.
const METHOD_WORDS: usize = 7;
static METHODS: Remembered<METHOD_WORDS, { 1 << 14 }> = Remembered::empty();
/// Of a loader's data: its serial.
static LOADERS: Remembered<2, { 1 << 12 }> = Remembered::empty();
static SERIALS: AtomicUsize = AtomicUsize::new(1);

/// Returns whether an address lies in code that a JVM made whose frames are read.
#[inline(always)]
pub fn holds(pc: usize) -> bool {
    let [low, high] = [at(&BOUNDS, 0), at(&BOUNDS, 1)].map(|place| place.load(Ordering::Relaxed));
    // SAFETY: variables of the JVM's library, which stays.
    low != 0 && unsafe { (*(low as *const usize)..*(high as *const usize)).contains(&pc) }
}

/// The JVM's library: its bias, and its dynamic section.
static LIBRARY: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// Called when a module is first seen on a stack: if it is a JVM's, its frames are read as soon as there are some.
pub fn meet(object: &Object) {
    if STATE.load(Ordering::Relaxed) != NONE {
        return;
    }
    let dynamic = objects::dynamic_around(object.start);
    if definition_in(object.bias, dynamic, c"gHotSpotVMStructs").is_some() {
        at(&LIBRARY, 0).store(object.bias, Ordering::Relaxed);
        at(&LIBRARY, 1).store(dynamic, Ordering::Relaxed);
        STATE.store(SEEN, Ordering::Release);
    }
}

/// Returns whether an address without unwind tables lies in code that a JVM made whose frames are read. The first one may be the first such code.
#[inline(always)]
pub fn made(pc: usize) -> bool {
    if STATE.load(Ordering::Relaxed) == SEEN {
        meet_jvm();
    }
    holds(pc)
}

#[cold]
#[inline(never)]
fn meet_jvm() {
    if STATE.compare_exchange(SEEN, MEETING, Ordering::AcqRel, Ordering::Relaxed).is_err() {
        return;
    }
    let [bias, dynamic] = [at(&LIBRARY, 0), at(&LIBRARY, 1)].map(|word| word.load(Ordering::Relaxed));
    // SAFETY: a loaded object with the name of HotSpot's table.
    let has_tables = unsafe { vm_tables::read(bias, dynamic) };
    let version = vm_tables::version();
    let unread = match has_tables {
        false => UNREAD_SYMBOLS,
        true if !(VERSIONS[0]..=VERSIONS[1]).contains(&version) => UNREAD_VERSION,
        true if !vm_tables::is_enough() => UNREAD_LAYOUT,
        true => READ,
    };
    let met = Met { runtime: RUNTIME_HOTSPOT, version: version << 8, unread, interpreter: [[0; 2]; 2] };
    // SAFETY: the exchange has made it ours; the memory of this process, which is ready when events are recorded.
    unsafe {
        *MET_JVM.0.get() = met;
        code_log::log_runtime(process::shared(), &met);
    }
    STATE.store(MET, Ordering::Release);
    if unread == READ {
        code_log::put_behind_stacks();
        at(&BOUNDS, 1).store(Place::HighBound.of(), Ordering::Relaxed);
        at(&BOUNDS, 0).store(Place::LowBound.of(), Ordering::Release);
    }
}

/// A forked child has a log of its own, in fresh shared memory.
///
/// # Safety
/// `shared` is a mapping of shared memory.
pub unsafe fn inherit(shared: *mut u8) {
    if STATE.load(Ordering::Acquire) == MET {
        CODE.forget_all();
        METHODS.forget_all();
        // SAFETY: nobody writes what was met any more; by contract.
        unsafe { code_log::log_runtime(shared, &*MET_JVM.0.get()) };
    }
}

/// Reads the frame at an address of JIT-compiled code. `can_read` returns whether a word of its stack can be read.
///
/// # Safety
/// [`holds`] has returned true for `ra`, which is on the stack of this thread, with these registers.
#[inline]
pub unsafe fn frame_at(ra: usize, sp: usize, bp: usize, can_read: impl Fn(usize) -> bool) -> JavaFrame {
    let Some(code) = known(ra).or_else(|| learn(ra)) else {
        return JavaFrame { key: NO_FRAME, leave: Leave::ByPointer, words: [NO_WORD; 2] };
    };
    let [_, how, blob, number, key, _] = code;
    let (frame_bytes, offset) = (how >> 8 & 0xff_ffff, how >> 32);
    let compilation = if blob == 0 { NO_WORD } else { [number_at(blob), number] };
    match how & 0xff {
        KIND_SIZED => {
            JavaFrame { key: key as u64, leave: Leave::Sized(frame_bytes), words: [compilation, NO_WORD] }
        }
        KIND_ABANDONED => {
            let slot = sp.wrapping_add(offset);
            let is_there = slot & 7 == 0 && can_read(slot);
            // SAFETY: it can be read.
            let original = if is_there { unsafe { *(slot as *const usize) } } else { 0 };
            let of_original = Some(original).filter(|pc| *pc != ra && holds(*pc));
            let of_original = of_original.and_then(|pc| known(pc).or_else(|| learn(pc)));
            let key = of_original.map_or(NO_FRAME, |[.., key, _]| key as u64);
            let word = if is_there { [slot, original] } else { NO_WORD };
            JavaFrame { key, leave: Leave::Sized(frame_bytes), words: [compilation, word] }
        }
        // SAFETY: by contract.
        KIND_INTERPRETED => unsafe { interpreted(sp, bp, can_read) },
        _ => JavaFrame { key: NO_FRAME, leave: Leave::ByPointer, words: [NO_WORD; 2] },
    }
}

unsafe fn interpreted(sp: usize, bp: usize, can_read: impl Fn(usize) -> bool) -> JavaFrame {
    let lowest = bp.wrapping_add_signed(BYTECODE);
    if lowest < sp || bp & 7 != 0 || !can_read(lowest) || !can_read(bp) {
        return JavaFrame { key: NO_FRAME, leave: Leave::ByPointer, words: [NO_WORD; 2] };
    }
    let word = |offset: isize| {
        let place = bp.wrapping_add_signed(offset);
        // SAFETY: between the two that can be read.
        [place, unsafe { *(place as *const usize) }]
    };
    let (method, bytecode) = (word(METHOD), word(BYTECODE));
    let key = match Method::of(method[1]) {
        Some(method) => method.key(method.bci(bytecode[1])),
        None => NO_FRAME,
    };
    JavaFrame { key, leave: Leave::Interpreted, words: [method, bytecode] }
}

/// Returns the address of the word with the number of a compilation.
fn number_at(blob: usize) -> usize {
    blob.wrapping_add(Place::CompileId.of()) & !7
}

/// Returns what was cached for an address, if the same code is still there.
#[inline]
fn known(pc: usize) -> Option<[usize; CODE_WORDS]> {
    let code = CODE.find(pc)?;
    let [_, _, blob, number, ..] = code;
    // SAFETY: within a heap of code, which a JVM never gives back.
    let is_same = blob == 0 || unsafe { *(number_at(blob) as *const usize) } == number;
    is_same.then_some(code)
}

#[cold]
#[inline(never)]
fn learn(pc: usize) -> Option<[usize; CODE_WORDS]> {
    let plain = |kind: usize| [pc, kind, 0, 0, NO_FRAME as usize, 0];
    let [start, end] = hotspot_code::interpreter()?;
    let code = if process::word_checked(Place::CallStub.of()) == Some(pc) {
        plain(KIND_POINTER)
    } else if (start..end).contains(&pc) {
        plain(KIND_INTERPRETED)
    } else {
        let blob = hotspot_code::blob_at(pc)?;
        let sized = |kind: usize| kind | (blob.frame_bytes & 0xff_ffff) << 8;
        match blob.kind {
            BlobKind::Stub if blob.frame_bytes < 16 => plain(KIND_POINTER),
            BlobKind::Stub => plain(sized(KIND_SIZED)),
            _ => {
                let number = process::word_checked(number_at(blob.start))?;
                match blob.original_pc(pc) {
                    Some(offset) => {
                        [pc, sized(KIND_ABANDONED) | offset << 32, blob.start, number, NO_FRAME as usize, 0]
                    }
                    None => [pc, sized(KIND_SIZED), blob.start, number, chain_key(&blob, pc) as usize, 0],
                }
            }
        }
    };
    CODE.keep(code);
    Some(code)
}

/// Returns the key of the inlined methods at an address of a compiled one.
#[inline(never)]
fn chain_key(blob: &Blob, pc: usize) -> u64 {
    let mut scopes = [(0, 0); INLINED_MAX];
    let count = blob.scopes(pc, &mut scopes);
    let mut chain = [[0u32; 2]; INLINED_MAX];
    let mut length = 0;
    for (method, bci) in first(&scopes, count) {
        if let Some(method) = Method::of(*method) {
            *at_mut(&mut chain, length) = [method.number as u32, place_of(*bci)];
            length += 1;
        }
    }
    match first(&chain, length) {
        [] => NO_FRAME,
        [[number, place]] => script_key(*number, *place, false),
        chain => code_log::log_chain(chain).map_or(NO_FRAME, |number| script_key(number, 0, false)),
    }
}

/// An index of bytecode as a place.
fn place_of(bci: u32) -> u32 {
    if bci < PLACE_MAX { bci } else { PLACE_MAX }
}

/// A method that has a number.
#[derive(Clone, Copy, Debug)]
struct Method {
    constant: usize,
    code_bytes: usize,
    number: usize,
}

impl Method {
    /// The method at an address; none when there is none, or it has no number.
    #[inline]
    fn of(method: usize) -> Option<Method> {
        let is_address = method & 7 == 0 && method != 0 && method >> 47 == 0;
        is_address.then_some(())?;
        let [constant, number] = Method::find(method).or_else(|| Method::log(method))?;
        let code_bytes_at = constant + Place::CodeBytes.of();
        // SAFETY: a live method's, by what was found.
        let code_bytes = usize::from(unsafe { *(code_bytes_at as *const u16) });
        Some(Method { constant, code_bytes, number })
    }

    fn find(method: usize) -> Option<[usize; 2]> {
        let [_, constant, pool, names, loader, serial, number] = METHODS.find(method)?;
        if !is_loader(loader, serial) {
            return None;
        }
        // SAFETY: the loader's data is there, and with it the memory of all its classes, in which these two lie.
        let now = unsafe {
            let word = |address: usize| *(address as *const usize);
            [
                word(method + Place::MethodConst.of()),
                word(constant + Place::ConstPool.of()),
                word(names_at(constant)),
            ]
        };
        (now == [constant, pool, names]).then_some([constant, number])
    }

    /// Assigns a number to a method.
    #[cold]
    #[inline(never)]
    fn log(method: usize) -> Option<[usize; 2]> {
        let Some((words, number)) = log_method(method) else {
            code_log::unread();
            return None;
        };
        let [_, constant, ..] = words;
        METHODS.keep(words);
        Some([constant, number])
    }

    /// The index of a bytecode by its address.
    fn bci(&self, bytecode: usize) -> u32 {
        let index = bytecode.wrapping_sub(self.constant + Place::ConstSize.of());
        if index < self.code_bytes { index as u32 } else { NO_BCI }
    }

    fn key(&self, bci: u32) -> u64 {
        script_key(self.number as u32, place_of(bci), false)
    }
}

/// Returns the address of the word with the numbers of a method's names.
fn names_at(constant: usize) -> usize {
    constant.wrapping_add(Place::NameIndex.of()) & !7
}

/// Returns whether a loader's data is still the one that had this serial.
fn is_loader(loader: usize, serial: usize) -> bool {
    is_watched(loader) && LOADERS.find(loader).is_some_and(|[_, now]| now == serial)
}

/// If the JVM counts its own memory, a block of `malloc` begins so many bytes before its contents.
const COUNTED_HEAD: usize = 16;

fn is_watched(loader: usize) -> bool {
    [loader, loader.wrapping_sub(COUNTED_HEAD)]
        .into_iter()
        .all(|block| code_log::number(block) == Some(code_log::STATE))
}

/// The serial of a loader's data, whose end is seen from now on.
fn serial_of(loader: usize) -> usize {
    if is_watched(loader)
        && let Some([_, serial]) = LOADERS.find(loader)
    {
        return serial;
    }
    let serial = SERIALS.fetch_add(1, Ordering::Relaxed);
    LOADERS.keep([loader, serial]);
    code_log::keep_state(loader);
    code_log::keep_state(loader.wrapping_sub(COUNTED_HEAD));
    serial
}

/// Reads what a method is, and writes it into the log: the words by which it is known again, and its number.
fn log_method(method: usize) -> Option<([usize; METHOD_WORDS], usize)> {
    let word = |address: usize, offset: usize| process::word_checked(address.wrapping_add(offset));
    let short = |address: usize, place: Place| word(address, place.of()).map(|word| word & 0xffff);
    let constant = word(method, Place::MethodConst.of())?;
    let pool = word(constant, Place::ConstPool.of())?;
    let class = word(pool, Place::PoolHolder.of())?;
    let loader = word(class, Place::KlassLoader.of())?;
    let names = word(names_at(constant), 0)?;
    let text = |symbol: usize| Some([symbol + Place::SymbolText.of(), short(symbol, Place::SymbolBytes)?]);
    let named = |index: usize| text(word(pool, Place::PoolSize.of() + index * 8)?);
    let file_index = match Place::PoolFile.get() {
        Some(_) => short(pool, Place::PoolFile)?,
        None => short(class, Place::KlassFile)?,
    };
    let file = if file_index == 0 { [0; 2] } else { named(file_index)? };
    let class_name = text(word(class, Place::KlassName.of())?)?;
    let name = named(short(constant, Place::NameIndex)?)?;
    // Behind the bytecode comes the table of lines, which says itself where it ends, and what else the method has.
    let code_bytes = short(constant, Place::CodeBytes)?;
    let from = constant + Place::ConstSize.of() + code_bytes;
    let words = word(constant, Place::ConstWords.of())? & 0x7fff_ffff;
    const LINES_BYTES_MAX: usize = 64 << 10;
    const HAS_LINES: usize = 1;
    let behind = (constant + words * 8).checked_sub(from)?.min(LINES_BYTES_MAX);
    let lines_bytes = if short(constant, Place::ConstFlags)? & HAS_LINES != 0 { behind } else { 0 };
    let head = class_name[1] as u64;
    let found = Found {
        runtime: RUNTIME_HOTSPOT,
        version: vm_tables::version() << 8,
        first_line: 0,
        pieces: [file, name, [(&raw const head) as usize, 8], class_name, [from, lines_bytes]],
        widths: [0; 2],
    };
    let serial = serial_of(loader);
    let number = code_log::write(&found)? as usize;
    Some(([method, constant, pool, names, loader, serial, number], number))
}
