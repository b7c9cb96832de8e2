//! The phases.

use crate::{Progress, SoakError, SoakOptions, SoakReport};
use mallow_collect::Resolve;

/// Soaks a server.
///
/// # Errors
/// When there is nothing to judge; whatever was started has been ended.
pub fn soak(
    _options: &SoakOptions,
    _resolve: Resolve<'_>,
    _progress: &mut dyn FnMut(Progress<'_>),
) -> Result<SoakReport, SoakError> {
    Err(SoakError::System { what: "soak yet", cause: std::io::ErrorKind::Unsupported.into() })
}
