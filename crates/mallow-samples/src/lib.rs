//! Handwritten profiles, verdicts and soaks, for the tests of text and JSON.
//!
//! Only tests use this crate, and it must never contain code that mallow needs.

pub mod check;
pub mod cpu;
pub mod diff;
pub mod events;
pub mod profile;
pub mod soak;
