//! The classes of a heap, with their own bytes only.

use super::row::amount;
use crate::columns::Columns;
use crate::{Style, cut_end, cut_start, grouped, printable, wrapped};
use mallow_base::{Bytes, Count, Percent};
use mallow_view::heap::HistogramReport;

/// Columns before a class's name.
const METRICS: usize = 30;

/// Returns the report of a heap's classes; `rows` of them.
pub fn histogram(report: &HistogramReport, rows: usize, style: Style) -> String {
    let what = format!(" is a {} of {}", report.format.name, amount(&report.all));
    let left = style.width.saturating_sub(what.columns());
    let mut lines =
        vec![format!("{}{what}", style.bold(&cut_start(&printable(&report.file), left))), String::new()];
    let title = match report.classes.len() > rows {
        true => format!("classes, {rows} of {}", grouped(report.classes.len() as u64)),
        false => "classes".to_owned(),
    };
    let columns = format!("{:>10}{:>11}{:>7}  ", "objects", "own", "");
    lines.push(format!("{}{}", style.dim(&columns), style.bold(&title)));
    for row in report.classes.iter().take(rows) {
        let share = Percent { part: row.sum.bytes, whole: report.all.bytes }.to_string();
        let (count, bytes) = (Count(row.sum.objects).to_string(), Bytes(row.sum.bytes).to_string());
        let name = cut_end(&printable(&row.name), style.name_width(METRICS));
        lines.push(format!("{count:>10}{bytes:>11}{share:>7}  {name}"));
    }
    for note in &report.notes {
        lines.push(String::new());
        lines.extend(wrapped(&format!("note: {}.", note.trim_end_matches('.')), style.width));
    }
    let file = crate::shell_word(&report.file);
    lines.push(format!("\nnext: mallow heap {file}, which shows what they retain"));
    lines.join("\n") + "\n"
}
