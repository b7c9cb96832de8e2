//! `mallow cpu`: samples where CPU time is spent, writes the profile, prints a summary.

use crate::args::{LowCpu, SampledBy};
use crate::refusal::Refusal;
use crate::{exit_code, output, preload, sources};
use mallow_cpu::CpuProfile;
use mallow_formats::export::{ExportFormat, Packing, write_cpu};
use mallow_launch::{Launch, SpawnOptions};
use mallow_perf::{Rate, SamplingOptions, Target, sample};
use mallow_profile::Exit;
use mallow_query::{Failure, Names};
use mallow_view::ScriptFrames;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

/// The number of file names that are tried: process ids are reused, and an existing profile must not be overwritten.
const NUMBER_MAX: u32 = 1000;

/// Samples a command or a process.
pub(crate) fn run(request: &LowCpu) -> Result<u8, Refusal> {
    let spawn = SpawnOptions::default();
    let target = match request.pid {
        Some(pid) => Target::Process(pid),
        None => {
            // Check that the program exists. Whether a library can be loaded into it does not matter here.
            Launch::find(&request.command)?;
            Target::Command { words: &request.command, spawn: &spawn }
        }
    };
    let (event, timers_only) = match &request.event {
        Some(SampledBy::Event(event)) => (Some(event.clone()), false),
        by => (None, *by == Some(SampledBy::Timers)),
    };
    if timers_only {
        fit_for_timers(request)?;
    }
    let mut file = Unnamed::create(request)?;
    let options = SamplingOptions {
        event,
        rate: request.count.map_or(Rate::Hz(request.frequency), Rate::Every),
        off_cpu: request.off_cpu,
        stack_bytes: (request.stack_size as u32) << 10,
        summary_only: request.summary_only,
        duration: request.duration,
        timers_only,
        inside: preload::TIMERS,
        leaves_alone: request.no_runtime_flags,
    };
    let outcome = sample(target, &options).inspect_err(|_| file.remove())?;
    output::note(&outcome.notes);
    let mut profile = outcome.sampled.profile;
    if request.arguments.no_arguments {
        profile.recording.command.truncate(1);
    }
    let mut names = Names::new();
    names.complete(&mut profile.stacks);
    output::warn(&names.warnings());
    file.write(&profile)?;
    let path = file.name(&profile, outcome.pid)?;
    let shown = path.strip_prefix(".").unwrap_or(&path).display().to_string();
    ScriptFrames::Folded.keep_in(&mut profile.stacks);
    let style = crate::terminal::style(&std::io::stderr());
    output::inform(&sources::linked_on_stderr(&mallow_text::cpu::summary(
        &profile,
        &shown,
        outcome.collector_cpu,
        style,
    )));
    Ok(match outcome.exit {
        _ if outcome.interrupted => exit_code::INTERRUPTED,
        // What was there before us is not ours to wait for.
        None if request.pid.is_some() => exit_code::FINE,
        exit => exit_code::of_end(exit.map(exit_of)),
    })
}

/// Checks whether timers of threads can do what is requested.
fn fit_for_timers(request: &LowCpu) -> Result<(), Failure> {
    let asked = [
        (request.pid.is_some(), "--pid: they are made by a library that is preloaded into a command"),
        (request.off_cpu, "--off-cpu: they stand still while a thread waits"),
        (request.count.is_some(), "-c: they count time, not events"),
    ];
    match asked.iter().find(|(is_asked, _)| *is_asked) {
        Some((_, why)) => Err(Failure::new(format!("-e timers has no {why}."))),
        None => Ok(()),
    }
}

fn exit_of(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Status(code),
        (None, signal) => Exit::Signal(signal.unwrap_or_default()),
    }
}

/// The profile's file before the process id in its name is known.
struct Unnamed {
    path: PathBuf,
    file: File,
    /// It has the name that was requested.
    is_named: bool,
}

impl Unnamed {
    fn create(request: &LowCpu) -> Result<Unnamed, Failure> {
        if let Some(path) = &request.output {
            if path.as_os_str() == "-" {
                return Err(Failure::new(
                    "the program's own output goes to stdout, so the profile cannot; name a file with -o.",
                ));
            }
            let file = output::create(path, request.force)?;
            return Ok(Unnamed { path: path.clone(), file, is_named: true });
        }
        let path = PathBuf::from(format!("./.sampling-{}.cpu.pb.gz", std::process::id()));
        let file = output::create(&path, true)?;
        Ok(Unnamed { path, file, is_named: false })
    }

    fn remove(&self) {
        let _ = std::fs::remove_file(&self.path);
    }

    fn write(&mut self, profile: &CpuProfile) -> Result<(), Failure> {
        let mut out = BufWriter::new(&mut self.file);
        let written =
            write_cpu(profile, ExportFormat::Pprof, profile.main_metric(), Packing::Plain, &mut out)
                .and_then(|_| out.flush());
        written.map_err(|error| Failure::writing(&self.path, &error))
    }

    /// Renames it; returns the new name.
    fn name(self, profile: &CpuProfile, pid: u32) -> Result<PathBuf, Failure> {
        if self.is_named {
            return Ok(self.path);
        }
        let program = profile.recording.command.first().map(Path::new).and_then(Path::file_name);
        let program =
            program.map_or_else(|| "program".to_owned(), |name| name.to_string_lossy().into_owned());
        let mut named = PathBuf::from(format!("./{program}.{pid}.cpu.pb.gz"));
        for number in 2..=NUMBER_MAX {
            // A hard link replaces no existing file.
            match std::fs::hard_link(&self.path, &named) {
                Ok(()) => {
                    self.remove();
                    return Ok(named);
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                    named = PathBuf::from(format!("./{program}.{pid}-{number}.cpu.pb.gz"));
                }
                // Some file systems have no hard links.
                Err(_) if !named.exists() => {
                    std::fs::rename(&self.path, &named).map_err(|error| Failure::writing(&named, &error))?;
                    return Ok(named);
                }
                Err(error) => return Err(Failure::writing(&named, &error)),
            }
        }
        Ok(self.path)
    }
}
