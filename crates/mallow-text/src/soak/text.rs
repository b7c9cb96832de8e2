//! A soak as text: the verdict first, what grows, every series, what to do next.

use super::metrics::{course, level, micros, signed_size, size, small};
use super::{advice, finding, sentence};
use crate::check::stack;
use crate::{Style, cut_end, cut_start, grouped, plural, printable, shell_word, wrapped};
use mallow_base::{Bytes, Percent};
use mallow_evidence::{Comparison, MappingGrowth, SoakReport};
use mallow_growth::{Basis, Verdict};
use mallow_view::heap::HeldRow;
use mallow_view::soak::FailOn;
use mallow_view::soak::{LatencyRow, SeriesRow, asked, growing, latencies, pace, series_list, split};
use std::path::PathBuf;

/// The column where stacks begin.
const INDENT: usize = 8;

/// A report, and how it is shown.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// The results of the soak.
    pub report: &'a SoakReport,
    /// What grew on the managed heap between its snapshots.
    pub held: &'a [HeldRow],
    /// Whether the snapshots are kept.
    pub are_snapshots_kept: bool,
    /// Stacks that are shown.
    pub limit: usize,
    /// What fails it apart from a leak.
    pub fail_on: &'a [FailOn],
    /// The pair of profiles, if it was written.
    pub profiles: Option<&'a (PathBuf, PathBuf)>,
}

