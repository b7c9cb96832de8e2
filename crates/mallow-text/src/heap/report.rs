//! The report of a heap.

use super::row::{NAME_COLUMN, amount, object_line};
use crate::columns::Columns;
use crate::{Style, cut_end, cut_start, grouped, plural, printable, wrapped};
use mallow_base::{Bytes, Count, Percent};
use mallow_view::heap::{GenerationRow, GroupRow, HeapReport, StringRow, Sum};

/// The default number of rows of a table.
pub const ROWS_DEFAULT: usize = 10;

/// Returns the report of a heap, with `rows` of each table.
pub fn report(report: &HeapReport, rows: usize, style: Style) -> String {
    let page = Page { report, rows, style };
    let sections = [
        page.head(),
        page.groups("classes", &report.classes),
        page.groups("lines", if report.has_sites { &report.sites } else { &[] }),
        page.generations(),
        page.retainers(),
        page.strings(),
        page.groups("kinds", &report.kinds),
        page.notes(),
        page.next(),
    ];
    let shown: Vec<String> =
        sections.into_iter().filter(|lines| !lines.is_empty()).map(|lines| lines.join("\n")).collect();
    shown.join("\n\n") + "\n"
}

struct Page<'a> {
    report: &'a HeapReport,
    rows: usize,
    style: Style,
}

impl Page<'_> {
    fn head(&self) -> Vec<String> {
        let report = self.report;
        let what = format!(" is a {} of {}", report.format.name, amount(&report.all));
        let left = self.style.width.saturating_sub(what.columns());
        let mut lines =
            vec![format!("{}{what}", self.style.bold(&cut_start(&printable(&report.file), left)))];
        if !report.is_partial {
            let reachable = Sum {
                objects: report.all.objects - report.unreachable.objects,
                bytes: report.all.retained_bytes,
                retained_bytes: 0,
            };
            lines.push(format!("  held by roots   {}", amount(&reachable)));
            lines.push(format!("  unreachable  {}", amount(&report.unreachable)));
        }
        lines
    }

    fn groups(&self, title: &str, rows: &[GroupRow]) -> Vec<String> {
        if rows.is_empty() {
            return Vec::new();
        }
        let mut lines = vec![self.heading(title, rows.len())];
        for row in rows.iter().take(self.rows) {
            let kind = if row.kind.is_empty() || row.name.contains(&row.kind) {
                String::new()
            } else {
                format!("  {}", row.kind)
            };
            let width = self.style.name_width(NAME_COLUMN + kind.columns());
            let name = if title == "lines" {
                cut_start(&printable(&row.name), width)
            } else {
                cut_end(&printable(&row.name), width)
            };
            lines.push(format!("{}{name}{}", self.metrics(&row.sum), self.style.dim(&kind)));
        }
        lines
    }

    /// Formats `title: the first 10 of 212` above the names of the columns.
    fn heading(&self, title: &str, all: usize) -> String {
        let title = if all > self.rows {
            format!("{title}, {} of {}", self.rows, grouped(all as u64))
        } else {
            title.to_owned()
        };
        let columns = format!("{:>10}{:>11}{:>7}{:>11}{:>7}  ", "objects", "own", "", "retained", "");
        format!("{}{}", self.style.dim(&columns), self.style.bold(&title))
    }

    fn metrics(&self, sum: &Sum) -> String {
        let all = &self.report.all;
        let share = |part, whole| Percent { part, whole }.to_string();
        let (retained, part) = if self.report.is_partial {
            ("-".to_owned(), String::new())
        } else {
            (Bytes(sum.retained_bytes).to_string(), share(sum.retained_bytes, all.bytes))
        };
        format!(
            "{:>10}{:>11}{:>7}{retained:>11}{part:>7}  ",
            Count(sum.objects).to_string(),
            Bytes(sum.bytes).to_string(),
            share(sum.bytes, all.bytes)
        )
    }

    fn generations(&self) -> Vec<String> {
        let rows = &self.report.generations;
        if rows.iter().all(|row| row.generation.is_none()) {
            return Vec::new();
        }
        // The newest generations show a leak; the oldest show what was there from the start.
        let skipped = rows.len().saturating_sub(self.rows);
        let mut lines = vec![self.heading("generations", rows.len())];
        let name = |row: &GenerationRow| {
            row.generation.map_or_else(|| "(not traced)".to_owned(), |at| at.to_string())
        };
        let line = |row: &GenerationRow| format!("{}{}", self.metrics(&row.sum), name(row));
        let untraced = usize::from(skipped > 0 && rows[0].generation.is_none());
        lines.extend(rows[..untraced].iter().map(line));
        lines.extend(rows.iter().skip(skipped + untraced).map(line));
        lines
    }

    fn retainers(&self) -> Vec<String> {
        let rows = &self.report.retainers;
        if self.report.is_partial || rows.is_empty() {
            return Vec::new();
        }
        let columns = format!("{:>20}{:>10}{:>7}{:>10}  ", "address", "retained", "", "own");
        let mut lines =
            vec![format!("{}{}", self.style.dim(&columns), self.style.bold("objects that retain most"))];
        lines.extend(
            rows.iter().take(self.rows).map(|row| object_line(row, self.report.all.bytes, self.style)),
        );
        lines
    }

    fn strings(&self) -> Vec<String> {
        let rows = &self.report.strings;
        let uncompared = self.report.strings_uncompared;
        let not_told = format!("the dump does not contain the contents of {}", plural(uncompared, "string"));
        if rows.is_empty() {
            return if uncompared > 0 { vec![format!("{:30}{not_told}", "")] } else { Vec::new() };
        }
        let wasted = self.report.strings_wasted_bytes;
        let columns = format!("{:>10}{:>11}{:>7}  ", "strings", "wasted", "");
        let of = format!(
            "equal strings, {} wasted by {} contents",
            Bytes(wasted),
            Count(self.report.string_contents)
        );
        let mut lines = vec![format!("{}{}", self.style.dim(&columns), self.style.bold(&of))];
        lines.extend(rows.iter().take(self.rows).map(|row| self.string(row)));
        if uncompared > 0 {
            lines.push(format!("{:30}{not_told}", ""));
        }
        lines
    }

    fn string(&self, row: &StringRow) -> String {
        let share = Percent { part: row.wasted_bytes, whole: self.report.all.bytes }.to_string();
        let text = format!("{:?}{}", row.text, if row.is_whole { "" } else { "…" });
        format!(
            "{:>10}{:>11}{share:>7}  {}",
            Count(row.strings).to_string(),
            Bytes(row.wasted_bytes).to_string(),
            cut_end(&text, self.style.width.saturating_sub(30))
        )
    }

    fn notes(&self) -> Vec<String> {
        self.report
            .notes
            .iter()
            .flat_map(|note| wrapped(&format!("note: {}.", note.trim_end_matches('.')), self.style.width))
            .collect()
    }

    fn next(&self) -> Vec<String> {
        let file = crate::shell_word(&self.report.file);
        let class = self.report.own_class.as_deref().unwrap_or("NAME");
        vec![format!("next: mallow heap {file} --class {}", crate::shell_word(class))]
    }
}
