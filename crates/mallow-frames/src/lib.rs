//! How a frame of a stack is written for people, and which frames only carry an allocation on behalf of their caller.
//!
//! Every front end shows the same names, and so does the sentence with which a test fails inside a program (`inside/rust`), where nothing
//! else of a front end is wanted.

mod name;
pub mod plumbing;

pub use name::{home, place, short_name, telling_path, whole_place};
