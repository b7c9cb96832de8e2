//! `mallow record` as typed.

use super::arguments::LowArguments;
use super::quantity::time;
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// `mallow record`.
#[derive(Debug, Args)]
#[command(override_usage = "mallow record [OPTIONS] [--] <COMMAND>...")]
pub(crate) struct LowRecord {
    /// Write the trace to FILE instead of APP.PID.mallow in this folder
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Overwrite FILE if it exists
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
    /// Keep the sums of each site but not the single events, for long runs
    #[arg(long)]
    pub(crate) summary_only: bool,
    /// Begin to record TIME after the command has started; what it has allocated until then is not known
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) delay: Option<Duration>,
    /// Record the allocations of Python's own allocator: every object, with its line
    #[arg(long)]
    pub(crate) python_objects: bool,
    /// Record what programs map themselves (mmap, mremap) as allocations too, reservations without access left out
    #[arg(long)]
    pub(crate) mappings: bool,
    /// Do not ask Node and the JVM to write maps of their generated code
    #[arg(long)]
    pub(crate) no_runtime_flags: bool,
    #[command(flatten)]
    pub(crate) arguments: LowArguments,
    /// The command to run with its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}
