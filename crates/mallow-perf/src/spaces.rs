//! What is mapped where in a process, and unwinding there.

use crate::elf::{Binaries, Binary, Bytes, Start};
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{FrameAddress, Unwinder};
use mallow_files::roots::Root;
use mallow_jvm::{At, Exports, Jvm, Process};
use mallow_scripts::FrameTable;
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// After this number of changed mappings the cache of unwind rules is dropped: its entries distinguish changes by 16
/// bits.
const CHANGES_MAX: u32 = 30_000;
/// Frames of a stack.
const FRAMES_MAX: usize = 4096;

/// The number of a mapped file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FileIndex(pub(crate) u32);

/// The place of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// In a file, at an address as stated there.
    InFile(FileIndex, u64),
    /// In code without a file.
    Anonymous(u64),
    /// In a Java method, by the frame's number in the table of script frames.
    Script(u32),
}

/// Registers with which unwinding begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registers {
    pub(crate) ip: u64,
    pub(crate) sp: u64,
    pub(crate) bp: u64,
    /// Not every recording has it.
    pub(crate) di: Option<u64>,
    /// Nor this one.
    pub(crate) r13: Option<u64>,
}

/// A piece of code in memory.
#[derive(Clone, Debug)]
struct Mapping {
    end: u64,
    file: FileIndex,
    /// The difference between an address as stated in the file and in memory.
    to_svma: u64,
    /// None where the file is not on this machine.
    binary: Option<Arc<Binary>>,
}

/// The code of a process.
#[derive(Clone, Default)]
pub(crate) struct Space {
    mappings: BTreeMap<u64, Mapping>,
    unwinder: UnwinderX86_64<Bytes>,
}

/// How a stack ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// At the start of a program or a thread.
    Whole,
    /// Beyond what was copied of it.
    TooDeep,
    /// Somewhere else.
    Truncated,
}

/// What all processes share: files, and unwind rules.
#[derive(Default)]
pub(crate) struct Unwinding {
    pub(crate) files: Vec<MappedFile>,
    binaries: Binaries,
    /// Whether a program or a thread starts at an address at which stacks ended.
    starts: FxHashMap<(FileIndex, u64), Start>,
    /// The frames of the current stack.
    steps: Vec<Step>,
    /// The frames of scripts and of Java, of all processes.
    pub(crate) script_frames: FrameTable,
    cache: Option<Box<CacheX86_64>>,
    changes: u32,
}

/// A frame of machine code on the stack at hand.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// An address within it, or within its call.
    lookup: u64,
    sp: u64,
    /// How many frames are shown up to it.
    frames: usize,
}

/// A file that was mapped.
#[derive(Clone, Debug)]
pub(crate) struct MappedFile {
    pub(crate) path: String,
    pub(crate) build_id: Vec<u8>,
}

impl Space {
    /// Adds a mapping of code, which replaces earlier ones. Returns a JVM library's exports for its debugger, if it
    /// is one.
    pub(crate) fn map(
        &mut self,
        range: Range<u64>,
        offset: u64,
        (root, path): (Root, &str),
        shared: &mut Unwinding,
    ) -> Option<Exports> {
        if range.is_empty() {
            return None;
        }
        self.unmap(&range, shared);
        let Some(binary) = shared.binaries.get(root, path) else {
            // Its stacks end there, but whose code it is is known. Most files state addresses that are offsets.
            if path.starts_with('/') && !path.starts_with("//") {
                let file = shared.file(path, &[]);
                let to_svma = offset.wrapping_sub(range.start);
                self.mappings.insert(range.start, Mapping { end: range.end, file, to_svma, binary: None });
            }
            return None;
        };
        let svma = binary.svma_at(offset, range.end - range.start)?;
        let file = shared.file(path, &binary.build_id);
        self.unwinder.add_module(binary.module(range.clone(), svma));
        shared.changed();
        let to_svma = svma.wrapping_sub(range.start);
        let exports = binary.jvm.map(|exports| exports.moved(to_svma.wrapping_neg()));
        self.mappings.insert(range.start, Mapping { end: range.end, file, to_svma, binary: Some(binary) });
        exports
    }

    fn unmap(&mut self, range: &Range<u64>, shared: &mut Unwinding) {
        let under = self.mappings.range(..range.end).filter(|(_, mapping)| mapping.end > range.start);
        let gone: Vec<u64> = under.map(|(start, _)| *start).collect();
        for start in gone {
            self.mappings.remove(&start);
            self.unwinder.remove_module(start);
            shared.changed();
        }
    }

    fn find(&self, address: u64) -> Option<&Mapping> {
        let (_, mapping) = self.mappings.range(..=address).next_back()?;
        (address < mapping.end).then_some(mapping)
    }

