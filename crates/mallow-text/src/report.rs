//! What `mallow report` prints: the heading, and what all tables share.

mod accesses;
pub mod leaks;
mod missing_data;
mod points;
mod short;
mod stacks;
mod suppressed;
mod totals;
mod tree;

pub(super) use stacks::whole_frame;
pub use suppressed::known_leaks;

use crate::columns::Columns;
use crate::functions::{FunctionTable, ROWS};
use crate::summary::{LOST_UNKNOWN, NO_METRICS};
use crate::wording::without_names;
use crate::{Style, cut_end, exit_text, grouped, metric, part_words, plural, printable, wrapped};
use mallow_base::{Bytes, Count, Micros, Percent};
use mallow_profile::{Availability, EventsLost, Profile, SiteTotals, TimeUnit, Totals};
use mallow_view::{
    Domain, Filter, FrameVisibility, FunctionOrder, Layout, Measure, PartOf, ReportOptions, SiteRow, Sites,
    SortKey, Subject, SuppressedLeaks, functions, peek,
};

/// The maximum number of sites in a table with stacks, and of processes.
const LIMIT: usize = 10;

/// Returns the whole report.
pub fn report(subject: &Subject<'_>, view: &ReportOptions, style: Style) -> String {
    let profile = subject.profile;
    let mut sites = Sites::of(profile, view.shown, &view.filter);
    let suppressed = subject.suppressed(view);
    let page = Page { subject, profile, view, style, totals: profile.totals(), suppressed };
    let mut out = page.title();
    out.extend(page.unavailable());
    out.push(String::new());
    match &view.layout {
        Layout::Tables => {
            out.extend(page.metrics());
            out.extend(page.access_totals());
            out.extend(page.processes());
            out.push(String::new());
            out.extend(page.selected(&sites));
            for measure in Measure::ALL.into_iter().filter(|measure| page.has(*measure)) {
                sites.sort(measure);
                out.extend(page.short_table(&sites, measure));
            }
            out.extend(page.unused_table(&mut sites));
        }
        Layout::Stacks(key) => {
            let key = *key;
            out.extend(page.selected(&sites));
            sites.sort(key);
            out.extend(page.if_available(key, || page.stacks(&sites, key)));
        }
        Layout::Points(key) => {
            let key = *key;
            out.extend(page.selected(&sites));
            sites.sort(key);
            out.extend(page.if_available(key, || page.points(&sites, key)));
        }
        Layout::Tree(tree) => {
            out.extend(page.selected(&sites));
            out.extend(page.if_available(tree.key, || page.tree(&sites, *tree)));
        }
        Layout::Functions(by, order) => {
            out.extend(page.selected(&sites));
            out.extend(page.if_available((*by).into(), || page.functions(*by, *order)));
        }
        Layout::Peek(by, wanted) => {
            out.extend(page.selected(&sites));
            out.extend(page.if_available((*by).into(), || page.peek(*by, wanted)));
        }
    }
    while out.last().is_some_and(String::is_empty) {
        out.pop();
    }
    // If nothing passed a filter, functions without a name may be the reason.
    if sites.rows.is_empty() {
        sites = Sites::of(profile, view.shown, &Filter::default());
    }
    out.extend(without_names(&sites.modules_without_names(), style.width, !has_addresses_only(subject)));
    out.join("\n") + "\n"
}

/// Returns whether names can be looked up in the files that a profile names, if whoever asks for it says so.
fn has_addresses_only(subject: &Subject<'_>) -> bool {
    matches!(subject.origin.word, "jemalloc-heap" | "gperftools-heap" | "pprof")
}

/// What every part of the report needs.
struct Page<'a> {
    subject: &'a Subject<'a>,
    profile: &'a Profile,
    view: &'a ReportOptions,
    style: Style,
    totals: Totals,
    suppressed: SuppressedLeaks,
}

