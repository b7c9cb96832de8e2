//! The destinations of a soak's result.

use super::script::Script;
use crate::args::{LowSoakFormat, LowSoakOutputs};
use crate::output;
use mallow_json::soak::SoakJson;
use mallow_profile::Profile;
use mallow_query::Failure;
use mallow_text::soak::text::Page;
use mallow_text::soak::{drawing, junit, warp};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Refuses, before the server runs, outputs that could not be written after it.
pub(crate) fn check(shown: &LowSoakOutputs) -> Result<(), Failure> {
    let pair = shown.output.as_deref().map(pair);
    let journal = shown.samples.iter().filter(|_| !shown.resume);
    for path in pair.iter().flat_map(|(before, after)| [before, after]).chain(journal) {
        if path.exists() && !shown.force {
            return Err(Failure::new(format!("{} exists; use --force to overwrite it.", path.display())));
        }
    }
    if let Some(path) = shown.samples.as_ref().filter(|path| shown.force && !shown.resume && path.exists()) {
        std::fs::remove_file(path).map_err(|error| Failure::writing(path, &error))?;
    }
    let written = [&shown.svg, &shown.markdown, &shown.junit].into_iter().flatten();
    for path in written.chain(pair.iter().flat_map(|(before, after)| [before, after])) {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let is_own =
            shown.output.as_deref().is_some_and(|prefix| is_folder(prefix) && path.starts_with(prefix));
        if let Some(folder) = folder.filter(|folder| !folder.is_dir() && !is_own) {
            return Err(Failure::new(format!(
                "cannot write {}: there is no folder {}.",
                path.display(),
                folder.display()
            )));
        }
    }
    Ok(())
}

/// Returns the paths of the two profiles: in a folder, or after a prefix.
pub(crate) fn pair(prefix: &Path) -> (PathBuf, PathBuf) {
    if is_folder(prefix) {
        return (prefix.join("before.mallow"), prefix.join("after.mallow"));
    }
    let behind = |end: &str| {
        let mut name = prefix.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    (behind(".before.mallow"), behind(".after.mallow"))
}

fn is_folder(prefix: &Path) -> bool {
    prefix.is_dir() || prefix.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// Writes the pair of profiles.
pub(crate) fn write_pair(
    shown: &LowSoakOutputs,
    edges: Option<&(Profile, Profile)>,
) -> Result<Option<(PathBuf, PathBuf)>, Failure> {
    let Some(prefix) = &shown.output else { return Ok(None) };
    let Some((before, after)) = edges else {
        output::warn(&["no profiles were written: the server's heap was not recorded".to_owned()]);
        return Ok(None);
    };
    let paths = pair(prefix);
    if is_folder(prefix) {
        std::fs::create_dir_all(prefix).map_err(|error| Failure::writing(prefix, &error))?;
    }
    for (path, profile) in [(&paths.0, before), (&paths.1, after)] {
        let file = output::create(path, shown.force)?;
        mallow_files::mark_as_made_here(&file);
        let mut out = BufWriter::new(file);
        mallow_trace::write_profile(profile, "soak", &mut out)
            .and_then(|()| out.flush())
            .map_err(|error| Failure::writing(path, &error))?;
    }
    Ok(Some(paths))
}

/// Writes all other requested outputs; the report comes last, so that it is read first.
pub(crate) fn write(
    shown: &LowSoakOutputs,
    page: &Page<'_>,
    settings: Option<&Script>,
) -> Result<(), Failure> {
    let write = |path: &Option<PathBuf>, text: &dyn Fn() -> Result<String, Failure>| match path {
        Some(path) if path.as_os_str() == mallow_files::STREAM => {
            let text = text()?;
            output::to_stdout(|out| out.write_all(text.as_bytes()))
        }
        Some(path) => {
            mallow_files::replace(path, text()?.as_bytes()).map_err(|error| Failure::writing(path, &error))
        }
        None => Ok(()),
    };
    write(&shown.svg, &|| Ok(drawing::svg(page.report)))?;
    write(&shown.markdown, &|| Ok(page.markdown()))?;
    write(&shown.junit, &|| Ok(junit::document(page)?))?;
    let format = if shown.json { LowSoakFormat::Json } else { shown.format };
    let text = match format {
        LowSoakFormat::Text => page.text(crate::terminal::style(&std::io::stdout())),
        LowSoakFormat::Warp => warp::text(page.report, settings),
        LowSoakFormat::Json => serde_json::to_string_pretty(&SoakJson::of(page))? + "\n",
        LowSoakFormat::Markdown => page.markdown(),
    };
    output::to_stdout(|out| out.write_all(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_or_a_prefix() {
        let folder = tempfile::tempdir().unwrap();
        let (before, after) = pair(folder.path());
        assert_eq!(
            (before, after),
            (folder.path().join("before.mallow"), folder.path().join("after.mallow"))
        );
        let (before, after) = pair(Path::new("run/one"));
        assert_eq!((before, after), ("run/one.before.mallow".into(), "run/one.after.mallow".into()));
        assert_eq!(pair(Path::new("new/")).0, PathBuf::from("new/before.mallow"));
    }
}
