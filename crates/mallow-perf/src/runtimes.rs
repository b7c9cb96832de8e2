//! Node and the JVM write down what code they make, as the preloaded library asked them to: what they wrote is removed when it was read, as nobody but us
//! has asked for it.

use mallow_jit::{is_trusted, map_path};
use std::fs;
use std::time::{Duration, UNIX_EPOCH};

/// Removes the perf maps that we requested, unless they are older than the recording.
pub(crate) fn remove_lists(asked: &[u32], began_unix_ns: u64) {
    let began = UNIX_EPOCH + Duration::from_nanos(began_unix_ns);
    for path in asked.iter().map(|pid| map_path(*pid)) {
        let written = fs::symlink_metadata(&path).and_then(|found| found.modified());
        // The clock of files may be some milliseconds behind.
        let is_new = written.is_ok_and(|at| at + Duration::from_millis(20) >= began);
        if is_trusted(&path) && is_new {
            // Someone else has removed it already.
            let _ = fs::remove_file(path);
        }
    }
}
