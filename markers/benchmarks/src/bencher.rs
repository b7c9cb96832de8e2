//! How a benchmark's code is called: counted, timed, as a region of `mallow check`, or just so often.

use crate::arguments::Arguments;
use crate::times::{self, Times};
use mallow_markers::{count, keep, measure, Counts};

/// What is done with the code of each benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// It is a region, which runs as often as `mallow check` says.
    Region,
    /// It is called so often, and whoever started the process measures it.
    Repeat(u64),
    /// Mallow counts what one call allocates.
    Count,
    /// The time of a call is measured.
    Time,
}

impl Way {
    pub(crate) fn of(arguments: &Arguments) -> Way {
        match arguments.iterations {
            // `mallow check` times processes too, which run without its recorder.
            _ if std::env::var_os("MALLOW_RUNS").is_some() => Way::Region,
            Some(iterations) => Way::Repeat(iterations),
            None if !arguments.is_bench => Way::Repeat(1),
            None if mallow_markers::is_watching() => Way::Count,
            None => Way::Time,
        }
    }
}

/// What is known of a benchmark afterwards.
#[derive(Debug)]
pub(crate) enum Metrics {
    /// Others have measured it, or nobody.
    None,
    Counts(Counts),
    Times(Times),
}

/// Measures the code of one benchmark, which may prepare before.
#[derive(Debug)]
pub struct Bencher<'a> {
    name: &'static str,
    way: Way,
    metrics: &'a mut Result<Metrics, String>,
}

impl<'a> Bencher<'a> {
    pub(crate) fn new(name: &'static str, way: Way, metrics: &'a mut Result<Metrics, String>) -> Bencher<'a> {
        Bencher { name, way, metrics }
    }

    /// Calls `body` as often as its measurement needs, and drops what it returns within what is measured. Each call has to do the same work.
    pub fn bench<T>(self, mut body: impl FnMut() -> T) {
        let mut call = || drop(keep(body()));
        *self.metrics = match self.way {
            Way::Region => {
                measure(self.name, call);
                Ok(Metrics::None)
            }
            Way::Repeat(iterations) => {
                (0..iterations).for_each(|_| call());
                Ok(Metrics::None)
            }
            Way::Count => {
                // What a first call sets up is not of every call.
                call();
                let ((), counts) = count(call);
                counts.map(Metrics::Counts).map_err(|why| why.to_string())
            }
            Way::Time => Ok(Metrics::Times(times::measured(call))),
        };
    }
}
