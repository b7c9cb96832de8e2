//! `mallow check --write-markers`: writes the files that programs include to mark regions.

use crate::{exit_code, output};
use mallow_check::shims;
use mallow_query::Failure;
use std::path::Path;

/// Writes the header and the shims.
pub(crate) fn write(folder: &Path) -> Result<u8, Failure> {
    shims::write_into(folder).map_err(|error| Failure::writing(folder, &error))?;
    output::tell(&format!("The header and the shims are in {}.\n", folder.display()));
    Ok(exit_code::FINE)
}
