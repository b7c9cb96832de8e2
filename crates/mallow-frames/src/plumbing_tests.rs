//! The rules against names as symbolizers give them.

use super::*;

fn frame(function: &str) -> Frame {
    Frame { function: function.to_owned(), ..Frame::default() }
}

#[track_caller]
fn language_of(function: &str, language: &str) {
    let found = leaf_rule(&frame(function)).map(|rule| rule.language);
    assert_eq!(found, Some(language), "{function}");
}

#[test]
fn c_allocators_are_plumbing() {
    for name in [
        "malloc",
        "calloc",
        "realloc",
        "aligned_alloc",
        "xmalloc",
        "__libc_malloc",
        "mmap",
        "mmap_file",
        "mremap",
    ] {
        language_of(name, "C");
    }
    language_of("g_malloc0_n", "GLib");
}

#[test]
fn cpp_plumbing_as_libstdcpp_names_it() {
    for name in [
        "operator new(unsigned long)",
        "operator new[](unsigned long, std::nothrow_t const&)",
        "std::__new_allocator<int>::allocate(unsigned long, void const*)",
        "__gnu_cxx::new_allocator<char>::allocate(unsigned long, void const*)",
        "std::allocator_traits<std::allocator<int> >::allocate(std::allocator<int>&, unsigned long)",
        "std::_Vector_base<int, std::allocator<int> >::_M_allocate(unsigned long)",
        "void std::vector<int, std::allocator<int> >::_M_realloc_insert<int const&>(__gnu_cxx::__normal_iterator<int*, std::vector<int, std::allocator<int> > >, int const&)",
        "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >::_M_create(unsigned long&, unsigned long)",
        "std::_Rb_tree<int, std::pair<int const, int>, std::_Select1st<std::pair<int const, int> >, std::less<int>, std::allocator<std::pair<int const, int> > >::_M_get_node()",
        "std::unique_ptr<Row, std::default_delete<Row> > std::make_unique<Row, int>(int&&)",
    ] {
        language_of(name, "C++");
    }
}

#[test]
fn rust_plumbing_in_both_manglings() {
    for name in [
        "__rust_alloc",
        "__rust_alloc_zeroed",
        "__rust_realloc",
        "__rustc::__rust_alloc",
        "__rustc[1c4f2f3a8e3b0d11]::__rdl_alloc",
        "__rdl_realloc",
        "alloc::alloc::alloc::h0123456789abcdef",
        "<alloc::alloc::Global as core::alloc::Allocator>::allocate",
        "alloc::alloc::exchange_malloc",
        "alloc::raw_vec::RawVec<T,A>::grow_one",
        "alloc::raw_vec::finish_grow",
        "alloc::boxed::Box<T>::new",
        "<alloc::string::String as core::clone::Clone>::clone",
        "<T as alloc::string::ToString>::to_string",
        "core::iter::traits::iterator::Iterator::collect",
        "hashbrown::raw::RawTable<T,A>::reserve_rehash",
        "std::collections::hash::map::HashMap<K,V,S>::insert",
        "std::sys::alloc::unix::<impl core::alloc::global::GlobalAlloc for std::alloc::System>::alloc",
    ] {
        language_of(name, "Rust");
    }
}

#[test]
fn the_way_into_a_global_allocator_is_plumbing_whoever_wrote_it() {
    for name in [
        "<mimalloc::MiMalloc as core::alloc::global::GlobalAlloc>::alloc",
        "<tikv_jemallocator::Jemalloc as core::alloc::global::GlobalAlloc>::realloc",
        "<app::Counted<mimalloc::MiMalloc> as core::alloc::global::GlobalAlloc>::alloc_zeroed::h0123456789abcdef",
    ] {
        language_of(name, "Rust");
    }
    // Line tables alone name no trait.
    let file = |path: &str| Frame { file: Some(path.to_owned()), ..frame("alloc") };
    let registry = "/home/me/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f";
    for package in [
        "mimalloc-0.1.52",
        "tikv-jemallocator-0.6.1",
        "snmalloc-rs-0.7.6",
        "rpmalloc-0.2.2",
        "tcmalloc-0.3.0",
    ] {
        assert!(leaf_rule(&file(&format!("{registry}/{package}/src/lib.rs"))).is_some(), "{package}");
    }
    assert_eq!(leaf_rule(&frame("<app::Pool as app::GlobalAllocator>::give")), None);
    assert_eq!(leaf_rule(&file("/home/me/mimalloc/src/pool.rs")), None);
}

#[test]
fn inlined_calls_without_a_namespace_are_known_by_their_file() {
    let inlined = |function: &str, file: &str| Frame { file: Some(file.to_owned()), ..frame(function) };
    let std = "/rustc/59807616e1fa2540724bfbac14d7976d7e4a3860/library";
    for (function, file, language) in [
        ("alloc_impl", format!("{std}/alloc/src/alloc.rs"), "Rust"),
        ("to_vec<u8>", format!("{std}/alloc/src/slice.rs"), "Rust"),
        ("call_once<u8>", format!("{std}/core/src/ops/function.rs"), "Rust"),
        ("alloc", "library/alloc/src/alloc.rs".to_owned(), "Rust"),
        ("UnknownInlinedFun", "library/core/src/ops/function.rs".to_owned(), "Rust"),
        ("insert<u8>", "/home/me/.cargo/registry/src/x/hashbrown-0.17.1/src/raw/mod.rs".to_owned(), "Rust"),
        ("_M_allocate", "/usr/include/c++/12/bits/stl_vector.h".to_owned(), "C++"),
    ] {
        let found = leaf_rule(&inlined(function, &file)).map(|rule| rule.language);
        assert_eq!(found, Some(language), "{function} {file}");
    }
    assert_eq!(leaf_rule(&inlined("to_vec", "/home/me/app/src/alloc/slice.rs")), None);
    assert_eq!(leaf_rule(&inlined("to_vec", "/home/me/mylibrary/alloc/src/slice.rs")), None);
    assert_eq!(leaf_rule(&inlined("open", &format!("{std}/std/src/fs.rs"))), None);
    assert!(root_rule(&inlined("{closure#0}", &format!("{std}/std/src/rt.rs"))).is_some());
}

