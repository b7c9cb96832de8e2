//! A soak from start to end: its preparation, its conclusion, and its cleanup.

use crate::deadline::Deadline;
use crate::error::SoakError;
use crate::growth::{KeptHeaps, mapping_growth};
use crate::growth_by_age::growth_by_age;
use crate::journal::Journal;
use crate::options::{Collection, Server, SoakOptions};
use crate::phases::Phases;
use crate::processes;
use crate::readiness;
use crate::runtime::Runtimes;
use crate::server::Running;
use crate::snapshots;
use crate::work::{Worker, check};
use mallow_collect::Resolve;
use mallow_evidence::{
    Growth, HeapSnapshots, JournalHead, JournalRead, Phase, Progress, SCHEMA, Sample, SoakReport, Unrecorded,
};
use mallow_evidence::{by_age, evidence, only_refusals, replaced};
use mallow_growth::{Conclusion, Evidence, Fault, Verdict, judge};
use mallow_launch::{Interrupts, open_files};
use mallow_load::Trust;
use mallow_profile::{Profile, Recording};
use std::ffi::OsString;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long JVMs may take to write their perf maps.
const CODE_NAMES_PATIENCE: Duration = Duration::from_secs(5);

/// Soaks a server.
///
/// # Errors
/// If there is nothing to judge; everything that was started has been stopped.
pub fn soak(
    options: &SoakOptions,
    resolve: Resolve<'_>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<SoakReport, SoakError> {
    let interrupts = Interrupts::watch()?;
    // Each connection is an open file.
    open_files::raise();
    let mut warnings = Vec::new();
    progress(Progress::Phase(Phase::Preflight));
    readiness::check_port(options)?;
    check(options)?;
    let runtimes =
        Runtimes::open().map_err(|cause| SoakError::System { what: "open a door for runtimes", cause })?;
    progress(Progress::Phase(Phase::Start));
    let environment = environment(options, &runtimes);
    let mut server = Running::start(options, environment, &mut |warning| warnings.push(warning))?;
    readiness::wait(options, &mut server, &|| interrupts.heard() > 0)?;
    let worker = Worker::new(options)?;
    warnings.extend(unverified(options));
    let head = head(options, worker.in_words(options), server.pid());
    let (journal, read) = open_journal(options, &head)?;
    let begun = Instant::now();
    let mut phases = Phases {
        options,
        server,
        worker,
        runtimes,
        deadline: Deadline { interrupts: &interrupts, end: options.work_time_max().map(|time| begun + time) },
        journal,
        samples: Vec::new(),
        looks: KeptHeaps::default(),
        server_number: 1,
        number: 0,
        seconds_before: 0.0,
        begun,
        amount: options.amount,
        is_at_work: false,
    };
    if let Some(read) = read {
        go_on(&mut phases, read, &head, &mut warnings);
    }
    phases.run(progress)?;
    conclude(phases, head, warnings, resolve, progress)
}

/// Returns the variables that are set for the server.
fn environment(options: &SoakOptions, runtimes: &Runtimes) -> Vec<(OsString, OsString)> {
    let mut environment = options.environment.clone();
    if options.collection != Collection::Never {
        let given = |name: &str| {
            let ours = environment.iter().find(|(found, _)| found == name).map(|(_, value)| value.clone());
            ours.or_else(|| std::env::var_os(name))
        };
        let hooks = runtimes.environment(&given);
        environment.extend(hooks);
    }
    environment
}

fn head(options: &SoakOptions, work: String, pid: u32) -> JournalHead {
    let command = match &options.server {
        Server::Command(words) => options.command_lines.words(words),
        Server::Pid(pid) => vec![format!("process {pid}")],
    };
    JournalHead {
        schema: SCHEMA.to_owned(),
        command,
        work,
        started_unix_us: now_unix_us(),
        process: processes::process(pid).map_or((pid, 0), |process| (pid, process.started_ticks)),
    }
}

/// Returns a note if the certificate was not verified.
fn unverified(options: &SoakOptions) -> Option<String> {
    let tls = options.load()?.endpoint.tls.as_ref()?;
    let words = "--insecure: nobody looked whether the server's certificate is good, so this may be another server's answers";
    (tls.trust == Trust::AnyCertificate).then(|| words.to_owned())
}

fn now_unix_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}

fn open_journal(
    options: &SoakOptions,
    head: &JournalHead,
) -> Result<(Option<Journal>, Option<JournalRead>), SoakError> {
    match &options.journal {
        None => Ok((None, None)),
        Some(path) if options.resume && path.exists() => {
            let (journal, read) = Journal::go_on(path)?;
            Ok((Some(journal), Some(read)))
        }
        Some(path) => Ok((Some(Journal::begin(path, head)?), None)),
    }
}

/// Continues a journal: with its samples if the same server still runs, otherwise after them.
fn go_on(phases: &mut Phases<'_>, mut read: JournalRead, head: &JournalHead, warnings: &mut Vec<String>) {
    let (last_number, last_server) =
        read.samples.last().map_or((0, 0), |sample| (sample.number, sample.server));
    phases.number = last_number;
    if read.head.process == head.process {
        let since = Duration::from_micros(now_unix_us().saturating_sub(read.head.started_unix_us));
        phases.seconds_before = since.as_secs_f64();
        phases.server_number = last_server.max(1);
        read.keep_server(phases.server_number);
        phases.samples = read.samples;
    } else {
        phases.server_number = last_server + 1;
        warnings.push(format!(
            "the journal's {last_number} samples are of a server that has ended, so they are kept but not judged"
        ));
    }
}

