//! The bars that mallow is held against, with what was measured beside each.

use super::large::{Analysis, Large};
use super::metrics::{Row, geometric_mean};
use super::parts::{Around, Loop, Parts};
use super::programs::Kind;

/// What two measurements of the same differ by on a quiet machine; a metric that may not grow may grow so much.
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
    /// The metric with the program that gave it; none where it was not measured.
    pub(super) measured: Measured,
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

type Measured = Option<(f64, String)>;

fn at_most(what: &'static str, limit: f64, unit: &'static str, measured: Measured) -> Bar {
    Bar { what, limit, is_speed: false, unit, measured }
}

fn at_least(what: &'static str, limit: f64, unit: &'static str, measured: Measured) -> Bar {
    Bar { what, limit, is_speed: true, unit, measured }
}

/// Every bar, in the order in which the design names them.
pub(super) fn of(rows: &[Row], large: Option<&Large>, parts: Option<&Parts>) -> Vec<Bar> {
    let mut bars = wall(rows).to_vec();
    let real = rows.iter().filter(|row| row.kind == Kind::Real);
    let stat = greatest(real.map(|row| (row.percent(row.stat), row.name.clone())));
    bars.push(at_most("stat: added wall, worst real program", 5.0, "%", stat));
    bars.extend(per_event(parts));
    bars.extend(around(parts));
    let of_large = |value: fn(&Large) -> f64| large.map(|large| (value(large), "largest storm".to_owned()));
    let worst_of_events = |value: fn(&Analysis) -> f64| {
        let analyses = large.map_or(&[][..], |large| &large.analyses);
        greatest(analyses.iter().map(|analysis| (value(analysis), question(&analysis.flags).to_owned())))
    };
    let worst = |value: fn(&Row) -> f64| greatest(rows.iter().map(|row| (value(row), row.name.clone())));
    let speed = of_large(|it| it.events as f64 / 1e6 / it.collector_cpu_s.max(0.01));
    bars.extend([
        at_most("collector: CPU per event of a script", 20.0, "ns", collector_of_python(rows)),
        at_least("collector: calls per second of its CPU", 20.0, "M/s", speed),
        at_least("collector: the same, slowest long program", 20.0, "M/s", slowest_collector(rows)),
        at_most("trace: bytes per call, worst program", 4.0, "B", worst(Row::trace_bytes_per_call)),
        at_most("report: opening 30 million calls", 1.0, "s", of_large(|it| it.report_wall_s)),
        at_most("report: its memory meanwhile", 200.0, "MB", of_large(|it| it.report_bytes as f64 / 1e6)),
        at_most("report: slowest question about events", 2.0, "s", worst_of_events(|it| it.wall_s)),
        at_most(
            "report: the most memory of a question",
            300.0,
            "MB",
            worst_of_events(|it| it.bytes as f64 / 1e6),
        ),
        at_most("memory in the target above 1 MB per thread", 16.0, "MB", worst(above_threads_mb)),
    ]);
    bars
}

/// A question's flags in the few letters that a table has: not more than the longest name of a program.
fn question(flags: &str) -> &str {
    match flags.matches("--").count() {
        0 | 1 => flags.trim_start_matches('-').split(['-', ' ']).next().unwrap_or(flags),
        2 => "a window",
        _ => "all at once",
    }
}

fn wall(rows: &[Row]) -> [Bar; 3] {
    let mean = |ratio: fn(&Row) -> Option<f64>| {
        let values: Vec<f64> = rows.iter().filter_map(ratio).collect();
        geometric_mean(&values).map(|mean| (mean, format!("{} programs", values.len())))
    };
    let ratios = rows.iter().filter_map(|row| Some((row.wall_ratio()?, row.name.clone())));
    [
        at_most("record: added wall / heaptrack's, geom. mean", 0.1, "x", mean(Row::wall_ratio)),
        at_most("record: the same, without kept symbols", 0.12, "x", mean(Row::cold_wall_ratio)),
        at_most("record: added wall / heaptrack's, worst", 0.2, "x", greatest(ratios)),
    ]
}

/// What one event of a long loop costs.
fn per_event(parts: Option<&Parts>) -> [Bar; 6] {
    let of = |threads: u32, value: fn(&Loop) -> Option<f64>| {
        let found = parts?.loops.iter().find(|it| it.threads == threads)?;
        Some((value(found)?, format!("{threads} threads")))
    };
    let (alone, many) = (of(1, |it| Some(it.stat_ns)), of(8, |it| Some(it.stat_ns)));
    let pair = alone.as_ref().zip(many).filter(|(alone, _)| alone.0 > 0.0);
    let frame = parts.map(|parts| (parts.frame_ns, "fresh frames".to_owned()));
    let growth = pair.map(|(alone, many)| (many.0 / alone.0, many.1));
    [
        at_most("record: added CPU per event in the program", 9.0, "ns", of(1, |it| Some(it.record_ns))),
        at_most("record: the same with eight threads", 16.0, "ns", of(8, |it| Some(it.record_ns))),
        at_most("record: added CPU per frame walked anew", 7.0, "ns", frame),
        at_most("collector: CPU per event of a loop", 10.0, "ns", of(1, |it| it.collector_ns)),
        at_most("stat: added CPU per event in the program", 3.0, "ns", alone),
        at_most("stat: the same, 8 threads over 1", NOISE, "x", growth),
    ]
}

