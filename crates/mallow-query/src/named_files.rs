//! Whether files that a trace names may be opened.
//!
//! A trace from elsewhere names what it likes: a file of this machine that is none of the program's, or one on a network. Only traces that were recorded here
//! are believed, unless whoever asks says otherwise.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

static ARE_ALL_OPENED: AtomicBool = AtomicBool::new(false);
static IS_ONE_FROM_ELSEWHERE: AtomicBool = AtomicBool::new(false);

/// Opens what any trace names from now on.
pub fn open_what_traces_name() {
    ARE_ALL_OPENED.store(true, Ordering::Relaxed);
}

/// Whether all traces that were opened are believed.
pub fn are_all_traces_believed() -> bool {
    !IS_ONE_FROM_ELSEWHERE.load(Ordering::Relaxed)
}

/// Whether what this trace names is opened.
pub(crate) fn may_be_opened(trace: &Path) -> bool {
    let is_believed = ARE_ALL_OPENED.load(Ordering::Relaxed) || mallow_files::is_made_here(trace);
    IS_ONE_FROM_ELSEWHERE.fetch_or(!is_believed, Ordering::Relaxed);
    is_believed
}
