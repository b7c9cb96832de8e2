//! The tables of `mallow report`.

use super::{Style, cut_end, exit_text, figure, frame_text, grouped, plural, printable};
use crate::request::ReportView;
use mallow_base::{Bytes, Count, Frame, Micros, Percent};
use mallow_profile::{Exit, Profile, SiteTotals, Totals};
use mallow_view::{Filter, Measure, Shown, SiteRow, Sites, lines, place, short_name};

/// Sites in each short table.
const SHORT_LIMIT: usize = 5;
/// Sites in a table with stacks, and processes.
const LIMIT: usize = 10;
/// Lines of a stack before its middle is left out.
const STACK_LINES_MAX: usize = 12;

/// The whole report.
pub(crate) fn report(profile: &Profile, view: &ReportView, style: Style) -> String {
    let mut sites = Sites::of(profile, view.shown, &view.filter);
    let page = Page { profile, view, style, totals: profile.totals() };
    let mut out = page.title();
    match view.sort {
        Some(measure) => {
            out.push(String::new());
            out.extend(page.selected(&sites));
            sites.sort(measure);
            out.extend(page.stacks(&sites, measure));
        }
        None => {
            out.push(String::new());
            out.extend(page.figures());
            out.extend(page.processes());
            out.push(String::new());
            out.extend(page.selected(&sites));
            for measure in Measure::ALL {
                sites.sort(measure);
                out.extend(page.short_table(&sites, measure));
            }
        }
    }
    while out.last().is_some_and(String::is_empty) {
        out.pop();
    }
    out.extend(page.without_names(&sites));
    out.join("\n") + "\n"
}

/// What every part of the report needs to know.
struct Page<'a> {
    profile: &'a Profile,
    view: &'a ReportView,
    style: Style,
    totals: Totals,
}

