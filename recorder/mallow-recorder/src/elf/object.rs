//! A loaded object: what is mapped where, and what its dynamic section says.

use super::symbols::{Tables, mapped, value_of};
use core::ffi::{CStr, c_char};

/// `struct dl_phdr_info`.
#[repr(C)]
#[derive(Debug)]
pub struct LoadedObject {
    /// Load bias: the mapped address minus the address in the file.
    pub bias: usize,
    name: *const c_char,
    headers: *const ProgramHeader,
    header_count: u16,
    pub(super) load_count: u64,
    pub(super) unload_count: u64,
    thread_local_number: usize,
    thread_local: *const u8,
}

/// `Elf64_Phdr`.
#[repr(C)]
#[derive(Debug)]
pub(super) struct ProgramHeader {
    pub(super) kind: u32,
    flags: u32,
    offset: u64,
    pub(super) address: u64,
    physical: u64,
    file_bytes: u64,
    pub(super) memory_bytes: u64,
    pub(super) align: u64,
}

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_TLS: u32 = 7;
const PT_GNU_EH_FRAME: u32 = 0x6474_e550;
const PT_GNU_RELRO: u32 = 0x6474_e552;

impl LoadedObject {
    /// The path; empty for the executable.
    pub fn name(&self) -> *const c_char {
        self.name
    }

    fn headers(&self) -> &[ProgramHeader] {
        if self.headers.is_null() {
            return &[];
        }
        // SAFETY: the loader's own table of this object.
        unsafe { core::slice::from_raw_parts(self.headers, self.header_count as usize) }
    }

    fn header(&self, kind: u32) -> Option<&ProgramHeader> {
        self.headers().iter().find(|header| header.kind == kind)
    }

    /// Returns whether a mapped segment holds `address`.
    pub fn contains(&self, address: usize) -> bool {
        self.headers().iter().any(|header| {
            let start = self.bias.wrapping_add(header.address as usize);
            header.kind == PT_LOAD && address.wrapping_sub(start) < header.memory_bytes as usize
        })
    }

    /// Returns whether code of the file is mapped at all of these addresses.
    pub fn has_code(&self, address: usize, bytes: usize) -> bool {
        const EXECUTE: u32 = 1;
        self.headers().iter().any(|header| {
            let start = self.bias.wrapping_add(header.address as usize);
            let offset = address.wrapping_sub(start);
            header.kind == PT_LOAD
                && header.flags & EXECUTE != 0
                && offset.checked_add(bytes).is_some_and(|end| end <= header.file_bytes as usize)
        })
    }

    /// Returns where the file's first `bytes` are mapped; `None` if they are not.
    pub fn start_of_file(&self, bytes: usize) -> Option<usize> {
        let is_first = |header: &&ProgramHeader| {
            header.kind == PT_LOAD && header.offset == 0 && header.file_bytes as usize >= bytes
        };
        self.headers().iter().find(is_first).map(|header| self.bias.wrapping_add(header.address as usize))
    }

    /// Returns the mapped range: the first byte and the end.
    pub fn range(&self) -> (usize, usize) {
        let loads = || self.headers().iter().filter(|header| header.kind == PT_LOAD);
        let start = loads().map(|header| header.address as usize).min().unwrap_or(0);
        let end = loads().map(|header| (header.address + header.memory_bytes) as usize).max().unwrap_or(0);
        (self.bias.wrapping_add(start), self.bias.wrapping_add(end))
    }

    /// Returns the address of `.eh_frame_hdr`; 0 without one.
    pub fn eh_frame_header(&self) -> usize {
        self.header(PT_GNU_EH_FRAME).map_or(0, |header| self.bias.wrapping_add(header.address as usize))
    }

    /// Returns the address of its dynamic section; 0 without one.
    pub fn dynamic(&self) -> usize {
        self.header(PT_DYNAMIC).map_or(0, |header| self.bias.wrapping_add(header.address as usize))
    }

    /// Returns its thread-local storage of the calling thread: address and bytes. `None` if it has none, or if this
    /// thread has none yet.
    pub fn thread_local(&self) -> Option<(usize, usize)> {
        let bytes = self.header(PT_TLS)?.memory_bytes as usize;
        (!self.thread_local.is_null()).then_some((self.thread_local as usize, bytes))
    }

