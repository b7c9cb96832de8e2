//! Every program of `programs/hazards` gives exactly the figures that stand beside it, recorded and counted.

use e2e::hazard;

hazard!(abort_now);
hazard!(alloca_frames);
hazard!(allocators);
hazard!(allocators_cxx);
hazard!(atexit_handlers);
hazard!(cross_thread_free);
hazard!(cxx_exceptions);
hazard!(deep_recursion);
hazard!(dlclose_same_address);
hazard!(exec_chain);
hazard!(exit_now);
hazard!(failed_and_zero);
hazard!(family);
hazard!(family_cxx);
hazard!(file_limit);
hazard!(fork_with_threads);
hazard!(fork_without_exec);
hazard!(kill_self);
hazard!(longjmp_out);
hazard!(malloc_in_signal);
hazard!(many_stacks);
hazard!(overaligned_frames);
hazard!(posix_spawn_child);
hazard!(realloc_chain);
hazard!(segv_burst);
hazard!(setuid_note);
hazard!(shell_exec);
hazard!(sigaltstack_handler);
hazard!(signal_storm);
hazard!(static_hello);
hazard!(storm);
hazard!(swapcontext_fibers);
hazard!(thread_churn);
hazard!(tls_destructors);
hazard!(vfork_child);
