//! The reports of one object and of one class.

use super::row::{amount, object_line};
use crate::{Style, cut_end, cut_start, plural, printable};
use mallow_base::{Bytes, Count};
use mallow_view::heap::{ClassReport, FieldRow, ObjectReport, Sum};

/// Returns the report of an object, with `rows` of each table.
pub fn object(report: &ObjectReport, rows: usize, style: Style) -> String {
    let object = &report.object;
    let mut out = vec![format!("{} is a {}", style.bold(&object.id), printable(&object.label))];
    let retained = match object.retained_bytes {
        Some(bytes) => format!("retains {}", Bytes(bytes)),
        None if report.is_partial => "what it retains is unknown".to_owned(),
        None => "nothing holds it".to_owned(),
    };
    let mut about = format!("  {}, {} of its own, {retained}", report.kind, Bytes(object.bytes));
    if let Some(generation) = report.generation {
        about += &format!(", made after {}", plural(generation.into(), "collection"));
    }
    out.push(about);
    if let Some(site) = &report.site {
        out.push(format!("  made at {}", cut_start(&printable(site), style.name_width(10))));
    }
    out.extend(path(report, style));
    let whole = object.retained_bytes.unwrap_or(0);
    if !report.dominators.is_empty() {
        out.extend([String::new(), style.bold("freed with any of these, the nearest first")]);
        out.extend(report.dominators.iter().take(rows).map(|row| object_line(row, 0, style)));
    }
    out.extend(fields("refers to", &report.references, rows, style));
    out.extend(fields("referred to by", &report.referrers, rows, style));
    if report.retained.len() > 1 {
        out.extend([String::new(), style.bold("what would be freed with it")]);
        out.extend(sums(&report.retained, rows, whole, style));
    }
    out.join("\n") + "\n"
}

/// Returns the report of a class, with `rows` of each table.
pub fn class(report: &ClassReport, rows: usize, style: Style) -> String {
    let retained = if report.is_partial {
        String::new()
    } else {
        format!(", which retain {}", Bytes(report.sum.retained_bytes))
    };
    let name = style.bold(&printable(&report.name));
    let mut out = vec![format!("{name}: {}{retained}", amount(&report.sum))];
    if !report.sites.is_empty() {
        out.extend([String::new(), style.bold("made at")]);
        out.extend(sums(&report.sites, rows, report.sum.bytes, style));
    }
    if !report.holders.is_empty() {
        out.extend([String::new(), style.bold("held by")]);
        out.extend(report.holders.iter().take(rows).map(|(name, references)| {
            format!(
                "{:>10}  {}",
                Count(*references).to_string(),
                cut_end(&printable(name), style.name_width(12))
            )
        }));
    }
    let title = if report.is_partial { "objects" } else { "objects that retain most" };
    out.extend([String::new(), style.bold(title)]);
    out.extend(
        report.objects.iter().take(rows).map(|row| object_line(row, report.sum.retained_bytes, style)),
    );
    if let Some(example) = &report.example {
        out.extend(path(example, style));
    }
    out.join("\n") + "\n"
}

/// Returns why an object is alive: one line for each object on the path.
pub(super) fn path(report: &ObjectReport, style: Style) -> Vec<String> {
    if report.is_partial {
        return vec![
            String::new(),
            "the dump has no roots, so it does not show which objects hold which".to_owned(),
        ];
    }
    let Some(root) = &report.path_root else {
        return vec![String::new(), format!("{} is unreachable", report.object.id)];
    };
    let mut lines =
        vec![String::new(), style.bold(&format!("the shortest way to {} from a root", report.object.id))];
    lines.push(format!("  root {}", printable(root)));
    lines.extend(report.path.iter().map(|row| {
        let field = if row.field.is_empty() { String::new() } else { format!("{} ", printable(&row.field)) };
        let text = format!("{field}{} {}", printable(&row.object.label), row.object.id);
        format!("   → {}", cut_end(&text, style.name_width(5)))
    }));
    lines
}

fn fields(title: &str, fields: &[FieldRow], rows: usize, style: Style) -> Vec<String> {
    if fields.is_empty() {
        return Vec::new();
    }
    let shown = if fields.len() > rows {
        format!("{title}, {rows} of {}", crate::grouped(fields.len() as u64))
    } else {
        title.to_owned()
    };
    let mut lines = vec![String::new(), style.bold(&shown)];
    lines.extend(fields.iter().take(rows).map(|row| {
        let weak = if row.holds { "" } else { "weakly " };
        let text = format!("{weak}{} {}", row.field, row.object.label);
        let retained =
            row.object.retained_bytes.map_or_else(|| "-".to_owned(), |bytes| Bytes(bytes).to_string());
        let text = cut_end(printable(&text).trim_start(), style.name_width(33));
        format!("{:>20}{retained:>11}  {text}", row.object.id)
    }));
    lines
}

fn sums(rows: &[(String, Sum)], limit: usize, whole: u64, style: Style) -> Vec<String> {
    let line = |(name, sum): &(String, Sum)| {
        let share = mallow_base::Percent { part: sum.bytes, whole }.to_string();
        let name = cut_start(&printable(name), style.name_width(30));
        format!(
            "{:>10}{:>11}{share:>7}  {name}",
            Count(sum.objects).to_string(),
            Bytes(sum.bytes).to_string()
        )
    };
    rows.iter().take(limit).map(line).collect()
}
