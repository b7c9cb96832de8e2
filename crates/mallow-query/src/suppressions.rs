//! Suppressions of leaks: from files, and from the executable that was recorded.

use crate::failure::{Failure, reason};
use crate::named_files::may_be_opened;
use mallow_profile::{Profile, Suppression};
use mallow_symbols::embedded_suppressions;
use mallow_view::AppliedSuppressions;
use std::path::{Path, PathBuf};

/// The sources of suppressions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SuppressionRequest {
    /// Files of them.
    pub files: Vec<PathBuf>,
    /// Whether those in the recorded executable are used too, if the trace was recorded here.
    pub embedded: bool,
    /// Whether those that are built in are used too.
    pub built_in: bool,
}

/// Reads the requested suppressions, and removes the suppressed leaks from the profile. A file's suppressions that
/// match nothing, and embedded ones that cannot be read, are warnings.
pub(crate) fn apply(
    profile: &mut Profile,
    file: &Path,
    asked: &SuppressionRequest,
    warnings: &mut Vec<String>,
) -> Result<AppliedSuppressions, Failure> {
    let mut applied = AppliedSuppressions::default();
    for path in &asked.files {
        let shown = path.display();
        let text = mallow_files::open_input(path)
            .and_then(std::io::read_to_string)
            .map_err(|error| Failure::new(format!("cannot read {shown}: {}.", reason(&error))))?;
        let (found, wrong) = Suppression::parse_lines(&text);
        match wrong.first() {
            Some(error) if found.is_empty() => {
                return Err(Failure::new(format!("cannot use {shown}: {error}.")));
            }
            _ => warnings.extend(wrong.iter().map(|error| format!("{shown}: {error}; it is passed over"))),
        }
        applied.add(path.display().to_string(), false, found);
    }
    if asked.embedded && !profile.recording.suppressions.is_empty() {
        let (found, wrong) = Suppression::parse_lines(&profile.recording.suppressions.join("\n"));
        let shown = file.display();
        warnings
            .extend(wrong.iter().map(|error| format!("suppressions in {shown}: {error}; it is passed over")));
        applied.add(shown.to_string(), true, found);
    }
    if asked.embedded && may_be_opened(file) {
        add_embedded(&mut applied, profile, warnings);
    }
    if asked.built_in {
        applied.add_known();
    }
    applied.take(profile, warnings);
    Ok(applied)
}

fn add_embedded(applied: &mut AppliedSuppressions, profile: &Profile, warnings: &mut Vec<String>) {
    for module in &profile.stacks.modules {
        let path = &module.path;
        let in_the_way = match embedded_suppressions(Path::new(path), &module.build_id) {
            Ok(None) => continue,
            Ok(Some(text)) => match Suppression::parse(&text) {
                Ok(found) => {
                    applied.add(path.clone(), true, found);
                    continue;
                }
                Err(error) => format!("{error} of its __lsan_default_suppressions"),
            },
            Err(error) => error.to_string(),
        };
        warnings.push(format!(
            "{path} has suppressions of its own that were not used: {in_the_way}. Give them with --suppressions FILE."
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallow_samples::profile as sample;

    fn file(text: &str) -> (tempfile::TempDir, SuppressionRequest) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("known.txt");
        std::fs::write(&path, text).unwrap();
        (folder, SuppressionRequest { files: vec![path], embedded: true, built_in: false })
    }

    #[test]
    fn a_file_takes_leaks_and_tells_what_it_did_not_meet() {
        let (_folder, asked) = file("# known\nleak:load_field\nleak:nobody\nleak:libx\n");
        let (mut profile, mut warnings) = (sample::leaky_c(), Vec::new());
        let applied = apply(&mut profile, Path::new("trace"), &asked, &mut warnings).unwrap();
        assert_eq!((applied.taken.len(), applied.taken[0].by), (1, 0));
        assert_eq!(applied.taken[0].site.totals.leaked_bytes, 112);
        assert!(applied.source(2).unwrap().path.ends_with("known.txt"));
        assert_eq!(warnings.len(), 1);
        let ending =
            "known.txt suppresses nothing in this run with leak:nobody (line 3), leak:libx (line 4).";
        assert!(warnings[0].ends_with(ending), "{}", warnings[0]);
        assert_eq!(profile.totals().leaked_blocks, 37_457);
    }

    #[test]
    fn those_in_heaptracks_file_take_leaks_unless_nobody_wants_them() {
        for (embedded, taken) in [(true, 1), (false, 0)] {
            let (mut profile, mut warnings) = (sample::leaky_c(), Vec::new());
            profile.recording.suppressions = vec!["leak:load_field".into(), "nonsense".into()];
            let asked = SuppressionRequest { files: Vec::new(), embedded, built_in: false };
            let applied = apply(&mut profile, Path::new("/nowhere/app.zst"), &asked, &mut warnings).unwrap();
            assert_eq!(applied.taken.len(), taken);
            let told = warnings.iter().any(|warning| {
                warning.starts_with("suppressions in /nowhere/app.zst: line 2 ")
                    && warning.ends_with("; it is passed over")
            });
            assert_eq!(told, embedded, "{warnings:?}");
        }
    }

    #[test]
    fn a_file_that_is_none_is_a_sentence() {
        let (_folder, asked) = file("leak:a\nrace:b\n");
        let mut warnings = Vec::new();
        apply(&mut sample::leaky_c(), Path::new("trace"), &asked, &mut warnings).unwrap();
        let ending = "known.txt: line 2 suppresses what another sanitizer finds; only lines of `leak:PATTERN` suppress leaks; it is passed over";
        assert!(warnings[0].ends_with(ending), "{}", warnings[0]);
        let (_folder, asked) = file("# none\nrace:b\n");
        let failure = apply(&mut sample::leaky_c(), Path::new("trace"), &asked, &mut Vec::new()).unwrap_err();
        let ending = "known.txt: line 2 suppresses what another sanitizer finds; only lines of `leak:PATTERN` \
                      suppress leaks.";
        assert!(failure.sentence().ends_with(ending), "{}", failure.sentence());
        let asked =
            SuppressionRequest { files: vec!["/does/not/exist".into()], ..SuppressionRequest::default() };
        let failure = apply(&mut sample::leaky_c(), Path::new("trace"), &asked, &mut Vec::new()).unwrap_err();
        assert!(failure.sentence().starts_with("cannot read /does/not/exist: "), "{}", failure.sentence());
    }
}
