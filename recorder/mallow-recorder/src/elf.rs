//! Reads loaded ELF objects in memory: which object defines a symbol behind ours, and a module's build id.
//!
//! `dlsym(RTLD_NEXT)` would do the former too, but it takes the loader's lock, allocates when it
//! fails and leaves an error for the host's next `dlerror`. A search of the loaded objects does none of that.

use crate::process;
use core::arch::{asm, global_asm};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

/// `struct dl_phdr_info`.
#[repr(C)]
#[derive(Debug)]
pub struct LoadedObject {
    /// Load bias: the mapped address minus the address in the file.
    pub bias: usize,
    name: *const c_char,
    headers: *const ProgramHeader,
    header_count: u16,
    load_count: u64,
    unload_count: u64,
    thread_local_number: usize,
    thread_local: *const u8,
}

/// `Elf64_Phdr`.
#[repr(C)]
#[derive(Debug)]
pub struct ProgramHeader {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    physical: u64,
    file_bytes: u64,
    memory_bytes: u64,
    align: u64,
}

/// `Elf64_Sym`.
#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: u64,
    bytes: u64,
}

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_NOTE: u32 = 4;
const PT_TLS: u32 = 7;
const PT_GNU_EH_FRAME: u32 = 0x6474_e550;
const PT_GNU_RELRO: u32 = 0x6474_e552;

type Iterate = unsafe extern "C" fn(
    visit: extern "C" fn(*const LoadedObject, usize, *mut c_void) -> c_int,
    data: *mut c_void,
) -> c_int;

