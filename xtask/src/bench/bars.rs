//! The bars that mallow is held against, with what was measured beside each.

use super::figures::{Row, geometric_mean};
use super::large::{Analysis, Large};
use super::parts::{Loop, Parts};
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
pub(super) fn of(rows: &[Row], large: Option<&Large>, parts: Option<&Parts>) -> Vec<Bar> {
    let mut bars = wall(rows).to_vec();
    bars.extend(stat(rows));
    bars.extend(per_event(parts));
    bars.extend(around(parts));
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

fn stat(rows: &[Row]) -> [Bar; 1] {
    let real = rows.iter().filter(|row| row.kind == Kind::Real);
    [Bar {
        what: "stat: added wall, worst real program",
        limit: 5.0,
        is_speed: false,
        unit: "%",
        measured: greatest(real.map(|row| (row.stat_percent(), row.name.clone()))),
    }]
}

/// What one event of a long loop costs.
fn per_event(parts: Option<&Parts>) -> Vec<Bar> {
    let of = |threads: u32, value: fn(&Loop) -> Option<f64>| {
        let found = parts?.loops.iter().find(|it| it.threads == threads)?;
        Some((value(found)?, format!("{threads} threads")))
    };
    let ns = |what, limit, measured| Bar { what, limit, is_speed: false, unit: "ns", measured };
    let (alone, many) = (of(1, |it| Some(it.stat_ns)), of(8, |it| Some(it.stat_ns)));
    let growth = alone
        .as_ref()
        .zip(many)
        .filter(|(alone, _)| alone.0 > 0.0)
        .map(|(alone, many)| (many.0 / alone.0, many.1));
    vec![
        ns("record: added CPU per event in the program", 9.0, of(1, |it| Some(it.record_ns))),
        ns("record: the same with eight threads", 16.0, of(8, |it| Some(it.record_ns))),
        ns("collector: CPU per event of a loop", 10.0, of(1, |it| it.collector_ns)),
        ns("stat: added CPU per event in the program", 3.0, alone),
        Bar {
            what: "stat: the same, 8 threads over 1",
            limit: NOISE,
            is_speed: false,
            unit: "x",
            measured: growth,
        },
    ]
}

/// How long mallow takes beside the program's own life.
fn around(parts: Option<&Parts>) -> Vec<Bar> {
    const LIMITS: [(&str, &str, &str, f64, f64); 3] = [
        ("small C program", "around a small C program, warm", "the same, cold", 8.0, 25.0),
        ("python3", "around python3, warm", "the same, cold", 15.0, 60.0),
        ("cc1plus", "around cc1plus, warm", "the same, cold", 60.0, 150.0),
    ];
    let bars = LIMITS.into_iter().flat_map(|(name, warm, cold, warm_ms, cold_ms)| {
        let found = parts.and_then(|parts| parts.around.iter().find(|around| around.name == name));
        let bar = |what, limit, value: Option<f64>| Bar {
            what,
            limit,
            is_speed: false,
            unit: "ms",
            measured: value.map(|value| (value, name.to_owned())),
        };
        [bar(warm, warm_ms, found.map(|it| it.warm_ms)), bar(cold, cold_ms, found.map(|it| it.cold_ms))]
    });
    bars.collect()
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
    use crate::bench::parts::Around;

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
        // Ratio 0.125; 2 bytes per call; nothing added in the target.
        let bars = of(&[drifting_row()], None, None);
        assert_eq!(verdict(&bars, "record: added wall / heaptrack's, geom"), "missed");
        assert_eq!(verdict(&bars, "record: added wall / heaptrack's, worst"), "reached");
        assert_eq!(verdict(&bars, "trace: "), "reached");
        assert_eq!(verdict(&bars, "memory in the target"), "reached");
        for what in ["stat: added wall, worst real", "collector", "report", "record: added CPU", "around"] {
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
    fn parts_are_held_against_their_bars() {
        let of = |threads, record_ns, stat_ns| Loop {
            threads,
            record_ns,
            collector_ns: (threads == 1).then_some(10.0),
            stat_ns,
        };
        let cc1plus = Around { name: "cc1plus".to_owned(), warm_ms: 60.0, cold_ms: 151.0 };
        let parts = Parts { around: vec![cc1plus], loops: vec![of(1, 9.5, 3.0), of(8, 16.0, 3.4)] };
        let bars = super::of(&[], None, Some(&parts));
        for (what, expected) in [
            ("record: added CPU per event", "missed"),
            ("record: the same with eight", "reached"),
            ("collector: CPU per event", "reached"),
            ("stat: added CPU per event", "reached"),
            ("stat: the same, 8 threads", "missed"),
            ("around cc1plus, warm", "reached"),
            ("around python3, warm", "unknown"),
        ] {
            assert_eq!(verdict(&bars, what), expected, "{what}");
        }
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
