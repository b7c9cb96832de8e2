//! Where a JVM keeps things: which of the places that it tells its debugger are wanted to read its frames.
//!
//! HotSpot's library exports tables for its debugger (`gHotSpotVMStructs`, `gHotSpotVMTypes`): the name of each type and field with its
//! offset, or its address where it is a static one, and the sizes of types. They begin with nothing that differs between versions but the names; what
//! lies where in an entry is exported, too. The recorder reads them in the JVM's own process, `mallow cpu` from outside.

use core::ffi::CStr;

/// The first and the last version whose tables are known to mean what is read in them.
pub const VERSIONS: [u32; 2] = [11, 25];
/// The entries of a table that are read at most.
pub const ENTRIES_MAX: usize = 1 << 13;
/// Exported words, each at an address: the address of the table of fields, the size of its entries, and the offsets
/// in an entry of the type's name, the field's name, whether it is static, its offset and its address.
pub const FIELDS: [&CStr; 7] = [
    c"gHotSpotVMStructs",
    c"gHotSpotVMStructEntryArrayStride",
    c"gHotSpotVMStructEntryTypeNameOffset",
    c"gHotSpotVMStructEntryFieldNameOffset",
    c"gHotSpotVMStructEntryIsStaticOffset",
    c"gHotSpotVMStructEntryOffsetOffset",
    c"gHotSpotVMStructEntryAddressOffset",
];
/// The same of types: a type's name and its size.
pub const TYPES: [&CStr; 4] = [
    c"gHotSpotVMTypes",
    c"gHotSpotVMTypeEntryArrayStride",
    c"gHotSpotVMTypeEntryTypeNameOffset",
    c"gHotSpotVMTypeEntrySizeOffset",
];

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
    /// As above: its size.
    BlobBytes,
    /// As above: at which offset of its code its frame is complete; in two bytes or four.
    FrameComplete,
    /// As above: the address of its code (up to 22), or the distance.
    CodeBegin,
    /// As above.
    CodeOffset,
    /// As above: its part that only the JVM writes, and how much of that is relocations (since 25).
    Mutable,
    /// As above.
    MutableRelocations,
    /// In a compiled method.
    CompiledMethod,
    /// As above.
    CompileId,
    /// As above.
    OriginalPc,
    /// As above: the deoptimisation handler's return address (up to 22), or the distance.
    DeoptBegin,
    /// As above.
    DeoptOffset,
    /// As above.
    ScopePcs,
    /// As above: the address of the scopes (up to 22), or the distance in the separate immutable data (since 23).
    ScopesBegin,
    /// As above.
    ScopesOffset,
    /// As above.
    ScopePcsEnd,
    /// As above.
    Metadata,
    /// As above.
    Immutable,
    /// In a growable array: the address of its elements, after two numbers since version 16 and further before.
    ArrayElements,
    /// In a method.
    MethodConst,
    /// In its constant part.
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

/// The number of places.
pub const PLACES: usize = Place::PoolSize as usize + 1;

/// Each with its type and its own name, `None` for the type's size. A place that differs between versions is listed
/// twice.
pub const WANTED: [(Place, &CStr, &CStr); 58] = [
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
    (Place::BlobBytes, c"CodeBlob", c"_size"),
    (Place::FrameComplete, c"CodeBlob", c"_frame_complete_offset"),
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
    (Place::ArrayElements, c"GrowableArray<int>", c"_data"),
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

/// The offset of the elements of a growable array, if its JVM does not export it.
pub const ARRAY_ELEMENTS: usize = 8;

/// Returns whether all places are known that are needed to read Java frames. `has` returns whether a place is known.
pub fn is_enough(has: impl Fn(Place) -> bool) -> bool {
    let either = |one: Place, other: Place| has(one) || has(other);
    let may_lack = [
        Place::ArrayElements,
        Place::BlobBytes,
        Place::FrameComplete,
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
    let has_all = |places: &[Place]| places.iter().all(|place| has(*place));
    WANTED.iter().all(|(place, ..)| may_lack.contains(place) || has(*place))
        && either(Place::CodeBegin, Place::CodeOffset)
        && either(Place::DeoptBegin, Place::DeoptOffset)
        && either(Place::PoolFile, Place::KlassFile)
        && (has_all(&beside) || has_all(&apart))
}
