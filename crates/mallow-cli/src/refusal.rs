//! Why a command failed, with its exit code.

use crate::exit_code;
use mallow_collect::CollectError;
use mallow_launch::LaunchError;
use mallow_perf::PerfError;
use mallow_query::Failure;

/// A message and an exit code.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) failure: Failure,
    pub(crate) code: u8,
}

impl Refusal {
    /// Returns the refusal of a command that does not pass on a status.
    pub(crate) fn of_input(failure: Failure) -> Refusal {
        Refusal { failure, code: exit_code::BAD_INPUT }
    }
}

/// For a command that passes on a status: there is none, and the code must not be one that a program might have used.
impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Refusal {
        Refusal { failure, code: exit_code::OWN_FAILURE }
    }
}

impl From<LaunchError> for Refusal {
    fn from(error: LaunchError) -> Refusal {
        Refusal { code: exit_code::of_launch(&error), failure: error.into() }
    }
}

impl From<CollectError> for Refusal {
    fn from(error: CollectError) -> Refusal {
        match error {
            CollectError::Launch(error) => error.into(),
            other => Failure::from(other).into(),
        }
    }
}

impl From<PerfError> for Refusal {
    fn from(error: PerfError) -> Refusal {
        match error {
            PerfError::Launch(error) => error.into(),
            other => Failure::from(other).into(),
        }
    }
}