    /// Returns the place of an address. Places are one byte behind the address, as a return address is behind its
    /// call.
    pub(crate) fn place(&self, lookup: u64) -> Place {
        match self.find(lookup) {
            Some(mapping) => {
                Place::InFile(mapping.file, lookup.wrapping_add(mapping.to_svma).wrapping_add(1))
            }
            None => Place::Anonymous(lookup.wrapping_add(1)),
        }
    }

    /// Returns the places of addresses that another unwinder found, innermost first, each one behind its instruction.
    pub(crate) fn chain(&self, addresses: &[u64], shared: &mut Unwinding, frames: &mut Vec<Place>) -> End {
        frames.extend(addresses.iter().take(FRAMES_MAX).map(|address| self.place(address - 1)));
        let is_whole = addresses.last().is_some_and(|address| self.start(address - 1, shared) != Start::No);
        if is_whole { End::Whole } else { End::Truncated }
    }

    fn start(&self, lookup: u64, shared: &mut Unwinding) -> Start {
        let Some(mapping) = self.find(lookup) else { return Start::No };
        let svma = lookup.wrapping_add(mapping.to_svma);
        let known = shared.starts.entry((mapping.file, svma));
        *known.or_insert_with(|| mapping.binary.as_ref().map_or(Start::No, |binary| binary.start(svma)))
    }

    /// Returns whether code is mapped there.
    pub(crate) fn has(&self, address: u64) -> bool {
        self.find(address).is_some()
    }

    /// Unwinds a stack, innermost frame first. `stack` is a copy of the memory above the stack pointer, `asked` how
    /// much of it was to be copied.
    pub(crate) fn unwind(
        &self,
        registers: Registers,
        stack: &[u8],
        asked: usize,
        mut jvm: Option<&mut Jvm<Process>>,
        shared: &mut Unwinding,
        frames: &mut Vec<Place>,
    ) -> End {
        let first = frames.len();
        let end = self.walk(registers, stack, asked, jvm.as_deref_mut(), shared, frames);
        if end != End::Truncated {
            return end;
        }
        let steps = std::mem::take(&mut shared.steps);
        let start = steps.iter().position(|step| self.start(step.lookup, shared) == Start::Here);
        let handler = steps.iter().position(|step| {
            let mapping = self.find(step.lookup).and_then(|it| Some((it.binary.as_ref()?, it.to_svma)));
            mapping
                .is_some_and(|(binary, to_svma)| binary.is_behind_handler(step.lookup.wrapping_add(to_svma)))
        });
        let of_handler = handler.filter(|at| start.is_none_or(|start| *at < start)).map(|at| steps[at]);
        let start = start.map(|at| steps[at]);
        shared.steps = steps;
        if let Some(handler) = of_handler {
            frames.truncate(handler.frames);
            let Some((before, above)) = interrupted(registers.sp, stack, handler.sp) else { return end };
            let stack = stack.get(above..).unwrap_or_default();
            return self.unwind(before, stack, asked.saturating_sub(above), jvm, shared, frames);
        }
        // If a program starts in code without tables, the unwinder continues into the initial stack.
        if let Some(start) = start {
            frames.truncate(start.frames);
            return End::Whole;
        }
        let Some(mapping) = self.find(registers.ip) else { return end };
        let Some(binary) = &mapping.binary else { return end };
        let svma = registers.ip.wrapping_add(mapping.to_svma);
        if binary.is_behind_clone(svma) {
            frames.truncate(first + 1);
            return End::Whole;
        }
        match registers.di {
            Some(caller) if binary.has_caller_in_register(svma) => {
                frames.truncate(first + 1);
                let of_caller = Registers { ip: caller.wrapping_sub(1), di: None, r13: None, ..registers };
                self.unwind(of_caller, stack, asked, jvm, shared, frames)
            }
            _ => end,
        }
    }

