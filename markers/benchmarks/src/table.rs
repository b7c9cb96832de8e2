//! What is printed of a benchmark.

use crate::bencher::{Metrics, Way};

/// The names of the columns.
pub(crate) fn heading(way: Way) -> String {
    match way {
        Way::Count => columns(["allocations", "bytes", "peak bytes", "left bytes"].map(str::to_owned)),
        _ => columns(["median", "fastest", "slowest", "calls"].map(str::to_owned)),
    }
}

/// The metrics below them.
pub(crate) fn row(metrics: &Metrics) -> String {
    match metrics {
        Metrics::None => String::new(),
        Metrics::Counts(counts) => columns(
            [counts.allocations, counts.bytes, counts.peak_bytes, counts.remaining_bytes].map(grouped),
        ),
        Metrics::Times(times) => {
            let [median, fastest, slowest] = [times.median_ns, times.fastest_ns, times.slowest_ns].map(time);
            columns([median, fastest, slowest, grouped(times.calls)])
        }
    }
}

/// What the metrics are not.
pub(crate) fn note(way: Way) -> Option<&'static str> {
    match way {
        Way::Count => Some("Counts of one call, after one that did not count. `cargo bench` measures the time, without mallow."),
        Way::Time => Some("Nothing was counted. `cargo mallow record --summary-only bench` counts allocations."),
        Way::Region | Way::Repeat(_) => None,
    }
}

fn columns(cells: [String; 4]) -> String {
    cells.map(|cell| format!("{cell:>13}")).concat()
}

/// Three digits, as more of them are noise.
fn time(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 999.5 => (ns, "ns"),
        ns if ns < 999.5e3 => (ns / 1e3, "µs"),
        ns if ns < 999.5e6 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    let decimals = match value {
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {unit}")
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::times::Times;

    #[test]
    fn metrics_stand_below_their_names() {
        let times = Times { median_ns: 1234.0, fastest_ns: 9.994, slowest_ns: 2.5e9, calls: 1_234_567 };
        assert_eq!(heading(Way::Time), "       median      fastest      slowest        calls");
        assert_eq!(row(&Metrics::Times(times)), "      1.23 µs      9.99 ns       2.50 s    1,234,567");
        assert_eq!(heading(Way::Count).len(), 52);
        assert_eq!([99.96, 999.4, 999.6, 12.34e6].map(time), ["100 ns", "999 ns", "1.00 µs", "12.3 ms"]);
    }
}
