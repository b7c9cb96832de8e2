//! Which frames are plumbing: code that only carries an allocation on behalf of its caller.
//!
//! A table headed by `alloc::raw_vec::finish_grow` or `operator new` tells nobody anything, so the frames of this table
//! are folded away on the leaf side of a stack until the first that is not in it. On the root side, what a runtime does
//! before `main` is folded when stacks are shown. Names are compared in their short form ([`crate::short_name`]). A program's own
//! wrappers are given as globs.

mod rule;
mod valgrind;
mod wrappers;

use crate::short_name;
use mallow_base::{Frame, glob_matches};
use rule::Pattern::{self, File, Is, Starts, StartsAndHas};
pub use rule::Rule;
use wrappers::WRAPPERS;

/// The rules for the leaf side. A row here is a claim that no reader wants to see the frame first.
#[rustfmt::skip]
const LEAF: &[Rule] = &[
    Rule { language: "C", patterns: &[
        // The allocator's own entries.
        Is("malloc"), Is("calloc"), Is("realloc"), Is("reallocarray"), Is("posix_memalign"), Is("memalign"),
        Is("aligned_alloc"), Is("valloc"), Is("pvalloc"), Starts("__libc_malloc"), Starts("__libc_calloc"),
        Starts("__libc_realloc"),
        // Mappings, as `record --mappings` has them.
        Is("mmap"), Is("mmap_file"), Is("mremap"),
        // GNU's, which end the program instead of failing.
        Is("xmalloc"), Is("xcalloc"), Is("xrealloc"),
    ] },
    Rule { language: "C++", patterns: &[
        // The allocator's own entries.
        Starts("operator new"),
        // The standard allocator and its traits.
        Starts("std::allocator"), Starts("std::__new_allocator"), Starts("__gnu_cxx::new_allocator"),
        Starts("__gnu_cxx::__alloc_traits"), Starts("std::__allocate_guarded"),
        // Containers that store what their caller gives them.
        Starts("std::_Vector_base<…>::"), Starts("std::vector<…>::"), Starts("std::_Deque_base<…>::"),
        Starts("std::deque<…>::"), Starts("std::_Rb_tree<…>::"), Starts("std::map<…>::"),
        Starts("std::set<…>::"), Starts("std::multimap<…>::"), Starts("std::multiset<…>::"),
        Starts("std::_Hashtable<…>::"), Starts("std::__detail::_Hashtable_alloc<…>::"),
        Starts("std::__detail::_Map_base<…>::"), Starts("std::__detail::_Insert"),
        Starts("std::unordered_map<…>::"), Starts("std::unordered_set<…>::"),
        Starts("std::__cxx11::list<…>::"), Starts("std::__cxx11::_List_base<…>::"),
        Starts("std::__cxx11::basic_string<…>::"), Starts("std::basic_string<…>::"), Starts("std::string::"),
        Starts("std::__1::vector<…>::"), Starts("std::__1::basic_string<…>::"),
        Starts("std::__1::__tree<…>::"), Starts("std::__1::__hash_table<…>::"),
        // Smart pointers that store what their caller gives them.
        Starts("std::make_unique<…>"), Starts("std::make_shared<…>"), Starts("std::allocate_shared<…>"),
        Starts("std::shared_ptr<…>::"), Starts("std::__shared_ptr<…>::"), Starts("std::__shared_count<…>::"),
        // Generic glue between a container and its caller.
        Starts("std::_Construct<…>"), Starts("std::construct_at<…>"), Starts("std::__uninitialized_"),
        Starts("std::uninitialized_"),
        // libc++'s allocator and its traits.
        StartsAndHas("std::__1::", "alloc"),
        // A template of the standard library.
        File("/include/c++/"),
    ] },
    Rule { language: "Rust", patterns: &[
        // The allocator's own entries.
        Starts("__rust_alloc"), Is("__rust_realloc"), Starts("__rdl_"), Starts("__rustc::"),
        Starts("std::alloc::"), StartsAndHas("std::sys::", "alloc::unix"),
        StartsAndHas("std::sys::", "unix::alloc"), Starts("<std::alloc::System as "),
        File("library/std/src/alloc.rs"), File("library/std/src/sys/alloc/"),
        // The program's own global allocator's entry.
        Starts("__rg_"),
        // The way into it, and its crate, whose files tell where only lines are known.
        StartsAndHas("<", " as core::alloc::global::GlobalAlloc>::"), File("/mimalloc-"),
        File("/tikv-jemallocator-"), File("/jemallocator-"), File("/snmalloc-rs-"), File("/rpmalloc-"),
        File("/tcmalloc-"),
        // The allocator that mallow itself puts in between; where only lines are known its files tell.
        Starts("mallow_alloc::"), Starts("<mallow_alloc::"), File("/mallow-alloc-"),
        File("inside/rust/src/hooks.rs"), File("inside/rust/src/alloc.rs"),
        // Rust's alloc library: Box, Vec, String and what they call.
        Starts("alloc::"), File("library/alloc/src/"),
        // A trait of Rust's alloc library, such as ToString, or one of its types, such as Vec's Clone.
        Starts("<alloc::"), StartsAndHas("<", " as alloc::"),
        // Generic glue between a container and its caller.
        Starts("core::"), Starts("<core::"), StartsAndHas("<", " as core::iter::"),
        StartsAndHas("<", " as core::convert::"), File("library/core/src/"),
        // Containers that store what their caller gives them.
        Starts("hashbrown::"), Starts("<hashbrown::"), Starts("std::collections::"),
        Starts("<std::collections::"), File("library/std/src/collections/"), File("/hashbrown-"),
    ] },
    Rule { language: "Python", patterns: &[
        // Functions of mallow's own in front of its allocator: their names say a block's domain.
        Starts("mallow_preload::python::"),
        // The allocator's own entries.
        Starts("PyMem_"), Starts("_PyMem_"), Is("PyObject_Malloc"), Is("PyObject_Calloc"),
        Is("PyObject_Realloc"), StartsAndHas("_PyObject_", "alloc"), Is("_PyObject_Malloc"),
        Starts("pymalloc_"), Is("allocate_from_new_pool"),
        // Memory for an object that Python's collector watches.
        Starts("_PyObject_GC_"), Is("gc_alloc"),
        // Memory for an object, and for one of a class.
        Is("_PyObject_New"), Is("_PyObject_NewVar"), Is("PyType_GenericAlloc"), Is("_PyType_AllocNoTrack"),
        // Arenas of Python's own allocator.
        Starts("arena_map_"), Is("new_arena"),
    ] },
    Rule { language: "Ruby", patterns: &[
        // The allocator's own entries.
        Starts("ruby_xmalloc"), Starts("ruby_xcalloc"), Starts("ruby_xrealloc"), Starts("rb_xmalloc"),
        Starts("rb_xcalloc"), Starts("rb_xrealloc"), Starts("objspace_x"), Starts("objspace_malloc"),
        StartsAndHas("rb_gc_impl_", "alloc"),
    ] },
];

