//! The library is mapped into a process that stands before its first instruction, and the process let go.

use crate::InjectError;
use crate::auxiliary::{Auxiliary, HEADER_BYTES};
use crate::executable::Executable;
use crate::library::{Library, Segment};
use crate::thread_local::{Described, Layout};
use crate::tracee::{Call, Tracee};
use mallow_wire::static_start::{MappedObject, StaticStart};
use nix::libc;
use object::elf;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const PAGE_BYTES: u64 = 4096;

/// A program header, as 56 bytes of it.
type Header = [u8; HEADER_BYTES as usize];

/// What the mapping of our own holds, by offsets.
struct Room {
    start: u64,
    path: u64,
    headers: u64,
    /// The table of unwind information, where a linker made none.
    frames: u64,
    /// The initial values of thread-local storage.
    values: u64,
    /// The control block that serves until libc has made one.
    control_block: u64,
    bytes: u64,
}

/// What is known of the program.
struct Program {
    auxiliary: Auxiliary,
    bias: u64,
    headers: Vec<Header>,
    thread_local: Described,
    executable: Executable,
}

/// Maps the library at `path` into the child, which was started by somebody who called [`be_traced`](crate::be_traced) in it, and lets it go. The calling thread
/// is the one that started it.
///
/// # Errors
/// When the system refuses it, or the program is not what it should be. It has then ended, or been killed.
pub fn load(pid: u32, path: &Path, library: &Library) -> Result<(), InjectError> {
    let mut tracee = Tracee::wait_for_start(pid)?;
    let registers = tracee.registers()?;
    let file = File::open(format!("/proc/{pid}/exe")).map_err(InjectError::refused("read its executable"))?;
    let program = Program::read(&tracee, registers, Executable::read(file)?)?;
    let layout = Layout::of(program.thread_local, library.thread_local)?;
    let room = Room::of(&program, &layout, path);
    let (own, bias) = tracee.calling(|tracee, call| {
        // A mapping is only as aligned as a page is.
        let own = map(tracee, call, room.bytes + layout.align)?.next_multiple_of(layout.align);
        tracee.write(own + room.path, path.as_os_str().as_bytes())?;
        let bias = map_library(tracee, call, own + room.path, library, layout.below)?;
        // Its signals were kept from it until here; the room still holds zeros where none is named.
        call(tracee, (libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as u64, own + room.values, 0, 8, 0, 0]))?;
        Ok((own, bias))
    })?;
    let start = program.fill(&tracee, &room, own, &layout, library, bias)?;
    let mut begins = registers;
    begins.rip = bias + library.entry_svma;
    begins.rdi = start;
    begins.fs_base = own + room.control_block;
    // No system call is to be begun again.
    begins.orig_rax = u64::MAX;
    tracee.set_registers(begins)?;
    tracee.release()
}

impl Program {
    fn read(
        tracee: &Tracee,
        registers: libc::user_regs_struct,
        executable: Executable,
    ) -> Result<Program, InjectError> {
        let auxiliary = Auxiliary::read(tracee, registers.rsp)?;
        if auxiliary.entry != registers.rip {
            return Err(InjectError::Damaged);
        }
        let mut headers = vec![[0; HEADER_BYTES as usize]; auxiliary.header_count as usize];
        tracee.read(auxiliary.headers, headers.as_flattened_mut())?;
        let kinds = headers.iter().filter(|header| kind(header) == elf::PT_TLS);
        let mut described = kinds.map(|header| Described {
            svma: field(header, 16),
            file_bytes: field(header, 32),
            memory_bytes: field(header, 40),
            align: field(header, 48),
        });
        let thread_local = described.next().unwrap_or_default();
        if described.next().is_some() {
            return Err(InjectError::Damaged);
        }
        drop(described);
        let bias = auxiliary.entry.wrapping_sub(executable.entry_svma);
        Ok(Program { auxiliary, bias, headers, thread_local, executable })
    }

