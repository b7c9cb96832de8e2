//! Limits of the system that leave no room for a recording, as sentences. What mallow starts inherits its own.

use mallow_launch::open_files;
use mallow_wire::shared::{ADDRESS_PARTS, file_bytes};
use rustix::process::{Resource, getrlimit};
use rustix::thread::{SecureComputingMode, secure_computing_mode};

const RESET: &str = "did the program reset LD_PRELOAD or its environment?";
const FILTERED: &str = "mallow runs behind a filter of system calls (seccomp, as in a container), which may refuse what the recorder needs, or the program reset \
    LD_PRELOAD or its environment";

/// What mallow starts is behind the same filter.
fn is_filtered() -> bool {
    matches!(secure_computing_mode(), Ok(SecureComputingMode::Filter))
}

/// Returns what has to be said of limits. `nobody` is what was not done when no process registered, such as "recorded"; `was_full` says that mallow
/// could not hold all processes at once.
pub(crate) fn sentence(nobody: Option<&str>, was_full: bool) -> Option<String> {
    let files =
        || format!("mallow may have only {} files open (ulimit -Hn), too few for", open_files::most());
    match nobody {
        Some(done) => {
            let why = without_room()
                .or_else(|| was_full.then(|| format!("{} a process", files())))
                .unwrap_or_else(|| (if is_filtered() { FILTERED } else { RESET }).to_owned());
            Some(format!("no process took the recorder in, so nothing was {done}: {why}"))
        }
        None => was_full.then(|| {
            let files = files();
            format!("{files} all processes that ran at once: some were met late, and events that found no room until then are missing")
        }),
    }
}

/// Returns why a recorder had no room in any process that mallow started, if a limit is the reason.
fn without_room() -> Option<String> {
    let least = file_bytes(1) as u64;
    let limits = [
        (Resource::As, "on memory", "-v", least * ADDRESS_PARTS as u64),
        (Resource::Fsize, "on the length of files", "-f", least),
    ];
    let (_, what, option, bytes) = limits
        .into_iter()
        .find(|(resource, .., bytes)| getrlimit(*resource).current.is_some_and(|limit| limit < *bytes))?;
    let mib = bytes.div_ceil(1 << 20);
    Some(format!("the limit {what} (ulimit {option}) leaves no room for the recorder, which needs {mib} MiB"))
}
