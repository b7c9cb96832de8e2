//! Writes the CSV file that both versions read: a header and 37,449 rows of 3 fields, the same bytes every time.
//!
//! The fields hold numbers and NULL only: text would cost an allocation per field in both versions and hide the
//! difference. A row's three fields hold 26 bytes (25.9 on average, because NULL is shorter: 8.65 per field), and so do
//! the three column names (exactly), which the map-per-row version copies for every row.

use std::fmt::Write;
use std::process::ExitCode;

const ROWS: usize = 37_449;

/// A linear congruential generator (Knuth's MMIX constants): deterministic, and no library that could change.
struct Sequence(u64);

impl Sequence {
    /// A number below `bound`, from the upper bits, which are the better ones.
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn table() -> String {
    let mut sequence = Sequence(37_449);
    let mut text = String::from("identifier,amount,proportion\n");
    for row in 0..ROWS {
        let identifier = 10_000_000 + sequence.below(90_000_000);
        let amount = 100_000_000 + sequence.below(900_000_000);
        let whole = 10 + sequence.below(90);
        let fraction = sequence.below(1_000_000);
        // 8 + 9 + 9 bytes; every 64th proportion is absent.
        let line = match row % 64 {
            63 => writeln!(text, "{identifier},{amount},NULL"),
            _ => writeln!(text, "{identifier},{amount},{whole}.{fraction:06}"),
        };
        line.expect("a String takes every write");
    }
    text
}

fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("csv-generate: name the file to write: csv-generate FILE.");
        return ExitCode::from(2);
    };
    match std::fs::write(&path, table()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("csv-generate: {} cannot be written: {error}.", path.to_string_lossy());
            ExitCode::from(2)
        }
    }
}
