//! Interprets the command line: the second of two steps, after [`crate::args`].

use crate::report::ReportCommand;

use crate::args::{
    AnyMeasure, DrawnAs, Later, LowArgs, LowCommand, LowCompletions, LowConfig, LowCpu, LowExport,
    LowExpression, LowFlamegraph, LowGcLog, LowHeap, LowImport, LowManPages, LowRecord, LowStat,
    LowSymbolize, LowVersion, TextOrJson,
};
#[cfg(feature = "open")]
use crate::args::{LowOpen, Viewer};
pub(crate) use crate::check::request::Check;
use crate::destination::{Destination, NewFile};
pub(crate) use crate::diff::request::Diff;
use mallow_collect::CommandLines;
use mallow_formats::export::ExportFormat;
use mallow_query::{PartRequest, ProcessChoice};
use mallow_view::{Filter, FrameVisibility, ScriptFrames};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// A request.
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
    /// Its arguments depend on the environment, so they are interpreted in [`crate::soak`].
    Soak(Box<crate::args::LowSoak>),
    /// Its arguments become a plan where commands can be run.
    Bench(Box<crate::args::LowBench>),
    GcLog(LowGcLog),
    Heap(LowHeap),
    #[cfg(feature = "open")]
    Open(Box<Open>),
    Symbolize(LowSymbolize),
    Version(LowVersion),
    Config(LowConfig),
    Completions(LowCompletions),
    ManPages(LowManPages),
}

/// Record a command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) command: Vec<OsString>,
    /// `None` for `APP.PID.mallow` in the current folder.
    pub(crate) output: Option<NewFile>,
    pub(crate) summary_only: bool,
    pub(crate) delay: Duration,
    pub(crate) python_objects: bool,
    pub(crate) mappings: bool,
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
    /// `None` for stderr, and for stdout in JSON.
    pub(crate) output: Option<NewFile>,
}

/// Draw a profile, or what changed between two.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Flamegraph {
    pub(crate) file: PathBuf,
    pub(crate) other: Option<PathBuf>,
    /// The process; `None` for all.
    pub(crate) process: Option<ProcessChoice>,
    /// `None` for the first that the files have.
    pub(crate) measure: Option<AnyMeasure>,
    pub(crate) form: FlamegraphForm,
    pub(crate) output: Destination,
    pub(crate) shown: FrameVisibility,
    /// Whether lines of scripts are drawn, and the interpreter around them.
    pub(crate) scripts: ScriptFrames,
    pub(crate) filter: Filter,
    /// The part of the file, or of both.
    pub(crate) part: PartRequest,
}

/// The format: drawn or as text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FlamegraphForm {
    Svg { icicle: bool, title: Option<String>, unfold: bool },
    Folded,
}

/// Write a profile as another tool's file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Export {
    pub(crate) file: PathBuf,
    /// The process; `None` for all.
    pub(crate) process: Option<ProcessChoice>,
    /// Without the frames of scripts.
    pub(crate) is_native: bool,
    /// With inlined functions.
    pub(crate) has_inlined: bool,
    /// Without arguments, folders and the machine.
    pub(crate) is_redacted: bool,
    /// The part of it.
    pub(crate) part: PartRequest,
    pub(crate) format: ExportFormat,
    pub(crate) output: Destination,
    /// `None` for bytes, or else the first that the file has.
    pub(crate) measure: Option<AnyMeasure>,
}

/// Files must be named: [`crate::newest::name_files`] adds those that were not.
impl From<LowArgs> for Request {
    fn from(args: LowArgs) -> Self {
        match args.command {
            LowCommand::Record(Later(low)) => Request::Record(low.into()),
            LowCommand::Stat(Later(low)) => Request::Stat(low.into()),
            LowCommand::Cpu(Later(low)) => Request::Cpu(low),
            LowCommand::Report(Later(low)) => Request::Report(Box::new(low.into())),
            LowCommand::Diff(Later(low)) => Request::Diff(low.into()),
            LowCommand::Flamegraph(Later(low)) => Request::Flamegraph(low.into()),
            LowCommand::Import(Later(low)) => Request::Import(low),
            LowCommand::Export(Later(low)) => Request::Export(low.into()),
            LowCommand::Check(Later(low)) => Request::Check(low.into()),
            #[cfg(feature = "soak")]
            LowCommand::Soak(Later(low)) => Request::Soak(low),
            LowCommand::Bench(Later(low)) => Request::Bench(low),
            LowCommand::GcLog(Later(low)) => Request::GcLog(low),
            LowCommand::Heap(low) => Request::Heap(low),
            #[cfg(feature = "open")]
            LowCommand::Open(Later(low)) => Request::Open(Box::new(low.into())),
            LowCommand::Symbolize(Later(low)) => Request::Symbolize(low),
            LowCommand::Version(Later(low)) => Request::Version(low),
            LowCommand::Config(Later(low)) => Request::Config(low),
            LowCommand::Completions(Later(low)) => Request::Completions(low),
            LowCommand::ManPages(Later(low)) => Request::ManPages(low),
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
            delay: low.delay.unwrap_or_default(),
            python_objects: low.python_objects,
            mappings: low.mappings,
            no_runtime_flags: low.no_runtime_flags,
            command_lines: low.arguments.command_lines(),
        }
    }
}

impl From<LowStat> for Stat {
    fn from(low: LowStat) -> Self {
        let command_lines = low.arguments.command_lines();
        let json = low.form.form() == TextOrJson::Json;
        let output = low.form.output.named();
        Stat { command: low.command, command_lines, runs: low.runs, json, output }
    }
}

impl From<LowFlamegraph> for Flamegraph {
    fn from(low: LowFlamegraph) -> Self {
        let form = low.form();
        let scripts = (&low.filter.frames).into();
        let expression = LowExpression { filter: low.filter.expression.filter.clone() };
        let (shown, filter) = low.filter.into();
        let svg = FlamegraphForm::Svg { icicle: low.icicle, title: low.title, unfold: low.unfold };
        Flamegraph {
            file: low.file.unwrap_or_default(),
            other: low.other,
            process: low.process.process,
            measure: low.measure,
            form: if form == DrawnAs::Folded { FlamegraphForm::Folded } else { svg },
            output: low.output.into(),
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
            is_redacted: low.redact,
            part: low.window.part(low.expression),
            format: low.format,
            output: low.output.into(),
            measure: low.measure,
        }
    }
}

/// Show a profile in the browser.
#[cfg(feature = "open")]
#[derive(Debug, PartialEq)]
pub(crate) struct Open {
    pub(crate) viewer: Viewer,
    pub(crate) no_browser: bool,
    /// What is served; its format and destination are decided elsewhere.
    pub(crate) export: Export,
}

#[cfg(feature = "open")]
impl From<LowOpen> for Open {
    fn from(low: LowOpen) -> Open {
        let export = Export {
            file: low.file.unwrap_or_default(),
            process: low.process.process,
            is_native: false,
            has_inlined: true,
            is_redacted: false,
            part: low.window.part(low.expression),
            format: ExportFormat::Firefox,
            output: Destination::default(),
            measure: low.metric,
        };
        Open { viewer: low.viewer, no_browser: low.no_browser, export }
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
