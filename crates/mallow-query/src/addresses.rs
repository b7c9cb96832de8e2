//! Names for a profile that has addresses only: a trace that was cut short, and heap dumps of allocators, which never have names.
//!
//! The files that have them are opened where the profile was recorded here, or where whoever asks says so.

use crate::named_files::may_be_opened;
use crate::names::Names;
use mallow_formats::Format;
use mallow_profile::Profile;
use std::path::Path;

/// Looks names up for what has none, or says why not. Returns warnings.
pub(crate) fn name_addresses(
    path: &Path,
    format: Format,
    profile: &mut Profile,
    is_complete: bool,
) -> Vec<String> {
    let may_lack_names = match format {
        Format::Mallow => !is_complete,
        format => format.may_lack_names(),
    };
    // Whether a trace is believed has to be known for its suppressions, too.
    let is_believed = (may_lack_names || format == Format::Mallow) && may_be_opened(path);
    if !may_lack_names || !Names::are_missing(&profile.stacks) {
        return Vec::new();
    }
    let shown = path.display();
    match format {
        _ if is_believed => {
            let mut names = Names::new();
            names.complete(&mut profile.stacks);
            let mut warnings = names.warnings();
            warnings.extend(changed_since(path, profile));
            warnings
        }
        Format::Mallow => vec![format!(
            "{shown} was not recorded here, so the files that it names are not opened for the names that it lacks; --open-files does so"
        )],
        _ => vec![format!(
            "{shown} has addresses instead of names; --open-files looks the names up in the files that it says the addresses are of"
        )],
    }
}

/// Returns a warning about files that were written after a profile that does not say which build of them it means.
fn changed_since(path: &Path, profile: &Profile) -> Option<String> {
    let written = |path: &Path| std::fs::metadata(path).and_then(|found| found.modified()).ok();
    let profiled = written(path)?;
    let modules = profile.stacks.modules.iter().filter(|module| module.build_id.is_empty());
    let changed: Vec<&str> = modules
        .map(|module| module.path.as_str())
        .filter(|module| written(Path::new(module)).is_some_and(|time| time > profiled))
        .collect();
    (!changed.is_empty()).then(|| {
        format!(
            "{} was written after {}, so names may be of another build",
            changed.join(", "),
            path.display()
        )
    })
}
