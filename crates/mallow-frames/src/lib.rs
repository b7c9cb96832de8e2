//! How a stack frame is printed, and which frames are plumbing: frames that allocate on behalf of their caller.
//!
//! Every front end shows the same names, and so does the message of a test that fails inside a program (`inside/rust`), where
//! nothing else of a front end is needed.

mod name;
pub mod plumbing;
mod sources;

pub use name::{home, place, place_here, short_name, telling_path, whole_place};
pub use sources::{SourceName, name_sources_by};