impl<'a> Page<'a> {
    /// Returns the page of a report without additions.
    pub fn of(report: &'a SoakReport) -> Page<'a> {
        Page { report, held: &[], are_snapshots_kept: false, limit: 5, fail_on: &[], profiles: None }
    }

    /// Returns the whole report.
    pub fn text(&self, style: Style) -> String {
        let mut out: Vec<String> = Vec::new();
        out.extend(
            firm_lines(&sentence::verdict(self.report), style.width).iter().map(|line| style.bold(line)),
        );
        out.extend(self.beside(style));
        out.push(String::new());
        out.extend(self.what_was_done(style.width).iter().map(|line| style.dim(line)));
        for section in [
            self.managed(style),
            self.stacks(style),
            self.mappings(style),
            self.compared(style),
            self.series_list(style),
            self.split(style),
            self.latency(style),
            self.warnings(style),
            self.next(style),
        ] {
            if !section.is_empty() {
                out.push(String::new());
                out.extend(section);
            }
        }
        out.join("\n") + "\n"
    }

    /// Returns findings, comparison and needs: what a reader has to know beside the verdict.
    fn beside(&self, style: Style) -> Vec<String> {
        let mut out = Vec::new();
        let worse = self.report.comparison.iter().flat_map(|comparison| &comparison.series_list);
        let worse = worse.filter(|series| series.worse).map(finding::worse);
        let found = self.report.conclusion.findings.iter().map(finding::finding);
        for sentence in worse.chain(found) {
            out.extend(bullet(&sentence, style));
        }
        let needs = advice::needs(self.report);
        if !needs.is_empty() {
            out.push("It would be decided by".to_owned());
        }
        for need in needs {
            out.extend(bullet(&need, style));
        }
        for place in advice::places(self.report) {
            out.extend(bullet(&place, style));
        }
        if self.report.evidence.uncollected && self.report.conclusion.verdict != Verdict::Inconclusive {
            let text =
                "Its managed memory was not collected before each look, so what is live is an upper bound.";
            out.extend(bullet(text, style));
        }
        out
    }

    /// Formats `./server: http://127.0.0.1:3030/ (50 connections)`, and the amount of work.
    fn what_was_done(&self, width: usize) -> Vec<String> {
        let report = self.report;
        let command: Vec<String> = match report.command.as_slice() {
            // This is a description and not a command.
            [process] if process.starts_with("process ") => vec![process.clone()],
            words => words.iter().map(|word| shell_word(&printable(word))).collect(),
        };
        let asked = asked(&report.samples);
        let failed = asked.failures.iter().map(|failure| failure.1).fold(0, u64::saturating_add);
        let what = if asked.uncounted { "run" } else { "request" };
        let mut done =
            format!("{}, {}", plural(asked.iterations as u64, "iteration"), plural(asked.requests, what));
        if let Some(pace) = pace(report) {
            done.push_str(&format!(", {}/s", small(pace.requests_per_second)));
        }
        match asked.failures.first() {
            None => done.push_str(", no errors"),
            Some((most, _)) => {
                let share = Percent { part: failed, whole: asked.requests };
                done.push_str(&format!(
                    ", {} failed ({share}, most by {})",
                    grouped(failed),
                    printable(most)
                ));
            }
        }
        done.push_str(&format!("; {} in all", super::metrics::long_time(report.seconds)));
        let mut lines = vec![cut_end(&format!("{}: {}", command.join(" "), printable(&report.work)), width)];
        lines.extend(firm_lines(&done, width));
        lines
    }

    fn stacks(&self, style: Style) -> Vec<String> {
        let growing = growing(self.report, self.limit);
        if growing.rows.is_empty() {
            return Vec::new();
        }
        let head = match self.report.conclusion.verdict {
            Verdict::Plateau => "What filled it",
            Verdict::Leaking if self.report.conclusion.basis == Basis::ManagedHeap => {
                "What grows beside it, in the native heap"
            }
            Verdict::Leaking => "Where the leak is allocated",
            _ => "What grows in the live heap",
        };
        let mut out = vec![style.bold(head)];
        for row in &growing.rows {
            out.push(format!(
                "{:>6.1}%  {} B/request, {} blocks/request; {} to {}",
                row.share * 100.0,
                small(row.bytes_per_request),
                small(row.blocks_per_request),
                Bytes(row.bytes.0),
                Bytes(row.bytes.1),
            ));
            let width = style.width.saturating_sub(INDENT);
            let lines = stack::lines(&row.frames, width);
            out.extend(lines.iter().map(|line| format!("{:INDENT$}{line}", "")));
        }
        if growing.more > 0 {
            let stacks = plural(growing.more as u64, "more stack");
            out.push(format!("{:>6.1}%  {stacks}; use --top to see more", growing.more_share * 100.0));
        }
        out
    }

    /// Returns what grew between two snapshots of a managed heap, and why it is alive.
    fn managed(&self, style: Style) -> Vec<String> {
        let Some(snapshots) = &self.report.snapshots else { return Vec::new() };
        let head = format!(
            "On the heap of {} {}, between two snapshots {} apart",
            snapshots.runtime,
            snapshots.pid,
            plural(snapshots.requests, "request")
        );
        let mut out: Vec<String> =
            firm_lines(&head, style.width).iter().map(|line| style.bold(line)).collect();
        out.extend(crate::heap::held(self.held, self.limit, style));
        out
    }

    fn mappings(&self, style: Style) -> Vec<String> {
        /// Less than this is noise of every server.
        const LEAST: u64 = 65_536;
        let grows = |one: &&MappingGrowth| one.after_bytes.saturating_sub(one.before_bytes) >= LEAST;
        let mappings: Vec<_> = self.report.mappings.iter().filter(grows).take(5).collect();
        let is_told = matches!(
            self.report.conclusion.verdict,
            Verdict::Mappings | Verdict::Fragmentation | Verdict::Retention | Verdict::Inconclusive
        );
        if mappings.is_empty() || !is_told {
            return Vec::new();
        }
        let mut out = vec![style.bold("Mappings that grow")];
        for one in mappings {
            let more = size(one.after_bytes as f64 - one.before_bytes as f64);
            let count = match one.count {
                (before, after) if before == after => plural(after, "mapping"),
                (before, after) => format!("{} mappings, {} before", grouped(after), grouped(before)),
            };
            let name = cut_start(&printable(&one.name), style.width.saturating_sub(52).max(16));
            out.push(format!(
                "{:>12}  {name}: {} to {} in {count}",
                format!("+{more}"),
                Bytes(one.before_bytes),
                Bytes(one.after_bytes)
            ));
        }
        out
    }

    fn series_list(&self, style: Style) -> Vec<String> {
        let rows = series_list(self.report);
        if rows.is_empty() {
            return Vec::new();
        }
        let head = format!(
            "{:<17}{:>10}{:>10}{:>11}  {:<18}{}",
            "", "first", "last", "B/request", "between", "course"
        );
        let mut out = vec![style.bold(head.trim_end())];
        out.extend(rows.iter().map(series));
        out
    }

    fn split(&self, style: Style) -> Vec<String> {
        let Some(split) = split(self.report) else { return Vec::new() };
        let is_quiet = matches!(self.report.conclusion.verdict, Verdict::Clean | Verdict::Plateau);
        if is_quiet && split.managed.is_none() {
            return Vec::new();
        }
        let part = |name: &str, value: Option<f64>| {
            value.map(|value| format!("{name} {}", small(value))).into_iter().collect::<Vec<_>>()
        };
        let parts = [
            part("managed", split.managed),
            part("native", split.native),
            part("the allocator's own", split.allocator),
            part("resident in all", Some(split.resident)),
        ];
        wrapped(&format!("Bytes per request: {}", parts.concat().join(", ")), style.width)
    }

    fn latency(&self, style: Style) -> Vec<String> {
        let rows = latencies(&self.report.samples);
        let is_open = rows.iter().any(|row| row.is_corrected);
        let how = match is_open {
            true => "on a fixed schedule",
            false => "closed loop: a slow answer delays the next request",
        };
        let mut out: Vec<String> = rows.iter().map(latency).collect();
        if !out.is_empty() {
            out.insert(0, style.bold(&format!("Latency, {how}")));
        }
        out
    }

    fn compared(&self, style: Style) -> Vec<String> {
        self.report
            .comparison
            .as_ref()
            .map(|comparison| comparison_rows(comparison, style))
            .unwrap_or_default()
    }

    fn warnings(&self, style: Style) -> Vec<String> {
        let end = &self.report.server_end;
        // A JVM and a shell exit with 143 after SIGTERM.
        let expected = [
            "exit status 0",
            "exit status 143",
            "still running",
            "killed by signal 15",
            "killed by SIGTERM",
            "",
        ];
        let odd = (!expected.contains(&end.as_str())).then(|| format!("the server did not end well: {end}"));
        let warnings = self.report.warnings.iter().cloned().chain(odd);
        warnings
            .flat_map(|warning| wrapped(&format!("warning: {}", printable(&warning)), style.width))
            .collect()
    }

    fn next(&self, style: Style) -> Vec<String> {
        let mut out = Vec::new();
        if let Some(snapshots) = self.report.snapshots.as_ref().filter(|_| self.are_snapshots_kept) {
            let [before, after] =
                [&snapshots.before, &snapshots.after].map(|path| shell_word(&path.to_string_lossy()));
            out.push(format!("next: mallow heap diff {before} {after}"));
        }
        if let Some((before, after)) = self.profiles {
            let [before, after] = [before, after].map(|path| shell_word(&path.to_string_lossy()));
            out.push(format!("next: mallow diff {before} {after}"));
            out.push(format!("      mallow report {after} --metric leaked"));
        } else if self.report.edges.is_some() && !self.report.growth.is_empty() {
            out.push(style.dim(
                "Whole stacks: add -o PREFIX, then mallow diff PREFIX.before.mallow PREFIX.after.mallow",
            ));
        }
        out
    }
}

/// Breaks a sentence into lines without separating a number from its unit.
fn firm_lines(text: &str, width: usize) -> Vec<String> {
    /// Replaces a blank while lines are broken.
    const FIRM: char = '\u{1}';
    const UNITS: [&str; 12] =
        ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "bytes", "h", "min", "s", "days", "years"];
    let mut firm = String::with_capacity(text.len());
    for word in printable(text).split_whitespace() {
        let unit = word.trim_end_matches([',', ';', '.', ')']);
        let before = firm.rsplit([' ', FIRM]).next().unwrap_or_default();
        let is_metric = before.trim_start_matches(['(', '-', '+']).starts_with(|c: char| c.is_ascii_digit());
        if !firm.is_empty() {
            firm.push(if is_metric && UNITS.contains(&unit) { FIRM } else { ' ' });
        }
        firm.push_str(word);
    }
    wrapped(&firm, width).into_iter().map(|line| line.replace(FIRM, " ")).collect()
}

