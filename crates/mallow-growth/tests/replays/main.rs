//! The verdict's error rates: 300 made-up runs of each mode, through the whole procedure of 20, 40 and 80 iterations.

mod confusion;
mod modes;
mod noise;
mod replay;

use confusion::{RUNS, Row, matrix, table};
use mallow_growth::Verdict;

fn rate(count: usize, row: &Row) -> f64 {
    count as f64 / row.outcomes.len() as f64
}

#[test]
fn with_a_recorder_wrong_verdicts_are_at_most_one_in_a_hundred() {
    let rows = matrix(true, RUNS);
    println!("{}", table(&rows));
    for row in &rows {
        let name = row.mode.name;
        if row.mode.leaks {
            let passed = row.count(Verdict::Clean) + row.count(Verdict::Plateau);
            assert!(rate(passed, row) <= 0.01, "{name}: a leak passed {passed} times");
        } else {
            let called = row.count(Verdict::Leaking);
            assert!(rate(called, row) <= 0.01, "{name}: called a leak {called} times");
        }
        assert!(rate(row.wrong(), row) <= 0.01, "{name}: {} wrong verdicts", row.wrong());
    }
}

#[test]
fn resident_memory_alone_never_leaks() {
    let rows = matrix(false, RUNS);
    println!("{}", table(&rows));
    for row in &rows {
        assert_eq!(row.count(Verdict::Leaking), 0, "{}", row.mode.name);
        assert!(rate(row.wrong(), row) <= 0.01, "{}: passed {} times", row.mode.name, row.wrong());
    }
}
