//! How the path of a source file is shown, where somebody knows where that file is now.
//!
//! A front end that has a current folder says so once, before anything is written; others show the end of a path that tells something.

use std::sync::OnceLock;

/// The path that is shown in place of one that a compiler wrote down; none where nothing is known of it.
pub type SourceName = fn(&str) -> Option<String>;

static NAME: OnceLock<SourceName> = OnceLock::new();

/// Has paths shown so from now on; only the first call counts.
pub fn name_sources_by(name: SourceName) {
    let _ = NAME.set(name);
}

/// The path as it is shown, where somebody knows.
pub(crate) fn named(path: &str) -> Option<String> {
    NAME.get().and_then(|name| name(path))
}
