//! `mallow record`: runs a command, records everything, prints a summary.

use crate::busy::busy;
use crate::destination::NewFile;
use crate::refusal::Refusal;
use crate::request::Record;
use crate::{exit_code, interrupts, output, preload, sources};
use mallow_collect::{Output, Packing, RecordOptions};
use mallow_launch::SpawnOptions;
use mallow_profile::Nameless;
use mallow_query::{Failure, Names};
use mallow_view::{ScriptFrames, Summary};
use std::cell::RefCell;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// Looks all names up after the command has exited. Otherwise, how many are found earlier is a matter of timing,
/// which would disturb measurements of mallow itself.
const AT_END_VARIABLE: &str = "MALLOW_SYMBOLS_AT_END";

/// Records a command. The summary is made from the collector's data, which equals the trace.
pub(crate) fn run(record: Record) -> Result<u8, Refusal> {
    if record.output.as_ref().is_some_and(NewFile::is_stdout) {
        let why = "a trace is read again when the program has ended, so it cannot go to stdout; name a file with -o.";
        return Err(Failure::new(why).into());
    }
    let output = match record.output {
        Some(file) => Output::File { path: file.path, force: file.force },
        None => Output::Default(PathBuf::from(".")),
    };
    let mut environment = Vec::new();
    for (is_wanted, name) in [
        (record.no_runtime_flags, mallow_collect::NO_RUNTIME_FLAGS),
        (record.python_objects, mallow_collect::PYTHON_OBJECTS),
        (record.mappings, mallow_collect::MAPPINGS),
    ] {
        environment.extend(is_wanted.then(|| (name.into(), "1".into())));
    }
    let options = RecordOptions {
        command: record.command,
        command_lines: record.command_lines,
        output,
        summary_only: record.summary_only,
        delay: record.delay,
        regions: None,
        spawn: SpawnOptions { environment, ..SpawnOptions::default() },
        preload: preload::LIBRARY,
        started: std::io::stderr().is_terminal().then_some(started),
        ended: Some(interrupts::end_waits_for_names),
    };
    let names = RefCell::new(Names::new());
    let look_ahead = std::env::var_os(AT_END_VARIABLE).is_none().then(|| {
        let program = options.command.first().and_then(|program| mallow_launch::find_program(program).ok());
        names.borrow_mut().looking_ahead(program.as_deref())
    });
    let mut naming = None;
    let mut resolve = |module: &_, calls: &[u64]| {
        naming.get_or_insert_with(|| busy("looking up names of functions".to_owned()));
        names.borrow_mut().of_calls(module, calls)
    };
    let nameless = || names.borrow().nameless();
    let mut summary = None;
    let mut summarize = |packing: Packing<'_>| {
        let Packing { profile, sites, trace, blind, complete } = packing;
        if !complete {
            return true;
        }
        ScriptFrames::Folded.keep_in(&mut profile.stacks);
        summary = Some(summary_of(&Summary::of_sites(profile, sites), blind, trace));
        // A debug build holds it against the trace.
        cfg!(debug_assertions)
    };
    let outcome = mallow_collect::record(&options, &mut resolve, &nameless, look_ahead, &mut summarize)?;
    drop(naming);
    let names = names.into_inner();
    output::warn(&outcome.warnings);
    output::warn(names.server_warning().as_slice());
    output::warn(&names.nameless().iter().map(Nameless::sentence).collect::<Vec<_>>());
    output::note(&outcome.killed);
    output::note(&outcome.notes);
    let mut profile = outcome.profile.unwrap_or_default();
    #[cfg(debug_assertions)]
    held_against_the_trace(&profile, summary.is_some(), &outcome.trace);
    let summary = summary.unwrap_or_else(|| {
        // The same warning as when the incomplete trace is opened.
        let mut names = Names::new();
        names.complete(&mut profile.stacks);
        output::warn(&names.warnings());
        ScriptFrames::Folded.keep_in(&mut profile.stacks);
        summary_of(&Summary::of(&profile), &outcome.blind, &outcome.trace)
    });
    output::inform(&summary);
    // The process ends now: giving back the memory of 100,000 stacks piece by piece takes 3 ms.
    std::mem::forget(profile);
    Ok(if outcome.interrupted { exit_code::INTERRUPTED } else { exit_code::of_end(outcome.exit) })
}

/// What is printed of a profile whose scripts' frames have replaced those of their interpreter.
fn summary_of(summary: &Summary<'_>, blind: &[String], trace: &Path) -> String {
    let style = crate::terminal::style(&std::io::stderr());
    let summary = mallow_text::summary::summary(summary, blind, &shown(trace), style);
    sources::linked_on_stderr(&summary)
}

/// Prints where the trace will be, for a waiting user. A script does not need it, so it is printed only on a terminal.
fn started(pid: u32, trace: &Path) {
    output::inform(&format!("recording {pid} → {}\n", shown(trace)));
}

fn shown(trace: &Path) -> String {
    trace.strip_prefix(".").unwrap_or(trace).display().to_string()
}

/// Checks that a reader of the trace finds what the summary is made from, which has taken the frames of interpreters out if `is_folded`; so every test that
/// records checks it.
#[cfg(debug_assertions)]
fn held_against_the_trace(profile: &mallow_profile::Profile, is_folded: bool, trace: &Path) {
    use mallow_profile::ReallocAttribution;
    use mallow_trace::read_file_with;
    let mut read = read_file_with(trace, ReallocAttribution::OwnSite).expect("the trace can be read").profile;
    read.processes.iter_mut().for_each(|process| process.samples.clear());
    if is_folded {
        ScriptFrames::Folded.keep_in(&mut read.stacks);
    }
    assert_eq!(profile.recording, read.recording);
    assert_eq!(profile.processes, read.processes);
    assert_eq!(profile.stacks, read.stacks);
    assert_eq!(profile.sites, read.sites);
    assert_eq!(format!("{:?}", profile.known), format!("{:?}", read.known));
}