#[test]
fn python_and_ruby_plumbing() {
    for name in [
        "PyMem_RawMalloc",
        "_PyMem_DebugRawAlloc",
        "PyObject_Malloc",
        "_PyObject_GC_NewVar",
        "_PyObject_Malloc",
    ] {
        language_of(name, "Python");
    }
    for name in [
        "ruby_xmalloc",
        "ruby_xmalloc2_body",
        "objspace_xmalloc0",
        "objspace_xrealloc.isra.0",
        "rb_xmalloc_mul_add",
    ] {
        language_of(name, "Ruby");
    }
}

#[test]
fn wrappers_of_well_known_programs() {
    for (language, names) in [
        ("jq", &["jv_mem_alloc", "jv_mem_realloc"][..]),
        ("SQLite", &["sqlite3MemMalloc", "sqlite3MemRealloc", "sqlite3Malloc", "sqlite3DbMallocRawNN"]),
        ("Swift", &["swift_slowAlloc", "swift_allocObject", "_swift_allocObject_"]),
        ("ImageMagick", &["AcquireAlignedMemory", "AcquireQuantumMemory"]),
        ("GLib", &["g_malloc0_n", "g_slice_alloc0"]),
        ("APR", &["apr_palloc", "apr_pcalloc_debug"]),
        ("talloc", &["talloc_named_const", "_talloc_zero", "__talloc_with_prefix"]),
        ("OpenSSL", &["CRYPTO_zalloc", "CRYPTO_malloc"]),
        ("FFmpeg", &["av_malloc", "av_mallocz_array", "av_realloc_array", "av_buffer_allocz"]),
        ("x264", &["x264_malloc"]),
        ("Mozilla", &["moz_xmalloc", "PORT_ArenaAlloc_Util", "PR_Calloc"]),
        ("LibreOffice", &["rtl_allocateMemory", "rtl_reallocateMemory"]),
        ("ICU", &["uprv_malloc_72"]),
        ("MariaDB", &["my_malloc(unsigned int, unsigned long, unsigned long)", "alloc_root"]),
        ("GCC", &["ggc_internal_alloc", "ggc_internal_cleared_alloc"]),
        ("Mono", &["monoeg_malloc", "monoeg_malloc0", "monoeg_g_calloc", "monoeg_realloc"]),
        ("OCaml", &["caml_stat_alloc_noexc", "caml_alloc_for_heap"]),
        ("SWI-Prolog", &["PL_malloc_atomic", "PL_realloc"]),
        ("Guile", &["scm_malloc", "scm_realloc", "scm_gc_malloc"]),
        ("Tcl", &["TclpAlloc", "Tcl_Realloc"]),
        ("Erlang", &["erts_sys_aligned_alloc"]),
        ("R", &["Rf_allocVector3", "R_alloc"]),
        ("Haskell", &["stgMallocBytes", "stgReallocBytes"]),
    ] {
        names.iter().for_each(|name| language_of(name, language));
    }
}

#[test]
fn what_a_program_would_call_its_own_stays() {
    for name in [
        "main",
        "strdup",
        "getline",
        "asprintf",
        "malloc_report",
        "my::alloc::pool",
        "app::allocator_new",
        "std::fs::read_to_string",
        "std::thread::spawn",
        "std::sort<int*>(int*, int*)",
        "corelib::start",
        "PyList_New",
        "rb_ary_new",
        "sqlite3VdbeExec",
        "jv_string",
        "vector_push",
        "0x1234",
    ] {
        assert_eq!(leaf_rule(&frame(name)), None, "{name}");
    }
}

#[test]
fn the_outermost_frame_stays_even_when_all_are_plumbing() {
    assert_eq!(leading(&[frame("malloc"), frame("operator new(unsigned long)")], &[]), 1);
    assert_eq!(leading(&[frame("malloc"), frame("main")], &[]), 1);
    assert_eq!(leading(&[frame("main"), frame("malloc")], &[]), 0);
    assert_eq!(leading(&[], &[]), 0);
}

#[test]
fn starts_are_known_on_the_root_side() {
    for name in [
        "_start",
        "__libc_start_call_main",
        "__libc_start_main_impl",
        "std::rt::lang_start::{{closure}}",
        "std::sys::backtrace::__rust_begin_short_backtrace",
        "core::ops::function::FnOnce::call_once",
        "start_thread",
    ] {
        assert!(root_rule(&frame(name)).is_some(), "{name}");
    }
    assert_eq!(root_rule(&frame("main")), None);
}

#[test]
fn every_rule_says_whose_it_is() {
    for rule in LEAF.iter().chain(WRAPPERS).chain(ROOT) {
        assert!(!rule.patterns.is_empty() && !rule.language.is_empty(), "{rule:?}");
    }
}
