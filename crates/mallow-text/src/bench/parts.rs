//! What the reports of a benchmark share: names of commands, percentages, verdicts, paragraphs.

use crate::{Style, wrapped};
use mallow_bench::{BenchCommand, Comparison, Metric, Session, compare};
use mallow_stats::Verdict;

/// Returns the name, and the parameters that the name does not contain, as in hyperfine's tables.
pub(super) fn shown_name(command: &BenchCommand) -> String {
    let missing =
        |(name, value): &&(String, String)| !command.name.contains(value.as_str()) && !name.is_empty();
    let parameters: Vec<String> =
        command.parameters.iter().filter(missing).map(|(name, value)| format!("{name} = {value}")).collect();
    if parameters.is_empty() {
        command.name.clone()
    } else {
        format!("{} ({})", command.name, parameters.join(", "))
    }
}

/// Formats a share as a percentage with its sign.
pub(super) fn percent(share: f64) -> String {
    let per_cent = share * 100.0;
    let digits = if per_cent.abs() >= 100.0 {
        0
    } else {
        usize::from(per_cent.abs() < 99.95) + usize::from(per_cent.abs() < 1.0)
    };
    let text = format!("{:.digits$}", per_cent.abs());
    let is_zero = text.bytes().all(|byte| b"0.".contains(&byte));
    let sign = if is_zero {
        ""
    } else if per_cent < 0.0 {
        "−"
    } else {
        "+"
    };
    format!("{sign}{text} %")
}

pub(super) fn paragraphs(sentences: &[String], style: Style) -> Vec<String> {
    let mut lines = Vec::new();
    for sentence in sentences {
        let broken = wrapped(sentence, style.width.saturating_sub(2));
        lines.extend(
            broken
                .iter()
                .enumerate()
                .map(|(at, line)| format!("{}{line}", if at == 0 { "! " } else { "  " })),
        );
    }
    if !lines.is_empty() {
        lines.insert(0, String::new());
    }
    lines
}

/// Returns the comparison of a command's times with the reference.
pub(super) fn of_times(session: &Session, index: usize) -> Comparison {
    compare(session, index, Metric::Wall)
}

/// Returns the word of a verdict in a sentence.
pub(super) fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Same => "the same",
        other => other.word(),
    }
}
