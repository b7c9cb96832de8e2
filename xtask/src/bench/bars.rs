//! The bars that mallow is held against, with what was measured beside each.

use super::figures::{Row, geometric_mean};
use super::large::{Analysis, Large};
use super::programs::Kind;

/// What two measurements of the same differ by on a quiet machine; a figure that may not grow may grow so much.
const NOISE: f64 = 1.1;

/// Calls from which on a program says something about the collector's speed.
const LONG_CALLS: u64 = 1_000_000;

/// A requirement, and what was measured.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bar {
    pub(super) what: &'static str,
    /// The greatest or, for a speed, the least value that is good enough.
    pub(super) limit: f64,
    pub(super) is_speed: bool,
    pub(super) unit: &'static str,
    /// The figure with the program that gave it; none where it was not measured.
    pub(super) measured: Option<(f64, String)>,
}

impl Bar {
    /// "reached", "missed", or "unknown" where nothing was measured.
    pub(super) fn verdict(&self) -> &'static str {
        match &self.measured {
            None => "unknown",
            Some((value, _)) if (*value >= self.limit) == self.is_speed || *value == self.limit => "reached",
            Some(_) => "missed",
        }
    }
}

/// Every bar, in the order in which the design names them.
pub(super) fn of(rows: &[Row], large: Option<&Large>) -> Vec<Bar> {
    let mut bars = wall(rows).to_vec();
    bars.extend(stat(rows));
    bars.push(growth("record: added CPU per call, 8 threads over 1", rows, |row| row.record.cpu_s));
    bars.push(growth("stat: added CPU per call, 8 threads over 1", rows, |row| row.stat.cpu_s));
    let of_large = |value: fn(&Large) -> f64| large.map(|large| (value(large), "largest storm".to_owned()));
    bars.push(Bar {
        what: "collector: calls per second of its CPU",
        limit: 20.0,
        is_speed: true,
        unit: "M/s",
        measured: of_large(|it| it.events as f64 / 1e6 / it.collector_cpu_s.max(0.01)),
    });
    bars.push(Bar {
        what: "collector: the same, slowest long program",
        limit: 20.0,
        is_speed: true,
        unit: "M/s",
        measured: slowest_collector(rows),
    });
    bars.push(Bar {
        what: "trace: bytes per call, worst program",
        limit: 4.0,
        is_speed: false,
        unit: "B",
        measured: greatest(rows.iter().map(|row| (row.trace_bytes_per_call(), row.name.clone()))),
    });
    let report =
        |what, limit, unit, value| Bar { what, limit, is_speed: false, unit, measured: of_large(value) };
    bars.push(report("report: opening 30 million calls", 1.0, "s", |it| it.report_wall_s));
    bars.push(report("report: its memory meanwhile", 200.0, "MB", |it| it.report_bytes as f64 / 1e6));
    bars.push(of_events("report: slowest question about events", 2.0, "s", large, |it| it.wall_s));
    bars.push(of_events("report: the most memory of a question", 300.0, "MB", large, |it| {
        it.bytes as f64 / 1e6
    }));
    bars.push(Bar {
        what: "memory in the target above 1 MB per thread",
        limit: 16.0,
        is_speed: false,
        unit: "MB",
        measured: greatest(rows.iter().map(|row| (above_threads_mb(row), row.name.clone()))),
    });
    bars
}

/// The worst of all questions about the largest storm's events.
fn of_events(
    what: &'static str,
    limit: f64,
    unit: &'static str,
    large: Option<&Large>,
    value: fn(&Analysis) -> f64,
) -> Bar {
    let analyses = large.map_or(&[][..], |large| &large.analyses);
    let values = analyses.iter().map(|analysis| (value(analysis), question(&analysis.flags).to_owned()));
    Bar { what, limit, is_speed: false, unit, measured: greatest(values) }
}

/// A question's flags in the few letters that a table has: not more than the longest name of a program.
fn question(flags: &str) -> &str {
    match flags.matches("--").count() {
        0 | 1 => flags.trim_start_matches('-').split(['-', ' ']).next().unwrap_or(flags),
        2 => "a window",
        _ => "all at once",
    }
}

fn wall(rows: &[Row]) -> [Bar; 2] {
    let ratios: Vec<(f64, String)> =
        rows.iter().filter_map(|row| Some((row.wall_ratio()?, row.name.clone()))).collect();
    let values: Vec<f64> = ratios.iter().map(|(ratio, _)| *ratio).collect();
    let mean = geometric_mean(&values).map(|mean| (mean, format!("{} programs", values.len())));
    let bar = |what, limit, measured| Bar { what, limit, is_speed: false, unit: "x", measured };
    [
        bar("record: added wall / heaptrack's, geom. mean", 0.1, mean),
        bar("record: added wall / heaptrack's, worst", 0.2, greatest(ratios.into_iter())),
    ]
}