    /// The initial values of its thread-local storage, as they will be when libc has put the addresses among them right.
    fn values(&self, tracee: &Tracee) -> Result<Vec<u8>, InjectError> {
        let mut values = vec![0; self.thread_local.file_bytes as usize];
        tracee.read(self.bias.wrapping_add(self.thread_local.svma), &mut values)?;
        for (svma, addend) in &self.executable.pointers {
            let at = svma.wrapping_sub(self.thread_local.svma) as usize;
            let place = values.get_mut(at..).and_then(|rest| rest.first_chunk_mut());
            *place.ok_or(InjectError::Damaged)? = self.bias.wrapping_add(*addend).to_le_bytes();
        }
        Ok(values)
    }

    /// Fills the room in; gives where the program's description is.
    fn fill(
        &self,
        tracee: &Tracee,
        room: &Room,
        own: u64,
        layout: &Layout,
        library: &Library,
        library_bias: u64,
    ) -> Result<u64, InjectError> {
        tracee.write(own + room.values + layout.in_front, &self.values(tracee)?)?;
        let frames: Vec<u8> =
            self.executable.frames.as_flattened().iter().flat_map(|word| word.to_le_bytes()).collect();
        tracee.write(own + room.frames, &frames)?;
        let headers = self.headers_with(layout, own + room.headers, own + room.values);
        tracee.write(own + room.headers, headers.as_flattened())?;
        tracee.write(own + room.control_block, &(own + room.control_block).to_le_bytes())?;
        self.auxiliary.replace_headers(tracee, own + room.headers, headers.len() as u64)?;
        let object = |bias, name, headers, header_count| MappedObject {
            bias,
            name,
            headers,
            header_count,
            spare: [0; 4],
        };
        // Where the path ends there is a zero, which is the executable's name.
        let nothing = own + room.headers - 1;
        let start = StaticStart {
            entry: self.auxiliary.entry,
            stack: tracee.registers()?.rsp,
            frames: own + room.frames,
            frame_count: self.executable.frames.len() as u64,
            objects: [
                object(self.bias, nothing, own + room.headers, headers.len() as u64),
                object(
                    library_bias,
                    own + room.path,
                    library_bias.wrapping_add(library.headers_svma),
                    library.header_count,
                ),
            ],
        };
        tracee.write(own + room.start, &bytes_of(&start))?;
        Ok(own + room.start)
    }

    /// The program's headers, with the library's thread-local storage described beside its own, for a table at `at`.
    fn headers_with(&self, layout: &Layout, at: u64, values: u64) -> Vec<Header> {
        let described = layout.described(self.thread_local, values.wrapping_sub(self.bias));
        let mut headers = self.headers.clone();
        if !headers.iter().any(|header| kind(header) == elf::PT_TLS) {
            let mut header = [0; HEADER_BYTES as usize];
            put(&mut header, 0, u64::from(elf::PT_TLS.0) | u64::from(elf::PF_R.0) << 32);
            headers.push(header);
        }
        let bytes = headers.len() as u64 * HEADER_BYTES;
        for header in &mut headers {
            if kind(header) == elf::PT_TLS {
                put(header, 16, described.svma);
                put(header, 24, described.svma);
                put(header, 32, described.file_bytes);
                put(header, 40, described.memory_bytes);
                put(header, 48, described.align);
            } else if kind(header) == elf::PT_PHDR {
                // By the difference between this and where it is told that the table lies libc knows what to add to addresses.
                put(header, 16, at.wrapping_sub(self.bias));
                put(header, 24, at.wrapping_sub(self.bias));
                put(header, 32, bytes);
                put(header, 40, bytes);
            }
        }
        headers
    }
}

fn kind(header: &Header) -> elf::ProgramType {
    elf::ProgramType(field(header, 0) as u32)
}

