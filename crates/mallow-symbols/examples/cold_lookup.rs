//! Measures how long a cold resolution of many addresses takes.
//!
//! `cargo run --release -p mallow-symbols --example cold_lookup -- FILE [COUNT]` resolves COUNT (20,000) addresses that
//! are spread evenly over the executable sections of FILE, and prints the time and what was found.

use std::time::Instant;

use mallow_symbols::{ModuleKey, SearchPaths, Symbolizer};
use object::{Object, ObjectSection, SectionKind};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("name a file: cold_lookup FILE [COUNT]")?;
    let count: u64 = arguments.next().map_or(Ok(20_000), |count| count.parse())?;
    let svmas = spread(&path, count)?;

    let module = ModuleKey { path, build_id: Vec::new() };
    for run in ["cold", "again"] {
        let mut symbolizer = Symbolizer::new(SearchPaths::default());
        let start = Instant::now();
        let frames = symbolizer.resolve(&module, &svmas);
        let elapsed = start.elapsed();
        let all: usize = frames.iter().map(Vec::len).sum();
        let named = frames.iter().filter(|frames| !frames[0].function.starts_with("0x")).count();
        let placed = frames.iter().filter(|frames| frames.iter().any(|frame| frame.line.is_some())).count();
        println!(
            "{run}: {} addresses, {named} named, {placed} with lines, {all} frames in {:.1} ms ({:.2} us each)",
            svmas.len(),
            elapsed.as_secs_f64() * 1e3,
            elapsed.as_secs_f64() * 1e6 / svmas.len() as f64
        );
        symbolizer.warnings().iter().for_each(|warning| println!("{warning}"));
    }
    Ok(())
}

/// `count` addresses at equal distances in the code of a file.
fn spread(path: &str, count: u64) -> Result<Vec<u64>, Box<dyn std::error::Error>> {
    let bytes = std::fs::read(path)?;
    let file = object::File::parse(&*bytes)?;
    let code = file.sections().filter(|section| section.kind() == SectionKind::Text);
    let largest = code.max_by_key(|section| section.size()).ok_or("the file holds no code")?;
    let at = |index| {
        largest.address() + (u128::from(largest.size()) * u128::from(index) / u128::from(count)) as u64
    };
    Ok((0..count).map(at).collect())
}
