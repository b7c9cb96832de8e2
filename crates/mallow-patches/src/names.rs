//! What functions of allocators do, by their names.

use mallow_wire::event::Kind;
use mallow_wire::patches::{Arguments, Call, NO_ARGUMENT};

/// What a function does, and which of its arguments says how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meaning {
    pub(crate) call: Call,
    pub(crate) arguments: Arguments,
}

/// Whose interface a function belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Family {
    Mimalloc,
    Jemalloc,
    Tcmalloc,
    Snmalloc,
    Rpmalloc,
    /// Whatever is called `malloc`.
    Malloc,
    /// C++'s operators.
    Operators,
}

impl Family {
    /// As people know it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Family::Mimalloc => "mimalloc",
            Family::Jemalloc => "jemalloc",
            Family::Tcmalloc => "tcmalloc",
            Family::Snmalloc => "snmalloc",
            Family::Rpmalloc => "rpmalloc",
            Family::Malloc => "malloc",
            Family::Operators => "operator new",
        }
    }
}

const fn meaning(call: Call, block: u8, count: u8, size: u8) -> Meaning {
    Meaning { call, arguments: Arguments { block, size, count, record: Kind::Alloc as u8 } }
}

const N: u8 = NO_ARGUMENT;
/// `f(size, …)`.
const SIZE: Meaning = meaning(Call::Allocate, N, N, 0);
/// `f(x, size, …)`, where `x` is an alignment or a heap.
const SECOND_SIZE: Meaning = meaning(Call::Allocate, N, N, 1);
/// `f(count, size, …)`.
const COUNTED: Meaning = meaning(Call::Allocate, N, 0, 1);
/// `f(x, count, size, …)`.
const SECOND_COUNTED: Meaning = meaning(Call::Allocate, N, 1, 2);
/// `f(&block, alignment, size)`.
const INTO: Meaning = meaning(Call::AllocateInto, N, N, 2);
/// `f(block, …)`.
const FREE: Meaning = meaning(Call::Free, 0, N, N);
/// `f(block, size, …)`.
const REALLOC: Meaning = meaning(Call::Reallocate, 0, N, 1);
/// `f(block, count, size, …)`.
const REALLOC_COUNTED: Meaning = meaning(Call::Reallocate, 0, 1, 2);
/// `f(heap, block, size, …)`.
const HEAP_REALLOC: Meaning = meaning(Call::Reallocate, 1, N, 2);
/// `f(heap, block, count, size, …)`.
const HEAP_REALLOC_COUNTED: Meaning = meaning(Call::Reallocate, 1, 2, 3);

/// The C library's names, and those of C23.
const PLAIN: [(&str, Meaning); 14] = [
    ("malloc", SIZE),
    ("calloc", COUNTED),
    ("realloc", REALLOC),
    ("reallocarray", REALLOC_COUNTED),
    ("reallocf", meaning(Call::ReallocateOrFree, 0, N, 1)),
    ("free", FREE),
    ("cfree", FREE),
    ("free_sized", FREE),
    ("free_aligned_sized", FREE),
    ("posix_memalign", INTO),
    ("memalign", SECOND_SIZE),
    ("aligned_alloc", SECOND_SIZE),
    ("valloc", SIZE),
    ("pvalloc", SIZE),
];

/// What only jemalloc has.
const JEMALLOC: [(&str, Meaning); 5] = [
    ("mallocx", SIZE),
    ("rallocx", REALLOC),
    ("xallocx", meaning(Call::Resize, 0, N, 1)),
    ("sdallocx", FREE),
    ("dallocx", FREE),
];

