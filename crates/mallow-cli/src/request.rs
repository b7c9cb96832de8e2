//! What the command line means: the second of two steps, after [`crate::args`].

use crate::report::ReportCommand;

use crate::args::{
    AnyMeasure, LowArgs, LowCommand, LowCompletions, LowCpu, LowExport, LowExpression, LowFlamegraph,
    LowGcLog, LowHeap, LowImport, LowManPages, LowRecord, LowStat, LowVersion,
};
pub(crate) use crate::check::request::Check;
pub(crate) use crate::diff::request::Diff;
use mallow_collect::CommandLines;
use mallow_formats::export::ExportFormat;
use mallow_query::{PartRequest, ProcessChoice};
use mallow_view::{Filter, FrameVisibility, ScriptFrames};
use std::ffi::OsString;
use std::path::PathBuf;

/// One thing to do.
#[derive(Debug, PartialEq)]
pub(crate) enum Request {
    Record(Record),
    Stat(Stat),
    Cpu(LowCpu),
    Report(Box<ReportCommand>),
    Diff(Diff),
    Flamegraph(Flamegraph),
    Import(LowImport),
    Export(Export),
    Check(Check),
    #[cfg(feature = "soak")]
    /// Its words mean something only together with the environment, so they are read where it is at hand.
    Soak(Box<crate::args::LowSoak>),
    /// Its words become a plan where commands can be run.
    Bench(Box<crate::args::LowBench>),
    GcLog(LowGcLog),
    Heap(LowHeap),
    Version(LowVersion),
    Completions(LowCompletions),
    ManPages(LowManPages),
}

/// A file to make.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NewFile {
    pub(crate) path: PathBuf,
    pub(crate) force: bool,
}

impl NewFile {
    /// `-` for stdout, as everywhere.
    pub(crate) fn is_stdout(&self) -> bool {
        self.path.as_os_str() == "-"
    }
}

/// The file that was named; none for stdout, named or not.
fn file_or_stdout(path: Option<PathBuf>, force: bool) -> Option<NewFile> {
    path.map(|path| NewFile { path, force }).filter(|file| !file.is_stdout())
}

/// Record a command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) command: Vec<OsString>,
    /// None for `APP.PID.mallow` in the current folder.
    pub(crate) output: Option<NewFile>,
    pub(crate) summary_only: bool,
    pub(crate) python_objects: bool,
    pub(crate) no_runtime_flags: bool,
    pub(crate) command_lines: CommandLines,
}

/// Count a command's allocations.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) command: Vec<OsString>,
    pub(crate) command_lines: CommandLines,
    pub(crate) runs: u32,
    pub(crate) json: bool,
    /// None for stderr, and for stdout in JSON.
    pub(crate) output: Option<NewFile>,
}

/// Draw a profile, or what changed between two.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Flamegraph {
    pub(crate) file: PathBuf,
    pub(crate) other: Option<PathBuf>,
    /// Which of the processes; none for all.
    pub(crate) process: Option<ProcessChoice>,
    /// None for the first that the files know.
    pub(crate) measure: Option<AnyMeasure>,
    pub(crate) form: FlamegraphForm,
    /// None for stdout.
    pub(crate) output: Option<NewFile>,
    pub(crate) shown: FrameVisibility,
    /// Whether lines of scripts are drawn, and the interpreter around them.
    pub(crate) scripts: ScriptFrames,
    pub(crate) filter: Filter,
    /// Which part of the file, or of both.
    pub(crate) part: PartRequest,
}

/// Drawn or as text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FlamegraphForm {
    Svg { icicle: bool, title: Option<String>, unfold: bool },
    Folded,
}

/// Write a profile as another tool's file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Export {
    pub(crate) file: PathBuf,
    /// Which of the processes; none for all.
    pub(crate) process: Option<ProcessChoice>,
    /// Without the frames of scripts.
    pub(crate) is_native: bool,
    /// With functions that were compiled into others.
    pub(crate) has_inlined: bool,
    /// Which part of it.
    pub(crate) part: PartRequest,
    pub(crate) format: ExportFormat,
    /// None for stdout.
    pub(crate) output: Option<NewFile>,
    /// None for bytes, or else the first that the file knows.
    pub(crate) measure: Option<AnyMeasure>,
}

/// Of arguments that name their files: [`crate::newest::name_files`] sees to those that named none.
impl From<LowArgs> for Request {
    fn from(args: LowArgs) -> Self {
        match args.command {
            LowCommand::Record(low) => Request::Record(low.into()),
            LowCommand::Stat(low) => Request::Stat(low.into()),
            LowCommand::Cpu(low) => Request::Cpu(low),
            LowCommand::Report(low) => Request::Report(Box::new(low.into())),
            LowCommand::Diff(low) => Request::Diff(low.into()),
            LowCommand::Flamegraph(low) => Request::Flamegraph(low.into()),
            LowCommand::Import(low) => Request::Import(low),
            LowCommand::Export(low) => Request::Export(low.into()),
            LowCommand::Check(low) => Request::Check(low.into()),
            #[cfg(feature = "soak")]
            LowCommand::Soak(low) => Request::Soak(low),
            LowCommand::Bench(low) => Request::Bench(low),
            LowCommand::GcLog(low) => Request::GcLog(low),
            LowCommand::Heap(low) => Request::Heap(low),
            LowCommand::Version(low) => Request::Version(low),
            LowCommand::Completions(low) => Request::Completions(low),
            LowCommand::ManPages(low) => Request::ManPages(low),
        }
    }
}

impl From<LowRecord> for Record {
    fn from(low: LowRecord) -> Self {
        let output = low.output.map(|path| NewFile { path, force: low.force });
        Record {
            command: low.command,
            output,
            summary_only: low.summary_only,
            python_objects: low.python_objects,
            no_runtime_flags: low.no_runtime_flags,
            command_lines: low.arguments.command_lines(),
        }
    }
}

impl From<LowStat> for Stat {
    fn from(low: LowStat) -> Self {
        let output = low.output.map(|path| NewFile { path, force: low.force });
        let command_lines = low.arguments.command_lines();
        Stat { command: low.command, command_lines, runs: low.runs, json: low.json, output }
    }
}

impl From<LowFlamegraph> for Flamegraph {
    fn from(low: LowFlamegraph) -> Self {
        let scripts = (&low.filter.frames).into();
        let expression = LowExpression { filter: low.filter.expression.filter.clone() };
        let (shown, filter) = low.filter.into();
        let svg = FlamegraphForm::Svg { icicle: low.icicle, title: low.title, unfold: low.unfold };
        Flamegraph {
            file: low.file.unwrap_or_default(),
            other: low.other,
            process: low.process.process,
            measure: low.measure,
            form: if low.folded { FlamegraphForm::Folded } else { svg },
            output: file_or_stdout(low.output, low.force),
            shown,
            scripts,
            filter,
            part: low.window.part(expression),
        }
    }
}

impl From<LowExport> for Export {
    fn from(low: LowExport) -> Self {
        Export {
            file: low.file.unwrap_or_default(),
            process: low.process.process,
            is_native: low.native,
            has_inlined: !low.no_inline,
            part: low.window.part(low.expression),
            format: low.format,
            output: file_or_stdout(low.output, low.force),
            measure: low.measure,
        }
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
