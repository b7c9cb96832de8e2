//! A managed heap as people read it.

mod diff;
mod limits;
mod object;
mod report;
mod row;

pub use diff::{Compared, diff, growth};
pub use limits::limits;
pub use object::{class, object};
pub use report::{ROWS_DEFAULT, report};

#[cfg(test)]
#[path = "heap_tests.rs"]
mod tests;
