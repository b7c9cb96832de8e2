//! What of a program the hooks cannot have seen.

use crate::defeated;
use crate::manifest::Mode;
use mallow_collect::WatchedProcess;

/// A sentence for each reason why counts are not the program's own. Asked of the processes that were measured: those that marked a
/// region, whatever started them, or all of them.
pub(super) fn of(mode: Mode, processes: &[WatchedProcess]) -> Vec<String> {
    let is_measured = |process: &&WatchedProcess| mode != Mode::Region || !process.runs.is_empty();
    let mut sentences: Vec<String> = Vec::new();
    for process in processes.iter().filter(is_measured) {
        let sentence = process.executable.as_deref().and_then(defeated::by_own_allocator);
        sentences.extend(sentence.filter(|sentence| !sentences.contains(sentence)));
    }
    sentences
}
