//! Where a JVM keeps things, as it says itself.
//!
//! HotSpot's library exports tables for its debugger (`gHotSpotVMStructs`, `gHotSpotVMTypes`): the name of each type and field with its
//! offset, or its address where it is a static one, and the sizes of types. They are constant data, and begin with nothing that differs
//! between versions but the names; what lies where in an entry is exported, too. Read once, when the library is met.

use crate::bounds::at;
use crate::elf::definition_in;
use core::ffi::CStr;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Something whose offset, address or size is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Place {
    /// Addresses: the list of the heaps of code, their bounds, the interpreter's code, where the stub that calls Java returns to, the version.
    Heaps,
    /// As above.
    LowBound,
    /// As above.
    HighBound,
    /// As above.
    Interpreter,
    /// As above.
    CallStub,
    /// As above.
    Version,
    /// Offsets from here on: in a queue of stubs.
    QueueBuffer,
    /// As above.
    QueueBytes,
    /// In a heap of code.
    HeapMemory,
    /// As above.
    HeapSegments,
    /// As above.
    HeapShift,
    /// In a range of reserved memory.
    SpaceLow,
    /// As above.
    SpaceHigh,
    /// In a piece of code.
    BlobName,
    /// As above.
    BlobFrameSize,
    /// As above: the address of its code (up to 22), or the distance.
    CodeBegin,
    /// As above.
    CodeOffset,
    /// As above: what of it is written by the JVM alone, and how much of that is relocations (since 25).
    Mutable,
    /// As above.
    MutableRelocations,
    /// In a compiled method.
    CompiledMethod,
    /// As above.
    CompileId,
    /// As above.
    OriginalPc,
    /// As above: where a frame returns to that is to be interpreted (up to 22), or the distance.
    DeoptBegin,
    /// As above.
    DeoptOffset,
    /// As above.
    ScopePcs,
    /// As above: the address of the scopes (up to 22), or the distance in what is kept apart (since 23).
    ScopesBegin,
    /// As above.
    ScopesOffset,
    /// As above.
    ScopePcsEnd,
    /// As above.
    Metadata,
    /// As above.
    Immutable,
    /// In a method.
    MethodConst,
    /// In the part of it that does not change.
    ConstPool,
    /// As above.
    ConstWords,
    /// As above: whether there is a table of lines is the lowest bit.
    ConstFlags,
    /// As above.
    CodeBytes,
    /// As above.
    NameIndex,
    /// In a pool of constants.
    PoolHolder,
    /// As above (since 12).
    PoolFile,
    /// In a class.
    KlassName,
    /// As above.
    KlassLoader,
    /// As above (up to 11).
    KlassFile,
    /// In a name.
    SymbolBytes,
    /// As above.
    SymbolText,
    /// Sizes from here on.
    BlockSize,
    /// As above.
    ConstSize,
    /// As above.
    PoolSize,
}

const PLACES: usize = Place::PoolSize as usize + 1;

