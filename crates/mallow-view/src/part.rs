//! Which part of a recording is looked at, and how much of the whole it is.

use mallow_profile::SiteTotals;

/// A part of a recording's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartWindow {
    /// From here, in microseconds since the recording's start.
    pub from_us: u64,
    /// Up to here.
    pub to_us: u64,
    /// The length of the recording.
    pub of_us: u64,
}

/// The selected part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartOf<W = SiteTotals> {
    /// The time; none for all of it.
    pub window: Option<PartWindow>,
    /// The filter, as it was typed.
    pub filter: Option<String>,
    /// The metrics of the whole recording.
    pub whole: W,
}
