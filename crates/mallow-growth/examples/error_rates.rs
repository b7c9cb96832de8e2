//! The verdict's error rates as a page of Markdown: what `tests/replays` holds, written down.
//!
//! `cargo run -p mallow-growth --example error_rates [RUNS] > bench/record/DATE-soak-verdicts.md`

#[path = "../tests/replays/collector.rs"]
mod collector;
#[path = "../tests/replays/confusion.rs"]
mod confusion;
#[path = "../tests/replays/modes.rs"]
mod modes;
#[path = "../tests/replays/noise.rs"]
mod noise;
#[path = "../tests/replays/replay.rs"]
mod replay;
#[path = "../tests/replays/restless.rs"]
mod restless;

use confusion::{RUNS, Row, matrix, table};
use mallow_growth::Verdict;

const HEAD: &str = "\
# Verdicts on made-up runs

Runs of each mode of `programs/soak`, and of some more, as formulas with noise, through the whole procedure of `mallow soak`:
20 iterations, then 40, then 80 while the verdict is open. Made by
`cargo run -p mallow-growth --example error_rates`; `cargo test -p mallow-growth --test replays` holds the rates.

- requests in an iteration: 700 to 1,300, 3,500 to 6,500, 35,000 to 65,000
- noise of live heap at rest: none, 8 KiB, 64 KiB; of resident memory: 200 KiB, 1 MiB (standard deviations; neighbours
  correlate by 0.7)
- open: INCONCLUSIVE after 80 iterations, or earlier when no further iteration would help. Nearly all of these runs have 1,000 requests and
  64 KiB of noise, where the smallest leak that can be seen is larger than what is asked for.
- wrong: neither accepted nor open
";

fn main() {
    let runs = std::env::args().nth(1).and_then(|runs| runs.parse().ok()).unwrap_or(RUNS);
    let recorded = matrix(true, runs);
    println!("{HEAD}\n## With the recorder, {runs} runs of each mode\n\n{}", table(&recorded));
    println!("{}", errors(&recorded));
    let alone = matrix(false, runs);
    println!("## Resident memory alone, {runs} runs of each mode\n");
    println!(
        "It never says LEAKING. Growth below 64 bytes a request is below its limit and may pass, so wrong counts"
    );
    println!("leaks of 1 KiB a request or more that passed.\n\n{}", table(&alone));
    unseen(runs as u64);
    restless_heaps(runs as u64);
}

fn unseen(runs: u64) {
    println!("## A heap that nobody sees, {runs} runs of each program\n");
    println!("A collector that runs when its heap has doubled, as Go's; leaks in bytes per request.\n");
    println!("| program | passed | grows | open |\n|---|--:|--:|--:|");
    for (name, program, piece) in collector::programs() {
        let [passed, grows, open] = collector::counts(program, piece, runs);
        println!("| {name} | {passed} | {grows} | {open} |");
    }
}

fn restless_heaps(runs: u64) {
    println!("\n## A leak on one stack of a restless heap, {runs} runs of each\n");
    println!(
        "Forty other stacks that are noise, fill, shrink, wander, or come and go in batches, by 10 KB to 10 MB each.\n"
    );
    println!("| leak, bytes per request | LEAKING | passed | open |\n|---|--:|--:|--:|");
    let programs = [
        ("none", 0.0, false),
        ("16", 16.0, false),
        ("122", 122.0, false),
        ("1,000", 1_000.0, false),
        ("122 that another stack gives up", 122.0, true),
    ];
    for (name, leak, moves) in programs {
        let counts = restless::counts(leak, moves, runs);
        println!("| {name} | {} | {} | {} |", counts.leaking, counts.passed, counts.open);
    }
}

fn errors(rows: &[Row]) -> String {
    let of = |leaks: bool, verdicts: &[Verdict]| -> (usize, usize) {
        let rows = rows.iter().filter(|row| row.mode.leaks == leaks);
        rows.fold((0, 0), |(wrong, all), row| {
            let these: usize = verdicts.iter().map(|verdict| row.count(*verdict)).sum();
            (wrong + these, all + row.outcomes.len())
        })
    };
    let (called, healthy) = of(false, &[Verdict::Leaking]);
    let (passed, leaking) = of(true, &[Verdict::Clean, Verdict::Plateau]);
    format!(
        "Programs without a leak called LEAKING: {called} of {healthy}. Leaks that passed as CLEAN or PLATEAU: {passed} of {leaking}.\n"
    )
}