/// Returns the lines of a list item.
fn bullet(text: &str, style: Style) -> Vec<String> {
    let lines = firm_lines(text, style.width.saturating_sub(2));
    let mark = |(at, line): (usize, &String)| format!("{} {line}", if at == 0 { "-" } else { " " });
    lines.iter().enumerate().map(mark).collect()
}

fn series(row: &SeriesRow) -> String {
    let (slope, between) = match row.per_request {
        Some((slope, low, high)) => (small(slope), format!("{} to {}", small(low), small(high))),
        None => (String::new(), String::new()),
    };
    let (first, last) = (level(row, row.first), level(row, row.last));
    let low = row.per_request.map_or(0.0, |(_, low, _)| low);
    let shape = row.shape.map(|shape| course(shape, low)).unwrap_or_default();
    let name = row.name;
    format!("{name:<17}{first:>10}{last:>10}{slope:>11}  {between:<18}{shape}").trim_end().to_owned()
}

fn latency(row: &LatencyRow) -> String {
    let name = if row.is_corrected { "from when it was due" } else { "from when it was sent" };
    let metrics = [
        ("p50", row.p50_us),
        ("p90", row.p90_us),
        ("p99", row.p99_us),
        ("worst", row.worst_us.map(|worst| worst as f64)),
    ];
    let told = metrics.into_iter().filter_map(|(name, us)| Some(format!("{name} {}", micros(us?))));
    format!("{name:<23}{}", told.collect::<Vec<_>>().join("  "))
}

/// Returns every compared series.
pub(crate) fn comparison_rows(comparison: &Comparison, style: Style) -> Vec<String> {
    let against = cut_start(&printable(&comparison.baseline), style.width.saturating_sub(9));
    let head = format!("{:<24}{:>13}{:>13}{:>15}", "", "before", "now", "difference");
    let mut out = vec![format!("Against {against}"), style.bold(&head)];
    for series in &comparison.series_list {
        let of = |value: f64| finding::of_series(series.unit, value);
        let (low, high) = series.difference;
        let difference = match series.unit {
            "B" => signed_size((low + high) / 2.0),
            _ => of((low + high) / 2.0),
        };
        let worse = if series.worse { style.bold("  worse") } else { String::new() };
        let (name, before, after) = (series.name, of(series.before), of(series.after));
        out.push(format!("{name:<24}{before:>13}{after:>13}{difference:>15}{worse}"));
    }
    out
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