/// What follows `mi_` beside the C library's names.
const MIMALLOC: [(&str, Meaning); 67] = [
    ("zalloc", SIZE),
    ("malloc_small", SIZE),
    ("zalloc_small", SIZE),
    ("mallocn", COUNTED),
    ("malloc_aligned", SIZE),
    ("malloc_aligned_at", SIZE),
    ("zalloc_aligned", SIZE),
    ("zalloc_aligned_at", SIZE),
    ("calloc_aligned", COUNTED),
    ("calloc_aligned_at", COUNTED),
    ("reallocn", REALLOC_COUNTED),
    ("rezalloc", REALLOC),
    ("recalloc", REALLOC_COUNTED),
    ("expand", REALLOC),
    ("realloc_aligned", REALLOC),
    ("realloc_aligned_at", REALLOC),
    ("rezalloc_aligned", REALLOC),
    ("rezalloc_aligned_at", REALLOC),
    ("recalloc_aligned", REALLOC_COUNTED),
    ("recalloc_aligned_at", REALLOC_COUNTED),
    ("aligned_recalloc", REALLOC_COUNTED),
    ("aligned_offset_recalloc", REALLOC_COUNTED),
    ("free_size", FREE),
    ("free_size_aligned", FREE),
    ("free_aligned", FREE),
    ("new", meaning(Call::AllocateOrThrow, N, N, 0)),
    ("new_aligned", meaning(Call::AllocateOrThrow, N, N, 0)),
    ("new_nothrow", SIZE),
    ("new_aligned_nothrow", SIZE),
    ("new_n", meaning(Call::AllocateOrThrow, N, 0, 1)),
    ("new_realloc", REALLOC),
    ("new_reallocn", REALLOC_COUNTED),
    ("free_small", FREE),
    ("umalloc", SIZE),
    ("uzalloc", SIZE),
    ("umalloc_small", SIZE),
    ("uzalloc_small", SIZE),
    ("umalloc_aligned", SIZE),
    ("uzalloc_aligned", SIZE),
    ("ucalloc", COUNTED),
    ("urealloc", REALLOC),
    ("ufree", FREE),
    ("__posix_memalign", INTO),
    ("heap_malloc", SECOND_SIZE),
    ("heap_zalloc", SECOND_SIZE),
    ("heap_malloc_small", SECOND_SIZE),
    ("heap_zalloc_small", SECOND_SIZE),
    ("heap_alloc_new", meaning(Call::AllocateOrThrow, N, N, 1)),
    ("heap_alloc_new_n", meaning(Call::AllocateOrThrow, N, 1, 2)),
    ("heap_recalloc_aligned", HEAP_REALLOC_COUNTED),
    ("heap_calloc", SECOND_COUNTED),
    ("heap_mallocn", SECOND_COUNTED),
    ("heap_malloc_aligned", SECOND_SIZE),
    ("heap_malloc_aligned_at", SECOND_SIZE),
    ("heap_zalloc_aligned", SECOND_SIZE),
    ("heap_zalloc_aligned_at", SECOND_SIZE),
    ("heap_calloc_aligned", SECOND_COUNTED),
    ("heap_calloc_aligned_at", SECOND_COUNTED),
    ("heap_realloc", HEAP_REALLOC),
    ("heap_reallocf", meaning(Call::ReallocateOrFree, 1, N, 2)),
    ("heap_reallocn", HEAP_REALLOC_COUNTED),
    ("heap_rezalloc", HEAP_REALLOC),
    ("heap_recalloc", HEAP_REALLOC_COUNTED),
    ("heap_realloc_aligned", HEAP_REALLOC),
    ("heap_realloc_aligned_at", HEAP_REALLOC),
    ("heap_rezalloc_aligned", HEAP_REALLOC),
    ("heap_rezalloc_aligned_at", HEAP_REALLOC),
];

/// What follows `tc_` beside the C library's names.
const TCMALLOC: [(&str, Meaning); 15] = [
    ("malloc_skip_new_handler", SIZE),
    ("new", meaning(Call::AllocateOrThrow, N, N, 0)),
    ("newarray", meaning(Call::AllocateOrThrow, N, N, 0)),
    ("new_aligned", meaning(Call::AllocateOrThrow, N, N, 0)),
    ("newarray_aligned", meaning(Call::AllocateOrThrow, N, N, 0)),
    ("new_nothrow", SIZE),
    ("newarray_nothrow", SIZE),
    ("new_aligned_nothrow", SIZE),
    ("newarray_aligned_nothrow", SIZE),
    ("delete", FREE),
    ("deletearray", FREE),
    ("delete_sized", FREE),
    ("deletearray_sized", FREE),
    ("delete_aligned", FREE),
    ("deletearray_aligned", FREE),
];

/// Whole names of others.
const OTHERS: [(&str, Family, Meaning); 13] = [
    ("sn_rust_alloc", Family::Snmalloc, SECOND_SIZE),
    ("sn_rust_alloc_zeroed", Family::Snmalloc, SECOND_SIZE),
    ("sn_rust_dealloc", Family::Snmalloc, meaning(Call::Free, 0, N, N)),
    ("sn_rust_realloc", Family::Snmalloc, meaning(Call::Reallocate, 0, N, 3)),
    ("rpmalloc", Family::Rpmalloc, SIZE),
    ("rpcalloc", Family::Rpmalloc, COUNTED),
    ("rprealloc", Family::Rpmalloc, REALLOC),
    ("rpfree", Family::Rpmalloc, FREE),
    ("rpaligned_alloc", Family::Rpmalloc, SECOND_SIZE),
    ("rpaligned_calloc", Family::Rpmalloc, SECOND_COUNTED),
    ("rpaligned_realloc", Family::Rpmalloc, meaning(Call::Reallocate, 0, N, 2)),
    ("rpmemalign", Family::Rpmalloc, SECOND_SIZE),
    ("rpposix_memalign", Family::Rpmalloc, INTO),
];

