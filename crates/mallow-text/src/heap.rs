//! Reports of managed heaps.

mod diff;
mod explain;
mod heapy;
mod held;
mod histogram;
mod limits;
mod object;
mod report;
mod row;

pub use diff::{Compared, diff, growth};
pub use explain::explain;
pub use heapy::{heapy_diff, heapy_read};
pub use held::held;
pub use histogram::histogram;
pub use limits::limits;
pub use object::{class, object};
pub use report::{ROWS_DEFAULT, report};

#[cfg(test)]
#[path = "heap_tests.rs"]
mod tests;