/// Each with the type that has it and its own name, none for the type's size. Where versions differ a place stands here twice.
const WANTED: [(Place, &CStr, &CStr); 55] = [
    (Place::Heaps, c"CodeCache", c"_heaps"),
    (Place::LowBound, c"CodeCache", c"_low_bound"),
    (Place::HighBound, c"CodeCache", c"_high_bound"),
    (Place::Interpreter, c"AbstractInterpreter", c"_code"),
    (Place::CallStub, c"StubRoutines", c"_call_stub_return_address"),
    (Place::Version, c"Abstract_VM_Version", c"_s_vm_release"),
    (Place::QueueBuffer, c"StubQueue", c"_stub_buffer"),
    (Place::QueueBytes, c"StubQueue", c"_buffer_limit"),
    (Place::HeapMemory, c"CodeHeap", c"_memory"),
    (Place::HeapSegments, c"CodeHeap", c"_segmap"),
    (Place::HeapShift, c"CodeHeap", c"_log2_segment_size"),
    (Place::SpaceLow, c"VirtualSpace", c"_low"),
    (Place::SpaceHigh, c"VirtualSpace", c"_high"),
    (Place::BlobName, c"CodeBlob", c"_name"),
    (Place::BlobFrameSize, c"CodeBlob", c"_frame_size"),
    (Place::CodeBegin, c"CodeBlob", c"_code_begin"),
    (Place::CodeOffset, c"CodeBlob", c"_code_offset"),
    (Place::Mutable, c"CodeBlob", c"_mutable_data"),
    (Place::MutableRelocations, c"CodeBlob", c"_relocation_size"),
    (Place::CompiledMethod, c"CompiledMethod", c"_method"),
    (Place::CompiledMethod, c"nmethod", c"_method"),
    (Place::CompileId, c"nmethod", c"_compile_id"),
    (Place::OriginalPc, c"nmethod", c"_orig_pc_offset"),
    (Place::DeoptBegin, c"CompiledMethod", c"_deopt_handler_begin"),
    (Place::DeoptBegin, c"nmethod", c"_deopt_handler_begin"),
    (Place::DeoptOffset, c"nmethod", c"_deopt_handler_offset"),
    (Place::ScopePcs, c"nmethod", c"_scopes_pcs_offset"),
    (Place::ScopesBegin, c"CompiledMethod", c"_scopes_data_begin"),
    (Place::ScopesBegin, c"nmethod", c"_scopes_data_begin"),
    (Place::ScopesOffset, c"nmethod", c"_scopes_data_offset"),
    (Place::ScopePcsEnd, c"nmethod", c"_dependencies_offset"),
    (Place::Metadata, c"nmethod", c"_metadata_offset"),
    (Place::Immutable, c"nmethod", c"_immutable_data"),
    (Place::MethodConst, c"Method", c"_constMethod"),
    (Place::ConstPool, c"ConstMethod", c"_constants"),
    (Place::ConstWords, c"ConstMethod", c"_constMethod_size"),
    (Place::ConstFlags, c"ConstMethod", c"_flags"),
    (Place::ConstFlags, c"ConstMethod", c"_flags._flags"),
    (Place::CodeBytes, c"ConstMethod", c"_code_size"),
    (Place::NameIndex, c"ConstMethod", c"_name_index"),
    (Place::PoolHolder, c"ConstantPool", c"_pool_holder"),
    (Place::PoolFile, c"ConstantPool", c"_source_file_name_index"),
    (Place::KlassName, c"Klass", c"_name"),
    (Place::KlassLoader, c"InstanceKlass", c"_class_loader_data"),
    (Place::KlassLoader, c"Klass", c"_class_loader_data"),
    (Place::KlassFile, c"InstanceKlass", c"_source_file_name_index"),
    (Place::SymbolBytes, c"Symbol", c"_length"),
    (Place::SymbolText, c"Symbol", c"_body"),
    (Place::SymbolText, c"Symbol", c"_body[0]"),
    (Place::BlockSize, c"HeapBlock", c""),
    (Place::ConstSize, c"ConstMethod", c""),
    (Place::PoolSize, c"ConstantPool", c""),
    // Names of versions before 17.
    (Place::HeapSegments, c"CodeHeap", c"_segmentmap"),
    (Place::SymbolBytes, c"SymbolBase", c"_length"),
    (Place::CodeBytes, c"ConstMethod", c"_code_length"),
];

/// Of each place its offset, address or size, plus 1; 0 for one that the JVM has not.
static FOUND: [AtomicUsize; PLACES] = [const { AtomicUsize::new(0) }; PLACES];

impl Place {
    /// The offset, address or size, if the JVM has it.
    #[inline(always)]
    pub fn get(self) -> Option<usize> {
        at(&FOUND, self as usize).load(Ordering::Relaxed).checked_sub(1)
    }

    /// Of a place that is there by [`read`]'s word.
    #[inline(always)]
    pub fn of(self) -> usize {
        self.get().unwrap_or(0)
    }
}

/// One of the exported tables: where its entries lie, and what is where in one.
struct Table {
    entries: usize,
    stride: usize,
    places: [usize; 5],
}

/// The word at an address of the library's own data.
///
/// # Safety
/// It is one.
unsafe fn word(address: usize) -> usize {
    // SAFETY: by contract; constant data of the library's is aligned.
    unsafe { *(address as *const usize) }
}

impl Table {
    /// # Safety
    /// The library is HotSpot's, and loaded.
    unsafe fn of(bias: usize, dynamic: usize, names: [&CStr; 2], places: [&CStr; 5]) -> Option<Table> {
        // SAFETY: exported words.
        let value = |name: &CStr| definition_in(bias, dynamic, name).map(|it| unsafe { word(it.address) });
        let mut found = [0; 5];
        for (into, name) in found.iter_mut().zip(places) {
            *into = if name.is_empty() { 0 } else { value(name)? };
        }
        let [entries, stride] = names;
        Some(Table { entries: value(entries)?, stride: value(stride)?, places: found })
    }

