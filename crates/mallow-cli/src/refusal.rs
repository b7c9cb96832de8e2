//! Why a command came to nothing, with the exit code that says so.

use crate::exit_code;
use mallow_collect::CollectError;
use mallow_launch::LaunchError;
use mallow_perf::PerfError;
use mallow_query::Failure;

/// A sentence and a code.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) failure: Failure,
    pub(crate) code: u8,
}

impl Refusal {
    /// Of a command that passes no status on.
    pub(crate) fn of_input(failure: Failure) -> Refusal {
        Refusal { failure, code: exit_code::BAD_INPUT }
    }
}

/// Of a command that passes a status on: there is none, and none that a program might have meant may take its place.
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
