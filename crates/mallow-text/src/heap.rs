//! A managed heap as people read it.

mod object;
mod report;
mod row;

pub use object::{class, object};
pub use report::{ROWS_DEFAULT, report};

#[cfg(test)]
#[path = "heap_tests.rs"]
mod tests;
