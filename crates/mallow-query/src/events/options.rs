//! What is asked of events.

use crate::failure::Failure;
use mallow_base::Micros;
use mallow_profile::Profile;
use mallow_profile::analysis::Window;

/// A moment of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Microseconds since its start.
    Micros(u64),
    /// Millionths of its duration.
    Share(u32),
}

/// The requested analyses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventOptions {
    /// Live memory over time.
    pub timeline: bool,
    /// Sizes and lifetimes.
    pub histogram: bool,
    /// The metrics of each thread.
    pub threads: bool,
    /// Blocks that were resized.
    pub chains: bool,
    /// Blocks freed within so many allocations of their thread.
    pub temporary_within: Option<u64>,
    /// Blocks that lived for less than so long.
    pub short_lived_us: Option<u64>,
    /// Only what happened from here on.
    pub from: Option<Moment>,
    /// Only what happened before.
    pub to: Option<Moment>,
    /// The live set at this moment.
    pub at: Option<Moment>,
}

impl EventOptions {
    /// Returns whether anything is requested.
    pub fn is_asked(&self) -> bool {
        *self != EventOptions::default()
    }

    /// Returns whether a window is set.
    pub(super) fn is_windowed(&self) -> bool {
        self.from.is_some() || self.to.is_some() || self.at.is_some()
    }

    fn has_analysis(&self) -> bool {
        self.timeline
            || self.histogram
            || self.threads
            || self.chains
            || self.temporary_within.is_some()
            || self.short_lived_us.is_some()
    }

    /// Returns whether sites in the window are shown: if nothing else is requested, and for a moment always.
    pub(super) fn shows_window_sites(&self) -> bool {
        self.at.is_some() || !self.has_analysis()
    }

    /// Returns whether the time line is all there is to find.
    pub(super) fn is_only_timeline(&self) -> bool {
        let EventOptions { from, to, .. } = *self;
        *self == EventOptions { timeline: true, from, to, ..EventOptions::default() }
    }

    /// Returns the window. One that ends at or after the recording's end includes its last moment.
    pub(crate) fn window(&self, profile: &Profile) -> Result<Window, Failure> {
        let duration_us = profile.recording.duration_us;
        let in_us = |moment: Moment| match moment {
            Moment::Micros(us) => us,
            Moment::Share(millionths) => {
                (u128::from(duration_us) * u128::from(millionths) / 1_000_000) as u64
            }
        };
        let from_us = self.from.map_or(0, in_us);
        let to_us = match self.to.or(self.at).map(in_us) {
            Some(to_us) if to_us < duration_us => to_us,
            _ => u64::MAX,
        };
        if from_us > duration_us {
            let end = Micros(duration_us);
            return Err(Failure::new(format!(
                "--from {} is behind the recording's end at {end}.",
                Micros(from_us)
            )));
        }
        if from_us > to_us {
            return Err(Failure::new(format!(
                "--from {} is behind --to {}.",
                Micros(from_us),
                Micros(to_us)
            )));
        }
        Ok(Window { from_us, to_us })
    }
}
