//! The totals, and how they are divided among processes.

use super::{LIMIT, Page, per_operation};
use crate::columns::Columns;
use crate::summary::names;
use crate::{cut_end, grouped, metric, plural, printable, signal_name};
use mallow_base::{Bytes, Percent};
use mallow_profile::{Exit, Totals};
use mallow_view::{Measure, OtherPrograms, short_command};

/// A column of the table of processes, with the measure that it requires.
type Column = (&'static str, usize, Measure, fn(&Totals) -> String);

const COLUMNS: [Column; 4] = [
    ("allocations", 12, Measure::Allocations, |totals| metric(Measure::Allocations, totals.allocations)),
    ("bytes", 11, Measure::Bytes, |totals| Bytes(totals.bytes).to_string()),
    ("peak", 11, Measure::Peak, |totals| Bytes(totals.peak_bytes).to_string()),
    ("leaked", 11, Measure::Leaked, |totals| Bytes(totals.leaked_bytes).to_string()),
];

impl Page<'_> {
    /// Returns the totals, one line each.
    pub(super) fn metrics(&self) -> Vec<String> {
        let totals = &self.totals;
        let frees_told = self.profile.known.calls || totals.frees > 0;
        let rows = [
            (self.has(Measure::Allocations), "allocations", totals.allocations, Measure::Allocations),
            (self.has(Measure::Bytes), "bytes", totals.bytes, Measure::Bytes),
            (frees_told, "frees", totals.frees, Measure::Allocations),
            (self.has(Measure::Temporary), "temporary", totals.temporary, Measure::Temporary),
            (self.has(Measure::Peak), "peak", totals.peak_bytes, Measure::Peak),
            (self.has(Measure::Leaked), "leaked", totals.leaked_bytes, Measure::Leaked),
        ];
        rows.into_iter()
            .filter(|(told, ..)| *told)
            .map(|(_, name, value, measure)| {
                let per = self.view.per.filter(|_| measure != Measure::Peak);
                let per = per.map(|per| format!("{} per operation", per_operation(measure, value, per)));
                let note = [per.unwrap_or_default(), self.note(name)];
                let note = note.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
                let line = format!("{name:<12}{:>10}  {note}", metric(measure, value));
                cut_end(line.trim_end(), self.style.width)
            })
            .collect()
    }

    /// Returns further notes on a total.
    fn note(&self, name: &str) -> String {
        let totals = &self.totals;
        let bytes = |bytes: u64, blocks: Option<u64>| {
            let digits = (bytes >= 1024).then(|| format!("{} bytes", grouped(bytes)));
            let blocks =
                blocks.filter(|blocks| *blocks > 0).map(|blocks| format!("in {}", plural(blocks, "block")));
            [digits, blocks].into_iter().flatten().collect::<Vec<_>>().join(" ")
        };
        match name {
            "allocations" => self.allocation_note(),
            "bytes" => bytes(totals.bytes, None),
            "frees" => match self.profile.frees_unmatched() {
                0 => String::new(),
                unmatched => format!("{} of a parent's blocks, or of blocks from before", grouped(unmatched)),
            },
            "temporary" if totals.temporary > 0 => {
                let share = Percent { part: totals.temporary, whole: totals.allocations };
                format!("{share} of the allocations, freed at once")
            }
            "peak" => {
                let peaks = if self.running() > 1 { ", own peaks summed" } else { "" };
                bytes(totals.peak_bytes, Some(totals.peak_blocks)) + peaks
            }
            "leaked" => {
                let suppressed = (self.suppressed.sites > 0)
                    .then(|| format!("{} suppressed", Bytes(self.suppressed.bytes)));
                let parts = [Some(bytes(totals.leaked_bytes, Some(totals.leaked_blocks))), suppressed];
                parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
            }
            _ => String::new(),
        }
    }

    fn allocation_note(&self) -> String {
        let mut parts = Vec::new();
        if self.totals.reallocations > 0 {
            parts.push(format!("{} by realloc", grouped(self.totals.reallocations)));
        }
        let requests = self.profile.request_totals().unwrap_or_default();
        for (requested, how) in [(requests.zeroed, "by calloc"), (requests.aligned, "aligned")] {
            if requested.allocations > 0 {
                parts.push(format!("{} {how}", grouped(requested.allocations)));
            }
        }
        if self.totals.failed > 0 {
            parts.push(format!("{} failed", grouped(self.totals.failed)));
        }
        parts.join(", ")
    }

    /// Returns the number of processes, without those that only executed another program.
    fn running(&self) -> usize {
        self.profile.processes.iter().filter(|process| process.exit != Some(Exit::Exec)).count()
    }

    /// Returns a table of processes if there are several: those with most allocations.
    pub(super) fn processes(&self) -> Vec<String> {
        if self.profile.processes.len() < 2 {
            return Vec::new();
        }
        let columns: Vec<Column> =
            COLUMNS.into_iter().filter(|(_, _, measure, _)| self.has(*measure)).collect();
        let mut processes: Vec<_> = self.profile.processes.iter().collect();
        processes.sort_by_key(|process| std::cmp::Reverse(process.totals.allocations));
        let head: String = columns.iter().map(|(name, width, ..)| format!("{name:>width$}")).collect();
        let head = format!("{head}  {:<9}{:>8}  command", "exit", "pid");
        let mut lines = vec![String::new(), self.style.dim(&head)];
        let limit = self.view.limit.unwrap_or(LIMIT);
        lines.extend(processes.iter().take(limit).map(|process| {
            let exit = match process.exit {
                Some(Exit::Status(status)) => status.to_string(),
                Some(Exit::Signal(signal)) => signal_name(signal),
                Some(Exit::Exec) => "exec".to_owned(),
                Some(Exit::GoesOn) => "goes on".to_owned(),
                None => "not seen".to_owned(),
            };
            let metrics: String =
                columns.iter().map(|(_, width, _, of)| format!("{:>width$}", of(&process.totals))).collect();
            let line = format!("{metrics}  {exit:<9}{:>8}  ", process.pid);
            let left = self.style.width.saturating_sub(line.columns());
            line + &cut_end(&printable(short_command(&process.command)), left)
        }));
        if processes.len() > limit {
            // What is left out is summed up.
            let others = OtherPrograms::of(&processes[limit..]);
            let allocations = plural(others.totals.allocations, "allocation");
            let line = format!("and {} more with {allocations}: {}", others.count, names(&others));
            lines.push(cut_end(&printable(&line), self.style.width));
        }
        lines
    }
}
