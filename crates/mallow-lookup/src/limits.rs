//! What a worker may use, and what the child that starts workers gives up.

use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit};

/// Memory of a worker, whatever it reads, and for each byte that the module's files store: unpacked sections and tables of functions take some times as much as
/// they do in a file.
const BYTES_ALLOWED: u64 = 512 << 20;
const BYTES_PER_STORED: u64 = 8;
/// The processor's time that a worker may take.
pub(crate) const SECONDS_MAX: u64 = 60;
/// How much longer, where it was told that its time is up and goes on.
const SECONDS_TO_END: u64 = 5;
/// Files that it may have open. Split DWARF opens one for each unit.
const FILES_MAX: u64 = 1 << 16;

/// The memory that a worker may use for files of this size, where it is given so many times as much as usual.
pub(crate) fn memory_bytes(stored_bytes: u64, patience: u32) -> u64 {
    let usual = stored_bytes.saturating_mul(BYTES_PER_STORED).saturating_add(BYTES_ALLOWED);
    usual.saturating_mul(patience.into())
}

/// Gives up what no worker needs: rights that it could get, a file with its memory when it dies, and being looked at by others.
pub(crate) fn confine() {
    let _ = rustix::thread::set_no_new_privs(true);
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    limit(Resource::Core, 0);
}

/// Bounds a worker before it reads anything.
pub(crate) fn of_worker(stored_bytes: u64, patience: u32) {
    let seconds = SECONDS_MAX.saturating_mul(patience.into());
    limit_softly(Resource::Cpu, seconds, seconds + SECONDS_TO_END);
    limit(Resource::Fsize, 0);
    limit(Resource::Nofile, FILES_MAX);
    of_memory(stored_bytes, patience);
}

/// Bounds its memory by the size of the files that it has found.
pub(crate) fn of_memory(stored_bytes: u64, patience: u32) {
    // The limit can be raised when a debug file was found; mapped files do not count.
    let maximum = getrlimit(Resource::Data).maximum;
    let wanted = memory_bytes(stored_bytes, patience);
    let current = Some(maximum.map_or(wanted, |maximum| maximum.min(wanted)));
    let _ = setrlimit(Resource::Data, Rlimit { current, maximum });
}

fn limit(resource: Resource, most: u64) {
    limit_softly(resource, most, most);
}

/// The same with a limit behind it, at which a process is killed that is only told at the first one.
fn limit_softly(resource: Resource, most: u64, at_last: u64) {
    let known = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let [current, maximum] = [most, at_last].map(|most| Some(most.min(known)));
    let _ = setrlimit(resource, Rlimit { current, maximum });
}