/// How jemalloc's names begin where it is not asked to be `malloc` itself. Any other prefix is known by `mallocx`.
const JEMALLOC_PREFIXES: [&str; 4] = ["_rjem_", "je_", "__je_", "jemalloc_"];

/// What begins in front of a name of jemalloc's.
pub(crate) fn jemalloc_prefix(name: &str) -> Option<&str> {
    let is_mangled = name.starts_with("_Z") || name.starts_with("_R");
    ["sdallocx", "rallocx", "mallocx"].iter().find_map(|own| name.strip_suffix(own)).filter(|_| !is_mangled)
}

/// Whether a name could be one of those that [`meaning_of`] knows, whatever prefix jemalloc has. Asked of every symbol of a file.
pub(crate) fn may_be_wanted(name: &[u8]) -> bool {
    const LONGEST: usize = 64;
    const STARTS: [&[u8]; 4] = [b"mi_", b"tc_", b"_Zn", b"_Zd"];
    const PARTS: [u32; 4] = [
        u32::from_le_bytes(*b"allo"),
        u32::from_le_bytes(*b"free"),
        u32::from_le_bytes(*b"alig"),
        u32::from_le_bytes(*b"san_"),
    ];
    if name.len() > LONGEST {
        return false;
    }
    let is_mangled = name.starts_with(b"_Z") || name.starts_with(b"_R");
    let has_part =
        |window: &[u8]| window.try_into().is_ok_and(|part| PARTS.contains(&u32::from_le_bytes(part)));
    STARTS.iter().any(|start| name.starts_with(start)) || !is_mangled && name.windows(4).any(has_part)
}

/// What a function of that name does; `prefixes` are those that jemalloc has in this file.
pub(crate) fn meaning_of(name: &str, prefixes: &[&str]) -> Option<(Family, Meaning)> {
    let (family, mut meaning) = documented(name, prefixes)?;
    meaning.arguments.record = record_of(name) as u8;
    Some((family, meaning))
}

/// The kind of record of a block that a function of that name allocates.
fn record_of(name: &str) -> Kind {
    let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    if has(&["calloc", "zalloc", "alloc_zeroed"]) {
        Kind::Zeroed
    } else if has(&["align", "valloc"]) {
        Kind::Aligned
    } else {
        Kind::Alloc
    }
}

fn documented(name: &str, prefixes: &[&str]) -> Option<(Family, Meaning)> {
    let of = |table: &[(&str, Meaning)], name: &str| {
        table.iter().find(|(known, _)| *known == name).map(|row| row.1)
    };
    if let Some(meaning) = of(&PLAIN, name) {
        return Some((Family::Malloc, meaning));
    }
    if let Some(rest) = name.strip_prefix("mi_") {
        // A thread's own heap, since version 3.
        let rest = rest.strip_prefix('t').filter(|rest| rest.starts_with("heap_")).unwrap_or(rest);
        return of(&PLAIN, rest).or_else(|| of(&MIMALLOC, rest)).map(|meaning| (Family::Mimalloc, meaning));
    }
    if let Some(rest) = name.strip_prefix("tc_") {
        return of(&PLAIN, rest).or_else(|| of(&TCMALLOC, rest)).map(|meaning| (Family::Tcmalloc, meaning));
    }
    if let Some((_, family, meaning)) = OTHERS.iter().find(|(known, ..)| *known == name) {
        return Some((*family, *meaning));
    }
    if let Some(rest) = name.strip_prefix("sn_") {
        return of(&PLAIN, rest).map(|meaning| (Family::Snmalloc, meaning));
    }
    if let Some(meaning) = operator(name) {
        return Some((Family::Operators, meaning));
    }
    let prefixes = prefixes.iter().chain(&JEMALLOC_PREFIXES);
    prefixes.filter_map(|prefix| name.strip_prefix(prefix)).find_map(|rest| {
        of(&JEMALLOC, rest).or_else(|| of(&PLAIN, rest)).map(|meaning| (Family::Jemalloc, meaning))
    })
}

