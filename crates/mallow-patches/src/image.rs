//! One executable: its allocator, and a patch for each function of it.

use crate::callers::{self, Beginning, Code};
use crate::displace::{self, Displaced, Unpatchable};
use crate::families::FamiliesMet;
use crate::names::{self, Meaning};
use crate::static_program;
use crate::wanted::{Named, Wanted, WantedFunctions};
use mallow_files::ForeignFile;
use mallow_symbols::{SearchPaths, functions_of};
use mallow_wire::executable::{Obstacle, obstacle};
use mallow_wire::patches::{
    Call, DISPLACED_BYTES_MAX, ELF_HEADER_BYTES, FIXUPS_MAX, MOVED_BYTES_MAX, NamedFunction, PATCHES_MAX,
    Patch, STEPS_MAX,
};
use object::read::ReadCache;
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{LittleEndian, elf};
use rustc_hash::FxHashMap;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A function of an allocator that cannot be patched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unseen {
    /// Its name.
    pub function: String,
    /// Why, as the end of a sentence.
    pub reason: &'static str,
}

/// An executable that was looked into.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Examined {
    /// The allocator whose names its functions have; `malloc` for one that goes by that name.
    pub named: Option<&'static str>,
    /// What can be patched; none where it is linked with no allocator that could be seen by patches.
    pub image: Option<Image>,
}

/// Why nothing is seen of an allocator that was optimised as one with its callers.
const INLINED: &str = "the linker has put it into its callers";

/// What kind of file is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// An executable that a loader starts.
    Dynamic,
    /// One that none does.
    Static,
    /// A shared library.
    Library,
}

/// An executable or library with an allocator in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Where it lies.
    pub path: PathBuf,
    /// What it is linked with, such as `jemalloc`.
    pub allocator: &'static str,
    /// What of the allocator cannot be patched.
    pub unseen: Vec<Unseen>,
    /// It is static, and may be started with the recorder in it, or not: why, as the end of a sentence.
    pub static_start: Option<Result<(), String>>,
    pub(crate) elf_header: [u8; ELF_HEADER_BYTES],
    pub(crate) patches: Vec<Patch>,
    pub(crate) names: Vec<NamedFunction>,
}

impl Image {
    /// What the executable at `path` is linked with.
    pub fn examine(path: &Path) -> Examined {
        let Ok(file) = File::open(path) else { return Examined::default() };
        let is_static =
            obstacle(|offset, into| file.read_at(into, offset).unwrap_or(0)) == Some(Obstacle::Static);
        let kind = if is_static { Kind::Static } else { Kind::Dynamic };
        let families = FamiliesMet::default();
        let image = Image::of(path, file, kind, |name| families.note(name));
        Examined { named: families.allocator(), image }
    }

    /// The same of a shared library. What it exports by names of the C library's, a loader leads to the recorder already.
    pub fn examine_library(path: &Path) -> Option<Image> {
        Image::of(path, File::open(path).ok()?, Kind::Library, |_| ())
    }

    /// Passes the names of all functions that may belong to an allocator to `note` on its way.
    fn of(path: &Path, file: File, kind: Kind, note: impl Fn(&[u8])) -> Option<Image> {
        let search = &SearchPaths::default();
        let is_static = kind == Kind::Static;
        let is_wanted =
            |name: &[u8]| names::may_be_wanted(name) || is_static && static_program::may_be_wanted(name);
        let mut defined = functions_of(path, search, |_, name| {
            let is_wanted = is_wanted(name);
            if is_wanted {
                note(name);
            }
            is_wanted
        });
        // A patch of one would be called once, to choose a function that has another name.
        defined.retain(|function| !function.is_indirect);
        let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        let all: Vec<Named<'_>> = defined.iter().map(|function| (text(&function.name), function)).collect();
        let is_seen = |name: &str| {
            let is_preemptible = || all.iter().any(|(known, it)| known == name && it.is_preemptible);
            kind == Kind::Library && names::is_exported_by_us(name) && is_preemptible()
        };
        let mut wanted = WantedFunctions::of(&all, is_seen)?;
        let names = match kind {
            Kind::Static => {
                static_program::add(&all, &mut wanted);
                static_program::names_of(&all)
            }
            _ => Vec::new(),
        };
        let mut elf_header = [0; ELF_HEADER_BYTES];
        file.read_exact_at(&mut elf_header, 0).ok()?;
        let content = ReadCache::new(ForeignFile::of(file).ok()?);
        let elf = ElfFile64::<LittleEndian, _>::parse(&content).ok()?;
        let headers = elf.elf_program_headers();
        let is_code = |header: &&elf::ProgramHeader64<LittleEndian>| {
            header.p_type(LittleEndian) == elf::PT_LOAD && header.p_flags(LittleEndian).contains(elf::PF_X)
        };
        let code: Vec<Code<'_>> = headers
            .iter()
            .filter(is_code)
            .filter_map(|header| {
                let bytes = header.data(LittleEndian, &content).ok()?;
                Some(Code { svma: header.p_vaddr(LittleEndian), bytes })
            })
            .collect();
        let functions = &wanted.by_svma;
        let starts = OnceCell::new();
        let starts = || starts.get_or_init(|| starts_in(path, search));
        let (patches, unpatchable) = patches(&code, functions, &starts);
        let refused = || {
            unpatchable.iter().map(|(function, why)| (function.name.as_str(), function.meaning.call, *why))
        };
        let is_allocators = |call| !matches!(call, Call::Interposed | Call::Inner);
        Some(Image {
            path: path.to_owned(),
            allocator: wanted.allocator,
            static_start: is_static.then(|| static_program::refusal(&all, refused()).map_or(Ok(()), Err)),
            unseen: refused()
                .filter(|(_, call, _)| is_allocators(*call))
                .map(|(name, _, why)| (name, why.reason()))
                .chain(wanted.inlined.map(|allocator| (allocator, INLINED)))
                .map(|(function, reason)| Unseen { function: function.to_owned(), reason })
                .collect(),
            elf_header,
            patches,
            names,
        })
    }

