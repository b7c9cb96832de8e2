//! `mallow soak`: loads a server, and shows whether it leaks.

mod env_file;
mod limit;
mod outputs;
mod plan;
mod script;
mod targets;

use crate::args::LowSoak;
use crate::output;
use crate::words;
use mallow_evidence::SoakReport;
use mallow_json::soak::earlier;
use mallow_profile::Nameless;
use mallow_query::heap::HeapFile;
use mallow_query::{Failure, Names, reason};
use mallow_soak::{Server, SoakOptions, read_journal, soak};
use mallow_text::soak::live::Live;
use mallow_text::soak::sentence;
use mallow_text::soak::text::Page;
use mallow_view::heap::HeldRow;
use mallow_view::soak::{Side, compare, outcome};
use plan::{Plan, plan, rules};
use script::Script;
use std::fs::Permissions;
use std::io::IsTerminal;
use std::os::unix::fs::PermissionsExt;
use tempfile::TempDir;

/// Soaks a server, or judges the samples of another soak.
pub(crate) fn run(low: &LowSoak) -> Result<u8, Failure> {
    let before = match &low.limits.baseline {
        Some(path) => {
            let name = path.display().to_string();
            let text = mallow_files::open_input(path)
                .and_then(std::io::read_to_string)
                .map_err(|error| Failure::new(format!("cannot read {name}: {}.", reason(&error))))?;
            Some((earlier(&text, &name)?, name))
        }
        None => None,
    };
    if let Some(path) = &low.shown.read {
        let mut report = SoakReport::from_journal(read_journal(path)?, &rules(low)?);
        report.memory_limit_bytes = low.limits.memory_limit;
        return show(low, report, before, None);
    }
    outputs::check(&low.shown)?;
    // Deleted with this process, and only traversed: the server's user has a folder of its own in it.
    let temporary = temporary_folder()?;
    let variable = |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    let Plan { mut options, settings, notes } = plan(low, &variable)?;
    if options.snapshots.is_none() && !low.phases.no_heap_snapshots {
        options.snapshots = Some(temporary.path().to_owned());
    }
    for note in &notes {
        output::inform(&format!("mallow: {note}\n"));
    }
    let before = match &low.limits.against {
        Some(command) => Some(other(&options, command)?),
        None => before,
    };
    let report = soaked(&options)?;
    show(low, report, before, Some(&settings))
}

/// Soaks the older server in the same way.
fn other(options: &SoakOptions, command: &str) -> Result<(Side, String), Failure> {
    let Some(words) = words::of_command(command) else {
        return Err(Failure::new(
            "--against needs the command of the older server, with every quote closed.",
        ));
    };
    output::inform(&format!("mallow: first the older server, {command}\n"));
    let mut options = options.clone();
    options.server = Server::Command(words);
    options.snapshots = None;
    let report = soaked(&options)?;
    if report.conclusion.verdict == mallow_growth::Verdict::Invalid {
        let sentence = sentence::verdict(&report);
        return Err(Failure::new(format!("the older server gives nothing to compare with. {sentence}")));
    }
    output::inform("mallow: now the other one\n");
    Ok((Side::of(&report), command.to_owned()))
}

fn soaked(options: &SoakOptions) -> Result<SoakReport, Failure> {
    let stderr = std::io::stderr();
    let mut live = Live::new(crate::terminal::style(&stderr), stderr.is_terminal());
    let mut names = Names::new();
    let mut resolve = |module: &_, calls: &[u64]| names.of_calls(module, calls);
    let tell = |text: &str| {
        if !text.is_empty() {
            output::inform(text)
        }
    };
    let result = soak(options, &mut resolve, &mut |progress| tell(&live.text(&progress)));
    tell(&live.end());
    let mut report = result?;
    report.warnings.extend(names.nameless().iter().map(Nameless::sentence));
    Ok(report)
}

/// Compares, writes the requested outputs, and returns the exit code.
fn show(
    low: &LowSoak,
    mut report: SoakReport,
    before: Option<(Side, String)>,
    settings: Option<&Script>,
) -> Result<u8, Failure> {
    if let Some((before, name)) = before {
        let after = Side::of(&report);
        // Growth that the older server did not have counts even if it is small: half of the leak threshold is beyond noise.
        let least = rules(low)?.heap_per_request_min / 2.0;
        report.comparison = Some(compare(&before, &after, &name, least));
    }
    let profiles = outputs::write_pair(&low.shown, report.edges.as_ref())?;
    let held = held(&mut report);
    let page = Page {
        report: &report,
        held: &held,
        are_snapshots_kept: low.phases.heap_snapshots.is_some(),
        limit: low.shown.limit.unwrap_or(5),
        fail_on: &low.limits.fail_on,
        profiles: profiles.as_ref(),
    };
    outputs::write(&low.shown, &page, settings)?;
    Ok(outcome(&report, &low.limits.fail_on).exit_code())
}

/// Returns what grew on the managed heap, if snapshots were taken.
fn held(report: &mut SoakReport) -> Vec<HeldRow> {
    let Some(snapshots) = &report.snapshots else { return Vec::new() };
    let rows = HeapFile::open(&snapshots.before)
        .and_then(|before| before.held(&HeapFile::open(&snapshots.after)?))
        .map_err(|failure| failure.sentence().to_owned());
    match rows {
        Ok(rows) => rows,
        Err(why) => {
            report.warnings.push(format!("the snapshots of the heap tell nothing: {why}"));
            Vec::new()
        }
    }
}

fn temporary_folder() -> Result<TempDir, Failure> {
    let made = tempfile::Builder::new().prefix("mallow-snapshots-").tempdir().and_then(|folder| {
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o711))?;
        Ok(folder)
    });
    made.map_err(|error| Failure::writing(&std::env::temp_dir(), &error))
}