fn stat(rows: &[Row]) -> [Bar; 2] {
    let real = rows.iter().filter(|row| row.kind == Kind::Real);
    let loops = rows.iter().filter(|row| matches!(row.kind, Kind::Storm { threads: 1, .. }));
    [
        Bar {
            what: "stat: added wall, worst real program",
            limit: 5.0,
            is_speed: false,
            unit: "%",
            measured: greatest(real.map(|row| (row.stat_percent(), row.name.clone()))),
        },
        Bar {
            what: "stat: added wall per call of a malloc loop",
            limit: 3.0,
            is_speed: false,
            unit: "ns",
            measured: greatest(loops.map(|row| (row.per_call_ns(row.stat.wall_s), row.name.clone()))),
        },
    ]
}

/// How often the added CPU time per call with one thread goes into that with eight: the worse of the depths.
fn growth(what: &'static str, rows: &[Row], cpu_s: fn(&Row) -> f64) -> Bar {
    let per_call = |row: &Row| row.per_call_ns(cpu_s(row));
    let figures = rows.iter().filter_map(|row| {
        let Kind::Storm { depth, threads: 8 } = row.kind else { return None };
        let alone = rows.iter().find(|it| it.kind == Kind::Storm { depth, threads: 1 })?;
        (per_call(alone) > 0.0).then(|| (per_call(row) / per_call(alone), row.name.clone()))
    });
    Bar { what, limit: NOISE, is_speed: false, unit: "x", measured: greatest(figures) }
}

/// The speed of the collector where it is slowest. On a short trace the symbols' time would be all one sees.
fn slowest_collector(rows: &[Row]) -> Option<(f64, String)> {
    let long = rows.iter().filter(|row| row.events >= LONG_CALLS);
    let speeds = long.filter_map(|row| Some((row.collector_millions()?, row.name.clone())));
    speeds.min_by(|one, other| one.0.total_cmp(&other.0))
}

fn above_threads_mb(row: &Row) -> f64 {
    row.target_added_bytes() as f64 / 1e6 - row.record_peaks.threads as f64
}

fn greatest(figures: impl Iterator<Item = (f64, String)>) -> Option<(f64, String)> {
    figures.max_by(|one, other| one.0.total_cmp(&other.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::figures::tests::drifting_row;

    #[test]
    fn questions_fit_into_the_table() {
        let short = |flags: &[&str]| question(&flags.join(" ")).to_owned();
        let all: Vec<String> = super::super::large::OF_EVENTS.iter().map(|flags| short(flags)).collect();
        assert!(all.iter().all(|name| name.len() <= "largest storm".len()), "{all:?}");
        assert_eq!(all[..3], ["timeline", "a window", "at"]);
    }

    fn verdict(bars: &[Bar], start: &str) -> &'static str {
        bars.iter().find(|bar| bar.what.starts_with(start)).unwrap().verdict()
    }

    #[test]
    fn figures_are_held_against_their_bars() {
        // Ratio 0.125; 125 microseconds of stat per call; 2 bytes per call; nothing added in the target.
        let bars = of(&[drifting_row()], None);
        assert_eq!(verdict(&bars, "record: added wall / heaptrack's, geom"), "missed");
        assert_eq!(verdict(&bars, "record: added wall / heaptrack's, worst"), "reached");
        assert_eq!(verdict(&bars, "stat: added wall per call"), "missed");
        assert_eq!(verdict(&bars, "trace: "), "reached");
        assert_eq!(verdict(&bars, "memory in the target"), "reached");
        for what in
            ["stat: added wall, worst real", "collector", "report", "record: added CPU", "stat: added CPU"]
        {
            assert_eq!(verdict(&bars, what), "unknown");
        }
    }

    #[test]
    fn a_speed_is_good_when_it_is_great() {
        let bar = |value: f64| Bar {
            what: "speed",
            limit: 20.0,
            is_speed: true,
            unit: "M/s",
            measured: Some((value, String::new())),
        };
        assert_eq!([19.9, 20.0, 20.1].map(|value| bar(value).verdict()), ["missed", "reached", "reached"]);
    }

    #[test]
    fn growth_compares_storms_of_the_same_depth() {
        let row = |depth, threads, cpu_s| {
            let mut row = drifting_row();
            row.kind = Kind::Storm { depth, threads };
            row.record.cpu_s = cpu_s;
            row
        };
        let rows = [row(10, 1, 1.0), row(10, 8, 3.0), row(40, 1, 2.0), row(40, 2, 9.0), row(40, 8, 2.0)];
        let bar = growth("growth", &rows, |row| row.record.cpu_s);
        assert_eq!((bar.measured.as_ref().unwrap().0, bar.verdict()), (3.0, "missed"));
        let bar = growth("growth", &rows[2..], |row| row.record.cpu_s);
        assert_eq!((bar.measured.as_ref().unwrap().0, bar.verdict()), (1.0, "reached"));
        assert_eq!(growth("growth", &rows[..1], |row| row.record.cpu_s).measured, None);
    }

    #[test]
    fn the_slowest_collector_is_one_that_had_much_to_do() {
        let row = |events, collector_cpu_s| {
            let mut row = drifting_row();
            (row.events, row.collector_cpu_s) = (events, collector_cpu_s);
            row
        };
        let rows = [row(100, 1.0), row(4_000_000, 0.5), row(6_000_000, 3.0)];
        assert_eq!(slowest_collector(&rows).unwrap().0, 2.0);
        assert_eq!(slowest_collector(&rows[..1]), None);
    }
}
