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
mod binary;
mod demangle;
mod dwarf;
mod functions;
mod headers;
mod kept;
mod locate;
mod mapped;
mod mini;
mod names;
mod origins;
mod reader;
mod resolve;
mod sections;
mod split;
mod suppressions;
mod symtab;
mod threads;
mod units;

use std::path::PathBuf;

use mallow_base::Frame;
use rustc_hash::FxHashMap;

pub use crate::ahead::Ahead;
use crate::ahead::Found;
use crate::binary::Binary;
pub use crate::demangle::demangle;
pub use crate::functions::{DefinedFunction, functions_of};
pub use crate::locate::{DebugServer, OnAttempt, OtherRoots, SearchPaths};
use crate::resolve::Resolved;
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

/// Resolves addresses, and remembers which files belong to which module.
///
/// Files stay open (mapped) as long as this lives. What was parsed from them is dropped after each
/// [`resolve`](Self::resolve), because the tables of a large binary take more memory than the whole profile: call it
/// once with all addresses of a module, not once per address.
pub struct Symbolizer {
    search: SearchPaths,
    modules: FxHashMap<ModuleKey, MetModule>,
    warnings: Vec<String>,
    kept: Option<kept::Folder>,
    ahead: Option<Ahead>,
    looked_up: u64,
}

/// A module that was resolved before.
struct MetModule {
    binary: Binary,
    warned: bool,
}

impl Symbolizer {
    /// Opens nothing yet.
    pub fn new(search: SearchPaths) -> Self {
        Self {
            search,
            modules: FxHashMap::default(),
            warnings: Vec::new(),
            kept: None,
            ahead: None,
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

    /// Returns how many addresses had to be looked up in the modules' files.
    pub fn looked_up(&self) -> u64 {
        self.looked_up
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
        let known = self
            .modules
            .entry(module.clone())
            .or_insert_with(|| MetModule { binary: open(module, &self.search), warned: false });
        let mut unique = svmas.to_vec();
        unique.sort_unstable();
        unique.dedup();
        let stores = Stores { kept: self.kept.as_ref(), ahead: self.ahead.as_ref() };
        let (resolved, looked_up) = stores.resolve(&known.binary, module, &unique);
        self.looked_up += looked_up as u64;
        if let Some(problem) = resolved.problem
            && !known.warned
        {
            known.warned = true;
            self.warnings.push(problem);
        }
        if unique == svmas {
            return resolved.frames;
        }
        svmas.iter().map(|svma| resolved.frames[unique.partition_point(|at| at < svma)].clone()).collect()
    }

    /// Resolves addresses for later calls, and stores them where they are shared ([`Symbolizer::sharing`]). The
    /// module's files are opened anew each time, so that they are the current ones.
    pub fn look_ahead(&mut self, module: &ModuleKey, svmas: &[u64]) {
        let Some(ahead) = self.ahead.as_ref().filter(|_| names_a_file(&module.path)) else { return };
        let binary = open(module, &self.search);
        let identity = binary.identity(module);
        let mut found = Found {
            answers: self.kept.as_ref().map(|folder| folder.read(&identity, svmas)).unwrap_or_default(),
            new: svmas.to_vec(),
        };
        found.new.retain(|svma| !found.answers.frames.contains_key(svma));
        found.new.sort_unstable();
        found.new.dedup();
        if !found.new.is_empty() {
            let resolved = resolve::resolve(&binary, &module.path, &found.new);
            if resolved.is_split || resolved.is_damaged {
                return;
            }
            found.answers.frames.extend(found.new.iter().copied().zip(resolved.frames));
            found.answers.problem = found.answers.problem.or(resolved.problem);
            self.looked_up += found.new.len() as u64;
        }
        ahead.add(identity, found);
    }

    /// Sentences about what was missing, at most one per module: the file is gone, it is another build, it has no
    /// symbols, it is damaged.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

/// Opens the files of a module.
fn open(module: &ModuleKey, search: &SearchPaths) -> Binary {
    let binary = sections::caught(|| Ok::<_, std::fmt::Error>(Binary::open(module, search)));
    binary.unwrap_or_else(|_| Binary::damaged(module))
}

/// Where symbols may be cached.
struct Stores<'a> {
    kept: Option<&'a kept::Folder>,
    ahead: Option<&'a Ahead>,
}

impl Stores<'_> {
    /// Resolves addresses that are not cached, and caches them; returns how many addresses had to be looked up.
    fn resolve(&self, binary: &Binary, module: &ModuleKey, svmas: &[u64]) -> (Resolved, usize) {
        if self.kept.is_none() && self.ahead.is_none() {
            return (resolve::resolve(binary, &module.path, svmas), svmas.len());
        }
        let identity = binary.identity(module);
        let Found { answers: mut known, mut new } =
            self.ahead.map(|ahead| ahead.take(&identity)).unwrap_or_default();
        let mut missing = svmas.to_vec();
        missing.retain(|svma| !known.frames.contains_key(svma));
        if let Some(folder) = self.kept.filter(|_| !missing.is_empty()) {
            let kept = folder.read(&identity, &missing);
            missing.retain(|svma| !kept.frames.contains_key(svma));
            known.frames.extend(kept.frames);
            known.problem = known.problem.or(kept.problem);
        }
        let mut is_split = false;
        if !missing.is_empty() {
            let resolved = resolve::resolve(binary, &module.path, &missing);
            new.extend(&missing);
            known.frames.extend(missing.iter().copied().zip(resolved.frames));
            known.problem = resolved.problem.or(known.problem);
            is_split = resolved.is_split;
        }
        // Files of split DWARF are not part of the identity.
        if let Some(folder) = self.kept.filter(|_| !new.is_empty() && !is_split) {
            folder.add(&identity, &known, &new);
        }
        let frames = svmas.iter().map(|svma| known.frames.remove(svma).unwrap_or_default()).collect();
        (Resolved { frames, problem: known.problem, is_split, is_damaged: false }, missing.len())
    }
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
