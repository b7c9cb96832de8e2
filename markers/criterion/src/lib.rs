//! Measurements for [criterion](https://docs.rs/criterion) that count what a benchmark allocates, in place of its time.
//!
//! ```no_run
//! use criterion::{criterion_group, criterion_main, Criterion};
//! use mallow_criterion::Allocations;
//!
//! fn parse(criterion: &mut Criterion<Allocations>) {
//!     criterion.bench_function("parse", |bencher| bencher.iter(|| "1,2,3".split(',').collect::<Vec<_>>()));
//! }
//!
//! criterion_group! {
//!     name = benches;
//!     config = mallow_criterion::counting(Allocations);
//!     targets = parse
//! }
//! criterion_main!(benches);
//! ```
//!
//! It is run under mallow, `cargo mallow record --summary-only bench`, which counts the calls of the thread that runs the benchmark, exactly.
//! Without mallow a benchmark ends with a sentence that says so, and never with a figure of 0.
//!
//! Criterion's own work is not counted: it lies outside of the measured loop.

use criterion::measurement::{Measurement, ValueFormatter};
use criterion::{Criterion, Throughput};
use mallow_markers::{Count, Counts, NotCounted};
use std::time::Duration;

/// Counts successful allocating calls, by the rules of `mallow record`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allocations;

/// Adds up the bytes that those calls requested.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bytes;

/// Criterion's settings for figures that are the same in each iteration: ten short samples, and no plots, because of figures without
/// any scatter none can be drawn. Each setting can be changed afterwards.
pub fn counting<M: Measurement + 'static>(measurement: M) -> Criterion<M> {
    Criterion::default()
        .with_measurement(measurement)
        .without_plots()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(500))
}

macro_rules! measures {
    ($name:ident, $field:ident, $unit:ident) => {
        impl Measurement for $name {
            type Intermediate = Count;
            type Value = u64;

            fn start(&self) -> Count {
                Count::begin()
            }

            fn end(&self, count: Count) -> u64 {
                counted(count.end()).$field
            }

            fn add(&self, one: &u64, other: &u64) -> u64 {
                one + other
            }

            fn zero(&self) -> u64 {
                0
            }

            fn to_f64(&self, value: &u64) -> f64 {
                *value as f64
            }

            fn formatter(&self) -> &dyn ValueFormatter {
                &$unit
            }
        }
    };
}

measures!(Allocations, allocations, OfAllocations);
measures!(Bytes, bytes, OfBytes);

/// Returns the counts of a measured loop.
///
/// `cargo test` runs each benchmark once and throws its figure away, so there it may be none.
///
/// # Panics
/// When a figure is wanted and nothing was counted.
fn counted(counts: Result<Counts, NotCounted>) -> Counts {
    let is_wanted =
        || std::env::args().any(|word| word == "--bench") && !std::env::args().any(|word| word == "--test");
    match counts {
        Ok(counts) => counts,
        Err(_) if !is_wanted() => Counts::default(),
        Err(NotCounted::NotUnderMallow) => panic!(
            "The benchmark counts allocations, and nothing is counted, because it does not run under mallow. Run it with \
             `cargo mallow record --summary-only bench`."
        ),
        Err(why) => panic!("{why}"),
    }
}

/// Figures as they are: what is exact is not rounded to a larger unit.
struct OfAllocations;

/// The same of bytes.
struct OfBytes;

macro_rules! formats {
    ($name:ident, $unit:literal, $per_byte:literal, $per_element:literal) => {
        impl ValueFormatter for $name {
            fn format_value(&self, value: f64) -> String {
                // Up to three digits behind the point, where an iteration does not always do the same.
                let text = format!("{value:.3}");
                format!("{} {}", text.trim_end_matches('0').trim_end_matches('.'), $unit)
            }

            fn scale_values(&self, _: f64, _: &mut [f64]) -> &'static str {
                $unit
            }

            fn scale_throughputs(&self, _: f64, throughput: &Throughput, values: &mut [f64]) -> &'static str {
                let (count, unit) = match *throughput {
                    Throughput::Elements(count) => (count, $per_element),
                    Throughput::Bytes(count) | Throughput::BytesDecimal(count) => (count, $per_byte),
                    // Kinds that later versions of criterion have.
                    #[allow(unreachable_patterns)]
                    _ => (1, $unit),
                };
                values.iter_mut().for_each(|value| *value /= count as f64);
                unit
            }

            fn scale_for_machines(&self, _: &mut [f64]) -> &'static str {
                $unit
            }
        }
    };
}

formats!(OfAllocations, "allocations", "allocations/byte", "allocations/element");
formats!(OfBytes, "bytes", "bytes/byte", "bytes/element");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_shown_as_they_are() {
        assert_eq!(OfAllocations.format_value(12.0), "12 allocations");
        assert_eq!(OfBytes.format_value(1_234_567.25), "1234567.25 bytes");
        let mut values = [300.0];
        assert_eq!(
            OfBytes.scale_throughputs(300.0, &Throughput::Elements(100), &mut values),
            "bytes/element"
        );
        assert_eq!(values, [3.0]);
    }

    #[test]
    fn where_no_count_is_wanted_none_is_missed() {
        assert_eq!(Allocations.end(Allocations.start()), 0);
    }
}
