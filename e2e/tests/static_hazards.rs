//! The hazard programs as static executables, into which mallow maps the recorder: every metric and every stack is
//! the same as with a dynamic loader. A few of them in every run, all of them in the long suite.

macro_rules! as_static {
    (#$attribute:tt $kind:ident, $compiler:literal, $flags:expr, $only_sites:literal: $($name:ident)*) => {
        mod $kind {
            $(
                #[test]
                #$attribute
                fn $name() {
                    e2e::hazard::check_static(stringify!($name), $compiler, $flags, $only_sites);
                }
            )*
        }
    };
    ($kind:ident, $($rest:tt)*) => {
        as_static! { #[cfg(test)] $kind, $($rest)* }
    };
}

// glibc allocates when it initialises a static program, so the sums of whole processes are not stated.
as_static! { glibc, "cc", &["-static"], true:
    cross_thread_free fork_with_threads longjmp_out malloc_in_signal requests sandboxed tls_destructors
}

as_static! { glibc_pie, "cc", &["-static-pie", "-fPIE"], true:
    cxx_exceptions thread_churn
}

as_static! { musl, "musl-gcc", &["-static"], false:
    allocators fork_in_loop requests
}

as_static! { #[ignore = "the same again: in `cargo xtask long`"] more_of_glibc, "cc", &["-static"], true:
    abort_now alloca_frames allocators allocators_cxx atexit_handlers deep_recursion exit_now failed_and_zero family family_cxx
    file_limit foreign_tops fork_in_loop fork_without_exec fresh_frames kill_self many_stacks misaligned_stack overaligned_frames
    realloc_chain segv_burst sigaltstack_handler storm swapcontext_fibers thread_churn wide_frames
}

as_static! { #[ignore = "the same again: in `cargo xtask long`"] more_of_glibc_pie, "cc", &["-static-pie", "-fPIE"], true:
    abort_now alloca_frames allocators allocators_cxx atexit_handlers cross_thread_free deep_recursion exit_now failed_and_zero
    family family_cxx file_limit foreign_tops fork_in_loop fork_with_threads fork_without_exec fresh_frames kill_self longjmp_out
    malloc_in_signal many_stacks misaligned_stack overaligned_frames realloc_chain sandboxed segv_burst sigaltstack_handler
    storm swapcontext_fibers tls_destructors wide_frames
}

// Without those that need functions that musl lacks, and those with stacks through its functions, which have no unwind tables.
as_static! { #[ignore = "the same again: in `cargo xtask long`"] more_of_musl, "musl-gcc", &["-static"], false:
    abort_now alloca_frames deep_recursion exit_now file_limit foreign_tops fork_without_exec fresh_frames kill_self longjmp_out
    many_stacks misaligned_stack overaligned_frames segv_burst signal_storm wide_frames
}

// What glibc's threads allocate for themselves is stated; musl's allocate nothing.
as_static! { #[ignore = "the same again: in `cargo xtask long`"] threads_of_musl, "musl-gcc", &["-static"], true:
    cross_thread_free storm thread_churn tls_destructors
}
