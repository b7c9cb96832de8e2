//! Paths of source files in reports that a terminal, an editor or a person can open.
//!
//! A compiler stores the path of a file. If the file still exists below the current folder, its path relative to that
//! folder is shown, and on a terminal that supports it the place is a link. Whether a file exists is checked once.

use crate::terminal;
use mallow_view::{name_sources_by, telling_path};
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use supports_hyperlinks::Stream;

/// The files that were shown.
#[derive(Debug, Default)]
struct SourceFiles {
    /// Paths relative to the current folder, by the path that a compiler stored.
    names: BTreeMap<String, Option<String>>,
    /// Files, by the text that is shown; `None` if it may be one of several.
    files: BTreeMap<String, Option<PathBuf>>,
}

static KNOWN: Mutex<SourceFiles> = Mutex::new(SourceFiles { names: BTreeMap::new(), files: BTreeMap::new() });

/// The current folder, as the system and as the shell name it: compilers store either.
static FOLDERS: OnceLock<Vec<PathBuf>> = OnceLock::new();

/// From now on, relative paths are shown.
pub(crate) fn show_from_here() {
    name_sources_by(named);
}

/// Returns the current folder. It is looked up when the first path is shown: most commands show none.
fn folders() -> &'static [PathBuf] {
    FOLDERS.get_or_init(|| {
        let here = std::env::current_dir().ok().filter(|here| here.parent().is_some());
        let called = std::env::var_os("PWD").map(PathBuf::from).filter(|called| called.is_absolute());
        let called =
            called.filter(|called| called.canonicalize().ok() == here && Some(called) != here.as_ref());
        here.into_iter().chain(called).collect()
    })
}

fn named(path: &str) -> Option<String> {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(name) = known.names.get(path) {
        return name.clone();
    }
    let name = from_here(path, folders());
    let file = match (&name, folders().first()) {
        (Some(name), Some(here)) => Some(here.join(name)),
        // A trace from elsewhere has nothing looked at that it names.
        _ => Some(PathBuf::from(path))
            .filter(|file| mallow_query::are_all_traces_believed() && file.is_absolute() && file.is_file()),
    };
    for shown in [name.as_deref(), Some(telling_path(path))].into_iter().flatten() {
        let of_it = known.files.entry(shown.to_owned()).or_insert_with(|| file.clone());
        if *of_it != file {
            *of_it = None;
        }
    }
    known.names.insert(path.to_owned(), name.clone());
    name
}

/// Returns the path of a file relative to one of the folders, which are all names of the current one.
fn from_here(path: &str, folders: &[PathBuf]) -> Option<String> {
    let path = Path::new(path);
    let below = folders.iter().find_map(|folder| path.strip_prefix(folder).ok());
    let below = below.or_else(|| path.is_relative().then_some(path))?;
    // First: what lies elsewhere is not even looked for.
    let is_below = below.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    let is_there = is_below && folders.first().is_some_and(|here| here.join(below).is_file());
    is_there.then_some(below)?.to_str().map(str::to_owned)
}

/// Returns a page with its places as links, if stdout supports them.
pub(crate) fn linked(page: &str) -> String {
    linked_if(terminal::has_links(Stream::Stdout, &std::io::stdout()), page)
}

/// Returns the same for stderr.
pub(crate) fn linked_on_stderr(page: &str) -> String {
    linked_if(terminal::has_links(Stream::Stderr, &std::io::stderr()), page)
}

fn linked_if(is_wanted: bool, page: &str) -> String {
    if !is_wanted {
        return page.to_owned();
    }
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    page.split_inclusive('\n').map(|line| with_links(line, &known.files)).collect()
}

/// Returns a line of a page in which `(src/reader.rs:12)` is a link to that file.
fn with_links(line: &str, files: &BTreeMap<String, Option<PathBuf>>) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some(open) = rest.find('(') {
        let (before, behind) = rest.split_at(open + 1);
        text.push_str(before);
        rest = behind;
        let Some(close) = behind.find(')') else { break };
        let place = &behind[..close];
        let (file, number) = match place.rsplit_once(':') {
            Some((file, number)) if number.parse::<u32>().is_ok() => (file, Some(number)),
            _ => (place, None),
        };
        if let Some(Some(path)) = files.get(file) {
            let number = number.map(|number| format!("#{number}")).unwrap_or_default();
            text += &format!(
                "\x1b]8;;file://{}{number}\x1b\\{place}\x1b]8;;\x1b\\",
                in_url(path.as_os_str().as_bytes(), b"/+,=@")
            );
            rest = &behind[close..];
        }
    }
    text + rest
}

/// Percent-encodes a text for a URL; `also` are bytes that stay unchanged, in addition to letters, digits and `-._~`.
pub(crate) fn in_url(text: &[u8], also: &[u8]) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte) || also.contains(byte);
    let written =
        |byte: &u8| if is_plain(byte) { char::from(*byte).to_string() } else { format!("%{byte:02X}") };
    text.iter().map(written).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_below_the_current_folder_has_its_path_from_there() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().canonicalize().unwrap();
        std::fs::create_dir(here.join("src")).unwrap();
        std::fs::write(here.join("src/a.c"), "").unwrap();
        let folders = [here.clone(), PathBuf::from("/called/otherwise")];
        let shown = |path: &str| from_here(path, &folders);
        let below = |name: &str| here.join(name).to_str().unwrap().to_owned();
        assert_eq!(shown(&below("src/a.c")).as_deref(), Some("src/a.c"));
        assert_eq!(shown("/called/otherwise/src/a.c").as_deref(), Some("src/a.c"));
        assert_eq!(shown("src/a.c").as_deref(), Some("src/a.c"));
        for other in
            ["/elsewhere/src/a.c", &below("src/gone.c"), "gone.c", &below("src"), "src/../src/a.c", ""]
        {
            assert_eq!(shown(other), None, "{other}");
        }
    }

    #[test]
    fn places_that_are_known_become_links() {
        let files = BTreeMap::from([
            ("src/a.c".to_owned(), Some(PathBuf::from("/w/my app/src/a.c"))),
            ("mod.rs".to_owned(), None),
        ]);
        let line = "  load(x) (src/a.c:81) from main (mod.rs:3) × 2 (b.c:1)\n";
        let link = "\x1b]8;;file:///w/my%20app/src/a.c#81\x1b\\src/a.c:81\x1b]8;;\x1b\\";
        assert_eq!(
            with_links(line, &files),
            format!("  load(x) ({link}) from main (mod.rs:3) × 2 (b.c:1)\n")
        );
        assert_eq!(with_links("open (src/a.c", &files), "open (src/a.c");
    }
}