fn field(header: &Header, at: usize) -> u64 {
    header[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn put(header: &mut Header, at: usize, value: u64) {
    header[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

impl Room {
    fn of(program: &Program, layout: &Layout, path: &Path) -> Room {
        /// Larger than the control block of any libc.
        const CONTROL_BLOCK_BYTES: u64 = PAGE_BYTES;
        let path_at = size_of::<StaticStart>() as u64;
        // A zero behind the path, and one of its own for the executable's.
        let headers = (path_at + path.as_os_str().len() as u64 + 2).next_multiple_of(16);
        let headers_end = headers + (program.headers.len() as u64 + 1) * HEADER_BYTES;
        let frames = headers_end.next_multiple_of(16);
        let frames_end = frames + size_of_val(&program.executable.frames[..]) as u64;
        let values = frames_end.next_multiple_of(layout.align.max(16));
        let values_end = values + layout.in_front + program.thread_local.file_bytes;
        let control_block = (values_end + layout.below).next_multiple_of(layout.align.max(64));
        let bytes = (control_block + CONTROL_BLOCK_BYTES).next_multiple_of(PAGE_BYTES);
        Room { start: 0, path: path_at, headers, frames, values, control_block, bytes }
    }
}

type Caller<'a> = &'a mut dyn FnMut(&mut Tracee, Call) -> Result<u64, InjectError>;

/// Maps fresh memory.
fn map(tracee: &mut Tracee, call: Caller<'_>, bytes: u64) -> Result<u64, InjectError> {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    call(tracee, (libc::SYS_mmap, [0, bytes, protection as u64, flags as u64, u64::MAX, 0]))
}

/// Maps the library's file, whose path is at `path_at`, and writes the words that depend on where; gives what is added to its addresses.
fn map_library(
    tracee: &mut Tracee,
    call: Caller<'_>,
    path_at: u64,
    library: &Library,
    below: u64,
) -> Result<u64, InjectError> {
    let none = [
        0,
        library.span(),
        libc::PROT_NONE as u64,
        (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64,
        u64::MAX,
        0,
    ];
    let bias = call(tracee, (libc::SYS_mmap, none))?;
    let open = [path_at, (libc::O_RDONLY | libc::O_CLOEXEC) as u64, 0, 0, 0, 0];
    let file = call(tracee, (libc::SYS_open, open))?;
    for segment in &library.segments {
        map_segment(tracee, call, segment, bias, file)?;
    }
    call(tracee, (libc::SYS_close, [file, 0, 0, 0, 0, 0]))?;
    for (at, value) in library.words(bias, below) {
        tracee.write(at, &value.to_le_bytes())?;
    }
    if let Some((svma, bytes)) = library.read_only {
        call(tracee, (libc::SYS_mprotect, [bias + svma, bytes, libc::PROT_READ as u64, 0, 0, 0]))?;
    }
    Ok(bias)
}

fn map_segment(
    tracee: &mut Tracee,
    call: Caller<'_>,
    segment: &Segment,
    bias: u64,
    file: u64,
) -> Result<(), InjectError> {
    let in_page = segment.svma % PAGE_BYTES;
    let start = bias + segment.svma - in_page;
    let file_end = bias + segment.svma + segment.file_bytes;
    let flags = (libc::MAP_PRIVATE | libc::MAP_FIXED) as u64;
    let of_file =
        [start, in_page + segment.file_bytes, segment.protection, flags, file, segment.offset - in_page];
    call(tracee, (libc::SYS_mmap, of_file))?;
    if segment.memory_bytes > segment.file_bytes {
        let memory_end = bias + segment.svma + segment.memory_bytes;
        let page_end = file_end.next_multiple_of(PAGE_BYTES);
        tracee.write(file_end, &vec![0; (page_end.min(memory_end) - file_end) as usize])?;
        if memory_end > page_end {
            let flags = flags | libc::MAP_ANONYMOUS as u64;
            call(
                tracee,
                (libc::SYS_mmap, [page_end, memory_end - page_end, segment.protection, flags, u64::MAX, 0]),
            )?;
        }
    }
    Ok(())
}

/// In the order of the fields, which leave no gap.
fn bytes_of(start: &StaticStart) -> Vec<u8> {
    let mut words = vec![start.entry, start.stack, start.frames, start.frame_count];
    for object in &start.objects {
        words.extend([object.bias, object.name, object.headers, object.header_count]);
        words.extend(object.spare);
    }
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

const _: () = assert!(size_of::<StaticStart>() == 8 * (4 + 2 * 8));

#[cfg(test)]
#[path = "loading_tests.rs"]
mod tests;
