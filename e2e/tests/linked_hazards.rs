//! The hazard programs with an allocator linked in, whose functions are patched: every metric and every stack is the
//! same as with the C library's.

/// Debian's archives, and what they need. That of tcmalloc needs the C++ library, which allocates when it is initialised.
const JEMALLOC: &[&str] = &["-l:libjemalloc.a", "-lstdc++", "-lm", "-ldl"];
const TCMALLOC: &[&str] = &["-l:libtcmalloc_minimal.a", "-lstdc++", "-lm"];

macro_rules! linked {
    (#$attribute:tt $module:ident, $allocator:literal, $libs:expr, $only_sites:literal: $($name:ident)*) => {
        mod $module {
            $(
                #[test]
                #$attribute
                fn $name() {
                    e2e::hazard::check_linked(stringify!($name), $allocator, $libs, $only_sites);
                }
            )*
        }
    };
    ($module:ident, $($rest:tt)*) => {
        linked! { #[cfg(test)] $module, $($rest)* }
    };
}

linked! { jemalloc, "jemalloc", super::JEMALLOC, false:
    abort_now alloca_frames allocators allocators_cxx atexit_handlers cross_thread_free cxx_exceptions deep_recursion exec_chain
    exit_now family_cxx fork_in_loop fork_with_threads fork_without_exec kill_self longjmp_out malloc_in_signal
    misaligned_stack overaligned_frames posix_spawn_child realloc_chain requests sandboxed segv_burst sigaltstack_handler
    signal_storm storm swapcontext_fibers thread_churn tls_destructors vfork_child wide_frames
}

linked! { tcmalloc, "tcmalloc", super::TCMALLOC, true:
    alloca_frames allocators allocators_cxx cross_thread_free cxx_exceptions deep_recursion family_cxx fork_with_threads longjmp_out
    malloc_in_signal realloc_chain requests storm swapcontext_fibers thread_churn tls_destructors vfork_child
    wide_frames
}

// A hundred thousand stacks, and thousands of libraries: with the C library's allocator in every run.
linked! { #[ignore = "the same again: in `cargo xtask long`"] more_of_jemalloc, "jemalloc", super::JEMALLOC, false:
    library_cycles many_stacks
}

linked! { #[ignore = "the same again: in `cargo xtask long`"] more_of_tcmalloc, "tcmalloc", super::TCMALLOC, true:
    many_stacks
}
