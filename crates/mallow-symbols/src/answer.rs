//! The answer to one question, what is at these addresses of a module, and who can be asked.

use crate::binary::Binary;
use crate::problem::Problem;
use crate::search::{Search, TriedFile};
use crate::{ModuleKey, SearchPaths, resolve, sections};
use mallow_base::Frame;

/// What the files of a module say about addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// One list of frames per address, innermost (inlined) call first, in the order of the addresses.
    pub frames: Vec<Vec<Frame>>,
    /// What was missing or damaged.
    pub problem: Option<Problem>,
    /// The files that were tried.
    pub tried: Vec<TriedFile>,
    /// Whether it is the same whenever these files are: nothing else was asked, and no file that is not among them.
    pub is_lasting: bool,
    /// Whether all of the debug information could be read.
    pub is_whole: bool,
}

/// When an answer is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// Somebody waits for it.
    Now,
    /// Later: a program runs meanwhile, which is not to be disturbed.
    Later,
}

/// Somebody who looks addresses up where a hostile file costs less than in this process.
pub trait LookUp: Send + Sync {
    /// Looks up addresses, sorted and each once.
    ///
    /// # Errors
    /// Why there is no answer, as the end of a sentence about whoever was asked.
    fn look_up(
        &self,
        search: &SearchPaths,
        module: &ModuleKey,
        svmas: &[u64],
        urgency: Urgency,
    ) -> Result<Answer, String>;
}

/// Looks addresses up in a module's files, in this process. `svmas` are sorted. `on_opened` is told how many bytes the files store, before
/// anything but their headers is read.
pub fn look_up(
    search: &SearchPaths,
    module: &ModuleKey,
    svmas: &[u64],
    on_opened: &mut dyn FnMut(u64),
) -> Answer {
    let opened = Opened::of(search, module);
    on_opened(opened.binary.stored_bytes());
    opened.answer(module, svmas)
}

/// The files of a module, and how they were found.
pub(crate) struct Opened {
    binary: Binary,
    tried: Vec<TriedFile>,
    depends_on_files: bool,
}

impl Opened {
    pub(crate) fn of(search: &SearchPaths, module: &ModuleKey) -> Opened {
        let search = Search::new(search);
        let binary = open(module, &search);
        let (tried, depends_on_files) = search.into_tried();
        Opened { binary, tried, depends_on_files }
    }

    pub(crate) fn answer(&self, module: &ModuleKey, svmas: &[u64]) -> Answer {
        let resolved = resolve::resolve(&self.binary, &module.path, svmas);
        Answer {
            frames: resolved.frames,
            problem: resolved.problem,
            tried: self.tried.clone(),
            // Files of split DWARF are not among those that were tried.
            is_lasting: self.depends_on_files && self.binary.own.is_some() && !resolved.is_split,
            is_whole: !resolved.is_damaged,
        }
    }
}

/// Opens the files of a module.
pub(crate) fn open(module: &ModuleKey, search: &Search<'_>) -> Binary {
    let binary = sections::caught(|| Ok::<_, std::fmt::Error>(Binary::open(module, search)));
    binary.unwrap_or_else(|_| Binary::damaged(module))
}
