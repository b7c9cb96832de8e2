//! Recording a command into a trace: a launcher, a collector, and what comes behind the events.

pub(crate) mod finish;

use crate::about::recording_of;
use crate::ahead::{Ahead, ResolveAhead};
use crate::clock::Clock;
use crate::collector::{Collector, Observer};
use crate::command_lines::CommandLines;
use crate::error::CollectError;
use crate::findings::Findings;
use crate::marks::Counted;
use crate::output::Output;
use crate::patching::Inside;
use crate::process::Wanted;
use crate::profile::CountedSites;
use crate::regions::WatchedProcess;
use crate::session::Session;
use crate::sink::Sink;
use crate::symbols::Resolve;
use crate::target::{Mode, TracedCommand};
use crate::trace_file::TraceFile;
use finish::Metrics;
use mallow_launch::{Content, Interrupts, Launch, SpawnOptions};
use mallow_profile::{Exit, Nameless, Profile, SiteList, SiteTotals};
use mallow_wire::shared::MAPPINGS_VARIABLE;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What to record, and how.
#[derive(Debug)]
pub struct RecordOptions {
    /// The command and its arguments.
    pub command: Vec<OsString>,
    /// How much is kept of its command line, and of those of its child processes.
    pub command_lines: CommandLines,
    /// Where the trace is written.
    pub output: Output,
    /// Keep sums per site only, not the events.
    pub summary_only: bool,
    /// How long after the command's start recording begins.
    pub delay: Duration,
    /// Count the program's regions and its file descriptors.
    pub regions: Option<Counted>,
    /// How the command is started.
    pub spawn: SpawnOptions,
    /// The preload library.
    pub preload: Content<'static>,
    /// Called with the command's pid and its trace once it runs.
    pub started: Option<fn(u32, &Path)>,
    /// Called when the command has ended: who interrupts from here on does not want to wait for names.
    pub ended: Option<fn()>,
}

/// The result of a recording.
#[derive(Clone, Debug)]
pub struct RecordOutcome {
    /// The trace.
    pub trace: PathBuf,
    /// How the command ended.
    pub exit: Option<Exit>,
    /// A second interrupt ended the recording before the command did, or one came when it had ended.
    pub interrupted: bool,
    /// The command exceeded its deadline, and was killed.
    pub timed_out: bool,
    /// The processes, if their regions were requested.
    pub processes: Vec<WatchedProcess>,
    /// The contents of the trace except events and samples of resident memory; `None` if regions were requested, or who was called
    /// [`Meanwhile`] did not want it any more.
    pub profile: Option<Profile>,
    /// Warnings about the metrics.
    pub warnings: Vec<String>,
    /// Those of the warnings, first among them, that say that a process's memory does not come from `malloc`: its
    /// metrics are not those of its heap.
    pub blind: Vec<String>,
    /// Processes that were killed while memory ran out.
    pub killed: Vec<String>,
    /// Remarks that are no warnings: processes that are managed runtimes.
    pub notes: Vec<String>,
    /// Those of the warnings after which the metrics are not the program's: no verdict may use them.
    pub faults: Vec<String>,
    /// Whether nothing is missing in the trace.
    pub complete: bool,
}

/// A recording that has ended, while its sums are being packed into the trace.
#[expect(missing_debug_implementations, reason = "sites are read through an interface")]
pub struct Packing<'a> {
    /// That of the outcome, without its sites.
    pub profile: &'a mut Profile,
    /// Its sites.
    pub sites: &'a dyn SiteList<SiteTotals>,
    /// As in [`RecordOutcome`].
    pub trace: &'a Path,
    /// As in [`RecordOutcome`].
    pub blind: &'a [String],
    /// As in [`RecordOutcome`].
    pub complete: bool,
}

/// Who is called while it is packed; not called if regions were requested. Returns whether the outcome is to have the profile.
pub type Meanwhile<'a> = &'a mut dyn FnMut(Packing<'_>) -> bool;

/// Runs a command under the recorder and writes its trace. `resolve` symbolizes the addresses of a module: it returns
/// one list of frames for each address, innermost first; the addresses point into their instructions. `nameless` tells of which modules it could not. `look_ahead`
/// may resolve them earlier, on another thread while the command runs, so that `resolve` finds most results cached.
///
/// # Errors
/// If the command cannot be run or recorded, nothing is left behind. If the trace cannot be written, the command goes
/// on unrecorded to its end, and what was written is removed.
pub fn record(
    options: &RecordOptions,
    resolve: Resolve<'_>,
    nameless: &dyn Fn() -> Vec<Nameless>,
    look_ahead: Option<ResolveAhead>,
    meanwhile: Meanwhile<'_>,
) -> Result<RecordOutcome, CollectError> {
    let launch = Launch::new(&options.command)?;
    let inside = Inside::prepare(options.preload, &launch, &options.command)?;
    let session = Session::open(options.command_lines)?;
    let interrupts = Interrupts::watch()?;
    let mut trace = TraceFile::create(&options.output)?;
    let outcome = Recorder { options, launch, inside, session, interrupts }
        .run(&mut trace, resolve, nameless, look_ahead, meanwhile);
    if outcome.as_ref().is_err_and(|error| !matches!(error, CollectError::Exists { .. })) {
        trace.discard();
    }
    outcome
}

/// What is prepared before the first byte is written.
struct Recorder<'a> {
    options: &'a RecordOptions,
    launch: Launch<'a>,
    inside: Inside<'a>,
    session: Session,
    interrupts: Interrupts,
}

