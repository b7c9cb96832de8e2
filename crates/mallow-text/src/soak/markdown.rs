//! A soak as Markdown, for a comment on a change: the verdict, the stacks, the rest collapsed.

use super::advice;
use super::finding::{finding, of_series, worse};
use super::sentence;
use super::text::Page;
use crate::check::stack;
use crate::markdown::{BYTES_MAX, STYLE, capitalised, code, code_cell, folded, inline};
use mallow_view::soak::growing;

/// The maximum number of letters of a line, however long the server's command is.
const LINE_MAX: usize = 400;

impl Page<'_> {
    /// Returns the report as Markdown.
    pub fn markdown(&self) -> String {
        let report = self.report;
        let verdict = sentence::verdict(report);
        let (word, rest) = verdict.split_once(": ").unwrap_or((&verdict, ""));
        let mut out = format!("## Soak: {word}\n\n{}\n", inline(&capitalised(rest), LINE_MAX));
        let series_list = report.comparison.iter().flat_map(|comparison| &comparison.series_list);
        let found = series_list
            .filter(|series| series.worse)
            .map(worse)
            .chain(report.conclusion.findings.iter().map(finding));
        let needs = advice::needs(report).into_iter().map(|need| format!("It would be decided by {need}."));
        let said = found.chain(needs).chain(advice::places(report));
        let beside: Vec<String> = said.map(|text| format!("- {}\n", inline(&text, LINE_MAX))).collect();
        if !beside.is_empty() {
            out.push_str(&format!("\n{}", beside.concat()));
        }
        self.stack_rows(&mut out);
        self.comparison_rows(&mut out);
        let whole = self.text(STYLE);
        let whole = match whole.char_indices().nth(BYTES_MAX - out.len().min(BYTES_MAX / 2)) {
            Some((at, _)) => format!("{}…\n", &whole[..at]),
            None => whole,
        };
        out.push_str(&format!("\n{}", folded("The whole report", false, &whole)));
        out
    }

    fn stack_rows(&self, out: &mut String) {
        let growing = growing(self.report, self.limit.min(20));
        if growing.rows.is_empty() {
            return;
        }
        out.push_str("\n| share | B/request | where |\n|--:|--:|---|\n");
        for row in &growing.rows {
            let bytes = super::metrics::small(row.bytes_per_request);
            let stack = code_cell(&stack::chain(&row.frames, STYLE.width), LINE_MAX);
            out.push_str(&format!("| {:.1}% | {bytes} | {stack} |\n", row.share * 100.0));
        }
    }

    fn comparison_rows(&self, out: &mut String) {
        let Some(comparison) = &self.report.comparison else { return };
        out.push_str(&format!(
            "\nAgainst {}:\n\n| | before | now | |\n|---|--:|--:|---|\n",
            code(&comparison.baseline, LINE_MAX)
        ));
        for series in &comparison.series_list {
            let [before, after] = [series.before, series.after].map(|value| of_series(series.unit, value));
            let worse = if series.worse { "**worse**" } else { "" };
            out.push_str(&format!("| {} | {before} | {after} | {worse} |\n", series.name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;
    use mallow_samples::soak as sample;

    fn markdown(report: &mallow_evidence::SoakReport) -> String {
        Page::of(report).markdown()
    }

    #[test]
    fn a_leak_for_a_comment() {
        assert_snapshot!(markdown(&sample::leaking()));
    }

    #[test]
    fn every_verdict_closes_what_it_opens_and_fits() {
        for mut report in sample::all() {
            report.warnings.push("said: ``` & <b> ".repeat(20_000));
            report.command.push("|<x>`*_".repeat(500));
            let text = markdown(&report);
            assert!(text.len() < 65_000, "{}", text.len());
            assert_eq!(text.matches("```").count(), 2, "{text}");
            assert_eq!(text.matches("<details>").count(), text.matches("</details>").count());
        }
    }
}