impl Page<'_> {
    fn title(&self) -> Vec<String> {
        let recording = &self.profile.recording;
        let first = self.profile.processes.first().map(|process| process.pid);
        let exit = self.profile.processes.iter().rev().find(|p| Some(p.pid) == first).and_then(|p| p.exit);
        let took = self.time(recording.duration_us);
        let end = match self.foreign_name() {
            None => format!("{} after {took}", exit_text(exit)),
            Some(name) if recording.duration_us == 0 => name,
            Some(name) => format!("{name}, {took}"),
        };
        let left = self.style.width.saturating_sub(end.columns() + 2);
        let command = match (recording.command.is_empty(), self.subject.file.file_name()) {
            (false, _) => printable(&recording.command.join(" ")),
            (true, Some(file)) if file != "-" => printable(&file.to_string_lossy()),
            _ => "a program that is not named".to_owned(),
        };
        let mut lines = vec![format!("{}: {end}", self.style.bold(&cut_end(&command, left)))];
        match self.profile.events_lost() {
            EventsLost::Exactly(0) => {}
            EventsLost::Exactly(lost) => {
                lines.push(format!("counts are too low: {} were lost", plural(lost, "event")));
            }
            EventsLost::Unknown if self.profile.known == Availability::NOTHING => {
                lines.push(NO_METRICS.to_owned());
            }
            EventsLost::Unknown => lines.push(LOST_UNKNOWN.to_owned()),
        }
        lines.extend(self.subject.part.into_iter().flat_map(|part| self.part(part)));
        if let Some(per) = self.view.per {
            lines.push(format!(
                "shown per operation, of {}; peaks and details are undivided",
                plural(per, "operation")
            ));
        }
        lines
    }

    /// Returns which part of the recording is shown, and its share: `filter function:parse` above `leaves 374,500 of
    /// 374,540 allocations (100.0%), …`.
    fn part(&self, part: &PartOf) -> Vec<String> {
        let mut lines = part_words(part.window, part.filter.as_deref());
        if part.window.is_some_and(|window| window.to_us < window.of_us) && self.has(Measure::Leaked) {
            lines[0] += "; what is live at its end is shown as leaked";
        }
        let left =
            Measure::ALL.into_iter().filter(|measure| self.has(*measure) && *measure != Measure::Temporary);
        let left = left.map(|measure| {
            let (value, whole) = (measure.of_totals(&self.totals), measure.of_site(&part.whole));
            let share = Percent { part: value, whole };
            let (value, whole) = (metric(measure, value), metric(measure, whole));
            match measure {
                Measure::Allocations | Measure::Temporary => {
                    format!("{value} of {whole} {} ({share})", measure.word())
                }
                Measure::Bytes => format!("{value} of {whole} ({share})"),
                Measure::Peak => format!("at the peak {value} of {whole} ({share})"),
                Measure::Leaked => format!("leaked {value} of {whole} ({share})"),
            }
        });
        let left: Vec<String> = left.collect();
        if !left.is_empty() {
            lines.extend(wrapped(&format!("leaves {}", left.join(", ")), self.style.width));
        }
        lines.iter().map(|line| cut_end(line, self.style.width)).collect()
    }

    fn function_table(&self, by: Measure) -> FunctionTable<Measure> {
        let beside = match by {
            Measure::Bytes => Some(Measure::Allocations),
            Measure::Allocations => Some(Measure::Bytes),
            _ => None,
        };
        FunctionTable {
            by,
            whole: by.of_totals(&self.totals),
            beside: beside.filter(|beside| self.has(*beside)),
            is_whole: self.view.shown == FrameVisibility::All,
            style: self.style,
        }
    }

    /// Formats `bytes: 5.57 MiB`.
    fn whole(&self, by: Measure) -> String {
        format!("{}: {}", self.style.bold(by.word()), metric(by, by.of_totals(&self.totals)))
    }

    fn functions(&self, by: Measure, order: FunctionOrder) -> Vec<String> {
        let rows = functions(self.profile, self.view.shown, &self.view.filter, by, order);
        let mut out = vec![self.whole(by)];
        out.extend(self.function_table(by).lines(&rows, self.view.limit.unwrap_or(ROWS)));
        out
    }

    fn peek(&self, by: Measure, wanted: &str) -> Vec<String> {
        let peeks = peek(self.profile, self.view.shown, &self.view.filter, wanted, by);
        let mut out = vec![self.whole(by), String::new()];
        out.extend(self.function_table(by).peeks(&peeks, wanted, self.view.limit));
        out
    }

    /// Formats a time of the recording in its unit.
    fn time(&self, time: u64) -> String {
        match self.profile.recording.time_unit {
            TimeUnit::Microseconds => Micros(time).to_string(),
            TimeUnit::Instructions => format!("{} instr.", Count(time)),
            TimeUnit::Bytes => format!("{} allocated", Bytes(time)),
        }
    }

    /// Formats an average time, with one more digit if it is short.
    fn average_time(&self, time: f64) -> String {
        match self.profile.recording.time_unit {
            TimeUnit::Microseconds if time < 99.95 => format!("{time:.1} µs"),
            _ => self.time(time.round() as u64),
        }
    }

    /// Formats a measure's value in a table: per operation if requested.
    fn value(&self, measure: Measure, value: u64) -> String {
        match self.view.per {
            Some(per) if measure != Measure::Peak => per_operation(measure, value, per),
            _ => metric(measure, value),
        }
    }

    /// Formats `leaked: 12 MiB in 1,031 blocks at 12 sites`, and what was suppressed.
    fn heading(&self, sites: &Sites<'_>, key: SortKey) -> Vec<String> {
        let concerned = sites.rows.iter().filter(|row| key.concerns(&row.totals)).count() as u64;
        let totals = sites.totals();
        let word = self.style.bold(key.word());
        let at = plural(concerned, "site");
        let first = match key {
            SortKey::Measure(measure) => {
                let blocks = match measure {
                    Measure::Peak if totals.peak_blocks > 0 => {
                        format!(" in {}", plural(totals.peak_blocks, "block"))
                    }
                    Measure::Leaked if totals.leaked_blocks > 0 => {
                        format!(" in {}", plural(totals.leaked_blocks, "block"))
                    }
                    _ => String::new(),
                };
                format!("{word}: {}{blocks} at {at}", self.value(measure, measure.of_site(&totals)))
            }
            key if key.adds_up() => format!("{word}: {} at {at}", self.key_value(key, &totals)),
            _ => format!("{word} at {at}"),
        };
        let suppressed = (key.weight() == Measure::Leaked).then(|| self.suppressed_line()).flatten();
        [Some(first), suppressed].into_iter().flatten().collect()
    }

    /// Formats the metric of a site that it is sorted by.
    fn key_value(&self, key: SortKey, totals: &SiteTotals) -> String {
        let point = mallow_view::Point::of(totals, &self.profile.recording, &self.profile.known);
        match key {
            SortKey::Measure(measure) => self.value(measure, measure.of_site(totals)),
            SortKey::Max | SortKey::Reads | SortKey::Writes | SortKey::Unused => {
                Bytes(key.of_site(totals)).to_string()
            }
            SortKey::Size => point.size.map(average_size).unwrap_or_default(),
            SortKey::Lifetime => point.lifetime.map(|time| self.average_time(time)).unwrap_or_default(),
            SortKey::Rate => point.allocations_rate.map(|rate| self.rate(rate)).unwrap_or_default(),
            SortKey::Reallocations => self.value(Measure::Allocations, totals.reallocations),
            other => metric(Measure::Allocations, other.of_site(totals)),
        }
    }

    /// Formats `230 k/s`.
    fn rate(&self, rate: f64) -> String {
        let text = if rate < 9.95 { format!("{rate:.1}") } else { Count(rate.round() as u64).to_string() };
        format!("{text}{}", self.per_time())
    }

    fn per_time(&self) -> &'static str {
        match self.profile.recording.time_unit {
            TimeUnit::Microseconds => "/s",
            TimeUnit::Instructions => "/Minstr.",
            TimeUnit::Bytes => "/MiB",
        }
    }

    /// Formats a measure's share of the whole recording.
    fn share(&self, measure: Measure, part: u64) -> String {
        Percent { part, whole: measure.of_totals(&self.totals) }.to_string()
    }

    /// With a filter, returns what it selected, and its share of the whole.
    fn selected(&self, sites: &Sites<'_>) -> Vec<String> {
        let Filter { function, module, domain, .. } = &self.view.filter;
        let word = |what: &str, text: &Option<String>| text.as_ref().map(|text| format!("{what} \"{text}\""));
        let parts: Vec<String> =
            [word("function", function), word("module", module)].into_iter().flatten().collect();
        let domain = domain.map(|domain| match domain {
            Domain::Raw => "neither of Python's domains".to_owned(),
            domain => format!("Python's domain of {}", domain.word()),
        });
        let parts: Vec<String> = parts.into_iter().chain(domain).collect();
        if parts.is_empty() {
            return Vec::new();
        }
        let selected = sites.totals();
        let heading = format!("sites with {}", parts.join(" and "));
        if sites.rows.is_empty() && !self.profile.sites.is_empty() {
            let all = plural(self.profile.sites.len() as u64, "recorded stack");
            return vec![
                cut_end(&heading, self.style.width.saturating_sub(6)) + ": none",
                format!("Not one of {all} has it."),
            ];
        }
        let mut lines = vec![self.style.bold(&cut_end(&heading, self.style.width))];
        for measure in Measure::ALL.into_iter().filter(|measure| self.has(*measure)) {
            let part = measure.of_site(&selected);
            let share = self.share(measure, part);
            lines.push(format!("{:<12}{:>10}  {share:>6}", measure.word(), self.value(measure, part)));
        }
        lines.push(String::new());
        lines
    }

    /// Formats `33 more sites with 30.0% not shown; use --top to see more.`
    fn not_shown(&self, rows: &[&SiteRow], key: SortKey) -> String {
        let sites = plural(rows.len() as u64, "more site");
        if !matches!(key, SortKey::Measure(_)) {
            return format!("{sites} not shown; use --top to see more.");
        }
        let sum = |sum: u64, row: &&SiteRow| sum.saturating_add(key.of_site(&row.totals));
        let share = self.share(key.weight(), rows.iter().fold(0, sum));
        format!("{sites} with {share} not shown; use --top to see more.")
    }
}

/// Formats `21.000`, or `10.5 B`.
fn per_operation(measure: Measure, value: u64, per: u64) -> String {
    let each = value as f64 / per as f64;
    match measure.is_bytes() {
        true if each < 1023.95 => format!("{each:.1} B"),
        true => Bytes(each.round() as u64).to_string(),
        false if each < 99_999.0 => {
            let text = format!("{each:.3}");
            let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
            format!("{}.{fraction}", grouped(whole.parse().unwrap_or(0)))
        }
        false => metric(measure, each.round() as u64),
    }
}

/// Formats an average size, with one more digit if it is small and not whole.
fn average_size(bytes: f64) -> String {
    if bytes < 99.95 && (bytes - bytes.round()).abs() >= 0.05 {
        format!("{bytes:.1} B")
    } else {
        Bytes(bytes.round() as u64).to_string()
    }
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
