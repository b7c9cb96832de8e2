//! How the programs here are profiled: as `programs/csv-aggregate` is.

#[path = "../../csv-aggregate/src/inside.rs"]
mod inside;

pub use inside::profile;

/// The first argument, a number; 1 without one.
pub fn rounds() -> usize {
    std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(1)
}