unsafe extern "C" {
    fn dl_iterate_phdr(
        visit: extern "C" fn(*const LoadedObject, usize, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
}

global_asm!(".weak _r_debug");

/// The public head of `struct link_map`.
#[repr(C)]
struct LinkMap {
    bias: usize,
    name: *const c_char,
    dynamic: *const [u64; 2],
    next: *const LinkMap,
}

/// `dl_iterate_phdr` of a library. An executable with the runtime of a sanitizer in it has one of its own, which cannot be called before the
/// runtime has begun, and we are there earlier.
fn iterate() -> Iterate {
    static ITERATE: AtomicUsize = AtomicUsize::new(0);
    let known = match ITERATE.load(Ordering::Relaxed) {
        0 => find_iterate().inspect(|found| ITERATE.store(*found, Ordering::Relaxed)),
        known => Some(known),
    };
    // SAFETY: the symbol has this type in every libc that has it.
    known.map_or(dl_iterate_phdr as Iterate, |address| unsafe {
        core::mem::transmute::<usize, Iterate>(address)
    })
}

/// The dynamic section of the object that a handle of `dlopen` stands for; 0 when it is none of the loader's. To be called from within
/// [`each_object`], where nobody changes the list.
pub fn dynamic_of_handle(handle: usize) -> usize {
    let mut map = first_map();
    // SAFETY: the loader's list. Null ends it.
    while let Some(object) = unsafe { map.as_ref() } {
        if map as usize == handle {
            return object.dynamic as usize;
        }
        map = object.next;
    }
    0
}

/// The first object of the loader's list, which is the executable; null where there is none.
fn first_map() -> *const LinkMap {
    let rendezvous: *const [usize; 2];
    // SAFETY: reads the global offset table; the entry is 0 when nobody defines the symbol.
    unsafe {
        asm!("mov {}, qword ptr [rip + _r_debug@GOTPCREL]", out(reg) rendezvous, options(nostack, preserves_flags, pure, readonly));
    }
    // SAFETY: null, or the loader's `struct r_debug`: a version, and the first object.
    unsafe { rendezvous.as_ref() }.map_or(core::ptr::null(), |words| words[1] as *const LinkMap)
}

#[cold]
#[inline(never)]
fn find_iterate() -> Option<usize> {
    let mut map = first_map();
    loop {
        // SAFETY: the loader's list, whose objects stay while the process begins. Null ends it.
        let object = unsafe {
            map = map.as_ref()?.next;
            map.as_ref()?
        };
        let found = Tables::read(object.bias, object.dynamic)
            .and_then(|tables| tables.find(b"dl_iterate_phdr").map(|symbol| symbol.value as usize));
        if let Some(value) = found {
            return Some(object.bias.wrapping_add(value));
        }
    }
}

/// Calls `visit` for each loaded object in load order until it returns true. Takes the loader's lock, which the
/// calling thread may already hold.
pub fn each_object<F: FnMut(&LoadedObject) -> bool>(mut visit: F) {
    // The loader holds its lock meanwhile: a handler that left by a jump would leave it locked.
    let _undisturbed = process::undisturbed();
    extern "C" fn trampoline<F: FnMut(&LoadedObject) -> bool>(
        object: *const LoadedObject,
        _bytes: usize,
        data: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader passes a valid object, and `data` is the closure below, borrowed for the whole
        // walk.
        unsafe { (*data.cast::<F>())(&*object) as c_int }
    }
    // SAFETY: the closure outlives the call.
    unsafe { iterate()(trampoline::<F>, core::ptr::from_mut(&mut visit).cast()) };
}

/// Returns the address of the first definition of `name` in an object that was loaded after the one that contains
/// `own`.
///
/// Objects loaded later, even privately, count: `operator new` may come with a plug-in. `None` if no object defines
/// it.
pub fn next_definition(name: &CStr, own: usize) -> Option<usize> {
    let mut behind_us = false;
    let mut found = None;
    each_object(|object| {
        if !behind_us {
            behind_us = object.contains(own);
            return false;
        }
        found = object.definition(name.to_bytes());
        found.is_some()
    });
    found
}

/// Returns whether an object in front of the one that holds `own`, such as the executable, defines `name`: then calls go there.
pub fn defined_before(name: &CStr, own: usize) -> bool {
    let mut before = false;
    each_object(|object| {
        before = !object.contains(own) && object.defines(name.to_bytes());
        before || object.contains(own)
    });
    before
}

/// Returns whether the object after `own` that contains `address` defines `name` too.
pub fn defined_beside(address: usize, name: &CStr, own: usize) -> bool {
    let mut beside = false;
    each_object(|object| {
        beside =
            object.contains(address) && !object.contains(own) && object.definition(name.to_bytes()).is_some();
        beside
    });
    beside
}

/// A definition of a symbol: its address and size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    /// As mapped.
    pub address: usize,
    /// According to the symbol table.
    pub bytes: usize,
}

/// Returns an object's own definition of `name`, a function or data. Takes no lock: `dynamic` is the address of the
/// object's dynamic section. Not inlined, because of its stack usage.
#[inline(never)]
pub fn definition_in(bias: usize, dynamic: usize, name: &CStr) -> Option<Definition> {
    let tables = Tables { kinds: FUNCTIONS | 1 << 1, ..Tables::read(bias, dynamic as *const [u64; 2])? };
    let symbol = tables.find(name.to_bytes())?;
    Some(Definition { address: bias.wrapping_add(symbol.value as usize), bytes: symbol.bytes as usize })
}

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

/// Kinds of symbols, a bit for each: without a kind, functions, and resolver functions (ifunc).
const FUNCTIONS: u16 = 1 | 1 << 2 | 1 << 10;

/// `Elf64_Rela`.
#[repr(C)]
struct Relocation {
    offset: u64,
    /// The symbol, and in the lower half the kind.
    info: u64,
    addend: i64,
}

/// The value of a tag of a dynamic section.
fn value_of(mut entry: *const [u64; 2], wanted: u64) -> Option<u64> {
    if entry.is_null() {
        return None;
    }
    loop {
        // SAFETY: the dynamic section is mapped and ends with a zero tag.
        let [tag, value] = unsafe { *entry };
        if tag == 0 || tag == wanted {
            return (tag != 0).then_some(value);
        }
        // SAFETY: as above.
        entry = unsafe { entry.add(1) };
    }
}

/// An address of a dynamic section: glibc adds the bias to these values in place, musl and the vdso do not.
fn mapped(bias: usize, value: u64) -> usize {
    if (value as usize) < bias { bias + value as usize } else { value as usize }
}

/// An object's dynamic symbols.
struct Tables {
    /// Which kinds are searched for.
    kinds: u16,
    symbols: *const Symbol,
    strings: *const c_char,
    gnu_hash: *const u32,
    hash: *const u32,
    /// The version of each symbol; null when there are none.
    versions: *const u16,
}

impl Tables {
    fn read(bias: usize, mut entry: *const [u64; 2]) -> Option<Tables> {
        const DT_HASH: u64 = 4;
        const DT_STRTAB: u64 = 5;
        const DT_SYMTAB: u64 = 6;
        const DT_GNU_HASH: u64 = 0x6fff_fef5;
        const DT_VERSYM: u64 = 0x6fff_fff0;
        if entry.is_null() {
            return None;
        }
        let mut tables = [0usize; 5];
        loop {
            // SAFETY: the dynamic section is mapped and ends with a zero tag.
            let [tag, value] = unsafe { *entry };
            let address = mapped(bias, value);
            match tag {
                0 => break,
                DT_SYMTAB => tables[0] = address,
                DT_STRTAB => tables[1] = address,
                DT_GNU_HASH => tables[2] = address,
                DT_HASH => tables[3] = address,
                DT_VERSYM => tables[4] = address,
                _ => {}
            }
            // SAFETY: as above.
            entry = unsafe { entry.add(1) };
        }
        let [symbols, strings, gnu_hash, hash, versions] = tables;
        (symbols != 0 && strings != 0).then_some(Tables {
            kinds: FUNCTIONS,
            symbols: symbols as *const Symbol,
            strings: strings as *const c_char,
            gnu_hash: gnu_hash as *const u32,
            hash: hash as *const u32,
            versions: versions as *const u16,
        })
    }

    /// The newest version, where there are several: `posix_spawn` has an older one that behaves otherwise.
    fn find(&self, name: &[u8]) -> Option<&Symbol> {
        self.find_if(name, |index| !self.is_old(index)).or_else(|| self.find_if(name, |_| true))
    }

    fn find_if(&self, name: &[u8], is_wanted: impl Fn(usize) -> bool) -> Option<&Symbol> {
        if !self.gnu_hash.is_null() {
            self.find_by_gnu_hash(name, is_wanted)
        } else if !self.hash.is_null() {
            self.find_by_hash(name, is_wanted)
        } else {
            None
        }
    }

    /// Returns whether this is not the version that a program which is linked today would get.
    fn is_old(&self, index: usize) -> bool {
        const HIDDEN: u16 = 0x8000;
        // SAFETY: the table has an entry for each symbol.
        !self.versions.is_null() && unsafe { *self.versions.add(index) } & HIDDEN != 0
    }

    /// The symbol of that index when it is of that name, and this object defines it.
    fn matching(&self, index: usize, name: &[u8]) -> Option<&Symbol> {
        // SAFETY: the hash table names only symbols that exist; names are zero-terminated strings of the
        // string table.
        unsafe {
            let symbol = &*self.symbols.add(index);
            let is_wanted = self.kinds >> (symbol.info & 0xf) & 1 != 0;
            let defined = symbol.section != 0 && symbol.value != 0 && is_wanted;
            (defined && CStr::from_ptr(self.strings.add(symbol.name as usize)).to_bytes() == name)
                .then_some(symbol)
        }
    }

    /// Layout: bucket count, first symbol, bloom words, bloom shift; bloom; buckets; hash values, the last of
    /// a chain odd.
    fn find_by_gnu_hash(&self, name: &[u8], is_wanted: impl Fn(usize) -> bool) -> Option<&Symbol> {
        let wanted = name.iter().fold(5381u32, |hash, byte| hash.wrapping_mul(33).wrapping_add(*byte as u32));
        let table = self.gnu_hash;
        // SAFETY: reads within the table, whose own counts say where its parts lie.
        unsafe {
            let (bucket_count, first, bloom_words) = (*table, *table.add(1), *table.add(2));
            if bucket_count == 0 {
                return None;
            }
            let buckets = table.add(4 + 2 * bloom_words as usize);
            let chains = buckets.add(bucket_count as usize);
            let mut index = *buckets.add((wanted % bucket_count) as usize);
            if index < first {
                return None;
            }
            loop {
                let hash = *chains.add((index - first) as usize);
                if hash | 1 == wanted | 1
                    && is_wanted(index as usize)
                    && let Some(symbol) = self.matching(index as usize, name)
                {
                    return Some(symbol);
                }
                if hash & 1 == 1 {
                    return None;
                }
                index += 1;
            }
        }
    }

    /// Layout: bucket count, symbol count; buckets; chain. Without the hash function: a walk over all symbols
    /// will do.
    fn find_by_hash(&self, name: &[u8], is_wanted: impl Fn(usize) -> bool) -> Option<&Symbol> {
        // SAFETY: the second word is the number of symbols.
        let count = unsafe { *self.hash.add(1) } as usize;
        (1..count).filter(|index| is_wanted(*index)).find_map(|index| self.matching(index, name))
    }
}

/// A byte range in memory.
pub type Bytes = (*const u8, usize);

/// The build id of the object whose first segment is mapped, ELF header and all, at `start`.
///
/// # Safety
/// `start` is the first mapped byte of a loaded object.
pub unsafe fn build_id(start: usize, bias: usize) -> Option<Bytes> {
    // SAFETY: the first page of an object is readable; everything is read where the headers say it lies.
    unsafe {
        if *(start as *const [u8; 4]) != *b"\x7fELF" {
            return None;
        }
        let headers_offset = *((start + 32) as *const u64) as usize;
        let header_count = *((start + 56) as *const u16) as usize;
        if headers_offset + header_count * size_of::<ProgramHeader>() > mallow_wire::shared::PAGE_BYTES {
            return None;
        }
        let headers =
            core::slice::from_raw_parts((start + headers_offset) as *const ProgramHeader, header_count);
        headers.iter().filter(|header| header.kind == PT_NOTE).find_map(|header| {
            build_id_note(
                bias.wrapping_add(header.address as usize),
                header.memory_bytes as usize,
                header.align as usize,
            )
        })
    }
}

/// Looks for the build id among the notes of a segment: name length, description length, type, name,
/// description.
///
/// # Safety
/// `at..at + bytes` is a mapped note segment.
unsafe fn build_id_note(at: usize, bytes: usize, align: usize) -> Option<Bytes> {
    const NT_GNU_BUILD_ID: u32 = 3;
    let align = if align == 8 { 8 } else { 4 };
    let padded = |length: usize| (length + align - 1) & !(align - 1);
    let mut offset = 0;
    while offset + 12 <= bytes {
        // SAFETY: within the segment by the condition above.
        let [name_bytes, description_bytes, kind] = unsafe { *((at + offset) as *const [u32; 3]) };
        let name = offset + 12;
        let description = name + padded(name_bytes as usize);
        let end = description.checked_add(description_bytes as usize)?;
        if end > bytes {
            return None;
        }
        // SAFETY: the name lies in front of the description, which ends within the segment.
        let is_gnu = name_bytes == 4 && unsafe { *((at + name) as *const [u8; 4]) } == *b"GNU\0";
        if kind == NT_GNU_BUILD_ID && is_gnu {
            return Some(((at + description) as *const u8, description_bytes as usize));
        }
        offset = padded(end);
    }
    None
}

/// Hands on how many objects were ever loaded and unloaded, under the loader's lock: neither changes meanwhile.
pub fn with_counts(mut with: impl FnMut(u64, u64)) {
    each_object(|object| {
        with(object.load_count, object.unload_count);
        true
    });
}