impl Page<'_> {
    fn title(&self) -> Vec<String> {
        let recording = &self.profile.recording;
        let first = self.profile.processes.first().map(|process| process.pid);
        let exit = self.profile.processes.iter().rev().find(|p| Some(p.pid) == first).and_then(|p| p.exit);
        let end = format!("{} after {}", exit_text(exit), Micros(recording.duration_us));
        let left = self.style.width.saturating_sub(end.chars().count() + 2);
        let command = cut_end(&printable(&recording.command.join(" ")), left);
        let mut lines = vec![format!("{}: {end}", self.style.bold(&command))];
        let lost: u64 = self.profile.processes.iter().map(|process| process.events_lost).sum();
        if lost > 0 {
            lines.push(format!("figures are too low: {} were lost", plural(lost, "event")));
        }
        lines
    }

    /// The totals, one line each.
    fn figures(&self) -> Vec<String> {
        let totals = &self.totals;
        let peaks = if self.running() > 1 { ", own peaks summed" } else { "" };
        let share = Percent { part: totals.temporary, whole: totals.allocations };
        let freed_at_once = if totals.temporary == 0 {
            String::new()
        } else {
            format!("{share} of the allocations, freed at once")
        };
        let bytes = |bytes: u64, blocks: Option<u64>| {
            let digits = (bytes >= 1024).then(|| format!("{} bytes", grouped(bytes)));
            let blocks =
                blocks.filter(|blocks| *blocks > 0).map(|blocks| format!("in {}", plural(blocks, "block")));
            [digits, blocks].into_iter().flatten().collect::<Vec<_>>().join(" ")
        };
        let count = |value| figure(Measure::Allocations, value);
        let rows = [
            ("allocations", count(totals.allocations), self.allocation_note()),
            ("bytes", Bytes(totals.bytes).to_string(), bytes(totals.bytes, None)),
            ("frees", count(totals.frees), String::new()),
            ("temporary", count(totals.temporary), freed_at_once),
            (
                "peak",
                Bytes(totals.peak_bytes).to_string(),
                bytes(totals.peak_bytes, Some(totals.peak_blocks)) + peaks,
            ),
            (
                "leaked",
                Bytes(totals.leaked_bytes).to_string(),
                bytes(totals.leaked_bytes, Some(totals.leaked_blocks)),
            ),
        ];
        rows.iter()
            .map(|(name, value, note)| {
                cut_end(format!("{name:<12}{value:>10}  {note}").trim_end(), self.style.width)
            })
            .collect()
    }

    fn allocation_note(&self) -> String {
        let mut parts = Vec::new();
        if self.totals.reallocations > 0 {
            parts.push(format!("{} by realloc", grouped(self.totals.reallocations)));
        }
        if self.totals.failed > 0 {
            parts.push(format!("{} failed", grouped(self.totals.failed)));
        }
        parts.join(", ")
    }

    /// Processes that did not only become another program.
    fn running(&self) -> usize {
        self.profile.processes.iter().filter(|process| process.exit != Some(Exit::Exec)).count()
    }

    /// A table of processes where there are several; those with most allocations.
    fn processes(&self) -> Vec<String> {
        if self.profile.processes.len() < 2 {
            return Vec::new();
        }
        let mut processes: Vec<_> = self.profile.processes.iter().collect();
        processes.sort_by_key(|process| std::cmp::Reverse(process.totals.allocations));
        let head = format!(
            "{:>12}{:>11}{:>11}{:>11}  {:<9}{:>8}  command",
            "allocations", "bytes", "peak", "leaked", "exit", "pid"
        );
        let mut lines = vec![String::new(), self.style.dim(&head)];
        let limit = self.view.limit.unwrap_or(LIMIT);
        lines.extend(processes.iter().take(limit).map(|process| {
            let totals = &process.totals;
            let exit = match process.exit {
                Some(Exit::Status(status)) => status.to_string(),
                Some(Exit::Signal(signal)) => super::signal_name(signal),
                Some(Exit::Exec) => "exec".to_owned(),
                None => "not seen".to_owned(),
            };
            let figures = [Bytes(totals.bytes), Bytes(totals.peak_bytes), Bytes(totals.leaked_bytes)];
            let [bytes, peak, leaked] = figures.map(|bytes| bytes.to_string());
            let line = format!(
                "{:>12}{bytes:>11}{peak:>11}{leaked:>11}  {exit:<9}{:>8}  ",
                figure(Measure::Allocations, totals.allocations),
                process.pid
            );
            let left = self.style.width.saturating_sub(line.chars().count());
            line + &cut_end(&printable(&process.command), left)
        }));
        if processes.len() > limit {
            lines.push(format!("and {}", plural((processes.len() - limit) as u64, "more process")));
        }
        lines
    }

    /// What to do about frames that are only addresses.
    fn without_names(&self, sites: &Sites<'_>) -> Vec<String> {
        let modules = sites.modules_without_names();
        let names: Vec<&str> = modules.iter().take(3).filter_map(|path| path.rsplit('/').next()).collect();
        let more = match modules.len() {
            0 => return Vec::new(),
            1..=3 => String::new(),
            count => format!(" and {} more", count - 3),
        };
        let what = cut_end(&printable(&names.join(", ")), self.style.width.saturating_sub(38));
        let cure = "Install their debug packages (-dbgsym), or build them with -g and without -s.";
        vec![String::new(), format!("No names for functions of {what}{more}."), cure.to_owned()]
    }

    /// With a filter: what passed it, and its share of the whole.
    fn selected(&self, sites: &Sites<'_>) -> Vec<String> {
        let Filter { function, module } = &self.view.filter;
        let word = |what: &str, text: &Option<String>| text.as_ref().map(|text| format!("{what} \"{text}\""));
        let parts: Vec<String> =
            [word("function", function), word("module", module)].into_iter().flatten().collect();
        if parts.is_empty() {
            return Vec::new();
        }
        let selected = sites.totals();
        let mut lines =
            vec![self.style.bold(&cut_end(&format!("sites with {}", parts.join(" and ")), self.style.width))];
        for measure in Measure::ALL {
            let part = measure.of_site(&selected);
            let share = Percent { part, whole: measure.of_totals(&self.totals) }.to_string();
            lines.push(format!("{:<12}{:>10}  {share:>6}", measure.word(), figure(measure, part)));
        }
        lines.push(String::new());
        lines
    }

    /// `leaked: 12 MiB in 1,031 blocks at 12 sites`.
    fn heading(&self, sites: &Sites<'_>, measure: Measure) -> String {
        let concerned = sites.rows.iter().filter(|row| measure.concerns(&row.totals)).count() as u64;
        let totals = sites.totals();
        let blocks = match measure {
            Measure::Peak => format!(" in {}", plural(totals.peak_blocks, "block")),
            Measure::Leaked => format!(" in {}", plural(totals.leaked_blocks, "block")),
            _ => String::new(),
        };
        let value = figure(measure, measure.of_site(&totals));
        format!("{}: {value}{blocks} at {}", self.style.bold(measure.word()), plural(concerned, "site"))
    }

    /// One line for each naming frame, and one for who called it.
    fn short_table(&self, sites: &Sites<'_>, measure: Measure) -> Vec<String> {
        if !sites.rows.iter().any(|row| measure.concerns(&row.totals)) {
            return Vec::new();
        }
        let mut named = sites.by_naming_frame();
        named.sort(measure);
        let whole = measure.of_totals(&self.totals);
        let mut out = vec![self.heading(sites, measure)];
        let rows = named.rows.iter().filter(|row| measure.concerns(&row.totals));
        for row in rows.take(self.view.limit.unwrap_or(SHORT_LIMIT)) {
            let value = measure.of_site(&row.totals);
            let share = Percent { part: value, whole }.to_string();
            let name = frame_text(named.frames(row).next(), self.style.width.saturating_sub(20));
            out.push(format!("{:>10}  {share:>6}  {name}", figure(measure, value)));
            let callers = self.callers(&named, row);
            if !callers.is_empty() {
                let text = cut_end(&format!("from {callers}"), self.style.width.saturating_sub(22));
                out.push(format!("{:22}{}", "", self.style.dim(&text)));
            }
        }
        out.push(String::new());
        out
    }

    fn callers(&self, sites: &Sites<'_>, row: &SiteRow) -> String {
        let stack = lines(sites.frames(row), self.view.shown);
        let mut names: Vec<String> =
            stack.iter().skip(1).take(9).map(|line| short_name(&line.frame.function)).collect();
        // Calls inlined from one function into another version of it read like a stutter.
        names.dedup();
        printable(&names.join(", "))
    }

    /// The top sites with their stacks.
    fn stacks(&self, sites: &Sites<'_>, measure: Measure) -> Vec<String> {
        let limit = self.view.limit.unwrap_or(LIMIT);
        let whole = measure.of_totals(&self.totals);
        let concerned: Vec<&SiteRow> =
            sites.rows.iter().filter(|row| measure.concerns(&row.totals)).collect();
        if concerned.is_empty() {
            return vec![format!("{}: nothing", self.style.bold(measure.word()))];
        }
        let mut out = vec![self.heading(sites, measure), String::new()];
        for row in concerned.iter().take(limit) {
            let value = measure.of_site(&row.totals);
            let share = Percent { part: value, whole }.to_string();
            let value = self.style.bold(&format!("{:>10}", figure(measure, value)));
            out.push(format!("{value}  {share:>6}  {}", detail(measure, &row.totals)));
            out.extend(self.stack(sites, row));
            out.push(String::new());
        }
        if concerned.len() > limit {
            let rest: u64 = concerned[limit..].iter().map(|row| measure.of_site(&row.totals)).sum();
            let share = Percent { part: rest, whole };
            out.push(format!(
                "{} with {share} not shown; use --limit to see more.",
                plural((concerned.len() - limit) as u64, "more site")
            ));
        }
        out
    }

    fn stack(&self, sites: &Sites<'_>, row: &SiteRow) -> Vec<String> {
        let stack = lines(sites.frames(row), self.view.shown);
        let all = self.view.shown == Shown::All;
        let mut out: Vec<String> = stack
            .iter()
            .map(|line| {
                let times =
                    if line.times > 1 { format!("  × {}", Count(line.times as u64)) } else { String::new() };
                let left = self.style.width.saturating_sub(12 + times.chars().count());
                let text = if all { whole_frame(line.frame) } else { frame_text(Some(line.frame), left) };
                format!("{:12}{text}{times}", "")
            })
            .collect();
        if out.is_empty() {
            out.push(format!("{:12}{}", "", frame_text(None, self.style.width)));
        }
        if !all && out.len() > STACK_LINES_MAX {
            let left_out = out.len() - STACK_LINES_MAX + 1;
            let mark = self.style.dim(&format!("… {left_out} more; use --all-frames to see them"));
            out.splice(STACK_LINES_MAX - 2..STACK_LINES_MAX - 2 + left_out, [format!("{:12}{mark}", "")]);
        }
        out
    }
}

