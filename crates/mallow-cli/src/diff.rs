//! `mallow diff`: what changed between two profiles, and whether that is within limits.

mod compat;
pub(crate) mod request;

use crate::{exit_code, output, terminal};
use mallow_json::diff::DiffJson;
use mallow_profile::Profile;
use mallow_query::{Failure, ProfileFile, choose};
use mallow_view::Measure;
use mallow_view::diff::{Comparison, DiffOptions, DiffReport, Verdict};
use request::{Diff, DiffForm};
use std::path::Path;

/// Compares two profiles.
pub(crate) fn run(request: &Diff) -> Result<u8, Failure> {
    if let Some(compat) = request.compat {
        return compat::run(compat, &request.before, &request.after);
    }
    let before = ProfileFile::open(&request.before, request.attribution)?;
    let after = ProfileFile::open(&request.after, request.attribution)?;
    warn(&before, &after);
    let files = [(request.before.as_path(), &before.profile), (request.after.as_path(), &after.profile)];
    let by = choose(request.by, Measure::ALL, &files)?;
    let options = DiffOptions { by, ..request.options.clone() };
    let comparison = Comparison::of(&before.profile, &after.profile, &options);
    let mut verdicts = verdicts(request, &comparison, &files)?;
    if !(before.complete && after.complete) {
        verdicts.iter_mut().for_each(|verdict| verdict.is_broken = None);
    }
    let (sides, per, limit) = ([before.side(), after.side()], request.per, request.limit);
    let comparison = &comparison;
    let diff = DiffReport { sides, options: &options, per, limit, comparison, verdicts: &verdicts };
    write(&diff, request.form)?;
    Ok(told(&verdicts, request))
}

/// Says which limits are broken, or cannot be judged, and returns the exit code.
fn told(verdicts: &[Verdict], request: &Diff) -> u8 {
    let mut code = exit_code::FINE;
    for verdict in verdicts {
        let sentence = match verdict.is_broken {
            Some(false) => continue,
            Some(true) => mallow_text::diff::broken(verdict, request.per),
            None => mallow_text::diff::undecided(verdict),
        };
        output::tell(&format!("mallow: {sentence}\n"));
        code = if verdict.is_broken.is_some() { exit_code::FAILED } else { exit_code::INCONCLUSIVE };
    }
    code
}

fn warn(before: &ProfileFile, after: &ProfileFile) {
    for ProfileFile { path, warnings, .. } in [before, after] {
        let sentences: Vec<String> =
            warnings.iter().map(|sentence| format!("{}: {sentence}", path.display())).collect();
        output::warn(&sentences);
    }
    let versions =
        [before, after].map(|side| side.profile.recording.counting_version).map(|version| version.max(1));
    if versions[0] != versions[1] {
        let sentence = format!(
            "the two were counted by different rules, version {} and {}; figures may differ for that reason.",
            versions[0], versions[1]
        );
        output::warn(&[sentence]);
    }
}

fn write(diff: &DiffReport<'_>, form: DiffForm) -> Result<(), Failure> {
    let text = match form {
        DiffForm::Text => mallow_text::diff::text(diff, terminal::style(&std::io::stdout())),
        DiffForm::Markdown => mallow_text::diff::markdown(diff),
        DiffForm::Json => {
            let document = DiffJson::of(diff);
            return output::to_stdout(|out| {
                serde_json::to_writer(&mut *out, &document)?;
                out.write_all(b"\n")
            });
        }
    };
    output::to_stdout(|out| out.write_all(text.as_bytes()))
}

/// Every limit held against the totals. A limit on what a file does not tell cannot be kept or broken.
fn verdicts(
    request: &Diff,
    comparison: &Comparison<'_>,
    files: &[(&Path, &Profile)],
) -> Result<Vec<Verdict>, Failure> {
    let judge = |limit: &mallow_view::diff::Limit| {
        choose(Some(limit.measure), [], files)?;
        limit
            .judge(comparison, request.per)
            .ok_or_else(|| Failure::new(format!("{limit} cannot be judged: it is in no total.")))
    };
    request.fail_on.iter().map(judge).collect()
}
