//! Opens profiles, with a message if that takes long.

use crate::busy::reading;
use mallow_profile::ReallocAttribution;
use mallow_query::{AnyFile, Failure};
use std::path::Path;

/// A profile of any format.
pub(crate) fn profile(path: &Path, attribution: ReallocAttribution) -> Result<AnyFile, Failure> {
    let _reading = reading(path);
    AnyFile::open(path, attribution)
}
