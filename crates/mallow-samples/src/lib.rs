//! Profiles, verdicts and soaks written by hand, for the tests of what people and scripts see.
//!
//! Only tests use this crate, and it may never hold what a program needs.

pub mod check;
pub mod cpu;
pub mod diff;
pub mod events;
pub mod profile;
pub mod soak;