/// The rules for the root side: what a runtime does before it calls the program.
#[rustfmt::skip]
const ROOT: &[Rule] = &[
    Rule { language: "C", patterns: &[
        // The program's first instruction.
        Is("_start"),
        // The C library's start.
        Starts("__libc_start_"),
        // The loader's call of a library's initialisers.
        Is("call_init"), Starts("_dl_init"),
        // The loader's start.
        Starts("_dl_start"),
        // The C library's start of a thread.
        Is("start_thread"), Is("clone"), Is("clone3"), Is("__clone"), Is("__clone3"),
    ] },
    Rule { language: "Rust", patterns: &[
        // Rust's start.
        Starts("std::rt::"), File("library/std/src/rt.rs"),
        // Rust's guard around main and threads.
        Starts("std::panic"), Starts("std::sys::"), Starts("std::sys_common::"), Starts("__rust_try"),
        Is("__rust_begin_short_backtrace"), File("library/std/src/panic"), File("library/std/src/sys/"),
        // Rust's call of main or of a thread's closure.
        Starts("core::ops::function::"), StartsAndHas("<", " as core::ops::function::"),
        File("library/core/src/ops/function.rs"),
        // Rust's start of a thread.
        File("library/std/src/thread/"),
    ] },
];

/// Why a frame on the leaf side is plumbing; none when it is worth showing.
pub fn leaf_rule(frame: &Frame) -> Option<&'static Rule> {
    find(&[LEAF, WRAPPERS], frame)
}

/// Why a frame on the root side is only a start; none when it is worth showing.
pub fn root_rule(frame: &Frame) -> Option<&'static Rule> {
    find(&[ROOT], frame)
}

/// Returns whether a frame is plumbing by the rules here, or by one of `own`: globs over whole names of functions, or over their short form.
pub fn is_leaf(frame: &Frame, own: &[String]) -> bool {
    let is_own = |glob: &String| {
        glob_matches(glob, &frame.function) || glob_matches(glob, &short_name(&frame.function))
    };
    leaf_rule(frame).is_some() || valgrind::is_rust_library(frame) || own.iter().any(is_own)
}

/// How many of the frames, leaf first, are plumbing, that of `own` included. Never all of them: the outermost always stays.
pub fn leading(frames: &[Frame], own: &[String]) -> usize {
    let plumbing = frames.iter().take_while(|frame| is_leaf(frame, own)).count();
    plumbing.min(frames.len().saturating_sub(1))
}

fn find(rules: &[&'static [Rule]], frame: &Frame) -> Option<&'static Rule> {
    if frame.is_script() {
        // A script may call a function of its own `clone`.
        return None;
    }
    let name = short_name(&frame.function);
    let matches = |pattern: &Pattern| match *pattern {
        Is(whole) => name == whole,
        Starts(start) => name.starts_with(start),
        StartsAndHas(start, part) => name.strip_prefix(start).is_some_and(|rest| rest.contains(part)),
        File(part) => frame.file.as_ref().is_some_and(|file| {
            file.match_indices(part)
                .any(|(at, _)| at == 0 || part.starts_with('/') || file[..at].ends_with('/'))
        }),
    };
    rules.iter().copied().flatten().find(|rule| rule.patterns.iter().any(matches))
}

#[cfg(test)]
#[path = "plumbing_tests.rs"]
mod tests;
