//! One search for the files of a module, with a list of what was tried: whoever has the list can tell later whether the search would come to the same.

use crate::SearchPaths;
use crate::identity;
use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// A file that was looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriedFile {
    /// Where.
    pub path: PathBuf,
    /// Which file lay there; `None` if there was none.
    pub identity: Option<String>,
    /// What became of it, in words.
    pub outcome: String,
}

impl TriedFile {
    /// Returns whether the same file is there still, or none as before.
    pub(crate) fn is_as_before(&self) -> bool {
        identity::identity(&self.path) == self.identity
    }
}

/// Where to search, and what was tried.
pub(crate) struct Search<'a> {
    paths: &'a SearchPaths,
    tried: RefCell<Vec<TriedFile>>,
    asks_others: Cell<bool>,
}

impl<'a> Search<'a> {
    pub(crate) fn new(paths: &'a SearchPaths) -> Self {
        Search { paths, tried: RefCell::default(), asks_others: Cell::new(false) }
    }

    /// Says what became of a file that was tried.
    pub(crate) fn tell(&self, place: &Path, outcome: &str) {
        let tried = TriedFile {
            path: place.to_owned(),
            identity: identity::identity(place),
            outcome: outcome.to_owned(),
        };
        self.tried.borrow_mut().push(tried);
    }

    /// Says that the search depends on more than files: on who has other roots, or on a server.
    pub(crate) fn depends_on_others(&self) {
        self.asks_others.set(true);
    }

    /// Returns what was tried, and whether that is all on which the search depends.
    pub(crate) fn into_tried(self) -> (Vec<TriedFile>, bool) {
        (self.tried.into_inner(), !self.asks_others.get())
    }
}

impl Deref for Search<'_> {
    type Target = SearchPaths;

    fn deref(&self) -> &SearchPaths {
        self.paths
    }
}