impl Recorder<'_> {
    fn run(
        self,
        mut trace: &mut TraceFile,
        resolve: Resolve<'_>,
        nameless: &dyn Fn() -> Vec<Nameless>,
        look_ahead: Option<ResolveAhead>,
        meanwhile: Meanwhile<'_>,
    ) -> Result<RecordOutcome, CollectError> {
        let Recorder { options, launch, inside, session, interrupts } = self;
        let (clock, began) = (Clock::start_in(options.delay), Instant::now());
        // A recording within another one inherits the variable, and the recorder heeds it.
        let has_mappings = options.spawn.environment.iter().any(|(name, _)| name == MAPPINGS_VARIABLE)
            || std::env::var_os(MAPPINGS_VARIABLE).is_some();
        let about = recording_of(&options.command, options.command_lines, options.delay, has_mappings);
        let sink: &mut dyn Sink = &mut trace;
        sink.put_whole(&about)?;
        sink.flush()?;
        let mode = match options.regions {
            Some(_) => Mode::Check,
            None if options.delay.is_zero() => Mode::Record,
            None => Mode::RecordFrom(options.delay.saturating_sub(began.elapsed())),
        };
        let mut command = TracedCommand::start(&launch, &session, &inside, mode, &options.spawn, interrupts)?;
        let named = trace.name_by_process(&options.output, &launch.name(), command.pid());
        if let (Ok(()), Some(told)) = (&named, options.started) {
            told(command.pid(), trace.path());
        }
        let wanted = Wanted {
            events: !options.summary_only,
            threads: true,
            regions: options.regions,
            exited: true,
            own: false,
        };
        let mut collector = Collector::new(Some(session), clock, trace, wanted);
        let collected = named.and_then(|()| {
            let mut ahead = look_ahead.and_then(Ahead::start);
            let observer: &mut dyn Observer = match &mut ahead {
                Some(ahead) => ahead,
                None => &mut (),
            };
            let interrupted = collector.run(&mut command, observer);
            // Before the thread that looks ahead is waited for.
            options.ended.into_iter().for_each(|ended| ended());
            interrupted
        });
        let heard = command.interrupts_heard();
        let finished = collected.and_then(|interrupted| {
            let path = collector.sink.path().to_owned();
            let mut packing = |profile: &mut Profile, sites: &CountedSites<'_>, findings: &Findings| {
                let (blind, complete) = (&findings.blind, findings.is_complete());
                meanwhile(Packing { profile, sites, trace: &path, blind, complete })
            };
            let metrics =
                finish::finish(&mut collector, Some(&command), about, resolve, nameless, &mut packing)?;
            Ok((interrupted || command.interrupts_heard() > heard, metrics))
        });
        match finished {
            Ok((interrupted, metrics)) => Ok(outcome(collector, &command, interrupted, metrics)),
            Err(error) => {
                collector.detach(&mut command);
                Err(error)
            }
        }
    }
}

fn outcome(
    collector: Collector<&mut TraceFile>,
    command: &TracedCommand,
    interrupted: bool,
    metrics: Metrics,
) -> RecordOutcome {
    let (warnings, findings) = (collector.findings.warnings(), collector.findings);
    let (profile, processes) = match metrics {
        Metrics::Profile(profile) => (profile.map(|profile| *profile), Vec::new()),
        Metrics::Regions(processes) => (None, processes),
    };
    RecordOutcome {
        trace: collector.sink.path().to_owned(),
        exit: command.exit(),
        interrupted,
        timed_out: command.timed_out(),
        processes,
        profile,
        warnings,
        complete: findings.is_complete(),
        blind: findings.blind,
        killed: findings.killed,
        notes: findings.managed,
        faults: findings.faults,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cannot_be_recorded(directory: &Path, command: &str) -> String {
        let options = RecordOptions {
            command: vec![command.into()],
            command_lines: CommandLines::Whole,
            output: Output::Default(directory.to_owned()),
            summary_only: false,
            delay: Duration::ZERO,
            regions: None,
            spawn: SpawnOptions::default(),
            preload: Content::Plain(b""),
            started: None,
            ended: None,
        };
        record(&options, &mut |_, _| Vec::new(), &Vec::new, None, &mut |_| true).unwrap_err().to_string()
    }

    #[test]
    fn a_command_that_cannot_be_run_leaves_no_file() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let output = directory.path().join("out");
        std::fs::create_dir(&output).unwrap();
        let missing = cannot_be_recorded(&output, "/nonexistent/program");
        assert!(missing.starts_with("cannot run '/nonexistent/program'"), "{missing}");
        // This one passes every check before the start and is refused by the kernel.
        let odd = directory.path().join("odd");
        std::fs::write(&odd, b"\x7fELF but nothing more than that").unwrap();
        std::fs::set_permissions(&odd, std::fs::Permissions::from_mode(0o755)).unwrap();
        let refused = cannot_be_recorded(&output, odd.to_str().unwrap());
        assert!(refused.starts_with("cannot run"), "{refused}");
        assert_eq!(std::fs::read_dir(&output).unwrap().count(), 0);
    }
}