    fn walk(
        &self,
        registers: Registers,
        stack: &[u8],
        asked: usize,
        mut jvm: Option<&mut Jvm<Process>>,
        shared: &mut Unwinding,
        frames: &mut Vec<Place>,
    ) -> End {
        let is_beyond = Cell::new(false);
        let read = |address: u64| {
            let word = word(stack, registers.sp, address);
            is_beyond.set(is_beyond.get() || word.is_none() && address >= registers.sp);
            word
        };
        let Unwinding { steps, cache, script_frames, .. } = shared;
        let cache = cache.get_or_insert_default();
        let mut at =
            At { pc: registers.ip, sp: registers.sp, bp: registers.bp, r13: registers.r13, is_exact: true };
        steps.clear();
        let is_ended = loop {
            let (lookup, sp) = (if at.is_exact { at.pc } else { at.pc.wrapping_sub(1) }, at.sp);
            let next = match jvm.as_deref_mut().filter(|jvm| jvm.holds(at.pc)) {
                Some(jvm) => java_step(jvm, &at, &read, script_frames, frames),
                None => Java::Unknown,
            };
            let next = match next {
                Java::Left(caller) => Ok(Some(caller)),
                Java::Lost => Err(()),
                Java::Unknown => {
                    frames.push(self.place(lookup));
                    native_step(&self.unwinder, &at, &read, cache)
                }
            };
            steps.push(Step { lookup, sp, frames: frames.len() });
            match next {
                Ok(Some(caller)) if frames.len() < FRAMES_MAX => at = caller,
                next => break next == Ok(None),
            }
        };
        let outermost = steps.last().map_or(registers.ip, |step| step.lookup);
        // That the unwinder reports success proves nothing: without tables it follows what it takes for frame
        // pointers.
        let at_start = self.start(outermost, shared) != Start::No;
        match (at_start, is_beyond.get() && stack.len() + 64 >= asked) {
            (true, _) if is_ended || !is_beyond.get() => End::Whole,
            (_, true) => End::TooDeep,
            _ => End::Truncated,
        }
    }
}

/// The registers of what a signal interrupted, which lie on the stack at `sp` where the kernel returns from its handler, and how far up in the copy
/// of the stack, which begins at `from`, that is. None where it was another stack.
fn interrupted(from: u64, stack: &[u8], sp: u64) -> Option<(Registers, usize)> {
    // In the kernel's `struct ucontext`, which is what the stack pointer points at.
    const R13: u64 = 80;
    const DI: u64 = 104;
    const BP: u64 = 120;
    const SP: u64 = 160;
    const IP: u64 = 168;
    let saved = |offset| word(stack, from, sp.checked_add(offset)?);
    let before = Registers { ip: saved(IP)?, sp: saved(SP)?, bp: saved(BP)?, di: saved(DI), r13: saved(R13) };
    let above = usize::try_from(before.sp.checked_sub(from)?).ok()?;
    // The interrupted function is further out, so this terminates.
    (above > 0 && above <= stack.len()).then_some((before, above))
}

/// Goes from a frame of a file's code to its caller; none where there is none.
fn native_step(
    unwinder: &UnwinderX86_64<Bytes>,
    at: &At,
    read: &impl Fn(u64) -> Option<u64>,
    cache: &mut CacheX86_64,
) -> Result<Option<At>, ()> {
    let address = match at.is_exact {
        true => FrameAddress::from_instruction_pointer(at.pc),
        false => FrameAddress::from_return_address(at.pc).ok_or(())?,
    };
    let mut registers = UnwindRegsX86_64::new(at.pc, at.sp, at.bp);
    let mut read = |address| read(address).ok_or(());
    match unwinder.unwind_frame(address, &mut registers, cache, &mut read) {
        Ok(Some(0)) | Err(_) => Err(()),
        Ok(Some(pc)) => Ok(Some(At { pc, sp: registers.sp(), bp: registers.bp(), ..At::default() })),
        Ok(None) => Ok(None),
    }
}

/// The result of unwinding a frame of JIT-compiled Java code.
enum Java {
    Left(At),
    /// Its methods are known, and the caller is not.
    Lost,
    /// Nothing is known of it.
    Unknown,
}

fn java_step(
    jvm: &mut Jvm<Process>,
    at: &At,
    read: &impl Fn(u64) -> Option<u64>,
    table: &mut FrameTable,
    frames: &mut Vec<Place>,
) -> Java {
    let mut stood = Vec::new();
    let caller = jvm.step(at, read, table, &mut stood);
    frames.extend(stood.iter().map(|number| Place::Script(*number)));
    match caller {
        Some(caller) => Java::Left(caller),
        None if stood.is_empty() => Java::Unknown,
        None => Java::Lost,
    }
}

/// A word of a copy of the stack that begins at `start`.
fn word(stack: &[u8], start: u64, address: u64) -> Option<u64> {
    let offset = usize::try_from(address.checked_sub(start)?).ok()?;
    let bytes = stack.get(offset..offset.checked_add(8)?)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

impl Unwinding {
    fn file(&mut self, path: &str, build_id: &[u8]) -> FileIndex {
        let same = |file: &MappedFile| file.path == path && file.build_id == build_id;
        let known = self.files.iter().position(same).unwrap_or_else(|| {
            self.files.push(MappedFile { path: path.to_owned(), build_id: build_id.to_vec() });
            self.files.len() - 1
        });
        FileIndex(known as u32)
    }

    fn changed(&mut self) {
        self.changes += 1;
        if self.changes >= CHANGES_MAX {
            (self.changes, self.cache) = (0, None);
        }
    }
}
