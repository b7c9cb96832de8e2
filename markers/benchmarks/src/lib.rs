//! Benchmarks of functions: what they allocate, counted by mallow and held to a baseline, and how long they take.
//!
//! ```no_run
//! #[mallow::bench]
//! fn split() -> Vec<&'static str> {
//!     mallow::keep("1,2,3").split(',').collect()
//! }
//!
//! #[mallow::bench]
//! fn sort(bencher: mallow::Bencher) {
//!     let numbers: Vec<u32> = (0..1000).rev().collect();
//!     bencher.bench(|| {
//!         let mut numbers = numbers.clone();
//!         numbers.sort();
//!         numbers
//!     });
//! }
//!
//! fn main() {
//!     mallow::main();
//! }
//! ```
//!
//! The file is a benchmark of cargo without a harness:
//!
//! ```toml
//! [dev-dependencies]
//! mallow-benchmarks = "0.1"
//!
//! [[bench]]
//! name = "parse"
//! harness = false
//! ```
//!
//! | run by | what it does |
//! |---|---|
//! | `cargo bench` | measures the time of a call |
//! | `cargo mallow record --summary-only bench` | counts what a call allocates, exactly |
//! | `mallow check`, where a test's `cmd` is `["cargo", "bench"]` | each function is a region, which is held to its baseline |
//! | `mallow bench 'OLD --iterations 1000 NAME' 'NEW --iterations 1000 NAME'` | compares two builds, by time and allocations |
//! | `cargo test --benches` | calls each once |
//!
//! Time is not measured while mallow counts, as counting takes time of its own; and without mallow nothing is counted, rather than 0.

#![warn(missing_docs)]
// A file of benchmarks has a `main`.
#![allow(clippy::needless_doctest_main)]

mod arguments;
mod bencher;
mod table;
mod times;

use arguments::Arguments;
pub use bencher::Bencher;
use bencher::{Metrics, Way};

#[doc(hidden)]
pub use inventory;
/// Makes a function a benchmark: one without arguments, whose whole body is measured and whose result is dropped within; or one that takes a
/// [`Bencher`], and prepares before it calls [`Bencher::bench`].
///
/// `#[mallow::bench(name = "parse.large")]` gives it a name other than the function's.
pub use mallow_benchmarks_macros::bench;
/// Keeps a value from the optimiser, which may otherwise compute with what it knows of it.
pub use mallow_markers::keep;

/// A function with the attribute.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Benchmark {
    name: &'static str,
    file: &'static str,
    line: u32,
    run: fn(Bencher<'_>),
}

impl Benchmark {
    /// Called by what the attribute expands to.
    pub const fn new(name: &'static str, file: &'static str, line: u32, run: fn(Bencher<'_>)) -> Benchmark {
        Benchmark { name, file, line, run }
    }
}

inventory::collect!(Benchmark);

/// Runs the program's benchmarks as the command line says, and ends the process with status 2 if something could not be measured.
// It is all that the program's `main` does, and spares that the type of a status.
#[allow(clippy::disallowed_methods)]
pub fn main() {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let listed: Vec<Benchmark> = inventory::iter::<Benchmark>.into_iter().copied().collect();
    let outcome = Arguments::parse(words).and_then(|arguments| run(&arguments, listed));
    if let Err(sentence) = outcome {
        eprintln!("mallow: {sentence}");
        std::process::exit(2);
    }
}

fn run(arguments: &Arguments, mut listed: Vec<Benchmark>) -> Result<(), String> {
    listed.sort_by_key(|it| (it.file, it.line));
    each_has_its_name(&listed)?;
    let all = listed.len();
    listed.retain(|it| arguments.selects(it.name));
    if arguments.lists {
        listed.iter().for_each(|it| println!("{}: benchmark", it.name));
        return Ok(());
    }
    if listed.is_empty() && all > 0 {
        println!("None of {all} benchmarks is asked for.");
    }
    let way = Way::of(arguments);
    let width = listed.iter().map(|it| it.name.chars().count()).max().unwrap_or(0);
    let mut missing = None;
    for (at, one) in listed.iter().enumerate() {
        let mut metrics =
            Err(format!("{} does not call `Bencher::bench`, so nothing is known of it.", one.name));
        (one.run)(Bencher::new(one.name, way, &mut metrics));
        let row = match &metrics {
            Ok(Metrics::None) => continue,
            Ok(metrics) => table::row(metrics),
            Err(_) => "not measured".to_owned(),
        };
        if at == 0 {
            println!("{:width$}  {}", "", table::heading(way));
        }
        println!("{:width$}  {row}", one.name);
        missing = missing.or(metrics.err());
    }
    match missing {
        None => listed.first().and_then(|_| table::note(way)).map_or(Ok(()), |note| {
            println!("{note}");
            Ok(())
        }),
        Some(sentence) => Err(sentence),
    }
}

/// Regions of one name would be one region.
fn each_has_its_name(listed: &[Benchmark]) -> Result<(), String> {
    let mut by_name: Vec<&Benchmark> = listed.iter().collect();
    by_name.sort_by_key(|it| it.name);
    match by_name.windows(2).find(|pair| pair[0].name == pair[1].name) {
        None => Ok(()),
        Some(pair) => Err(format!(
            "two benchmarks are called {}, at {}:{} and {}:{}; `#[mallow::bench(name = \"…\")]` gives one of them another name.",
            pair[0].name, pair[0].file, pair[0].line, pair[1].file, pair[1].line
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(words: &[&str]) -> Arguments {
        Arguments::parse(words.iter().map(|word| (*word).to_owned())).unwrap()
    }

    #[test]
    fn two_of_one_name_and_one_that_measures_nothing_are_told() {
        let one = Benchmark::new("same", "a.rs", 3, |_| ());
        let twice = run(&arguments(&["--bench"]), vec![one, Benchmark::new("same", "b.rs", 9, |_| ())]);
        let sentence = "two benchmarks are called same, at a.rs:3 and b.rs:9; `#[mallow::bench(name = \"…\")]` gives one of them another name.";
        assert_eq!(twice, Err(sentence.to_owned()));
        let idle = run(&arguments(&["--bench"]), vec![one]);
        assert_eq!(idle, Err("same does not call `Bencher::bench`, so nothing is known of it.".to_owned()));
        assert_eq!(run(&arguments(&["--bench", "other"]), vec![one]), Ok(()));
        assert_eq!(run(&arguments(&["--list"]), vec![one]), Ok(()));
    }

    #[test]
    fn a_call_is_repeated_as_often_as_was_asked_for() {
        use std::sync::atomic::{AtomicU32, Ordering};
        static CALLS: AtomicU32 = AtomicU32::new(0);
        let counted = Benchmark::new("counted", "a.rs", 3, |bencher| {
            bencher.bench(|| CALLS.fetch_add(1, Ordering::Relaxed));
        });
        let calls = |words: &[&str]| {
            CALLS.store(0, Ordering::Relaxed);
            run(&arguments(words), vec![counted]).unwrap();
            CALLS.load(Ordering::Relaxed)
        };
        assert_eq!([calls(&["--iterations", "30"]), calls(&[]), calls(&["--exact", "count"])], [30, 1, 0]);
        assert!(calls(&["--bench"]) > 1000);
    }
}
