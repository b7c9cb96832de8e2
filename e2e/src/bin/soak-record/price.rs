//! What the recorder costs a server: the same soak with and without it, in turn, with nothing else running.
//!
//! Rates are what people ask for, and move by tenths from run to run where generator, server and collector share two
//! processors. The processor time that all three take for a request moves by hundredths, and when processors are what there is
//! too little of, its ratio is that of the rates.

use e2e::session::json;
use e2e::soak::Mode;
use serde_json::Value;

/// One soak.
#[derive(Clone, Copy, Debug)]
struct Cost {
    requests_per_second: f64,
    /// Processor time of mallow and of everything that it started, for each request that it sent.
    processor_us: f64,
}

/// One soak with the recorder, and one without.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    with: Cost,
    without: Cost,
}

/// The servers that are priced: a plain one on hyper, and one with eight small blocks more a request.
pub(crate) fn is_priced(mode: &Mode) -> bool {
    [("hello", "hello"), ("rust", "clean")].contains(&(mode.server.as_str(), mode.name.as_str()))
}

/// Soaks a clean server in pairs, every second one the other way round.
pub(crate) fn pairs(mode: &Mode, count: usize) -> Vec<Pair> {
    let pair = |number: usize| {
        let is_first = number.is_multiple_of(2);
        let first = soak(mode, is_first);
        let second = soak(mode, !is_first);
        let pair = match is_first {
            true => Pair { with: first, without: second },
            false => Pair { with: second, without: first },
        };
        println!("{}/{} {}", mode.server, mode.name, in_figures(&pair));
        pair
    };
    (0..count).map(pair).collect()
}

fn soak(mode: &Mode, is_recorded: bool) -> Cost {
    const COURSE: [&str; 7] =
        ["--iterations", "10", "--requests", "100000", "--no-extend", "--idle", "500ms"];
    let recorded: &[&str] = if is_recorded { &[] } else { &["--no-record"] };
    let before_us = children_us();
    let finished = mode.soak(&[&COURSE, recorded].concat());
    let spent_us = children_us() - before_us;
    let report = json(&finished.stdout);
    let samples = report["samples"].as_array().map(Vec::as_slice).unwrap_or_default();
    let requests: f64 = samples.iter().filter_map(|sample| sample["load"]["requests"].as_f64()).sum();
    let measured = samples.iter().filter(|sample| sample["phase"] == "measured");
    let rates = measured.filter_map(|sample: &Value| sample["load"]["rate"].as_f64());
    Cost { requests_per_second: super::spread(rates).1, processor_us: spent_us / requests }
}

/// Processor time of the children that have ended, and of theirs: the sixteenth and seventeenth field, in hundredths of a second.
fn children_us() -> f64 {
    const TICK_US: f64 = 10_000.0;
    let stat = std::fs::read_to_string("/proc/self/stat").expect("a process may read of itself");
    let (_, fields) = stat.rsplit_once(')').expect("the name stands in brackets");
    // The first field behind the name is the third of all.
    let ticks = fields.split_whitespace().skip(13).take(2).filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() * TICK_US
}

fn in_figures(pair: &Pair) -> String {
    let Pair { with, without } = pair;
    format!(
        "{:.0} requests/s with the recorder, {:.0} without: {:.3}; {:.2} us and {:.2} us of processor time each: {:.3}",
        with.requests_per_second,
        without.requests_per_second,
        with.requests_per_second / without.requests_per_second,
        with.processor_us,
        without.processor_us,
        with.processor_us / without.processor_us,
    )
}

/// A line of the record.
pub(crate) fn in_words(mode: &Mode, pairs: &[Pair]) -> String {
    let of = |figure: &dyn Fn(&Pair) -> f64| super::spread(pairs.iter().map(figure));
    let (low, rate, high) = of(&|pair| pair.with.requests_per_second / pair.without.requests_per_second);
    let (least, time, most) = of(&|pair| pair.with.processor_us / pair.without.processor_us);
    format!(
        "- `{}/{}`, {} pairs: {:.0} and {:.0} requests/s, of a pair {rate:.2} (median; {low:.2} to {high:.2}); {:.1} and {:.1} µs of \
         processor time for a request, of a pair {time:.3} ({least:.3} to {most:.3}), which is {:.2} of the rate on the same processors\n",
        mode.server,
        mode.name,
        pairs.len(),
        of(&|pair| pair.with.requests_per_second).1,
        of(&|pair| pair.without.requests_per_second).1,
        of(&|pair| pair.with.processor_us).1,
        of(&|pair| pair.without.processor_us).1,
        1.0 / time,
    )
}
