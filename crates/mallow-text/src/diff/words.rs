//! The words of a diff for heap metrics and for CPU metrics.

use super::{Beside, DiffWords};
use crate::plural;
use mallow_cpu::{CpuMetric, CpuTotals};
use mallow_profile::SiteTotals;
use mallow_stacks::Metric;
use mallow_view::Measure;

impl DiffWords for Measure {
    const TITLE: &'static str = "Memory: what changed";

    fn differs_in(self) -> &'static str {
        match self {
            Measure::Allocations => "allocations",
            Measure::Bytes => "bytes",
            Measure::Peak => "what was live at the peak",
            Measure::Leaked => "what leaked",
            Measure::Temporary => "temporary allocations",
        }
    }

    fn unit_behind(self, metric: &str) -> &'static str {
        match self {
            Measure::Allocations if metric.trim_start_matches(['+', '-']) == "1" => " allocation",
            Measure::Allocations => " allocations",
            Measure::Bytes => "",
            Measure::Peak => " at the peak",
            Measure::Leaked => " leaked",
            Measure::Temporary => " temporary",
        }
    }

    fn beside(self, totals: &SiteTotals, is_known: impl Fn(Measure) -> bool) -> Beside<Measure> {
        match self {
            Measure::Allocations | Measure::Temporary if is_known(Measure::Bytes) => {
                Beside::Metric(Measure::Bytes)
            }
            Measure::Bytes if is_known(Measure::Allocations) => Beside::Metric(Measure::Allocations),
            Measure::Peak if totals.peak_blocks > 0 => Beside::Words(plural(totals.peak_blocks, "block")),
            Measure::Leaked if totals.leaked_blocks > 0 => {
                Beside::Words(plural(totals.leaked_blocks, "block"))
            }
            _ => Beside::Words(String::new()),
        }
    }
}

impl DiffWords for CpuMetric {
    const TITLE: &'static str = "Time: what changed";

    fn differs_in(self) -> &'static str {
        self.subject()
    }

    fn unit_behind(self, metric: &str) -> &'static str {
        match self {
            CpuMetric::Samples if metric.trim_start_matches(['+', '-']) == "1" => " sample",
            CpuMetric::Samples => " samples",
            CpuMetric::Events => " events",
            CpuMetric::OffCpu => " off the processors",
            CpuMetric::Blocked => " blocked",
            CpuMetric::Switches if metric.trim_start_matches(['+', '-']) == "1" => " switch",
            CpuMetric::Switches => " switches",
            CpuMetric::Time => "",
        }
    }

    fn beside(self, _: &CpuTotals, is_known: impl Fn(CpuMetric) -> bool) -> Beside<CpuMetric> {
        let beside = match self {
            CpuMetric::Samples => None,
            // Waits are not samples.
            CpuMetric::OffCpu | CpuMetric::Blocked => Some(CpuMetric::Switches),
            CpuMetric::Switches => Some(CpuMetric::OffCpu),
            CpuMetric::Time | CpuMetric::Events => Some(CpuMetric::Samples),
        };
        if let Some(beside) = beside.filter(|beside| is_known(*beside)) {
            Beside::Metric(beside)
        } else {
            Beside::Words(String::new())
        }
    }
}
