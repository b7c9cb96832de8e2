//! One module with its files: the executable or library itself, its separate debug file, its supplementary file.
//!
//! It opens and checks them, and keeps them mapped; it never uses a file whose identity was not proved by a build id
//! or a checksum, because names from another build are worse than none.

use std::path::{Path, PathBuf};

use object::Object;

use crate::ModuleKey;
use crate::locate::{DebugServer, SearchPaths};
use crate::mapped::Mapped;
use mallow_base::hex;

/// The files with the symbols of one module. All of them stay mapped while this lives; each lookup parses them.
#[derive(Default)]
pub(crate) struct Binary {
    /// The module's own file, if it is the one that ran.
    pub(crate) own: Option<Mapped>,
    /// The separate debug file, if one was needed and found.
    pub(crate) debug: Option<Mapped>,
    /// The file of DWARF shared by several debug files (dwz).
    pub(crate) supplementary: Option<Mapped>,
    /// Why something is missing, as a sentence with a cure.
    pub(crate) problem: Option<String>,
}

impl Binary {
    pub(crate) fn open(key: &ModuleKey, search: &SearchPaths) -> Self {
        let mut binary = Self::default();
        match open_own(key, search) {
            Ok(own) => binary.use_own(own, search),
            Err(problem) => {
                binary.debug =
                    open_by_build_id(search, &key.build_id).or_else(|| open_of_server(search, &key.build_id));
                if binary.debug.is_none() {
                    binary.problem = Some(problem.sentence(key, search));
                }
            }
        }
        binary.find_supplementary(search);
        binary
    }

    /// The module whose files made a parser panic: nothing of it is used.
    pub(crate) fn damaged(key: &ModuleKey) -> Self {
        let problem = format!(
            "{} or its debug file is damaged, so its frames are addresses. Install or build it again.",
            key.path
        );
        Self { problem: Some(problem), ..Self::default() }
    }

    fn use_own(&mut self, own: Mapped, search: &SearchPaths) {
        let Ok(file) = object::File::parse(&*own) else { return };
        if !has_debug_information(&file) {
            let build_id = file.build_id().ok().flatten().unwrap_or_default();
            self.debug = open_by_build_id(search, build_id)
                .or_else(|| open_by_debuglink(&own, &file, search))
                .or_else(|| open_of_server(search, build_id));
        }
        self.own = Some(own);
    }

    /// Returns which files it consists of: cached symbols are valid while that is the same. The problem is part of
    /// it, because it says why others are not used.
    pub(crate) fn identity(&self, key: &ModuleKey) -> String {
        let files = [&self.own, &self.debug, &self.supplementary].map(|file| {
            file.as_ref().map_or_else(|| "none".to_owned(), |mapped| mapped.identity().to_owned())
        });
        let problem = self.problem.as_deref().unwrap_or_default();
        format!("{}\n{}\n{}\n{problem}", key.path, hex(&key.build_id), files.join("\n"))
    }

    /// The file that holds the DWARF, of whichever kind.
    pub(crate) fn with_dwarf(&self) -> Option<&Mapped> {
        [&self.own, &self.debug]
            .into_iter()
            .flatten()
            .find(|mapped| object::File::parse(&***mapped).is_ok_and(|file| has_debug_information(&file)))
    }

    fn find_supplementary(&mut self, search: &SearchPaths) {
        let Some(mapped) = self.with_dwarf() else { return };
        let Ok(file) = object::File::parse(&**mapped) else { return };
        let Ok(Some((link, build_id))) = file.gnu_debugaltlink() else { return };
        let places = search.by_altlink(&folders(mapped.path()), link, build_id);
        let found = places.iter().find_map(|place| open_if_build_id(place, build_id));
        let found = found.or_else(|| open_of_server(search, build_id));
        if found.is_none() {
            self.problem = Some(format!(
                "{} needs the shared debug file {} (build id {}), which was not found; some of its names and lines \
                 are missing. Install the debug package again, or put that file under a debug folder.",
                mapped.path().display(),
                String::from_utf8_lossy(link),
                hex(build_id)
            ));
        }
        self.supplementary = found;
    }
}

