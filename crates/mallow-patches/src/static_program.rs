//! Static executables: what has to be seen in them beside the allocator, and what stands against their being recorded.
//!
//! No loader puts the recorder's functions in front of libc's, so those that matter are patched as well: those that end a process or start a
//! program, those that set filters of system calls, and those by which unwinders find code. What the recorder would ask a loader for, it
//! is told.

use crate::displace::Unpatchable;
use crate::names::Meaning;
use crate::wanted::{Named, WantedFunctions};
use mallow_wire::patches::{Arguments, Call, NAME_BYTES, NO_ARGUMENT, NamedFunction};

/// Functions in front of which the recorder has its own.
const INTERPOSED: [&str; 12] = [
    "_exit",
    "_Exit",
    "prctl",
    "unshare",
    "setns",
    "syscall",
    "execve",
    "fexecve",
    "execveat",
    "__libc_start_main",
    "dl_iterate_phdr",
    "_dl_find_object",
];

/// The same, for those who want to know who opens files.
const OPENERS: [&str; 46] = [
    "open",
    "open64",
    "openat",
    "openat64",
    "__open_2",
    "__open64_2",
    "__openat_2",
    "__openat64_2",
    "creat",
    "creat64",
    "socket",
    "accept",
    "accept4",
    "socketpair",
    "pipe",
    "pipe2",
    "dup",
    "dup2",
    "dup3",
    "fcntl",
    "fcntl64",
    "epoll_create",
    "epoll_create1",
    "eventfd",
    "timerfd_create",
    "signalfd",
    "inotify_init",
    "inotify_init1",
    "fanotify_init",
    "memfd_create",
    "shm_open",
    "mq_open",
    "posix_openpt",
    "mkstemp",
    "mkstemp64",
    "mkostemp",
    "mkostemp64",
    "pidfd_open",
    "fopen",
    "fopen64",
    "freopen",
    "freopen64",
    "tmpfile",
    "tmpfile64",
    "popen",
    "opendir",
];

/// Without these in front a program could come to harm: a filter of system calls would kill it for ours, an exception would
/// end in our frames.
const ESSENTIAL: [&str; 4] = ["prctl", "syscall", "dl_iterate_phdr", "_dl_find_object"];

/// What the recorder calls.
const CALLED: [&str; 11] = [
    "pthread_create",
    "pthread_detach",
    "__register_atfork",
    "malloc_trim",
    "mallinfo2",
    "mallctl",
    "mi_collect",
    "MallocExtension_ReleaseFreeMemory",
    "MallocExtension_GetNumericProperty",
    "fileno",
    "dirfd",
];

/// glibc gives back what it kept for a thread by calling `free` for blocks that the program has freed already.
const INNER: [&str; 2] = ["__malloc_arena_thread_freeres", "arena_thread_freeres"];

/// By which a libc is known: both lay out threads' storage by the program headers that the kernel tells of.
const OF_GLIBC: &str = "__libc_setup_tls";
const OF_MUSL: [&str; 2] = ["__init_tls", "static_init_tls"];

/// Whether a name is wanted in a static executable.
pub(crate) fn may_be_wanted(name: &[u8]) -> bool {
    let others = [OF_GLIBC, "__libc_malloc", "__libc_malloc_impl"];
    let all = [&INTERPOSED[..], &OPENERS, &CALLED, &INNER, &OF_MUSL, &others];
    all.iter().any(|names| names.iter().any(|known| known.as_bytes() == name))
}

/// Whether a function of this name ends the process.
pub(crate) fn never_returns(name: &str) -> bool {
    ["_exit", "_Exit"].contains(&name)
}

fn defines(all: &[Named<'_>], names: &[&str]) -> bool {
    all.iter().any(|(name, _)| names.contains(&name.as_str()))
}

/// Adds what is wanted beside the allocator.
pub(crate) fn add(all: &[Named<'_>], wanted: &mut WantedFunctions) {
    let meaning = |call| Meaning {
        call,
        arguments: Arguments { block: NO_ARGUMENT, size: NO_ARGUMENT, count: NO_ARGUMENT, record: 0 },
    };
    for (name, function) in all {
        let name = name.as_str();
        let is_interposed = INTERPOSED.contains(&name) || OPENERS.contains(&name);
        if is_interposed && function.is_global {
            wanted.add(name, function, meaning(Call::Interposed));
        } else if INNER.contains(&name) {
            wanted.add(name, function, meaning(Call::Inner));
        }
    }
}

/// What the recorder is told by name.
pub(crate) fn names_of(all: &[Named<'_>]) -> Vec<NamedFunction> {
    let is_told = |(name, function): &&Named<'_>| {
        let name = name.as_str();
        let is_one = CALLED.contains(&name) || INTERPOSED.contains(&name) || OPENERS.contains(&name);
        is_one && function.is_global
    };
    let mut named: Vec<NamedFunction> = all
        .iter()
        .filter(is_told)
        .map(|(text, function)| {
            let mut name = [0; NAME_BYTES];
            name.iter_mut().zip(text.bytes()).for_each(|(place, byte)| *place = byte);
            NamedFunction { svma: function.svma, name }
        })
        .collect();
    named.sort_unstable_by_key(|function| (function.name, function.svma));
    named.dedup();
    named
}

/// Why a static executable is not started with the recorder in it. `unpatchable` are functions that are wanted and cannot be patched.
pub(crate) fn refusal<'a>(
    all: &[Named<'_>],
    mut unpatchable: impl Iterator<Item = (&'a str, Call, Unpatchable)>,
) -> Option<String> {
    if !defines(all, &[OF_GLIBC]) && !defines(all, &OF_MUSL) {
        return Some(
            "it has neither glibc's nor musl's names in it, and only of those is it known how they make room for a thread's data"
                .to_owned(),
        );
    }
    let is_essential = |name: &str, call| call == Call::Inner || ESSENTIAL.contains(&name);
    let (name, _, why) = unpatchable.find(|(name, call, _)| is_essential(name, *call))?;
    Some(format!("its function {name} has to be watched, and cannot be: {}", why.reason()))
}
