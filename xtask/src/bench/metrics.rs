//! From runs to metrics: differences within a round, their medians, and ratios.

use super::measure::{MEMORY_ROUND, Sample};
use super::memory::Peaks;
use super::programs::{Kind, Program};
use super::tools::Tool;
use mallow_base::median;

/// Added wall time below this is noise of starting a process; ratios are made of at least so much.
const WALL_FLOOR_S: f64 = 0.001;
/// Below this share of what the bare program takes, a difference is the machine's noise and makes no ratio.
const NOISE_SHARE: f64 = 0.05;

/// What a tool adds to the bare program: medians of the differences within a round. Negative where the machine's
/// noise is greater than the cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Added {
    pub(super) wall_s: f64,
    /// From start to exit; for a server this holds its start and end besides its work.
    pub(super) whole_s: f64,
    pub(super) cpu_s: f64,
}

/// The metrics of one program.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// Calls of the malloc family.
    pub(super) events: u64,
    pub(super) bare_wall_s: f64,
    pub(super) bare_whole_s: f64,
    pub(super) record: Added,
    pub(super) record_cold: Added,
    pub(super) heaptrack: Added,
    pub(super) stat: Added,
    pub(super) least_stat: Added,
    /// CPU time of the collector under `mallow record`.
    pub(super) collector_cpu_s: f64,
    pub(super) bare_peaks: Peaks,
    pub(super) record_peaks: Peaks,
    pub(super) heaptrack_peaks: Peaks,
    pub(super) record_trace_bytes: u64,
    pub(super) heaptrack_trace_bytes: u64,
    pub(super) is_server: bool,
}

impl Row {
    /// The metrics of `program`, out of the samples of all programs.
    pub(super) fn of(program: &Program, samples: &[Sample]) -> Row {
        let mine: Vec<&Sample> = samples.iter().filter(|sample| sample.program == program.name).collect();
        let timed = |tool: Tool, metric: fn(&Sample) -> f64| {
            let of_tool = mine.iter().filter(|it| it.tool == tool && it.round != MEMORY_ROUND);
            median(of_tool.map(|sample| metric(sample))).unwrap_or(0.0)
        };
        let in_memory_round = |tool| mine.iter().find(|it| it.tool == tool && it.round == MEMORY_ROUND);
        let peaks = |tool| in_memory_round(tool).and_then(|sample| sample.peaks).unwrap_or_default();
        let trace_bytes = |tool| in_memory_round(tool).map_or(0, |sample| sample.trace_bytes);
        Row {
            name: program.name.clone(),
            kind: program.kind,
            events: mine.iter().find_map(|sample| sample.events).unwrap_or(0),
            bare_wall_s: timed(Tool::Bare, |sample| sample.wall_s),
            bare_whole_s: timed(Tool::Bare, |sample| sample.whole_s),
            record: added(&mine, Tool::Record),
            record_cold: added(&mine, Tool::RecordCold),
            heaptrack: added(&mine, Tool::Heaptrack),
            stat: added(&mine, Tool::Stat),
            least_stat: added(&mine, Tool::LeastStat),
            collector_cpu_s: timed(Tool::Record, |sample| sample.own_cpu_s),
            bare_peaks: peaks(Tool::Bare),
            record_peaks: peaks(Tool::Record),
            heaptrack_peaks: peaks(Tool::Heaptrack),
            record_trace_bytes: trace_bytes(Tool::Record),
            heaptrack_trace_bytes: trace_bytes(Tool::Heaptrack),
            is_server: program.requests.is_some(),
        }
    }

    /// Added wall time of `record` over that of heaptrack; none where heaptrack's is lost in noise.
    pub(super) fn wall_ratio(&self) -> Option<f64> {
        self.wall_ratio_of(self.record)
    }

    /// The same without what earlier recordings kept about symbols.
    pub(super) fn cold_wall_ratio(&self) -> Option<f64> {
        self.wall_ratio_of(self.record_cold)
    }

    fn wall_ratio_of(&self, record: Added) -> Option<f64> {
        let heaptrack = self.heaptrack.wall_s;
        (heaptrack > WALL_FLOOR_S.max(NOISE_SHARE * self.bare_wall_s))
            .then(|| record.wall_s.max(WALL_FLOOR_S) / heaptrack)
    }

    /// The same of CPU time.
    pub(super) fn cpu_ratio(&self) -> Option<f64> {
        let heaptrack = self.heaptrack.cpu_s;
        (heaptrack > WALL_FLOOR_S).then(|| self.record.cpu_s.max(WALL_FLOOR_S) / heaptrack)
    }

    /// Added wall time in percent of the bare program's.
    pub(super) fn percent(&self, added: Added) -> f64 {
        100.0 * added.wall_s / self.bare_wall_s.max(f64::MIN_POSITIVE)
    }