    /// Calls for each entry, with its words at the places, until one has no first word.
    ///
    /// # Safety
    /// As [`Table::of`].
    unsafe fn each(&self, mut visit: impl FnMut([usize; 5])) {
        const ENTRIES_MAX: usize = 1 << 16;
        for index in 0..ENTRIES_MAX {
            let entry = self.entries + index * self.stride;
            // SAFETY: by contract the entries are the library's, and end with one of zeros.
            let words = self.places.map(|place| unsafe { word(entry + place) });
            let [name, ..] = words;
            if name == 0 {
                break;
            }
            visit(words);
        }
    }
}

/// Whether a string of the library's is this one.
///
/// # Safety
/// It ends with a zero.
unsafe fn is(text: usize, name: &CStr) -> bool {
    let wanted = name.to_bytes_with_nul();
    // SAFETY: by contract: no byte behind one that differs is looked at.
    text != 0 && wanted.iter().enumerate().all(|(at, byte)| unsafe { *((text + at) as *const u8) } == *byte)
}

/// Reads the tables of a library; false when it has none.
///
/// # Safety
/// The object is loaded, and HotSpot's.
#[inline(never)]
pub unsafe fn read(bias: usize, dynamic: usize) -> bool {
    // SAFETY: by contract.
    let tables = unsafe {
        let fields = Table::of(
            bias,
            dynamic,
            [c"gHotSpotVMStructs", c"gHotSpotVMStructEntryArrayStride"],
            [
                c"gHotSpotVMStructEntryTypeNameOffset",
                c"gHotSpotVMStructEntryFieldNameOffset",
                c"gHotSpotVMStructEntryIsStaticOffset",
                c"gHotSpotVMStructEntryOffsetOffset",
                c"gHotSpotVMStructEntryAddressOffset",
            ],
        );
        let types = Table::of(
            bias,
            dynamic,
            [c"gHotSpotVMTypes", c"gHotSpotVMTypeEntryArrayStride"],
            [c"gHotSpotVMTypeEntryTypeNameOffset", c"gHotSpotVMTypeEntrySizeOffset", c"", c"", c""],
        );
        fields.zip(types)
    };
    let Some((fields, types)) = tables else { return false };
    let keep = |place: Place, value: usize| at(&FOUND, place as usize).store(value + 1, Ordering::Relaxed);
    // SAFETY: by contract; the flag that says whether a field is static is of four bytes.
    unsafe {
        fields.each(|[class, field, is_static, offset, address]| {
            for (place, wanted_class, wanted) in WANTED {
                if is(class, wanted_class) && is(field, wanted) {
                    keep(place, if is_static as u32 != 0 { address } else { offset });
                }
            }
        });
        types.each(|[class, bytes, ..]| {
            for (place, wanted_class, wanted) in WANTED {
                if wanted.is_empty() && is(class, wanted_class) {
                    keep(place, bytes);
                }
            }
        });
    }
    true
}

/// The JVM's version, which it has as text: `17.0.15+6`. The number of it is set later.
pub fn version() -> u32 {
    const DIGITS_MAX: usize = 3;
    let Some(place) = Place::Version.get() else { return 0 };
    // SAFETY: a variable of the library's that points at constant text, which ends with a zero.
    unsafe {
        let text = word(place);
        let digit = |at: usize| (text != 0).then(|| *((text + at) as *const u8)).filter(u8::is_ascii_digit);
        (0..DIGITS_MAX).map_while(digit).fold(0, |number, digit| number * 10 + u32::from(digit - b'0'))
    }
}

/// Whether all is there that frames of Java are read by.
pub fn is_enough() -> bool {
    let either = |one: Place, other: Place| one.get().or(other.get()).is_some();
    let may_lack = [
        Place::CodeBegin,
        Place::CodeOffset,
        Place::Mutable,
        Place::MutableRelocations,
        Place::DeoptBegin,
        Place::DeoptOffset,
        Place::ScopesBegin,
        Place::ScopesOffset,
        Place::ScopePcsEnd,
        Place::Metadata,
        Place::Immutable,
        Place::PoolFile,
        Place::KlassFile,
    ];
    // Either all of a compiled method lies beside its code, or what is written once and what changes lie elsewhere.
    let beside = [Place::ScopesBegin, Place::ScopePcsEnd, Place::Metadata];
    let apart = [Place::Immutable, Place::ScopesOffset, Place::Mutable, Place::MutableRelocations];
    let has_all = |places: &[Place]| places.iter().all(|place| place.get().is_some());
    WANTED.iter().all(|(place, ..)| may_lack.contains(place) || place.get().is_some())
        && either(Place::CodeBegin, Place::CodeOffset)
        && either(Place::DeoptBegin, Place::DeoptOffset)
        && either(Place::PoolFile, Place::KlassFile)
        && (has_all(&beside) || has_all(&apart))
}
