//! Symbolization: resolves addresses of a module (an executable or a shared library) to frames with demangled function
//! names, inlined calls, files and lines, from the binary or from its separate debug file.
//!
//! It must never name a function from another build of the file: a wrong name is worse than an address. It must
//! never end the program because of a file's contents: a damaged file yields fewer names and a sentence in
//! [`Symbolizer::warnings`]. It reads files and nothing else: no network, no processes. A caller that may download files passes a
//! [`DebugServer`].
//!
//! Supported: DWARF 2 to 5, compressed sections (zlib, zstd), separate debug files by build id and by
//! `.gnu_debuglink`, shared ones by `.gnu_debugaltlink` (dwz), split DWARF (`.dwo`, `.dwp`), `.symtab`, the one that Fedora packs into
//! `.gnu_debugdata`, and `.dynsym`. Not supported: JIT-compiled code.

mod ahead;
mod answer;
mod beginnings;
mod binary;
mod declarations;
mod demangle;
mod dwarf;
mod functions;
mod headers;
mod identity;
mod info;
mod kept;
mod load;
mod locate;
mod mapped;
mod mini;
mod names;
mod origins;
mod packed;
mod problem;
mod reader;
mod resolve;
mod search;
mod sections;
mod split;
mod suppressions;
mod symtab;
mod threads;
mod units;
mod unpacking;

use std::path::{Path, PathBuf};

use mallow_base::Frame;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

pub use crate::ahead::Ahead;
use crate::ahead::Found;
use crate::answer::Opened;
pub use crate::answer::{Answer, LookUp, Urgency, look_up};
pub use crate::demangle::demangle;
pub use crate::functions::{DefinedFunction, functions_of};
use crate::kept::AddressQuery;
pub use crate::locate::{DebugServer, OnAttempt, OtherRoots, SearchPaths};
use crate::packed::Answers;
use crate::problem::Missing;
pub use crate::problem::Problem;
pub use crate::search::TriedFile;
pub use crate::suppressions::{NotALiteral, embedded_suppressions, embedded_suppressions_in};
pub use crate::threads::without_threads;

/// One executable or library as it was mapped.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ModuleKey {
    /// The path as the kernel reports it. `[vdso]` and other names in brackets, `/memfd:…` and `//anon` are memory
    /// without a file; an empty path is JIT-compiled code.
    pub path: String,
    /// The GNU build id that was found in memory; empty if unknown, and then any file at `path` is trusted.
    pub build_id: Vec<u8>,
}

/// A module whose addresses could not be looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Its path.
    pub module: String,
    /// Why, as the end of a sentence about whoever was asked.
    pub reason: String,
}

/// Resolves addresses, and remembers what was said about which module.
///
/// Files that are read here stay open (mapped) as long as this lives. What was parsed of a module is dropped after each [`resolve`](Self::resolve), because the tables of a large binary take more memory
/// than the whole profile: call it once with all addresses of a module, not once per address.
pub struct Symbolizer {
    search: SearchPaths,
    /// Modules of which was said which files were tried, those with a warning, and those that cannot be looked up.
    told: FxHashSet<ModuleKey>,
    warned: FxHashSet<ModuleKey>,
    lost: FxHashMap<ModuleKey, String>,
    /// Files of modules that were resolved here.
    opened: FxHashMap<ModuleKey, Opened>,
    missing: Vec<Missing>,
    losses: Vec<Loss>,
    kept: Option<kept::Folder>,
    ahead: Option<Ahead>,
    elsewhere: Option<Arc<dyn LookUp>>,
    looked_up: u64,
}

impl Symbolizer {
    /// Opens nothing yet.
    pub fn new(search: SearchPaths) -> Self {
        Self {
            search,
            told: FxHashSet::default(),
            warned: FxHashSet::default(),
            lost: FxHashMap::default(),
            opened: FxHashMap::default(),
            missing: Vec::new(),
            losses: Vec::new(),
            kept: None,
            ahead: None,
            elsewhere: None,
            looked_up: 0,
        }
    }

