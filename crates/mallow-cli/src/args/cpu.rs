//! `mallow cpu` as typed.

use crate::args::arguments::LowArguments;
use crate::args::quantity::{kib, some_time};
use clap::Args;
use mallow_counters::Event;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Samples per second: a prime, so that sampling does not run in step with what a program does at round intervals.
const FREQUENCY_HZ: u64 = 997;
/// KiB of a stack: enough for 99 of 100 real stacks.
const STACK: &str = "32KiB";

/// `mallow cpu`.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(override_usage = "mallow cpu [OPTIONS] [--] <COMMAND>...\n       mallow cpu [OPTIONS] --pid <PID>")]
pub(crate) struct LowCpu {
    /// Take N samples per second of CPU time
    #[arg(short = 'F', long = "freq", value_name = "N", default_value_t = FREQUENCY_HZ, value_parser = clap::value_parser!(u64).range(1..=50_000))]
    pub(crate) frequency: u64,
    /// Sample at EVENT, by perf's name, such as page-faults or cache-misses, in place of time; timers are those of the threads, which need
    /// no perf events
    #[arg(short, long, value_name = "EVENT", value_parser = event)]
    pub(crate) event: Option<SampledBy>,
    /// Sample every N-th event instead of N times per second
    #[arg(short, long, value_name = "N", conflicts_with = "frequency", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    /// Measure off-CPU time too: where threads wait, and for how long
    #[arg(long)]
    pub(crate) off_cpu: bool,
    /// Sample a running process, its threads and the processes that it starts from now on, until it ends or Ctrl-C
    #[arg(short, long, value_name = "PID", conflicts_with = "command", value_parser = clap::value_parser!(u32).range(1..=0x7fff_ffff))]
    pub(crate) pid: Option<u32>,
    /// Stop sampling after TIME, such as 10s or 500ms; a command goes on
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub(crate) duration: Option<Duration>,
    /// Copy at most SIZE of a stack at each sample, up to 63KiB; deeper stacks are marked; a number is one of KiB
    #[arg(long, value_name = "SIZE", default_value = STACK, value_parser = stack_kib)]
    pub(crate) stack_size: u64,
    /// Keep the sums of each stack but not the single samples, for long runs
    #[arg(long)]
    pub(crate) summary_only: bool,
    /// Do not ask Node to write a map of its generated code
    #[arg(long)]
    pub(crate) no_runtime_flags: bool,
    #[command(flatten)]
    pub(crate) arguments: LowArguments,
    /// Write the profile to FILE instead of APP.PID.cpu.pb.gz in this folder
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Overwrite FILE if it exists
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
    /// The command to run with its arguments
    #[arg(trailing_var_arg = true, required_unless_present = "pid", value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// What makes samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SampledBy {
    /// Timers of the threads.
    Timers,
    /// An event of the kernel.
    Event(Event),
}

fn event(text: &str) -> Result<SampledBy, String> {
    if text == "timers" { Ok(SampledBy::Timers) } else { Event::named(text).map(SampledBy::Event) }
}

/// The kernel copies less than 64 KiB.
fn stack_kib(text: &str) -> Result<u64, String> {
    const RANGE: &str = "a size from 1KiB to 63KiB was expected";
    Some(kib(text)?).filter(|kib| (1..=63).contains(kib)).ok_or_else(|| RANGE.to_owned())
}
