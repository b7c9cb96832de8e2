//! One run of a program under a tool: its wall time, its CPU time, and in the first round its memory.

use super::ends::End;
use super::memory::{self, Peaks};
use super::programs::Program;
use super::redis;
use super::tools::{Tool, Tools};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;
use procfs::process::Process;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The round that samples memory. It is not timed: sampling takes the locks of the address space that it reads.
pub(super) const MEMORY_ROUND: u32 = 0;
/// The round that waits for the program's end as well as for the command's.
pub(super) const END_ROUND: u32 = u32::MAX;

/// Clock ticks per second in `/proc`: fixed at 100 for every program by the kernel's interface, whatever its timer does.
const TICKS_PER_SECOND: f64 = 100.0;

/// What one run took.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    pub(super) program: String,
    pub(super) tool: Tool,
    pub(super) round: u32,
    /// Wall time of the work: from start to exit; of a server, what its client waited.
    pub(super) wall_s: f64,
    /// Wall time from start to exit.
    pub(super) whole_s: f64,
    /// From the program's end to the command's, in [`END_ROUND`] only.
    pub(super) behind_s: Option<f64>,
    /// CPU time of everything that the command started, itself included.
    pub(super) cpu_s: f64,
    /// CPU time of the command's own process: under mallow the collector, to the hundredth of a second.
    pub(super) own_cpu_s: f64,
    /// Sampled in [`MEMORY_ROUND`] only.
    pub(super) peaks: Option<Peaks>,
    /// 0 for a tool that leaves no trace.
    pub(super) trace_bytes: u64,
    /// Calls of the malloc family, from the trace that `mallow record` wrote in [`MEMORY_ROUND`].
    pub(super) events: Option<u64>,
}

/// Runs `program` under `tool` once.
pub(super) fn once(program: &Program, tools: &Tools, tool: Tool, round: u32) -> Result<Sample, String> {
    let port = program.requests.map(|_| redis::free_port()).transpose()?;
    let mut command = tools.command(program, tool);
    command.args(port.map(redis::options).unwrap_or_default());
    let complaints = tools.scratch.join("stderr");
    if tool == Tool::RecordCold {
        tools.forget_symbols();
    }
    let started = Instant::now();
    let mut child = start(&mut command, program.input.as_deref(), &complaints)?;
    let watch = (round == MEMORY_ROUND).then(|| memory::watch(child.id(), &program.executable));
    let end_of_program = (round == END_ROUND).then(|| End::watch(child.id(), &program.executable));
    let served = match (program.requests, port) {
        (Some(requests), Some(port)) => redis::serve(port, requests).map(Some),
        _ => Ok(None),
    };
    if served.is_err() {
        // It would wait for requests for ever; what it can still say is less than the client's sentence.
        let _ = child.kill();
    }
    let ended = end(&mut child, started);
    let peaks = watch.map(memory::Watch::stop);
    let end_of_program = end_of_program.and_then(End::of_ended);
    let complain = |sentence: String| with_complaints(&sentence, program, tool, &complaints);
    let served = served.map_err(complain)?;
    let (whole_s, cpu_s, own_cpu_s) = ended.map_err(complain)?;
    let counts = round == MEMORY_ROUND && tool == Tool::Record;
    Ok(Sample {
        program: program.name.clone(),
        tool,
        round,
        wall_s: served.unwrap_or(whole_s),
        whole_s,
        behind_s: end_of_program.and_then(|end| behind_s(end, started, whole_s)),
        cpu_s,
        own_cpu_s,
        peaks,
        trace_bytes: tools.trace_bytes(tool)?,
        events: if counts { Some(tools.events()?) } else { None },
    })
}

/// From the program's end to the command's; none where the former was seen after the latter.
fn behind_s(end: Instant, started: Instant, whole_s: f64) -> Option<f64> {
    let behind = (started + Duration::from_secs_f64(whole_s)).checked_duration_since(end)?;
    Some(behind.as_secs_f64())
}

fn start(command: &mut Command, input: Option<&Path>, complaints: &Path) -> Result<Child, String> {
    let open = |path: &Path| File::open(path).map_err(|error| format!("{}: {error}.", path.display()));
    let stdin = input.map(open).transpose()?.map_or_else(Stdio::null, Stdio::from);
    let stderr = File::create(complaints).map_err(|error| format!("{}: {error}.", complaints.display()))?;
    let command = command.stdin(stdin).stdout(Stdio::null()).stderr(stderr);
    command
        .spawn()
        .map_err(|error| format!("`{}` could not be started: {error}.", crate::run::as_typed(command)))
}

/// Waits for the end. The process is left unreaped for a moment, because only then does the kernel still know
/// what it used itself, and what was used by children that we reaped earlier can be told apart.
fn end(child: &mut Child, started: Instant) -> Result<(f64, f64, f64), String> {
    let id = Id::Pid(Pid::from_raw(child.id().cast_signed()));
    waitid(id, WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT)
        .map_err(|error| format!("waiting failed: {error}."))?;
    let whole_s = started.elapsed().as_secs_f64();
    let own_cpu_s = own_cpu_s(child.id()).unwrap_or(0.0);
    let before_s = children_cpu_s()?;
    let status = child.wait().map_err(|error| format!("waiting failed: {error}."))?;
    let cpu_s = children_cpu_s()? - before_s;
    if status.success() { Ok((whole_s, cpu_s, own_cpu_s)) } else { Err(format!("it ended with {status}.")) }
}

/// CPU time of all children that have been reaped, and of those that they had reaped.
pub(super) fn children_cpu_s() -> Result<f64, String> {
    let usage =
        getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|error| format!("getrusage failed: {error}."))?;
    let microseconds = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(microseconds as f64 / 1e6)
}

/// What the process itself used, its children left out.
fn own_cpu_s(pid: u32) -> Option<f64> {
    let stat = Process::new(pid.cast_signed()).and_then(|process| process.stat()).ok()?;
    Some((stat.utime + stat.stime) as f64 / TICKS_PER_SECOND)
}

fn with_complaints(sentence: &str, program: &Program, tool: Tool, complaints: &Path) -> String {
    let text = std::fs::read(complaints).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let last = lines[lines.len().saturating_sub(10)..].join("\n");
    format!("{} under {}: {sentence} Its last words:\n{last}", program.name, tool.name())
}