    /// Caches symbols in this folder, which is created when there is something to store, and reads those that are
    /// there.
    #[must_use]
    pub fn keeping(mut self, folder: PathBuf) -> Self {
        self.kept = Some(kept::Folder::new(folder));
        self
    }

    /// Takes the answers that another symbolizer leaves here with [`Symbolizer::look_ahead`].
    #[must_use]
    pub fn sharing(mut self, ahead: Ahead) -> Self {
        self.ahead = Some(ahead);
        self
    }

    /// Has the modules' files opened and parsed by somebody else.
    #[must_use]
    pub fn asking(mut self, elsewhere: Arc<dyn LookUp>) -> Self {
        self.elsewhere = Some(elsewhere);
        self
    }

    /// Returns how many addresses had to be looked up in the modules' files.
    pub fn looked_up(&self) -> u64 {
        self.looked_up
    }

    /// Returns whether symbols of some build of the module at this path are cached.
    pub fn has_kept(&self, path: &Path) -> bool {
        self.kept.as_ref().is_some_and(|folder| folder.has(&path.to_string_lossy(), &self.search))
    }

    /// Returns the frames at each of `svmas`, innermost (inlined) call first, in the order of the addresses; no list
    /// is empty.
    ///
    /// `svmas` are addresses as stated in the file (address in memory minus load bias) that point into the
    /// instruction of interest: for return addresses the caller subtracts 1. Where no symbol covers an address, its
    /// one frame is named by the address itself, `0x1a2b`.
    pub fn resolve(&mut self, module: &ModuleKey, svmas: &[u64]) -> Vec<Vec<Frame>> {
        if !names_a_file(&module.path) {
            return svmas.iter().map(|&svma| vec![bare_frame(&module.path, svma)]).collect();
        }
        let mut unique = svmas.to_vec();
        unique.sort_unstable();
        unique.dedup();
        let Found { answers, .. } = self.find(module, unique);
        self.tell(module, &answers);
        let frames = |svma: &u64| answers.frames.get(svma).cloned();
        svmas
            .iter()
            .map(|svma| frames(svma).unwrap_or_else(|| vec![bare_frame(&module.path, *svma)]))
            .collect()
    }

    /// Takes what is known already, looks the rest of these addresses up, and caches it.
    fn find(&mut self, module: &ModuleKey, svmas: Vec<u64>) -> Found {
        let mut found = self.ahead.as_ref().map(|ahead| ahead.take(module)).unwrap_or_default();
        let mut missing = svmas;
        missing.retain(|svma| !found.answers.frames.contains_key(svma));
        if missing.is_empty() {
            self.keep(module, &found);
            return found;
        }
        let kept = self.read_kept(module, &missing);
        if !kept.frames.is_empty() {
            missing.retain(|svma| !kept.frames.contains_key(svma));
            found.answers.extend(kept);
        }
        let Some(answer) = self.look_up(module, &missing, Urgency::Now).filter(|_| !missing.is_empty())
        else {
            self.keep(module, &found);
            return found;
        };
        let is_lasting = answer.is_lasting;
        found.answers.extend(answers_of(answer, &missing));
        found.new.extend(missing);
        if is_lasting {
            self.keep(module, &found);
        }
        found
    }

    fn read_kept(&self, module: &ModuleKey, svmas: &[u64]) -> Answers {
        let question = AddressQuery { module, search: &self.search };
        self.kept.as_ref().map(|folder| folder.read(&question, svmas)).unwrap_or_default()
    }

    fn keep(&self, module: &ModuleKey, found: &Found) {
        if let Some(folder) = self.kept.as_ref().filter(|_| !found.new.is_empty()) {
            folder.add(&AddressQuery { module, search: &self.search }, &found.answers, &found.new);
        }
    }

