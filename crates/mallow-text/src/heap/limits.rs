//! Limits on a heap.

use crate::{Style, grouped, plural, printable};
use mallow_base::Bytes;
use mallow_view::Weight;
use mallow_view::heap::{HeapLimit, HeapOutcome, LimitKind};

/// Returns one line for each limit, and how many failed.
pub fn limits(outcomes: &[HeapOutcome], style: Style) -> String {
    let mut out: Vec<String> = outcomes.iter().map(|outcome| line(outcome, style)).collect();
    let count = |weight| outcomes.iter().filter(|outcome| outcome.weight() == weight).count() as u64;
    let (failed, unknown) = (count(Weight::Failed), count(Weight::Inconclusive));
    let mut end = format!("{}: {} failed", plural(outcomes.len() as u64, "limit"), grouped(failed));
    if unknown > 0 {
        end += &format!(", {} could not be judged", grouped(unknown));
    }
    out.push(end);
    out.join("\n") + "\n"
}

fn line(outcome: &HeapOutcome, style: Style) -> String {
    let HeapLimit { class, kind, max } = &outcome.limit;
    let amount = |value: u64| match kind {
        LimitKind::Objects => plural(value, "object"),
        LimitKind::Bytes | LimitKind::Retained => Bytes(value).to_string(),
    };
    let whose = class.as_ref().map_or_else(|| "the heap".to_owned(), |class| printable(class));
    let what = match kind {
        LimitKind::Objects => "has",
        LimitKind::Bytes => "takes",
        LimitKind::Retained => "retains",
    };
    let word = match outcome.weight() {
        Weight::Fine => "OK",
        Weight::Failed => "FAILED",
        Weight::Inconclusive => "UNKNOWN",
    };
    let found = outcome
        .found
        .map(|found| format!("{whose} {what} {}, at most {} allowed", amount(found), amount(*max)));
    let text = found
        .or_else(|| outcome.reason.as_ref().map(|reason| format!("{whose}: {reason}")))
        .unwrap_or_default();
    format!("{} {text}", style.bold(&format!("{word:<7}")))
}
