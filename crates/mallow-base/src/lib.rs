//! Types that every crate shares: stack frames, and how numbers are formatted for and parsed from people.
//!
//! This crate knows nothing of processes, files or traces, and depends on nothing. It must stay a leaf: a
//! type belongs here only if two crates that may not depend on each other both need it (`mallow-symbols` returns
//! frames, `mallow-profile` stores them, and neither imports the other).

mod bare_name;
mod build_id;
mod frame;
mod glob;
mod markup;
mod median;
mod mirror;
mod numbers;
mod printable;
pub mod quantity;
mod words;

pub use bare_name::{is_fuller, last_word};
pub use build_id::gnu_build_id;
pub use frame::{Frame, Language, Place, SourceLine};
pub use glob::glob_matches;
pub use markup::escaped_xml;
pub use median::median;
pub use numbers::{Bytes, Count, Micros, Percent, grouped, hex};
pub use printable::printable;
