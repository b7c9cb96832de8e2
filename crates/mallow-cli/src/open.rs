//! Opens a profile, whichever tool wrote it.

use crate::failure::{Failure, reason};
use crate::symbols::Names;
use mallow_formats::{Format, ImportError, Imported};
use mallow_profile::ReallocBooking;
use mallow_trace::TraceError;
use std::path::Path;

/// Reads a file of any known format; what a trace of ours has no names for is looked up now.
pub(crate) fn profile(path: &Path, booking: ReallocBooking) -> Result<Imported, Failure> {
    Ok(profile_of_format(path, booking)?.1)
}

/// The same, with what kind of file it was.
pub(crate) fn profile_of_format(path: &Path, booking: ReallocBooking) -> Result<(Format, Imported), Failure> {
    let (format, mut imported) =
        mallow_formats::open(path, booking).map_err(|error| refused(path, &error))?;
    if format == Format::Mallow && !imported.complete {
        let mut names = Names::new();
        names.complete(&mut imported.profile);
        imported.warnings.extend_from_slice(names.warnings());
    }
    Ok((format, imported))
}

/// Why it was not read, in a sentence.
pub(crate) fn refused(path: &Path, error: &ImportError) -> Failure {
    let path = path.display();
    Failure::new(match error {
        ImportError::Io(error) | ImportError::Trace(TraceError::Io(error)) => {
            format!("cannot read {path}: {}.", reason(error))
        }
        other => format!("cannot read {path}: {other}."),
    })
}
