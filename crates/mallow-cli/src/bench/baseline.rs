//! Limits, and the comparison with an earlier result.

use crate::args::LowBench;
use mallow_bench::{BenchCommand, Metric, Session, limited};
use mallow_json::bench::BenchJson;
use mallow_query::{Failure, reason};
use mallow_stats::Ratio;
use mallow_text::bench::LimitRow;
use mallow_text::{Style, wrapped};
use mallow_view::diff::{Change, Limit};
use std::num::NonZeroU64;
use std::path::Path;

/// Reads a file of `--save`.
pub(super) fn read(path: &Path) -> Result<Session, Failure> {
    let text = mallow_files::open_input(path)
        .and_then(std::io::read_to_string)
        .map_err(|error| Failure::new(format!("cannot read {}: {}.", path.display(), reason(&error))))?;
    BenchJson::read(&text)
        .map_err(|sentence| Failure::new(format!("cannot use {}: {sentence}.", path.display())))
}

/// Refuses limits without anything to compare with.
pub(super) fn check_limits(low: &LowBench, commands: usize, has_baseline: bool) -> Result<(), Failure> {
    let relative = low.fail_on.iter().find(|limit| limit.is_relative());
    match relative {
        Some(limit) if commands == 1 && !has_baseline => Err(Failure::new(format!(
            "{limit} needs something to compare with: a second command, or --baseline; a limit on one command alone is one such as wall>2s."
        ))),
        _ => Ok(()),
    }
}

/// Returns the command of an earlier session that a command is compared with.
fn earlier<'a>(before: &'a Session, command: &BenchCommand) -> Option<&'a BenchCommand> {
    let is_same =
        |known: &&BenchCommand| known.name == command.name && known.parameters == command.parameters;
    before
        .commands
        .iter()
        .find(is_same)
        .or_else(|| before.commands.iter().find(|known| known.line == command.line))
}

/// Judges each limit: against the baseline if there is one, or else against the reference.
pub(super) fn limits(low: &LowBench, session: &Session, before: Option<&Session>) -> Vec<LimitRow> {
    let mut rows = Vec::new();
    for limit in &low.fail_on {
        for (index, command) in session.commands.iter().enumerate() {
            let (against, name) = match (limit.is_relative(), before) {
                (false, _) => (None, None),
                (true, Some(before)) => (earlier(before, command), Some("the baseline".to_owned())),
                (true, None) if index == session.reference => continue,
                (true, None) => {
                    let reference = &session.commands[session.reference];
                    (Some(reference), Some(LimitRow::name(session.reference, reference)))
                }
            };
            let is_known = !limit.is_relative() || against.is_some();
            let is_broken = is_known.then(|| broken(limit, session, against, command)).flatten();
            rows.push(LimitRow {
                limit: limit.to_string(),
                metric: limit.measure,
                command: LimitRow::name(index, command),
                against: name,
                is_broken,
            });
        }
    }
    rows
}

/// A limit is exceeded if the lower bound of the change exceeds it, kept if the upper bound does not, and otherwise undecided.
fn broken(
    limit: &Limit<Metric>,
    session: &Session,
    before: Option<&BenchCommand>,
    after: &BenchCommand,
) -> Option<bool> {
    let ends = limited(session, before, after, limit.measure)?;
    let is_broken = |(before, after): (u64, u64)| limit.is_broken(Change { before, after }, NonZeroU64::MIN);
    match (is_broken(ends.least), ends.most.map(is_broken)) {
        (true, _) => Some(true),
        (false, Some(false)) => Some(false),
        _ => None,
    }
}

/// Formats each command beside its result in the earlier session.
pub(super) fn text(session: &Session, before: &Session, style: Style) -> String {
    let mut lines = vec![String::new(), style.bold("Against the baseline")];
    if before.machine != session.machine {
        lines.extend(wrapped(
            &format!(
                "! The baseline was made on another machine ({}, {} processors, Linux {}).",
                before.machine.processor, before.machine.processors, before.machine.kernel
            ),
            style.width,
        ));
    }
    for (index, command) in session.commands.iter().enumerate() {
        let Some(known) = earlier(before, command) else {
            lines.extend(wrapped(
                &format!("{}: the baseline has no command of this name.", index + 1),
                style.width,
            ));
            continue;
        };
        let of = |run: &mallow_bench::Run| Metric::Wall.of_run(run, &session.events);
        let ratio = Ratio::of_pairs(&mallow_bench::pairs(known, command, of), mallow_stats::ERROR);
        let counts = [(known, "then"), (command, "now")].map(|(it, when)| {
            let count = mallow_bench::counted(it, Metric::Allocations).map(mallow_bench::Counted::ends);
            count
                .map_or(format!("unknown {when}"), |(min, _)| format!("{} {when}", mallow_base::grouped(min)))
        });
        let time = match ratio {
            Some(ratio) if ratio.has_interval() => format!(
                "{:+.1} % ({:+.1} … {:+.1} %)",
                (ratio.ratio - 1.0) * 100.0,
                (ratio.low - 1.0) * 100.0,
                (ratio.high - 1.0) * 100.0
            ),
            Some(ratio) => format!("{:+.1} %, too few runs for an interval", (ratio.ratio - 1.0) * 100.0),
            None => "unknown".to_owned(),
        };
        let sentence = format!("{}: wall {time}; allocations {}.", index + 1, counts.join(", "));
        lines.extend(wrapped(&sentence, style.width));
    }
    lines.extend(wrapped(
        "The runs were made at different times: the interval does not know what the machine did between them. Times that have to be compared \
         for sure are those of commands in one session.",
        style.width,
    ));
    lines.join("\n") + "\n"
}