    /// How many functions are patched.
    pub fn patch_count(&self) -> usize {
        self.patches.len()
    }
}

/// Where functions begin.
fn starts_in(path: &Path, search: &SearchPaths) -> BTreeSet<u64> {
    functions_of(path, search, |_, _| true).into_iter().map(|function| function.svma).collect()
}

/// Plans a patch for each function that lets itself be patched, and says of the others why not.
fn patches<'a, 'b>(
    code: &[Code<'_>],
    wanted: &'a BTreeMap<u64, Wanted>,
    starts: &impl Fn() -> &'b BTreeSet<u64>,
) -> (Vec<Patch>, Vec<(&'a Wanted, Unpatchable)>) {
    let moved = |svma: u64, function: &Wanted| {
        let rest = code.iter().find_map(|piece| piece.from(svma)).ok_or(Unpatchable::NoCode)?;
        displace::displace(rest, svma, function.bytes)
    };
    let mut outcomes: BTreeMap<u64, Result<Displaced, Unpatchable>> =
        wanted.iter().map(|(svma, function)| (*svma, moved(*svma, function))).collect();
    let beginnings: Vec<Beginning> = outcomes
        .iter()
        .filter_map(|(svma, outcome)| {
            let returns = !static_program::never_returns(&wanted.get(svma)?.name);
            Some(Beginning { entry: *svma, displaced: outcome.as_ref().ok()?.bytes, returns })
        })
        .collect();
    let around = |svma: u64| starts().range(..=svma).next_back().copied();
    let mut objections: FxHashMap<usize, Unpatchable> = callers::objections(code, &beginnings, around);
    // A function that begins within another's first instructions is entered there.
    for (index, beginning) in beginnings.iter().enumerate() {
        if starts().range(beginning.inner()).next().is_some() {
            objections.insert(index, Unpatchable::JumpedInto);
        }
    }
    for (index, objection) in objections {
        outcomes.insert(beginnings[index].entry, Err(objection));
    }
    let mut patches = Vec::new();
    let mut unpatchable = Vec::new();
    for (svma, outcome) in &outcomes {
        let Some(function) = wanted.get(svma) else { continue };
        match outcome {
            // Another name of a function that is seen itself.
            Ok(displaced) if is_seen_behind(displaced, function, wanted, &outcomes) => {}
            Ok(displaced) if patches.len() < PATCHES_MAX => {
                patches.push(patch(*svma, function.meaning, displaced, code))
            }
            Ok(_) => {}
            Err(why) => unpatchable.push((function, *why)),
        }
    }
    (patches, unpatchable)
}

/// Whether a function is a jump to one that is patched and that does the same.
fn is_seen_behind(
    displaced: &Displaced,
    function: &Wanted,
    wanted: &BTreeMap<u64, Wanted>,
    outcomes: &BTreeMap<u64, Result<Displaced, Unpatchable>>,
) -> bool {
    let Some(target) = displaced.leads_to else { return false };
    // One that is a jump itself may lead back.
    let is_patched =
        outcomes.get(&target).is_some_and(|outcome| matches!(outcome, Ok(to) if to.leads_to.is_none()));
    is_patched && wanted.get(&target).is_some_and(|behind| behind.meaning == function.meaning)
}

fn patch(svma: u64, meaning: Meaning, displaced: &Displaced, code: &[Code<'_>]) -> Patch {
    let original = code.iter().find_map(|piece| piece.from(svma)).unwrap_or_default();
    let mut patch = Patch {
        entry_svma: svma,
        call: meaning.call as u32,
        arguments: meaning.arguments,
        displaced_bytes: displaced.bytes as u8,
        moved_bytes: displaced.moved.len() as u8,
        fixup_count: displaced.fixups.len() as u8,
        step_count: displaced.steps.len() as u8,
        spare: [0; 2],
        steps: [Default::default(); STEPS_MAX],
        displaced: [0; DISPLACED_BYTES_MAX],
        moved: [0; MOVED_BYTES_MAX],
        fixups: [Default::default(); FIXUPS_MAX],
    };
    patch.steps[..displaced.steps.len()].copy_from_slice(&displaced.steps);
    patch.displaced[..displaced.bytes].copy_from_slice(&original[..displaced.bytes]);
    patch.moved[..displaced.moved.len()].copy_from_slice(&displaced.moved);
    patch.fixups[..displaced.fixups.len()].copy_from_slice(&displaced.fixups);
    patch
}

#[cfg(test)]
#[path = "image_tests.rs"]
mod tests;