/// A frame with its whole name.
pub(super) fn whole_frame(frame: &Frame) -> String {
    printable(format!("{} {}", frame.function, place(frame)).trim_end())
}

/// What else is worth knowing of a site in a table of one measure.
fn detail(measure: Measure, totals: &SiteTotals) -> String {
    let allocations = plural(totals.allocations, "allocation");
    let each = |bytes: u64, blocks: u64| {
        if blocks > 1 { format!(", {} each", Bytes(bytes / blocks)) } else { String::new() }
    };
    match measure {
        Measure::Allocations => format!("{}{}", Bytes(totals.bytes), each(totals.bytes, totals.allocations)),
        Measure::Bytes => format!("{allocations}{}", each(totals.bytes, totals.allocations)),
        Measure::Peak => {
            let blocks = plural(totals.peak_blocks, "block");
            format!("{blocks} of {allocations}{}", each(totals.peak_bytes, totals.peak_blocks))
        }
        Measure::Leaked => {
            let blocks = plural(totals.leaked_blocks, "block");
            format!("{blocks} of {allocations}{}", each(totals.leaked_bytes, totals.leaked_blocks))
        }
        Measure::Temporary => {
            let share = Percent { part: totals.temporary, whole: totals.allocations };
            format!("{share} of {allocations}{}", each(totals.bytes, totals.allocations))
        }
    }
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