    /// Nanoseconds per call.
    pub(super) fn per_call_ns(&self, seconds: f64) -> f64 {
        1e9 * seconds / self.events.max(1) as f64
    }

    /// Millions of calls that the collector takes in per second of its CPU time; none where its clock is too coarse.
    pub(super) fn collector_millions(&self) -> Option<f64> {
        (self.collector_cpu_s > 0.0).then(|| self.events as f64 / 1e6 / self.collector_cpu_s)
    }

    /// Bytes of the trace per call.
    pub(super) fn trace_bytes_per_call(&self) -> f64 {
        self.record_trace_bytes as f64 / self.events.max(1) as f64
    }

    /// Resident bytes that recording adds inside the measured program.
    pub(super) fn target_added_bytes(&self) -> i64 {
        self.record_peaks.program_bytes.cast_signed() - self.bare_peaks.program_bytes.cast_signed()
    }
}

fn added(samples: &[&Sample], tool: Tool) -> Added {
    let bare: Vec<&&Sample> =
        samples.iter().filter(|it| it.tool == Tool::Bare && it.round != MEMORY_ROUND).collect();
    let difference = |metric: fn(&Sample) -> f64| {
        let per_round = bare.iter().filter_map(|bare| {
            let its = samples.iter().find(|it| it.tool == tool && it.round == bare.round)?;
            Some(metric(its) - metric(bare))
        });
        median(per_round).unwrap_or(0.0)
    };
    Added {
        wall_s: difference(|sample| sample.wall_s),
        whole_s: difference(|sample| sample.whole_s),
        cpu_s: difference(|sample| sample.cpu_s),
    }
}

/// The geometric mean of positive values; none of nothing.
pub(super) fn geometric_mean(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().map(|value| value.ln()).sum();
    (!values.is_empty()).then(|| (sum / values.len() as f64).exp())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::bench::programs::storm_of;
    use std::path::Path;

    fn sample(tool: Tool, round: u32, wall_s: f64) -> Sample {
        let memory = round == MEMORY_ROUND;
        let peaks = Peaks { together_bytes: 5_000_000, program_bytes: 3_000_000, threads: 1 };
        Sample {
            program: "storm-10x1".to_owned(),
            tool,
            round,
            behind_s: None,
            wall_s,
            whole_s: wall_s,
            cpu_s: 2.0 * wall_s,
            own_cpu_s: 0.5,
            peaks: memory.then_some(peaks),
            trace_bytes: if tool == Tool::Record { 2000 } else { 0 },
            events: (memory && tool == Tool::Record).then_some(1000),
        }
    }

    /// A storm of 1,000 calls in three timed rounds on a machine that grows slower from round to round.
    pub(in crate::bench) fn drifting_samples() -> Vec<Sample> {
        let mut samples = Vec::new();
        for (round, bare) in [(0, 99.0), (1, 1.0), (2, 2.0), (3, 5.0)] {
            let walls = [bare, bare + 0.25, bare + 0.5, bare + 2.0, bare + 0.125, bare + 0.0625];
            samples.extend(Tool::ALL.iter().zip(walls).map(|(tool, wall_s)| sample(*tool, round, wall_s)));
        }
        samples
    }

    pub(in crate::bench) fn drifting_row() -> Row {
        Row::of(&storm_of(Path::new("storm"), 10, 1, 500), &drifting_samples())
    }

    #[test]
    fn differences_are_taken_within_a_round() {
        let row = drifting_row();
        assert_eq!(row.bare_wall_s, 2.0);
        assert_eq!((row.record.wall_s, row.heaptrack.wall_s, row.stat.wall_s), (0.25, 2.0, 0.125));
        assert_eq!((row.record.cpu_s, row.wall_ratio()), (0.5, Some(0.125)));
        assert_eq!(row.cold_wall_ratio(), Some(0.25));
        assert_eq!((row.percent(row.stat), row.percent(row.least_stat)), (6.25, 3.125));
        assert_eq!(row.per_call_ns(row.stat.wall_s), 125_000.0);
        assert_eq!((row.events, row.trace_bytes_per_call()), (1000, 2.0));
        assert_eq!(row.collector_millions(), Some(0.002));
    }

    #[test]
    fn a_difference_that_is_noise_makes_no_ratio() {
        let mut row = drifting_row();
        row.record.wall_s = -0.3;
        assert_eq!(row.wall_ratio(), Some(0.0005));
        for lost in [0.0, 0.09] {
            row.heaptrack.wall_s = lost;
            assert_eq!(row.wall_ratio(), None);
        }
    }

    #[test]
    fn means_are_right() {
        assert_eq!(geometric_mean(&[]), None);
        assert!((geometric_mean(&[1.0, 4.0]).unwrap() - 2.0).abs() < 1e-12);
    }
}
