//! What the programs of tests link with or load, to say where a region begins and ends: the sources of `markers/`,
//! carried in this program so that a test needs nothing but mallow.

use std::fs;
use std::io;
use std::path::Path;

/// A file of the working folder.
pub(crate) struct Shim {
    /// From the working folder.
    pub(crate) path: &'static str,
    /// What is in it.
    pub(crate) text: &'static str,
}

/// The header for C and C++.
pub(crate) const HEADER: Shim = Shim { path: "include/mallow.h", text: include_str!("shims/mallow.h") };
/// The header for Google Benchmark.
pub(crate) const BENCHMARK: Shim =
    Shim { path: "include/mallow_benchmark.h", text: include_str!("shims/mallow_benchmark.h") };
/// The crate `mallow_markers`.
pub(crate) const CRATE: Shim =
    Shim { path: "rust/mallow_markers.rs", text: include_str!("shims/mallow_markers.rs") };
/// The package `mallow` for Python.
pub(crate) const PACKAGE: Shim =
    Shim { path: "python/mallow/__init__.py", text: include_str!("shims/mallow.py") };
/// What `require "mallow"` loads in Ruby.
pub(crate) const RUBY: Shim = Shim { path: "ruby/mallow.rb", text: include_str!("shims/mallow.rb") };
/// What `require('mallow')` loads in Node.
pub(crate) const NODE: Shim = Shim { path: "node/mallow.js", text: include_str!("shims/mallow.js") };

/// `measure(identifier:)` for Swift.
pub(crate) const MEASURE: Shim =
    Shim { path: "swift/measure.swift", text: include_str!("shims/measure.swift") };
/// What calls a Swift file's `run(identifier:)`.
pub(crate) const MAIN: Shim = Shim { path: "swift/main.swift", text: include_str!("shims/main.swift") };

/// All of them.
pub(crate) const ALL: [&Shim; 8] = [&HEADER, &BENCHMARK, &CRATE, &PACKAGE, &RUBY, &NODE, &MEASURE, &MAIN];

/// Puts the shims into a folder, each in that of its language. A file that is there already and the same is left alone.
pub fn write_into(folder: &Path) -> io::Result<()> {
    for shim in ALL {
        let path = folder.join(shim.path);
        if fs::read(&path).is_ok_and(|there| there == shim.text.as_bytes()) {
            continue;
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        mallow_files::replace(&path, shim.text.as_bytes())?;
    }
    Ok(())
}
