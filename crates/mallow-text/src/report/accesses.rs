//! Reads and writes of a site's blocks, where a file tells them: how often each byte was, and what was never read or written.

use super::Page;
use crate::wording::callers;
use crate::{frame_text, wrapped};
use mallow_base::{Bytes, Percent, grouped};
use mallow_profile::{ByteAccesses, SiteTotals};
use mallow_view::{SiteRow, Sites, SortKey, lines};

/// Sites in the table of what nobody used.
const UNUSED_ROWS: usize = 5;
/// Runs of bytes with equal counts that are shown of a site.
const RUNS_MAX: usize = 48;

impl Page<'_> {
    /// Returns the reads and writes of the whole profile, a line each.
    pub(super) fn access_totals(&self) -> Vec<String> {
        if !self.profile.known.accesses {
            return Vec::new();
        }
        let whole = self.all_sites();
        let row = |name: &str, bytes: u64| {
            let digits = if bytes >= 1024 { format!("{} bytes, ", grouped(bytes)) } else { String::new() };
            format!("{name:<12}{:>10}  {digits}{}", Bytes(bytes).to_string(), per_byte(bytes, &whole))
        };
        vec![row("read", whole.read_bytes), row("written", whole.written_bytes)]
    }

    /// Returns a short table of the sites whose blocks were never read or never written, by bytes.
    pub(super) fn unused_table(&self, sites: &mut Sites<'_>) -> Vec<String> {
        let key = SortKey::Unused;
        if !self.profile.known.accesses || !sites.rows.iter().any(|row| key.concerns(&row.totals)) {
            return Vec::new();
        }
        sites.sort(key);
        let mut out = self.heading(sites, key);
        let rows = sites.rows.iter().filter(|row| key.concerns(&row.totals));
        for row in rows.take(self.view.limit.unwrap_or(UNUSED_ROWS)) {
            let words = never(&row.totals).unwrap_or_default();
            let value = Bytes(key.of_site(&row.totals)).to_string();
            let name = frame_text(sites.frames(row).next(), self.style.name_width(29));
            out.push(format!("{value:>10}  {words:<15}  {name}"));
            let width = self.style.name_width(31);
            let stack = lines(sites.frames(row), self.view.shown);
            if let Some(callers) = callers(stack.iter().skip(1).map(|line| line.frame), width) {
                out.push(format!("{:31}{}", "", self.style.dim(&callers)));
            }
        }
        out.push(String::new());
        out
    }

    /// Returns the lines of a site's grid that say how often its blocks were read and written.
    pub(super) fn access_lines(&self, row: &SiteRow) -> Vec<String> {
        if !self.profile.known.accesses {
            return Vec::new();
        }
        let whole = self.all_sites();
        let line = |label: &str, part: u64, whole: u64| {
            let share = if part > 0 { Percent { part, whole }.to_string() } else { String::new() };
            let line = format!(
                "{label:<13}{:>10}{share:>7}  {}",
                Bytes(part).to_string(),
                per_byte(part, &row.totals)
            );
            line.trim_end().to_owned()
        };
        let mut lines = vec![
            line("read", row.totals.read_bytes, whole.read_bytes),
            line("written", row.totals.written_bytes, whole.written_bytes),
        ];
        if let Some(accesses) = self.byte_accesses(row) {
            lines.extend(wrapped(&in_words(accesses), self.style.width));
        }
        lines
    }

    /// Returns the sums of all sites, for the totals of a profile have no reads and writes.
    fn all_sites(&self) -> SiteTotals {
        let mut whole = SiteTotals::default();
        self.profile.sites.iter().for_each(|site| whole.add(&site.totals));
        whole
    }

    /// Returns the counts of each byte, if the row is a single site that has them, and any byte was accessed.
    fn byte_accesses(&self, row: &SiteRow) -> Option<&ByteAccesses> {
        let mut own = self.profile.sites.iter().filter(|site| site.stack == row.stack);
        let site = own.next().filter(|site| site.totals.allocations == row.totals.allocations)?;
        let accesses = self.profile.accesses.of(site.process, site.stack)?;
        accesses.runs().iter().any(|run| run.1 > 0).then_some(accesses)
    }

    /// Formats how often a site's blocks were read and written, for a table of one metric.
    pub(super) fn access_detail(&self, totals: &SiteTotals) -> String {
        never(totals).map(str::to_owned).unwrap_or_else(|| {
            let (read, written) =
                (per_byte(totals.read_bytes, totals), per_byte(totals.written_bytes, totals));
            format!("read {read}, written {written}")
        })
    }
}

/// Says what nobody did with the blocks.
fn never(totals: &SiteTotals) -> Option<&'static str> {
    match (totals.read_bytes, totals.written_bytes) {
        (0, 0) => Some("never accessed"),
        (0, _) => Some("never read"),
        (_, 0) => Some("never written"),
        _ => None,
    }
}

/// Formats how often each byte was read or written on average: `2.5 per byte`, `once`, `never`.
fn per_byte(accessed: u64, totals: &SiteTotals) -> String {
    match (accessed, totals.bytes) {
        (0, _) => "never".to_owned(),
        (_, 0) => String::new(),
        (accessed, bytes) if accessed == bytes => "once".to_owned(),
        (accessed, bytes) => {
            let ratio = accessed as f64 / bytes as f64;
            match ratio {
                ..0.005 => "< 0.01 per byte".to_owned(),
                ..9.995 => format!("{ratio:.2} per byte"),
                _ => format!("{} per byte", grouped(ratio.round() as u64)),
            }
        }
    }
}

/// Formats `accesses of bytes 0–3: 3, 4–7: 0, 8–15: 33`.
fn in_words(accesses: &ByteAccesses) -> String {
    let mut first = 0;
    let mut runs = Vec::new();
    for (bytes, count) in accesses.runs().iter().take(RUNS_MAX) {
        let last = first + bytes - 1;
        let place = if *bytes == 1 { first.to_string() } else { format!("{first}\u{2013}{last}") };
        let mark = if *count == ByteAccesses::COUNT_MAX { "\u{2265} " } else { "" };
        runs.push(format!("{place}: {mark}{}", grouped(u64::from(*count))));
        first += bytes;
    }
    let left = accesses.runs().len().saturating_sub(RUNS_MAX);
    let rest = if left > 0 { format!(", and {left} more runs of bytes") } else { String::new() };
    format!("accesses of bytes {}{rest}", runs.join(", "))
}
