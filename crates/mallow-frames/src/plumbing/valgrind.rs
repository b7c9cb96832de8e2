//! Frames of Rust's libraries as massif writes them: without namespaces, and without the folders of their source files.

use mallow_base::Frame;

/// What massif calls an inlined function whose name it did not read.
const UNKNOWN: &str = "UnknownInlinedFun";

/// Files of `alloc` and `core` that stand between a program and its allocator.
const FILES: [&str; 16] = [
    "alloc.rs",
    "raw_vec.rs",
    "mod.rs",
    "boxed.rs",
    "vec.rs",
    "slice.rs",
    "str.rs",
    "string.rs",
    "borrow.rs",
    "clone.rs",
    "function.rs",
    "convert.rs",
    "option.rs",
    "iterator.rs",
    "spec_from_iter.rs",
    "spec_from_iter_nested.rs",
];
/// Functions in them.
const FUNCTIONS: [&str; 34] = [
    UNKNOWN,
    "alloc",
    "alloc_zeroed",
    "realloc",
    "alloc_impl",
    "alloc_impl_runtime",
    "grow_impl",
    "grow_impl_runtime",
    "allocate",
    "allocate_zeroed",
    "grow",
    "exchange_malloc",
    "box_new_uninit",
    "new_uninit",
    "new_uninit_in",
    "try_allocate_in",
    "with_capacity_in",
    "with_capacity",
    "finish_grow",
    "grow_one",
    "grow_amortized",
    "grow_exact",
    "reserve",
    "reserve_exact",
    "push",
    "to_vec",
    "to_vec_in",
    "to_owned",
    "to_string",
    "spec_to_string",
    "clone",
    "from",
    "from_iter",
    "collect",
];

/// Returns whether a frame can only be told by such a file and function to be a library's.
pub(super) fn is_rust_library(frame: &Frame) -> bool {
    let name = frame.function.split('<').next().unwrap_or_default();
    let file = frame.file.as_deref().unwrap_or_default();
    FILES.contains(&file) && FUNCTIONS.contains(&name)
}
