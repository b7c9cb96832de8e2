//! Profile files in and out, one module per format.
//!
//! An importer gives a profile with the warnings that a person should read, or one named error; never a panic, whatever the
//! bytes. This crate judges no figures: what they mean is the profile's business, how they look the views'.
//!
//! - [`native`] reads our own trace.

pub mod native;
