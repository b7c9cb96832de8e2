//! Which allocator is linked into an executable, by families of names among its functions.
//!
//! A preloaded `malloc` is found before every library's, and never before the executable's own; and who calls `mi_malloc` never
//! asks for `malloc`. A linker keeps of an allocator what is called, so no single name can be asked for: an allocating function and
//! a freeing one of the same family are enough.

use crate::names::{Family, inner_of};
use std::cell::Cell;

/// Prefixes of the functions of a family. Without a prefix it is the C library's own.
const FAMILIES: [(&str, &str); 12] = [
    ("mi_", "mimalloc"),
    ("_rjem_", "jemalloc"),
    ("__je_", "jemalloc"),
    ("je_", "jemalloc"),
    ("jemalloc_", "jemalloc"),
    ("tc_", "tcmalloc"),
    ("rp", "rpmalloc"),
    ("sn_rust_", "snmalloc"),
    ("sn_", "snmalloc"),
    ("scalable_", "TBB's allocator"),
    ("xx", "Hoard"),
    ("", "malloc"),
];

/// The place of jemalloc among them.
const JEMALLOC: usize = 1;

/// Suffixes of functions that allocate.
const GIVING: [&str; 10] = [
    "malloc",
    "zalloc",
    "calloc",
    "realloc",
    "rezalloc",
    "alloc",
    "alloc_zeroed",
    "aligned_alloc",
    "memalign",
    "mallocx",
];
/// Suffixes of functions that free.
const TAKING: [&str; 5] = ["free", "dealloc", "sdallocx", "dallocx", "delete"];

/// What was met of each family: a function that allocates, and one that frees.
#[derive(Debug, Default)]
pub(crate) struct FamiliesMet {
    met: Cell<[(bool, bool); FAMILIES.len()]>,
    inner: Cell<Option<Family>>,
    has_sanitizer: Cell<bool>,
}

/// What the allocator of a sanitizer is called.
pub const SANITIZERS: &str = "a sanitizer's allocator";

/// Whether a function is the beginning of a sanitizer's runtime: `__asan_init`, `__tsan_init`.
pub(crate) fn begins_sanitizer(name: &[u8]) -> bool {
    name.starts_with(b"__") && name.ends_with(b"san_init")
}

impl FamiliesMet {
    /// Notes the name of a function that a file defines, of those that [`crate::names::may_be_wanted`].
    pub(crate) fn note(&self, name: &[u8]) {
        if begins_sanitizer(name) {
            self.has_sanitizer.set(true);
        }
        if self.inner.get().is_none() {
            self.inner.set(inner_of(name));
        }
        // Functions of C++ and of Rust, mostly all there are.
        if name.starts_with(b"_Z") || name.starts_with(b"_R") {
            return;
        }
        let mut met = self.met.get();
        for ((prefix, _), (gives, takes)) in FAMILIES.iter().zip(&mut met) {
            let Some(rest) = name.strip_prefix(prefix.as_bytes()) else { continue };
            let is_one = |stems: &[&str]| {
                stems.iter().any(|stem| match rest.strip_prefix(stem.as_bytes()) {
                    Some([]) => true,
                    // `mi_malloc_aligned`; but `malloc_usable_size` and `free_list` are no allocator's proof.
                    Some([b'_', ..]) => !prefix.is_empty(),
                    _ => false,
                })
            };
            *gives |= is_one(&GIVING);
            *takes |= is_one(&TAKING);
        }
        // jemalloc can be built with any prefix, and has two functions that no other allocator has.
        if name.ends_with(b"sdallocx") {
            met[JEMALLOC] = (true, true);
        }
        self.met.set(met);
    }

    /// Returns what the allocator is called; `malloc` for one that goes by that name.
    pub(crate) fn allocator(&self) -> Option<&'static str> {
        if self.has_sanitizer.get() {
            return Some(SANITIZERS);
        }
        let whole = self.met.get().iter().position(|(gives, takes)| *gives && *takes);
        whole.map(|at| FAMILIES[at].1).or(self.inner.get().map(Family::name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::may_be_wanted;

    fn allocator_of(names: &[&str]) -> Option<&'static str> {
        let met = FamiliesMet::default();
        let may_be = |name: &&&str| may_be_wanted(name.as_bytes());
        names.iter().filter(may_be).for_each(|name| met.note(name.as_bytes()));
        met.allocator()
    }

    #[test]
    fn allocators_are_recognised_by_the_symbols_that_linkers_keep() {
        for (names, allocator) in [
            (&["mi_malloc_aligned", "mi_zalloc_aligned", "mi_free"][..], "mimalloc"),
            (&["_rjem_malloc", "_rjem_sdallocx"], "jemalloc"),
            (&["custom_mallocx", "custom_sdallocx"], "jemalloc"),
            (&["tc_malloc", "tc_free"], "tcmalloc"),
            (&["malloc", "free", "__tsan_init"], SANITIZERS),
            (&["rpaligned_alloc", "rpfree"], "rpmalloc"),
            (&["sn_rust_alloc_zeroed", "sn_rust_dealloc"], "snmalloc"),
            (&["scalable_malloc", "scalable_free"], "TBB's allocator"),
            (&["xxmalloc", "xxfree"], "Hoard"),
            (&["tc_new_nothrow", "tc_malloc", "tc_delete"], "tcmalloc"),
            (&["__je_mallocx", "__je_dallocx"], "jemalloc"),
            (&["malloc", "free"], "malloc"),
            (&["_mi_arena_alloc"], "mimalloc"),
        ] {
            assert_eq!(allocator_of(names), Some(allocator));
        }
    }

    #[test]
    fn other_symbols_are_no_allocator() {
        for names in [
            &["mi_create", "mi_open", "mi_free"][..],
            &["tc_calc_xmittime", "tc_core_init"],
            &["tcmalloc", "tcfree"],
            &["dlmalloc", "dlfree"],
            &["xmalloc", "xfree", "xrealloc"],
            &["malloc_hook", "free_list"],
            &["_ZN5folly8sdallocx"],
        ] {
            assert_eq!(allocator_of(names), None, "{names:?}");
        }
    }
}
