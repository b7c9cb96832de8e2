//! Program points: every metric of a site, in a small grid above its stack.

use super::{LIMIT, Page, average_size};
use crate::columns::Columns;
use crate::{metric, plural};
use mallow_base::{Bytes, Count};
use mallow_profile::SiteTotals;
use mallow_view::{Measure, Point, SiteRow, Sites, SortKey};

/// A row of the grid: its name, bytes with their share, blocks with theirs, and further text.
struct Cells {
    label: &'static str,
    bytes: String,
    bytes_share: String,
    blocks: String,
    blocks_share: String,
    each: String,
    lives: String,
}

impl Cells {
    fn line(&self) -> String {
        let Cells { label, bytes, bytes_share, blocks, blocks_share, each, lives } = self;
        let line = format!(
            "{label:<13}{bytes:>10}{bytes_share:>7}{blocks:>11}{blocks_share:>7}{each:>10}  {lives:>20}"
        );
        line.trim_end().to_owned()
    }
}

impl Page<'_> {
    /// Returns the top sites with all their metrics.
    pub(super) fn points(&self, sites: &Sites<'_>, key: SortKey) -> Vec<String> {
        let limit = self.view.limit.unwrap_or(LIMIT);
        let concerned: Vec<&SiteRow> = sites.rows.iter().filter(|row| key.concerns(&row.totals)).collect();
        if concerned.is_empty() {
            return self.nothing(key);
        }
        let mut out = self.heading(sites, key);
        out.extend([String::new(), self.style.dim(&self.grid_head())]);
        for row in concerned.iter().take(limit) {
            out.extend(self.grid(&row.totals));
            out.extend(self.access_lines(row));
            if let Some(times) = self.first_and_last(&row.totals) {
                out.push(self.style.dim(&times));
            }
            out.extend(self.stack(sites, row, 4));
            out.push(String::new());
        }
        if concerned.len() > limit {
            out.push(self.not_shown(&concerned[limit..], key));
        }
        out
    }

    fn grid_head(&self) -> String {
        let known = &self.profile.known;
        let text = |told: bool, text: &str| if told { text.to_owned() } else { String::new() };
        let live_blocks = known.own_maximum_blocks || known.peak_blocks || known.leaked_blocks;
        let cells = Cells {
            label: "",
            bytes: "bytes".to_owned(),
            bytes_share: String::new(),
            blocks: text(known.allocations || live_blocks, "blocks"),
            blocks_share: String::new(),
            each: text(live_blocks || SortKey::Size.is_known(known), "each"),
            lives: text(SortKey::Lifetime.is_known(known), "lives on average"),
        };
        cells.line()
    }

    /// Returns the lines of a site's grid.
    fn grid(&self, totals: &SiteTotals) -> Vec<String> {
        let (known, whole) = (&self.profile.known, &self.totals);
        let point = Point::of(totals, &self.profile.recording, known);
        let mut lines = Vec::new();
        if known.allocations || known.bytes {
            lines.push(self.style.bold(&self.total_cells(totals, &point).line()));
            lines.extend(self.rate_cells(&point).map(|cells| cells.line()));
        }
        let peak = (Some(whole.peak_bytes), Some(whole.peak_blocks));
        let end = (Some(whole.leaked_bytes), Some(whole.leaked_blocks));
        let live = [
            ("own maximum", SortKey::Max, SortKey::MaxBlocks, (None, None)),
            ("at the peak", Measure::Peak.into(), SortKey::PeakBlocks, peak),
            ("at the end", Measure::Leaked.into(), SortKey::LeakedBlocks, end),
        ];
        for (label, bytes, blocks, whole) in live {
            let of = |key: SortKey| key.is_known(known).then(|| key.of_site(totals));
            let (bytes, blocks) = (of(bytes), of(blocks));
            if bytes.is_some() || blocks.is_some() {
                lines.push(live_cells(label, (bytes, whole.0), (blocks, whole.1)).line());
            }
        }
        lines
    }

    fn total_cells(&self, totals: &SiteTotals, point: &Point) -> Cells {
        let told = |measure: Measure, text: String| if self.has(measure) { text } else { String::new() };
        let share = point.lifetime_share.map(|share| format!("{:.1}%", share * 100.0)).unwrap_or_default();
        let lives = point.lifetime.map(|time| format!("{} {share:>6}", self.average_time(time)));
        Cells {
            label: "total",
            bytes: told(Measure::Bytes, self.value(Measure::Bytes, totals.bytes)),
            bytes_share: told(Measure::Bytes, self.share(Measure::Bytes, totals.bytes)),
            blocks: told(Measure::Allocations, self.value(Measure::Allocations, totals.allocations)),
            blocks_share: told(Measure::Allocations, self.share(Measure::Allocations, totals.allocations)),
            each: point.size.map(average_size).unwrap_or_default(),
            lives: lives.unwrap_or_default(),
        }
    }

    fn rate_cells(&self, point: &Point) -> Option<Cells> {
        let label = match self.per_time() {
            "/s" => "per second",
            "/MiB" => "per MiB",
            _ => "per Minstr.",
        };
        let blocks = point.allocations_rate.map(|rate| match rate {
            0.0 => "0".to_owned(),
            0.0..0.05 => "< 0.1".to_owned(),
            0.05..9.95 => format!("{rate:.1}"),
            _ => Count(rate.round() as u64).to_string(),
        });
        let bytes = point.bytes_rate.map(average_size);
        if bytes.is_none() && blocks.is_none() {
            return None;
        }
        Some(Cells {
            label,
            bytes: bytes.unwrap_or_default(),
            bytes_share: String::new(),
            blocks: blocks.unwrap_or_default(),
            blocks_share: String::new(),
            each: String::new(),
            lives: String::new(),
        })
    }

    /// Formats the metrics of one or many sites in one line of at most `width` columns; what does not fit is left out.
    pub(super) fn metrics_in_short(&self, totals: &SiteTotals, key: SortKey, width: usize) -> String {
        let known = &self.profile.known;
        let point = Point::of(totals, &self.profile.recording, known);
        let wanted = |measure: Measure| key != SortKey::Measure(measure) && self.has(measure);
        let bytes = |measure: Measure, bytes: u64, what: &str| {
            (wanted(measure) && bytes > 0).then(|| format!("{what}{}", Bytes(bytes)))
        };
        let allocations = (wanted(Measure::Allocations) && totals.allocations > 0)
            .then(|| plural(totals.allocations, "allocation"));
        let temporary = (wanted(Measure::Temporary) && totals.temporary > 0).then(|| {
            let share = mallow_base::Percent { part: totals.temporary, whole: totals.allocations };
            format!("{share} temporary")
        });
        let parts = [
            allocations,
            bytes(Measure::Bytes, totals.bytes, ""),
            point.size.map(|size| format!("{} each", average_size(size))),
            point.lifetime.map(|time| format!("lived {}", self.average_time(time))),
            bytes(Measure::Peak, totals.peak_bytes, "peak "),
            bytes(Measure::Leaked, totals.leaked_bytes, "leaked "),
            temporary,
        ];
        let mut text = String::new();
        for part in parts.into_iter().flatten() {
            let separator = if text.is_empty() { "" } else { ", " };
            if text.columns() + separator.len() + part.columns() > width {
                break;
            }
            text.push_str(separator);
            text.push_str(&part);
        }
        text
    }
}

/// Returns the metrics of what is live at a moment, each with the whole that it is a part of; zeros are left out.
fn live_cells(
    label: &'static str,
    bytes: (Option<u64>, Option<u64>),
    blocks: (Option<u64>, Option<u64>),
) -> Cells {
    let share = |(part, whole): (Option<u64>, Option<u64>)| match (part, whole) {
        (Some(part), Some(whole)) if part > 0 => mallow_base::Percent { part, whole }.to_string(),
        _ => String::new(),
    };
    let each = match (bytes.0, blocks.0) {
        (Some(bytes), Some(blocks)) if blocks > 0 => average_size(bytes as f64 / blocks as f64),
        _ => String::new(),
    };
    Cells {
        label,
        bytes: bytes.0.map(|bytes| Bytes(bytes).to_string()).unwrap_or_default(),
        bytes_share: share(bytes),
        blocks: blocks.0.map(|blocks| metric(Measure::Allocations, blocks)).unwrap_or_default(),
        blocks_share: share(blocks),
        each,
        lives: String::new(),
    }
}