/// The allocator of which a function is the inner part: where none of those that programs call has remained, they are in their callers.
pub(crate) fn inner_of(name: &[u8]) -> Option<Family> {
    match name {
        _ if name.starts_with(b"_rpmalloc_") => Some(Family::Rpmalloc),
        _ if name.starts_with(b"_mi_arena") => Some(Family::Mimalloc),
        _ => None,
    }
}

/// Whether the recorder stands in front of whatever a loader finds by this name.
pub(crate) fn is_exported_by_us(name: &str) -> bool {
    let is_plain = PLAIN.iter().any(|(known, _)| *known == name) && name != "reallocf";
    is_plain || operator(name).is_some()
}

/// C++'s operators: `new` and `new[]`, `delete` and `delete[]`, with the types of their arguments.
fn operator(name: &str) -> Option<Meaning> {
    const NOTHROW: &str = "RKSt9nothrow_t";
    let new = name.strip_prefix("_Znwm").or_else(|| name.strip_prefix("_Znam"));
    if let Some(rest) = new {
        let quiet = rest.strip_suffix(NOTHROW);
        let is_one = ["", "St11align_val_t"].contains(&quiet.unwrap_or(rest));
        let call = if quiet.is_some() { Call::Allocate } else { Call::AllocateOrThrow };
        return is_one.then_some(meaning(call, N, N, 0));
    }
    let rest = name.strip_prefix("_ZdlPv").or_else(|| name.strip_prefix("_ZdaPv"))?;
    let known = ["", "m", "St11align_val_t", "mSt11align_val_t", NOTHROW, "St11align_val_tRKSt9nothrow_t"];
    known.contains(&rest).then_some(FREE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_mean_what_their_documents_say() {
        for (name, family, expected, record) in [
            ("mi_zalloc_aligned", Family::Mimalloc, SIZE, Kind::Zeroed),
            ("valloc", Family::Malloc, SIZE, Kind::Aligned),
            ("malloc", Family::Malloc, SIZE, Kind::Alloc),
            ("_rjem_calloc", Family::Jemalloc, COUNTED, Kind::Zeroed),
            ("custom_mallocx", Family::Jemalloc, SIZE, Kind::Alloc),
            ("custom_free", Family::Jemalloc, FREE, Kind::Alloc),
            ("mi_heap_realloc_aligned_at", Family::Mimalloc, HEAP_REALLOC, Kind::Aligned),
            ("mi_posix_memalign", Family::Mimalloc, INTO, Kind::Aligned),
            ("mi_theap_calloc", Family::Mimalloc, SECOND_COUNTED, Kind::Zeroed),
            ("mi_umalloc", Family::Mimalloc, SIZE, Kind::Alloc),
            ("mi_heap_alloc_new_n", Family::Mimalloc, meaning(Call::AllocateOrThrow, N, 1, 2), Kind::Alloc),
            ("tc_free_sized", Family::Tcmalloc, FREE, Kind::Alloc),
            ("sn_aligned_alloc", Family::Snmalloc, SECOND_SIZE, Kind::Aligned),
            ("sn_free", Family::Snmalloc, FREE, Kind::Alloc),
            ("sn_rust_realloc", Family::Snmalloc, meaning(Call::Reallocate, 0, N, 3), Kind::Alloc),
            ("_ZnamSt11align_val_tRKSt9nothrow_t", Family::Operators, SIZE, Kind::Aligned),
            ("_Znwm", Family::Operators, meaning(Call::AllocateOrThrow, N, N, 0), Kind::Alloc),
            ("_ZdaPvmSt11align_val_t", Family::Operators, FREE, Kind::Aligned),
        ] {
            let arguments = Arguments { record: record as u8, ..expected.arguments };
            let expected = Meaning { arguments, ..expected };
            assert_eq!(meaning_of(name, &["custom_"]), Some((family, expected)), "{name}");
            assert!(may_be_wanted(name.as_bytes()), "{name}");
        }
        for name in
            ["xmalloc", "custom_alloc", "mi_usable_size", "malloc_usable_size", "_ZnwmPv", "free_list"]
        {
            assert_eq!(meaning_of(name, &["custom_"]), None, "{name}");
        }
    }

    #[test]
    fn a_prefix_of_jemallocs_is_known_by_what_nobody_else_has() {
        assert_eq!(jemalloc_prefix("custom_sdallocx"), Some("custom_"));
        assert_eq!(jemalloc_prefix("rallocx"), Some(""));
        assert_eq!(jemalloc_prefix("_ZN5folly8sdallocx"), None);
        assert_eq!(jemalloc_prefix("malloc"), None);
    }
}
