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
use rule::Pattern::{File, Is, Starts, StartsAndHas};
pub use rule::Rule;
use rule::rule;
use wrappers::WRAPPERS;

const ALLOCATOR: &str = "the allocator's own entry";
const CONTAINER: &str = "a container that stores what its caller gives it";
const SMART_POINTER: &str = "a smart pointer that stores what its caller gives it";
const GLUE: &str = "generic glue between a container and its caller";

/// The rules for the leaf side. A row here is a claim that no reader wants to see the frame first.
#[rustfmt::skip]
const LEAF: &[Rule] = &[
    rule("C", Is("malloc"), ALLOCATOR),
    rule("C", Is("calloc"), ALLOCATOR),
    rule("C", Is("realloc"), ALLOCATOR),
    rule("C", Is("reallocarray"), ALLOCATOR),
    rule("C", Is("posix_memalign"), ALLOCATOR),
    rule("C", Is("memalign"), ALLOCATOR),
    rule("C", Is("aligned_alloc"), ALLOCATOR),
    rule("C", Is("valloc"), ALLOCATOR),
    rule("C", Is("pvalloc"), ALLOCATOR),
    rule("C", Starts("__libc_malloc"), ALLOCATOR),
    rule("C", Starts("__libc_calloc"), ALLOCATOR),
    rule("C", Starts("__libc_realloc"), ALLOCATOR),
    rule("C", Is("xmalloc"), "GNU's malloc that ends the program instead of failing"),
    rule("C", Is("xcalloc"), "GNU's calloc that ends the program instead of failing"),
    rule("C", Is("xrealloc"), "GNU's realloc that ends the program instead of failing"),

    rule("C++", Starts("operator new"), ALLOCATOR),
    rule("C++", Starts("std::allocator"), "the standard allocator and its traits"),
    rule("C++", Starts("std::__new_allocator"), "the standard allocator"),
    rule("C++", Starts("__gnu_cxx::new_allocator"), "the standard allocator"),
    rule("C++", Starts("__gnu_cxx::__alloc_traits"), "the standard allocator's traits"),
    rule("C++", Starts("std::__allocate_guarded"), "the standard allocator"),
    rule("C++", Starts("std::_Vector_base<…>::"), CONTAINER),
    rule("C++", Starts("std::vector<…>::"), CONTAINER),
    rule("C++", Starts("std::_Deque_base<…>::"), CONTAINER),
    rule("C++", Starts("std::deque<…>::"), CONTAINER),
    rule("C++", Starts("std::_Rb_tree<…>::"), CONTAINER),
    rule("C++", Starts("std::map<…>::"), CONTAINER),
    rule("C++", Starts("std::set<…>::"), CONTAINER),
    rule("C++", Starts("std::multimap<…>::"), CONTAINER),
    rule("C++", Starts("std::multiset<…>::"), CONTAINER),
    rule("C++", Starts("std::_Hashtable<…>::"), CONTAINER),
    rule("C++", Starts("std::__detail::_Hashtable_alloc<…>::"), CONTAINER),
    rule("C++", Starts("std::__detail::_Map_base<…>::"), CONTAINER),
    rule("C++", Starts("std::__detail::_Insert"), CONTAINER),
    rule("C++", Starts("std::unordered_map<…>::"), CONTAINER),
    rule("C++", Starts("std::unordered_set<…>::"), CONTAINER),
    rule("C++", Starts("std::__cxx11::list<…>::"), CONTAINER),
    rule("C++", Starts("std::__cxx11::_List_base<…>::"), CONTAINER),
    rule("C++", Starts("std::__cxx11::basic_string<…>::"), CONTAINER),
    rule("C++", Starts("std::basic_string<…>::"), CONTAINER),
    rule("C++", Starts("std::string::"), CONTAINER),
    rule("C++", Starts("std::make_unique<…>"), SMART_POINTER),
    rule("C++", Starts("std::make_shared<…>"), SMART_POINTER),
    rule("C++", Starts("std::allocate_shared<…>"), SMART_POINTER),
    rule("C++", Starts("std::shared_ptr<…>::"), SMART_POINTER),
    rule("C++", Starts("std::__shared_ptr<…>::"), SMART_POINTER),
    rule("C++", Starts("std::__shared_count<…>::"), SMART_POINTER),
    rule("C++", Starts("std::_Construct<…>"), GLUE),
    rule("C++", Starts("std::construct_at<…>"), GLUE),
    rule("C++", Starts("std::__uninitialized_"), GLUE),
    rule("C++", Starts("std::uninitialized_"), GLUE),
    rule("C++", StartsAndHas("std::__1::", "alloc"), "libc++'s allocator and its traits"),
    rule("C++", Starts("std::__1::vector<…>::"), CONTAINER),
    rule("C++", Starts("std::__1::basic_string<…>::"), CONTAINER),
    rule("C++", Starts("std::__1::__tree<…>::"), CONTAINER),
    rule("C++", Starts("std::__1::__hash_table<…>::"), CONTAINER),

    rule("C++", File("/include/c++/"), "a template of the standard library"),

    rule("Rust", Starts("__rust_alloc"), ALLOCATOR),
    rule("Rust", Is("__rust_realloc"), ALLOCATOR),
    rule("Rust", Starts("__rdl_"), ALLOCATOR),
    rule("Rust", Starts("__rg_"), "the program's own global allocator's entry"),
    rule("Rust", Starts("__rustc::"), ALLOCATOR),
    rule("Rust", Starts("std::alloc::"), ALLOCATOR),
    rule("Rust", StartsAndHas("std::sys::", "alloc::unix"), ALLOCATOR),
    rule("Rust", StartsAndHas("std::sys::", "unix::alloc"), ALLOCATOR),
    rule("Rust", Starts("<std::alloc::System as "), ALLOCATOR),
    rule("Rust", Starts("alloc::"), "Rust's alloc library: Box, Vec, String and what they call"),
    rule("Rust", Starts("<alloc::"), "a trait of Rust's alloc library's types, such as Vec's Clone"),
    rule("Rust", StartsAndHas("<", " as alloc::"), "a trait of Rust's alloc library, such as ToString"),
    rule("Rust", Starts("core::"), GLUE),
    rule("Rust", Starts("<core::"), GLUE),
    rule("Rust", StartsAndHas("<", " as core::iter::"), GLUE),
    rule("Rust", StartsAndHas("<", " as core::convert::"), GLUE),
    rule("Rust", Starts("hashbrown::"), CONTAINER),
    rule("Rust", Starts("<hashbrown::"), CONTAINER),
    rule("Rust", Starts("std::collections::"), CONTAINER),
    rule("Rust", Starts("<std::collections::"), CONTAINER),

    rule("Rust", File("library/alloc/src/"), "Rust's alloc library"),
    rule("Rust", File("library/core/src/"), GLUE),
    rule("Rust", File("library/std/src/alloc.rs"), ALLOCATOR),
    rule("Rust", File("library/std/src/sys/alloc/"), ALLOCATOR),
    rule("Rust", File("library/std/src/collections/"), CONTAINER),
    rule("Rust", File("/hashbrown-"), CONTAINER),

    rule("Python", Starts("PyMem_"), ALLOCATOR),
    rule("Python", Starts("_PyMem_"), ALLOCATOR),
    rule("Python", Is("PyObject_Malloc"), ALLOCATOR),
    rule("Python", Is("PyObject_Calloc"), ALLOCATOR),
    rule("Python", Is("PyObject_Realloc"), ALLOCATOR),
    rule("Python", StartsAndHas("_PyObject_", "alloc"), ALLOCATOR),
    rule("Python", Is("_PyObject_Malloc"), ALLOCATOR),
    rule("Python", Starts("_PyObject_GC_"), "memory for an object that Python's collector watches"),
    rule("Python", Is("gc_alloc"), "memory for an object that Python's collector watches"),
    rule("Python", Is("_PyObject_New"), "memory for an object"),
    rule("Python", Is("_PyObject_NewVar"), "memory for an object"),
    rule("Python", Is("PyType_GenericAlloc"), "memory for an object of a class"),
    rule("Python", Is("_PyType_AllocNoTrack"), "memory for an object of a class"),
    rule("Python", Starts("pymalloc_"), ALLOCATOR),
    rule("Python", Is("allocate_from_new_pool"), ALLOCATOR),
    rule("Python", Starts("arena_map_"), "the map of arenas of Python's own allocator"),
    rule("Python", Is("new_arena"), "a new arena of Python's own allocator"),

    rule("Ruby", Starts("ruby_xmalloc"), ALLOCATOR),
    rule("Ruby", Starts("ruby_xcalloc"), ALLOCATOR),
    rule("Ruby", Starts("ruby_xrealloc"), ALLOCATOR),
    rule("Ruby", Starts("rb_xmalloc"), ALLOCATOR),
    rule("Ruby", Starts("rb_xcalloc"), ALLOCATOR),
    rule("Ruby", Starts("rb_xrealloc"), ALLOCATOR),
    rule("Ruby", Starts("objspace_x"), ALLOCATOR),
    rule("Ruby", Starts("objspace_malloc"), ALLOCATOR),
    rule("Ruby", StartsAndHas("rb_gc_impl_", "alloc"), ALLOCATOR),
];