/// How long mallow takes from the program's end to its own.
fn around(parts: Option<&Parts>) -> Vec<Bar> {
    const LIMITS: [(&str, &str, f64, f64); 3] = [
        ("small C program", "behind a small C program, warm", 8.0, 25.0),
        ("python3", "behind python3, warm", 15.0, 60.0),
        ("cc1plus", "behind cc1plus, warm", 60.0, 150.0),
    ];
    let bars = LIMITS.into_iter().flat_map(|(name, what, warm_ms, cold_ms)| {
        let found = parts.and_then(|parts| parts.around.iter().find(|around| around.name == name));
        let of = |value: fn(&Around) -> Option<f64>| Some((value(found?)?, name.to_owned()));
        [
            at_most(what, warm_ms, "ms", of(|it| it.warm.behind_ms)),
            at_most("the same, cold", cold_ms, "ms", of(|it| it.cold.behind_ms)),
        ]
    });
    bars.collect()
}

/// The speed of the collector where it is slowest. On a short trace the symbols' time would be all one sees.
fn slowest_collector(rows: &[Row]) -> Measured {
    let long = rows.iter().filter(|row| row.events >= LONG_CALLS);
    let speeds = long.filter_map(|row| Some((row.collector_millions()?, row.name.clone())));
    speeds.min_by(|one, other| one.0.total_cmp(&other.0))
}

/// What the collector's process takes for an event of Python, its start and the symbols included.
fn collector_of_python(rows: &[Row]) -> Measured {
    let row = rows.iter().find(|row| row.name == "python3" && row.events >= LONG_CALLS)?;
    Some((row.collector_cpu_s * 1e9 / row.events as f64, row.name.clone()))
}

fn above_threads_mb(row: &Row) -> f64 {
    row.target_added_bytes() as f64 / 1e6 - row.record_peaks.threads as f64
}

fn greatest(metrics: impl Iterator<Item = (f64, String)>) -> Measured {
    metrics.max_by(|one, other| one.0.total_cmp(&other.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::metrics::tests::drifting_row;
    use crate::bench::parts::Extra;

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
    fn metrics_are_held_against_their_bars() {
        // Ratio 0.125; 2 bytes per call; nothing added in the target.
        let bars = of(&[drifting_row()], None, None);
        assert_eq!(verdict(&bars, "record: added wall / heaptrack's, geom"), "missed");
        assert_eq!(verdict(&bars, "record: added wall / heaptrack's, worst"), "reached");
        assert_eq!(verdict(&bars, "record: the same, without kept symbols"), "missed");
        assert_eq!(verdict(&bars, "trace: "), "reached");
        assert_eq!(verdict(&bars, "memory in the target"), "reached");
        for what in ["stat: added wall, worst real", "collector", "report", "record: added CPU", "behind"] {
            assert_eq!(verdict(&bars, what), "unknown");
        }
    }

    #[test]
    fn a_speed_is_good_when_it_is_great() {
        let bar = |value: f64| at_least("speed", 20.0, "M/s", Some((value, String::new())));
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
        let beside = |behind_ms| Extra { both_ms: 200.0, behind_ms: Some(behind_ms) };
        let cc1plus = Around { name: "cc1plus".to_owned(), warm: beside(60.0), cold: beside(151.0) };
        let parts =
            Parts { around: vec![cc1plus], loops: vec![of(1, 9.5, 3.0), of(8, 16.0, 3.4)], frame_ns: 7.1 };
        let bars = super::of(&[], None, Some(&parts));
        for (what, expected) in [
            ("record: added CPU per event", "missed"),
            ("record: the same with eight", "reached"),
            ("record: added CPU per frame", "missed"),
            ("collector: CPU per event", "reached"),
            ("stat: added CPU per event", "reached"),
            ("stat: the same, 8 threads", "missed"),
            ("behind cc1plus, warm", "reached"),
            ("behind python3, warm", "unknown"),
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
        assert_eq!(collector_of_python(&rows), None, "none of them is Python");
        let python = |row: &Row| Row { name: "python3".to_owned(), ..row.clone() };
        assert_eq!(collector_of_python(&rows.each_ref().map(python)).unwrap().0, 125.0);
        assert_eq!(collector_of_python(&[python(&rows[0])]), None, "too short");
    }
}