/// Why a module's own file cannot be used.
enum Unusable {
    Unreadable(std::io::Error),
    NotElf(object::Error),
    OtherBuild(Option<String>),
}

impl Unusable {
    fn sentence(&self, key: &ModuleKey, search: &SearchPaths) -> String {
        let path = &key.path;
        let cure = match search.by_build_id(&key.build_id).first() {
            Some(place) => format!("put its debug file at {}", place.display()),
            None => "put the file that ran back".to_owned(),
        };
        match self {
            Self::Unreadable(error) => format!(
                "{path} cannot be read ({error}), so its frames are addresses. Put the file back, or {cure}."
            ),
            Self::NotElf(error) => format!(
                "{path} is not a whole ELF file ({error}), so its frames are addresses. Restore the file that ran, \
                 or {cure}."
            ),
            Self::OtherBuild(found) => format!(
                "{path} is not the build that ran: its build id is {}, recorded was {}. Its symbols were not used \
                 and its frames are addresses. Restore the file that ran, or {cure}.",
                found.as_deref().unwrap_or("missing"),
                hex(&key.build_id)
            ),
        }
    }
}

/// Opens the module's own file and proves that it is the build that ran.
fn open_own(key: &ModuleKey, search: &SearchPaths) -> Result<Mapped, Unusable> {
    // The kernel marks a file that was replaced while the program ran. Only a build id can prove that the new file
    // under that name is the same.
    let path = match key.path.strip_suffix(" (deleted)") {
        Some(replaced) if !key.build_id.is_empty() => replaced,
        _ => &key.path,
    };
    let mapped = Mapped::open(&search.rooted(Path::new(path))).map_err(Unusable::Unreadable)?;
    let found = object::File::parse(&*mapped).and_then(|file| {
        let build_id = file.build_id()?;
        Ok(build_id.map(<[u8]>::to_vec))
    });
    let found = found.map_err(Unusable::NotElf)?;
    if key.build_id.is_empty() || found.as_deref() == Some(&key.build_id) {
        Ok(mapped)
    } else {
        Err(Unusable::OtherBuild(found.map(|id| hex(&id))))
    }
}

fn open_by_build_id(search: &SearchPaths, build_id: &[u8]) -> Option<Mapped> {
    search.by_build_id(build_id).iter().find_map(|place| open_if_build_id(place, build_id))
}

fn open_of_server(search: &SearchPaths, build_id: &[u8]) -> Option<Mapped> {
    let DebugServer(ask) = search.server.filter(|_| !build_id.is_empty())?;
    open_if_build_id(&ask(build_id)?, build_id)
}

fn open_if_build_id(place: &Path, build_id: &[u8]) -> Option<Mapped> {
    let mapped = Mapped::open(place).ok()?;
    let file = object::File::parse(&*mapped).ok()?;
    let same = file.build_id().ok().flatten() == Some(build_id);
    same.then_some(mapped)
}

fn open_by_debuglink(own: &Mapped, file: &object::File<'_>, search: &SearchPaths) -> Option<Mapped> {
    let (link, checksum) = file.gnu_debuglink().ok().flatten()?;
    let places = search.by_debuglink(&folders(own.path()), link);
    places.iter().find_map(|place| {
        let mapped = Mapped::open(place).ok()?;
        (crc32fast::hash(&mapped) == checksum).then_some(mapped)
    })
}

/// The folder of a file as it was named, and the one where it really lies.
fn folders(path: &Path) -> Vec<PathBuf> {
    let named = path.parent().map(Path::to_owned);
    let real = path.canonicalize().ok().and_then(|real| Some(real.parent()?.to_owned()));
    let mut folders: Vec<_> = [named, real].into_iter().flatten().collect();
    folders.dedup();
    folders
}

/// Stripping leaves the section's name in some files, and debug files keep all names: only contents count.
pub(crate) fn has_debug_information(file: &object::File<'_>) -> bool {
    use object::ObjectSection;
    file.section_by_name(".debug_info")
        .and_then(|section| section.compressed_data().ok())
        .is_some_and(|section| !section.data.is_empty())
}