    /// Looks addresses up in the module's files; none if that is not possible, which is noted.
    fn look_up(&mut self, module: &ModuleKey, svmas: &[u64], urgency: Urgency) -> Option<Answer> {
        if svmas.is_empty() || self.lost.contains_key(module) {
            return None;
        }
        self.looked_up += svmas.len() as u64;
        let Some(elsewhere) = &self.elsewhere else {
            if urgency == Urgency::Later {
                return Some(look_up(&self.search, module, svmas, &mut |_| {}));
            }
            let opened = || Opened::of(&self.search, module);
            return Some(self.opened.entry(module.clone()).or_insert_with(opened).answer(module, svmas));
        };
        // Whoever is asked may say anything of this module, but not that it depends on no file.
        let own = self.search.rooted(Path::new(binary::own_path(module)));
        let identity = identity::identity(&own);
        match elsewhere.look_up(&self.search, module, svmas, urgency) {
            Ok(mut answer) => {
                let names_own = |file: &TriedFile| file.path == own && file.identity == identity;
                answer.is_lasting &= answer.tried.iter().any(names_own);
                Some(answer)
            }
            Err(reason) => {
                self.losses.push(Loss { module: module.path.clone(), reason: reason.clone() });
                self.lost.insert(module.clone(), reason);
                None
            }
        }
    }

    /// Says which files were tried, and once for each module what was missing.
    fn tell(&mut self, module: &ModuleKey, answers: &Answers) {
        if let Some(OnAttempt(tell)) = self.search.on_attempt
            && self.told.insert(module.clone())
        {
            answers.tried.iter().for_each(|file| tell(&file.path, &file.outcome));
        }
        if let Some(problem) = &answers.problem
            && self.warned.insert(module.clone())
        {
            let nameless = answers.frames.values().filter(|frames| problem::is_nameless(frames)).count();
            self.missing.push(Missing { module: module.path.clone(), problem: problem.clone(), nameless });
        }
    }

    /// Resolves addresses for later calls, and stores them where they are shared ([`Symbolizer::sharing`]). The
    /// module's files are opened anew each time, so that they are the current ones.
    pub fn look_ahead(&mut self, module: &ModuleKey, svmas: &[u64]) {
        let Some(ahead) = self.ahead.clone().filter(|_| names_a_file(&module.path)) else { return };
        let mut missing = svmas.to_vec();
        missing.sort_unstable();
        missing.dedup();
        let mut found = Found { answers: self.read_kept(module, &missing), new: Vec::new() };
        missing.retain(|svma| !found.answers.frames.contains_key(svma));
        if !missing.is_empty() {
            let answer = self.look_up(module, &missing, Urgency::Later);
            let Some(answer) = answer.filter(|answer| answer.is_lasting && answer.is_whole) else { return };
            found.answers.extend(answers_of(answer, &missing));
            found.new = missing;
        }
        ahead.add(module, found);
    }

    /// Sentences about what was missing, at most one per module: the file is gone, it is another build, it has no
    /// symbols, it is damaged. Of many that have none there is one sentence for all.
    pub fn warnings(&self) -> Vec<String> {
        problem::sentences(&self.missing)
    }

    /// The modules whose addresses have no names because whoever was asked for them failed.
    pub fn losses(&self) -> &[Loss] {
        &self.losses
    }
}

fn answers_of(answer: Answer, svmas: &[u64]) -> Answers {
    let frames = svmas.iter().copied().zip(answer.frames).collect();
    Answers { frames, problem: answer.problem, tried: answer.tried }
}

/// Returns whether a path is a file: what the kernel writes instead of a path cannot be opened, or worse, is another
/// file.
fn names_a_file(path: &str) -> bool {
    !(path.is_empty() || ["[", "/memfd:", "//anon"].iter().any(|start| path.starts_with(start)))
}

/// The frame of an address of which nothing is known.
fn bare_frame(module: &str, svma: u64) -> Frame {
    let module = (!module.is_empty()).then(|| module.to_owned());
    Frame { function: format!("{svma:#x}"), module, ..Frame::default() }
}
