//! An allocator around yours that mallow sees, and heap profiles and exact allocation tests from inside a program.
//!
//! ```no_run
//! use std::alloc::System;
//!
//! #[global_allocator]
//! static ALLOC: mallow_alloc::Mallow<System> = mallow_alloc::Mallow::new(System);
//!
//! fn main() {
//!     let _profile = mallow_alloc::profile("app.mallow");
//!     // … the program …
//! } // here the profile is complete: `mallow report app.mallow`
//! ```
//!
//! Any allocator may stand below: `static ALLOC: Mallow<MiMalloc> = Mallow::new(MiMalloc)`.
//!
//! - Under `mallow record`, `stat`, `check` and `soak` each call of this allocator is one event there, also where the allocator below never
//!   calls libc's `malloc`. Nothing has to be started for that.
//! - [`profile`] records the program from inside, where it cannot be started under mallow.
//! - [`region()`] counts what single threads do between two places, and [`testing`] does so for tests that run beside each other: see
//!   [`assert_allocations!`].
//!
//! While nobody watches a call costs one compare. With `default-features = false, features = ["record"]` the crate is what the first point says, and
//! needs no std and no crate but mallow's recorder. Without features, and where mallow does not run (it runs on Linux on x86-64), the allocator
//! passes everything on at no cost; `profile`, `region` and `testing` are not there then.
//!
//! Stacks are unwound with the tables that Rust puts into every program; names and lines need debug information
//! (`[profile.release] debug = "line-tables-only"`).

#![cfg_attr(not(feature = "inside"), no_std)]

mod alloc;
#[cfg(all(feature = "record", target_os = "linux", target_arch = "x86_64"))]
mod hooks;

#[cfg(all(feature = "inside", target_os = "linux", target_arch = "x86_64"))]
mod limit;
#[cfg(all(feature = "inside", target_os = "linux", target_arch = "x86_64"))]
mod profile;
#[cfg(all(feature = "inside", target_os = "linux", target_arch = "x86_64"))]
mod recording;
#[cfg(all(feature = "inside", target_os = "linux", target_arch = "x86_64"))]
mod region;
#[cfg(all(feature = "inside", target_os = "linux", target_arch = "x86_64"))]
mod stats;

pub use alloc::Mallow;
#[cfg(all(feature = "inside", target_os = "linux", target_arch = "x86_64"))]
pub use {
    profile::{Format, Profile, ProfileBuilder, builder, profile},
    recording::InsideError,
    region::{Region, Share, region, testing},
    stats::Stats,
};
