//! Where a process's memory is.

use crate::{Style, cut_end, frame_text, printable, wrapped};
use mallow_base::{Bytes, Percent};
use mallow_view::heap::{Explanation, NativeRow, Part, PartRow};

/// Returns the report, with `rows` of modules.
pub fn explain(page: &Explanation, rows: usize, style: Style) -> String {
    let mut out = vec![head(page, style)];
    out.extend(page.parts.iter().map(|row| part(row, page, style)));
    if !page.native.is_empty() {
        out.extend([String::new(), style.bold("live native blocks, by the module that allocated them")]);
        out.extend(page.native.iter().take(rows).flat_map(|row| module(row, style)));
    }
    out.push(String::new());
    let verdict = page.culprit.map_or("unknown", word);
    let sentences: Vec<String> = page.sentences.iter().map(|sentence| format!("{sentence}.")).collect();
    out.extend(wrapped(
        &format!("verdict: {}. {}", verdict.to_uppercase(), sentences.join(" ")),
        style.width,
    ));
    out.join("\n") + "\n"
}

/// Returns the word for a part.
pub(super) fn word(part: Part) -> &'static str {
    match part {
        Part::Managed => "managed objects",
        Part::Native => "native blocks",
        Part::Allocator => "allocator",
        Part::Stacks => "thread stacks",
        Part::Files => "files",
        Part::Unexplained => "not explained",
    }
}

fn head(page: &Explanation, style: Style) -> String {
    let resident = page.resident_bytes.map_or_else(|| "-".to_owned(), |bytes| Bytes(bytes).to_string());
    let change = change(page.resident_bytes, page.resident_before);
    format!("{resident:>10}{:>7}{change:>12}  {}", "", style.bold("resident memory of the process"))
}

fn part(row: &PartRow, page: &Explanation, style: Style) -> String {
    let bytes = row.bytes.map_or_else(|| "-".to_owned(), |bytes| Bytes(bytes).to_string());
    let share = row.bytes.zip(page.resident_bytes).map(|(part, whole)| Percent { part, whole }.to_string());
    let text = format!("{:<16}  {}", word(row.part), row.note);
    format!(
        "{bytes:>10}{:>7}{:>12}  {}",
        share.unwrap_or_default(),
        change(row.bytes, row.before),
        cut_end(text.trim_end(), style.name_width(31))
    )
}

fn change(now: Option<u64>, before: Option<u64>) -> String {
    match now.zip(before) {
        None => String::new(),
        Some((now, before)) if now >= before => format!("+{}", Bytes(now - before)),
        Some((now, before)) => format!("-{}", Bytes(before - now)),
    }
}

fn module(row: &NativeRow, style: Style) -> Vec<String> {
    let what = if row.is_runtime { "  the runtime: its objects' contents and its own" } else { "" };
    let mut lines =
        vec![format!("{:>10}  {}{}", Bytes(row.bytes).to_string(), printable(&row.module), style.dim(what))];
    if row.frame.is_some() {
        let frame = frame_text(row.frame.as_ref(), style.name_width(26));
        lines.push(format!("{:>22}  {frame}", Bytes(row.frame_bytes).to_string()));
    }
    lines
}
