//! Which metric is shown: one that each of the files knows.

use crate::failure::Failure;
use mallow_profile::Profile;
use mallow_view::Measure;
use std::path::Path;

/// Returns the requested metric, or the first of `preferred`, if every file has it.
///
/// # Errors
/// A file does not have it, or there is none that all have.
pub fn choose(
    asked: Option<Measure>,
    preferred: impl IntoIterator<Item = Measure>,
    files: &[(&Path, &Profile)],
) -> Result<Measure, Failure> {
    let ignorant = |measure: Measure| files.iter().find(|(_, profile)| !measure.is_known(&profile.known));
    if let Some(measure) = asked {
        return match ignorant(measure) {
            Some((path, profile)) => Err(does_not_tell(path, profile, measure)),
            None => Ok(measure),
        };
    }
    preferred.into_iter().find(|measure| ignorant(*measure).is_none()).ok_or_else(|| {
        let names: Vec<String> = files.iter().map(|(path, _)| path.display().to_string()).collect();
        let all = if names.len() > 1 { "all tell" } else { "tells by stack" };
        Failure::new(format!("there is no metric that {} {all}.", names.join(" and ")))
    })
}

/// Why a metric cannot be shown.
fn does_not_tell(path: &Path, profile: &Profile, measure: Measure) -> Failure {
    let known = Measure::ALL.iter().filter(|measure| measure.is_known(&profile.known));
    let words: Vec<&str> = known.map(|measure| measure.word()).collect();
    let knows = if words.is_empty() { String::from("nothing by stack") } else { words.join(", ") };
    Failure::new(format!("{} does not contain {}; it contains {knows}.", path.display(), measure.subject()))
}
