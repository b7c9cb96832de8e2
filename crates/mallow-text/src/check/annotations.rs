//! Annotations of source lines, in GitHub's workflow commands: `::error file=src/buf.rs,line=88,title=…::…`.
//!
//! GitHub shows ten errors and ten warnings per step, so the worst come first.

use super::details::printable_lines;
use super::stack::chain;
use mallow_base::Frame;
use mallow_gate::measurement::Metric;
use mallow_gate::result::{CheckResult, TestResult};
use mallow_view::Weight;
use mallow_view::check::weight;
use mallow_view::check::{changes, largest, left, site_metrics, varying, visible, worst_first};

/// Columns of a stack in an annotation.
const WIDTH: usize = 100;

/// Converts a source path to one relative to the checkout; `None` for a file outside of it, such as a library's source.
pub type Relative<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Returns the commands, one line each.
pub fn commands(result: &CheckResult, allow_improvement: bool, relative: Relative<'_>) -> String {
    let mut text = String::new();
    for test in worst_first(result) {
        let command = match weight(test, allow_improvement) {
            Weight::Failed => "error",
            Weight::Inconclusive => "warning",
            Weight::Fine => continue,
        };
        let title = format!("{} {}", test.outcome.word(), test.name);
        let place = place(test, &blamed(test, None), relative)
            .map(|(file, line)| format!("file={},line={line},", property(&file)))
            .unwrap_or_default();
        text.push_str(&format!("::{command} {place}title={}::{}\n", property(&title), data(&message(test))));
    }
    text
}

/// Returns the reason, and the stacks to blame.
fn message(test: &TestResult) -> String {
    let mut lines: Vec<String> =
        test.sentences.iter().flat_map(|sentence| printable_lines(sentence, usize::MAX)).collect();
    lines.extend(blamed(test, None).iter().map(|frames| chain(frames, WIDTH)));
    if lines.is_empty() {
        lines.push(test.outcome.word().to_owned());
    }
    lines.join("\n")
}

/// Returns the stacks that explain a verdict, or that of one metric, the most important first: those that increased, else
/// those that were left, vary, or decreased; for what is left behind, those first that left it.
pub fn blamed(test: &TestResult, only: Option<Metric>) -> Vec<Vec<&Frame>> {
    const STACKS: usize = 3;
    let rows: Vec<_> =
        site_metrics(test).into_iter().flat_map(|metric| changes(test, metric, usize::MAX).rows).collect();
    let more = rows.iter().filter(|row| row.difference() > 0).map(|row| from_blamed(&row.frames, row.blamed));
    let left = left(test, STACKS, <[_]>::to_vec).rows.into_iter().map(|row| row.frames);
    let vary = varying(test, STACKS, <[_]>::to_vec).0.into_iter().map(|row| row.frames);
    let less = rows.iter().filter(|row| row.difference() < 0).map(|row| from_blamed(&row.frames, row.blamed));
    let most = site_metrics(test)
        .into_iter()
        .flat_map(|metric| largest(test, metric, STACKS, |frames, _| frames.to_vec()).0);
    let most = most.map(|row| from_blamed(&row.frames, row.blamed));
    let mut groups: [Vec<Vec<&Frame>>; 5] =
        [more.collect(), left.collect(), vary.collect(), less.collect(), most.collect()];
    if matches!(only, Some(Metric::Remaining | Metric::RemainingBytes | Metric::Descriptors)) {
        groups.swap(0, 1);
    }
    let first = groups.into_iter().find(|group| !group.is_empty()).unwrap_or_default();
    first.into_iter().take(STACKS).collect()
}

/// Returns a stack from the line to blame outwards: the frames inside of it are in the table.
fn from_blamed<'a>(frames: &[&'a Frame], blamed: usize) -> Vec<&'a Frame> {
    frames[blamed.min(frames.len())..].to_vec()
}

/// Returns the innermost line of the first stack to blame that is in the checkout, or else of the test's stack.
pub fn place(test: &TestResult, stacks: &[Vec<&Frame>], relative: Relative<'_>) -> Option<(String, u32)> {
    let all = stacks.iter().flat_map(|frames| frames.iter().copied());
    let any = test.changes.iter().flat_map(|change| visible(&change.frames, &test.plumbing));
    all.chain(any).find_map(|frame| {
        let (file, line) = (frame.file.as_deref()?, frame.line?);
        Some((relative(file)?, line))
    })
}

/// Escapes a command's message.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a property of a command, in which a comma and a colon are special too.
fn property(text: &str) -> String {
    data(&text.replace(|c: char| c.is_control(), "?")).replace(':', "%3A").replace(',', "%2C")
}
