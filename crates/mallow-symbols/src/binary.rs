//! One module with its files: the executable or library itself, its separate debug file, its supplementary file.
//!
//! It opens and checks them, and keeps them mapped; it never uses a file whose identity was not proved by a build id
//! or a checksum, because names from another build are worse than none.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use object::Object;

use crate::ModuleKey;
use crate::locate::{DebugServer, OtherRoots};
use crate::mapped::Mapped;
use crate::mini;
use crate::search::Search;
use mallow_base::{gnu_build_id, hex};

/// The files with the symbols of one module. All of them stay mapped while this lives; each lookup parses them.
#[derive(Default)]
pub(crate) struct Binary {
    /// The module's own file, if it is the one that ran.
    pub(crate) own: Option<Mapped>,
    /// The separate debug file, if one was needed and found.
    pub(crate) debug: Option<Mapped>,
    /// The file of DWARF shared by several debug files (dwz).
    pub(crate) supplementary: Option<Mapped>,
    /// The small symbol table that lies packed in the module's own file, if there is no better one.
    pub(crate) mini: Option<Vec<u8>>,
    /// Why something is missing, as a sentence with a cure.
    pub(crate) problem: Option<String>,
}

impl Binary {
    pub(crate) fn open(key: &ModuleKey, search: &Search<'_>) -> Self {
        let mut binary = Self::default();
        match open_own(key, search) {
            Ok(own) => binary.use_own(own, search),
            Err(problem) => {
                search.tell(&search.rooted(Path::new(own_path(key))), &problem.outcome());
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

    fn use_own(&mut self, own: Mapped, search: &Search<'_>) {
        let Ok(file) = object::File::parse(&*own) else { return };
        if !has_debug_information(&file) {
            let build_id = build_id_of(&file).unwrap_or_default();
            search.tell(own.path(), "it ran, and has no debug information");
            self.debug = open_by_build_id(search, build_id)
                .or_else(|| open_by_debuglink(&own, &file, search))
                .or_else(|| open_of_server(search, build_id));
            if self.debug.is_none() {
                self.mini = mini::unpacked(&file, |outcome| search.tell(own.path(), outcome));
            }
        } else {
            search.tell(own.path(), "it ran, and has debug information: taken");
        }
        self.own = Some(own);
    }

    /// What its files store beside their holes.
    pub(crate) fn stored_bytes(&self) -> u64 {
        let files = [&self.own, &self.debug, &self.supplementary].into_iter().flatten();
        files.map(Mapped::stored_bytes).fold(0, u64::saturating_add)
    }

    /// The file that holds the DWARF, of whichever kind.
    pub(crate) fn with_dwarf(&self) -> Option<&Mapped> {
        [&self.own, &self.debug]
            .into_iter()
            .flatten()
            .find(|mapped| object::File::parse(&***mapped).is_ok_and(|file| has_debug_information(&file)))
    }

    fn find_supplementary(&mut self, search: &Search<'_>) {
        let Some(mapped) = self.with_dwarf() else { return };
        let Ok(file) = object::File::parse(&**mapped) else { return };
        let Ok(Some((link, build_id))) = file.gnu_debugaltlink() else { return };
        let places = search.by_altlink(&folders(mapped.path()), link, build_id);
        let found = places.iter().find_map(|place| open_if_build_id(search, place, build_id));
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
    /// In short, of the file.
    fn outcome(&self) -> String {
        match self {
            Self::Unreadable(error) => unread(error),
            Self::NotElf(_) => NOT_ELF.to_owned(),
            Self::OtherBuild(found) => another_build(found.as_deref()),
        }
    }

    fn sentence(&self, key: &ModuleKey, search: &Search<'_>) -> String {
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

/// Where a module's own file should lie. The kernel marks a file that was replaced while the program ran: only a build id can prove that the new file
/// under that name is the same.
pub(crate) fn own_path(key: &ModuleKey) -> &str {
    match key.path.strip_suffix(" (deleted)") {
        Some(replaced) if !key.build_id.is_empty() => replaced,
        _ => &key.path,
    }
}

/// Opens the module's own file and proves that it is the build that ran.
fn open_own(key: &ModuleKey, search: &Search<'_>) -> Result<Mapped, Unusable> {
    let path = own_path(key);
    let here = open_build(&search.rooted(Path::new(path)), &key.build_id);
    match here {
        Err(unusable) => open_elsewhere(Path::new(path), &key.build_id, search).ok_or(unusable),
        here => here,
    }
}

/// The file as somebody sees it whose root is another one. Nothing but a build id can tell that it is the one that ran.
fn open_elsewhere(path: &Path, build_id: &[u8], search: &Search<'_>) -> Option<Mapped> {
    let OtherRoots(files) = search.other_roots.filter(|_| !build_id.is_empty())?;
    let named = |file: &OwnedFd| PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let files = files(path);
    if !files.is_empty() {
        search.depends_on_others();
    }
    let found = files.iter().find_map(|file| open_build(&named(file), build_id).ok());
    if found.is_some() {
        search.tell(path, "as the program saw it: taken");
    }
    found
}

fn open_build(path: &Path, build_id: &[u8]) -> Result<Mapped, Unusable> {
    let mapped = Mapped::open(path).map_err(Unusable::Unreadable)?;
    let found = object::File::parse(&*mapped).map(|file| build_id_of(&file).map(<[u8]>::to_vec));
    let found = found.map_err(Unusable::NotElf)?;
    if build_id.is_empty() || found.as_deref() == Some(build_id) {
        Ok(mapped)
    } else {
        Err(Unusable::OtherBuild(found.map(|id| hex(&id))))
    }
}

const NOT_ELF: &str = "it is not a whole ELF file";
const TAKEN: &str = "taken";

fn unread(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "it is not there".to_owned(),
        _ => format!("it cannot be read: {error}"),
    }
}

fn another_build(build_id: Option<&str>) -> String {
    format!("it is another build: its build id is {}", build_id.unwrap_or("missing"))
}

fn open_by_build_id(search: &Search<'_>, build_id: &[u8]) -> Option<Mapped> {
    search.by_build_id(build_id).iter().find_map(|place| open_if_build_id(search, place, build_id))
}

fn open_of_server(search: &Search<'_>, build_id: &[u8]) -> Option<Mapped> {
    let DebugServer(ask) = search.server.filter(|_| !build_id.is_empty())?;
    let Some(place) = ask(build_id) else {
        search.depends_on_others();
        search.tell(Path::new(&hex(build_id)), "no server of DEBUGINFOD_URLS has it");
        return None;
    };
    open_if_build_id(search, &place, build_id)
}

/// The file, if it fits; whoever wants to know is told why it does not.
fn open_if(
    search: &Search<'_>,
    place: &Path,
    fits: impl FnOnce(&Mapped) -> Result<(), String>,
) -> Option<Mapped> {
    let opened = Mapped::open(place).map_err(|error| unread(&error));
    let fitting = opened.and_then(|mapped| fits(&mapped).map(|()| mapped));
    search.tell(place, fitting.as_ref().map_or_else(String::as_str, |_| TAKEN));
    fitting.ok()
}

fn open_if_build_id(search: &Search<'_>, place: &Path, build_id: &[u8]) -> Option<Mapped> {
    open_if(search, place, |mapped| {
        let file = object::File::parse(&**mapped).map_err(|_| NOT_ELF)?;
        let found = build_id_of(&file);
        if found == Some(build_id) { Ok(()) } else { Err(another_build(found.map(hex).as_deref())) }
    })
}

fn open_by_debuglink(own: &Mapped, file: &object::File<'_>, search: &Search<'_>) -> Option<Mapped> {
    let (link, checksum) = file.gnu_debuglink().ok().flatten()?;
    let places = search.by_debuglink(&folders(own.path()), link);
    let other = || "its checksum is not the one that the program names".to_owned();
    let fits = |mapped: &Mapped| if crc32fast::hash(mapped) == checksum { Ok(()) } else { Err(other()) };
    places.iter().find_map(|place| open_if(search, place, fits))
}

/// The folder of a file as it was named, and the one where it really lies.
fn folders(path: &Path) -> Vec<PathBuf> {
    let named = path.parent().map(Path::to_owned);
    let real = path.canonicalize().ok().and_then(|real| Some(real.parent()?.to_owned()));
    let mut folders: Vec<_> = [named, real].into_iter().flatten().collect();
    folders.dedup();
    folders
}

/// The build id of a file, which is the first note of its section. Linkers call that section so, or put it among the first of notes; to go through all notes of
/// all sections of a file can take for ever.
pub(crate) fn build_id_of<'a>(file: &object::File<'a>) -> Option<&'a [u8]> {
    use object::ObjectSection;
    const SECTIONS_MAX: usize = 64;
    let in_section = |section: object::Section<'a, '_>| section.data().ok().and_then(gnu_build_id);
    file.section_by_name(".note.gnu.build-id").and_then(in_section).or_else(|| {
        let notes = file.sections().filter(|section| section.kind() == object::SectionKind::Note);
        notes.take(SECTIONS_MAX).find_map(in_section)
    })
}

/// Stripping leaves the section's name in some files, and debug files keep all names: only contents count.
pub(crate) fn has_debug_information(file: &object::File<'_>) -> bool {
    use object::ObjectSection;
    file.section_by_name(".debug_info")
        .and_then(|section| section.compressed_data().ok())
        .is_some_and(|section| !section.data.is_empty())
}
