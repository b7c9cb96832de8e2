//! Which sites are shown, and which frames of their stacks: the same flags in every command that shows stacks.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use mallow_query::ProcessChoice;
use mallow_view::filter::Expression;
use mallow_view::{Domain, Filter, FrameVisibility, ScriptFrames};

/// Which processes are selected.
#[derive(Debug, Args)]
pub(crate) struct LowProcess {
    /// Only one process: NAME of its program, its PID, main (which mallow started, as the last program that it became) or
    /// largest (with the highest peak)
    #[arg(long, value_name = "PROCESS")]
    pub(crate) process: Option<ProcessChoice>,
}

/// Which frames of a stack are shown.
#[derive(Debug, Args)]
pub(crate) struct LowFrames {
    /// Show allocator plumbing, the runtime's start and deep stacks too, and whole names
    #[arg(long)]
    pub(crate) all_frames: bool,
    /// Leave the lines of scripts out: native stacks, with the interpreter's own functions
    #[arg(long)]
    pub(crate) native: bool,
    /// Treat functions whose name matches PATTERN as plumbing too; * is any text; may be repeated
    #[arg(long, value_name = "PATTERN", conflicts_with = "all_frames")]
    pub(crate) plumbing: Vec<String>,
}

/// Which sites are shown, and which frames of their stacks.
#[derive(Debug, Args)]
pub(crate) struct LowFilter {
    #[command(flatten)]
    pub(crate) frames: LowFrames,
    /// Only sites with TEXT in the name of a function on their stack
    #[arg(long, value_name = "TEXT")]
    pub(crate) function: Option<String>,
    /// Only sites with TEXT in the path of an executable or library on their stack
    #[arg(long, value_name = "TEXT")]
    pub(crate) module: Option<String>,
    /// Only blocks of one of Python's domains, of a trace of record --python-objects
    #[arg(long, value_name = "DOMAIN", value_parser = domain())]
    pub(crate) domain: Option<Domain>,
    #[command(flatten)]
    pub(crate) expression: LowExpression,
}

/// The part of a profile that metrics are computed from.
#[derive(Debug, Args)]
pub(crate) struct LowExpression {
    /// Only what matches EXPRESSION: tests of function, file, module, language, request, size, thread and process, with and, or, not
    /// and parentheses, such as 'function:parse and not module:libc'
    #[arg(long, value_name = "EXPRESSION")]
    pub(crate) filter: Option<Expression>,
}

/// Returns the parser of a domain.
fn domain() -> impl TypedValueParser<Value = Domain> {
    let words = Domain::ALL.map(Domain::word);
    PossibleValuesParser::new(words).map(|word| {
        let mut all = Domain::ALL.into_iter();
        all.find(|domain| domain.word() == word).unwrap_or(Domain::Raw)
    })
}

impl From<&LowFrames> for ScriptFrames {
    fn from(low: &LowFrames) -> Self {
        match (low.native, low.all_frames) {
            (true, _) => ScriptFrames::LeftOut,
            (false, true) => ScriptFrames::All,
            (false, false) => ScriptFrames::Folded,
        }
    }
}

impl From<LowFrames> for FrameVisibility {
    fn from(low: LowFrames) -> Self {
        if low.all_frames { FrameVisibility::All } else { FrameVisibility::without_plumbing(low.plumbing) }
    }
}

impl From<LowFilter> for (FrameVisibility, Filter) {
    fn from(low: LowFilter) -> Self {
        let LowFilter { frames, function, module, domain, .. } = low;
        (frames.into(), Filter { function, module, domain, expression: None })
    }
}