    /// Returns the range that the loader made read-only when it had filled it, whole pages; empty without one.
    pub fn read_only_after_start(&self) -> core::ops::Range<usize> {
        let page_of = |address: usize| address & !(mallow_wire::shared::PAGE_BYTES - 1);
        self.header(PT_GNU_RELRO).map_or(0..0, |header| {
            let start = self.bias.wrapping_add(header.address as usize);
            page_of(start)..page_of(start.wrapping_add(header.memory_bytes as usize))
        })
    }

    /// Returns whether it names another one, which is at this path, as needed.
    pub fn needs(&self, path: &[u8]) -> bool {
        const DT_NEEDED: u64 = 1;
        let wanted = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        let Some(tables) = self.tables() else { return false };
        let mut entry = self.dynamic() as *const [u64; 2];
        loop {
            // SAFETY: the dynamic section is mapped and ends with a zero tag; names are strings of the string table.
            unsafe {
                match *entry {
                    [0, _] => return false,
                    [DT_NEEDED, name]
                        if CStr::from_ptr(tables.strings.add(name as usize)).to_bytes() == wanted =>
                    {
                        return true;
                    }
                    _ => entry = entry.add(1),
                }
            }
        }
    }

    /// Visits the slots by which it calls functions of other objects, each with the name.
    pub fn each_import(&self, mut visit: impl FnMut(&[u8], *mut usize)) {
        const DT_PLTRELSZ: u64 = 2;
        const DT_RELA: u64 = 7;
        const DT_RELASZ: u64 = 8;
        const DT_JMPREL: u64 = 23;
        const R_X86_64_64: u32 = 1;
        const R_X86_64_GLOB_DAT: u32 = 6;
        const R_X86_64_JUMP_SLOT: u32 = 7;
        let Some(tables) = self.tables() else { return };
        let value = |wanted| value_of(self.dynamic() as *const [u64; 2], wanted);
        for (start, bytes) in [(DT_JMPREL, DT_PLTRELSZ), (DT_RELA, DT_RELASZ)] {
            let (Some(start), Some(bytes)) = (value(start), value(bytes)) else { continue };
            let start = mapped(self.bias, start) as *const Relocation;
            for index in 0..bytes as usize / size_of::<Relocation>() {
                // SAFETY: the loader's own table of this object, of that length; names are strings of the string table.
                let (relocation, name) = unsafe {
                    let relocation = &*start.add(index);
                    let symbol = &*tables.symbols.add((relocation.info >> 32) as usize);
                    (relocation, CStr::from_ptr(tables.strings.add(symbol.name as usize)))
                };
                if matches!(relocation.info as u32, R_X86_64_64 | R_X86_64_GLOB_DAT | R_X86_64_JUMP_SLOT) {
                    visit(name.to_bytes(), self.bias.wrapping_add(relocation.offset as usize) as *mut usize);
                }
            }
        }
    }

    fn tables(&self) -> Option<Tables> {
        Tables::read(self.bias, self.dynamic() as *const [u64; 2])
    }

    /// Returns whether it has a function of this name.
    pub fn defines(&self, name: &[u8]) -> bool {
        self.tables().is_some_and(|tables| tables.find(name).is_some())
    }

    /// The address of a function of this name.
    pub fn definition(&self, name: &[u8]) -> Option<usize> {
        self.tables()?.find(name).map(|symbol| {
            let address = self.bias.wrapping_add(symbol.value as usize);
            const STT_GNU_IFUNC: u8 = 10;
            if symbol.info & 0xf != STT_GNU_IFUNC {
                return address;
            }
            // SAFETY: the type says that this is a resolver without arguments.
            unsafe { core::mem::transmute::<usize, extern "C" fn() -> usize>(address)() }
        })
    }
}

/// `Elf64_Rela`.
#[repr(C)]
struct Relocation {
    offset: u64,
    /// The symbol, and in the lower half the kind.
    info: u64,
    addend: i64,
}