/// The rules for the root side: what a runtime does before it calls the program.
#[rustfmt::skip]
const ROOT: &[Rule] = &[
    rule("C", Is("_start"), "the program's first instruction"),
    rule("C", Starts("__libc_start_"), "the C library's start"),
    rule("C", Is("call_init"), "the loader's call of a library's initialisers"),
    rule("C", Starts("_dl_init"), "the loader's call of a library's initialisers"),
    rule("C", Starts("_dl_start"), "the loader's start"),
    rule("C", Is("start_thread"), "the C library's start of a thread"),
    rule("C", Is("clone"), "the C library's start of a thread"),
    rule("C", Is("clone3"), "the C library's start of a thread"),
    rule("C", Is("__clone"), "the C library's start of a thread"),
    rule("C", Is("__clone3"), "the C library's start of a thread"),
    rule("Rust", Starts("std::rt::"), "Rust's start"),
    rule("Rust", Starts("std::panic"), "Rust's guard around main and threads"),
    rule("Rust", Starts("std::sys::"), "Rust's guard around main and threads"),
    rule("Rust", Starts("std::sys_common::"), "Rust's guard around main and threads"),
    rule("Rust", Starts("core::ops::function::"), "Rust's call of main or of a thread's closure"),
    rule("Rust", StartsAndHas("<", " as core::ops::function::"), "Rust's call of main or of a thread's closure"),
    rule("Rust", Starts("__rust_try"), "Rust's guard around main and threads"),
    rule("Rust", Is("__rust_begin_short_backtrace"), "Rust's guard around main and threads"),
    rule("Rust", File("library/std/src/rt.rs"), "Rust's start"),
    rule("Rust", File("library/std/src/panic"), "Rust's guard around main and threads"),
    rule("Rust", File("library/std/src/sys/"), "Rust's guard around main and threads"),
    rule("Rust", File("library/std/src/thread/"), "Rust's start of a thread"),
    rule("Rust", File("library/core/src/ops/function.rs"), "Rust's call of main or of a thread's closure"),
];

/// Why a frame on the leaf side is plumbing; none when it is worth showing.
pub fn leaf_rule(frame: &Frame) -> Option<&'static Rule> {
    find(&[LEAF, WRAPPERS], frame)
}

/// Why a frame on the root side is only a start; none when it is worth showing.
pub fn root_rule(frame: &Frame) -> Option<&'static Rule> {
    find(&[ROOT], frame)
}

/// Whether a frame is plumbing by the rules here, or by one of `own`: globs over whole names of functions, or over their short form.
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
    let name = short_name(&frame.function);
    rules.iter().copied().flatten().find(|rule| match rule.pattern {
        Is(whole) => name == whole,
        Starts(start) => name.starts_with(start),
        StartsAndHas(start, part) => name.strip_prefix(start).is_some_and(|rest| rest.contains(part)),
        File(part) => frame.file.as_ref().is_some_and(|file| {
            file.match_indices(part)
                .any(|(at, _)| at == 0 || part.starts_with('/') || file[..at].ends_with('/'))
        }),
    })
}

#[cfg(test)]
#[path = "plumbing_tests.rs"]
mod tests;