/// Judges, names what grows, and stops the server.
fn conclude(
    mut phases: Phases<'_>,
    head: JournalHead,
    mut warnings: Vec<String>,
    resolve: Resolve<'_>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<SoakReport, SoakError> {
    let has_died = phases.server.has_ended();
    let snapshots = snapshots_of(&mut phases, &mut warnings, progress);
    if !has_died && !matches!(phases.options.collection, Collection::Never) {
        let (pids, _) = phases.server.processes();
        phases.runtimes.write_code_names(&pids, CODE_NAMES_PATIENCE);
    }
    let Phases { options, mut server, samples, looks, begun, deadline, .. } = phases;
    let unrecorded = match options.server {
        _ if server.watched().is_some() => None,
        Server::Pid(_) => Some(Unrecorded::Running),
        Server::Command(_) if options.record => Some(Unrecorded::Impossible),
        Server::Command(_) => Some(Unrecorded::Unwanted),
    };
    let evidence_of = |died: Option<String>| {
        evidence(&samples, looks.stacks(), options.wanted_rate(), &options.rules, died)
    };
    let mut evidence = evidence_of(None);
    let mut conclusion = judge(&evidence, &options.rules);
    let mut report = Parts::default();
    if !has_died {
        report = named(&looks, &server, (&samples, &evidence), &conclusion, options, resolve, &head);
    }
    progress(Progress::Phase(Phase::Stop));
    let stopped = server.stop();
    warnings.extend(stopped.warnings);
    if has_died {
        evidence = evidence_of(Some(stopped.how.clone()));
    }
    if !stopped.faults.is_empty() {
        evidence.faults.push(Fault::Lost { what: stopped.faults.join("; ") });
    }
    if has_died || !stopped.faults.is_empty() {
        conclusion = judge(&evidence, &options.rules);
    }
    if has_died {
        let last = server.last_words();
        if !last.is_empty() {
            warnings.push(format!("the server's last words:\n{last}"));
        }
    }
    warnings.extend(only_refusals(&samples));
    warnings.extend(replaced(&samples));
    if deadline.is_cancelled() {
        warnings.push("interrupted: the verdict is about what was seen until then".to_owned());
    }
    let mappings =
        looks.edges(&conclusion.window).map(|(first, last)| mapping_growth(&first.mappings, &last.mappings));
    Ok(SoakReport {
        command: head.command,
        pid: head.process.0,
        work: head.work,
        started_unix_us: head.started_unix_us,
        seconds: begun.elapsed().as_secs_f64(),
        samples,
        evidence,
        conclusion,
        memory_limit_bytes: options.memory_limit_bytes,
        growth: report.growth,
        mappings: mappings.unwrap_or_default(),
        edges: report.edges,
        snapshots,
        server_end: stopped.how,
        unrecorded,
        warnings,
        comparison: None,
    })
}

/// Takes snapshots of the managed heap, if that grows.
fn snapshots_of(
    phases: &mut Phases<'_>,
    warnings: &mut Vec<String>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Option<HeapSnapshots> {
    let options = phases.options;
    let stacks = phases.looks.stacks();
    let evidence = evidence(&phases.samples, stacks, options.wanted_rate(), &options.rules, None);
    let conclusion = judge(&evidence, &options.rules);
    match snapshots::of_grown_heap(phases, &conclusion, progress) {
        Ok(snapshots) => snapshots,
        Err(why) => {
            warnings.push(why);
            None
        }
    }
}

/// Results that exist only while the server runs.
#[derive(Default)]
struct Parts {
    growth: Vec<Growth>,
    edges: Option<(Profile, Profile)>,
}

fn named(
    looks: &KeptHeaps,
    server: &Running,
    (samples, evidence): (&[Sample], &Evidence),
    conclusion: &Conclusion,
    options: &SoakOptions,
    resolve: Resolve<'_>,
    head: &JournalHead,
) -> Parts {
    let Some(mut stacks) = server.watched().and_then(|watched| watched.stacks()) else {
        return Parts::default();
    };
    let growth = match (conclusion.by_age, conclusion.verdict) {
        (true, Verdict::Leaking | Verdict::Plateau) => {
            growth_by_age(looks.kept(), &by_age(samples), &options.rules, &mut stacks, resolve)
        }
        (true, _) => Vec::new(),
        (false, _) => {
            looks.growth(&evidence.observations, &conclusion.window, &options.rules, &mut stacks, resolve)
        }
    };
    let recording = Recording {
        command: head.command.clone(),
        started_unix_us: head.started_unix_us,
        recorder_version: env!("CARGO_PKG_VERSION").to_owned(),
        ..Recording::default()
    };
    let edges = looks.edges(&conclusion.window).map(|(first, last)| {
        (
            stacks.profile(&first.look, recording.clone(), resolve),
            stacks.profile(&last.look, recording.clone(), resolve),
        )
    });
    Parts { growth, edges }
}
