//! What `mallow report` is asked to find in events.

use crate::args::{LowEvents, LowMoment};
use crate::failure::Failure;
use mallow_base::Micros;
use mallow_profile::Profile;
use mallow_profile::analysis::Window;

/// A moment of a recording.
type Moment = LowMoment;

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventsView {
    pub(crate) timeline: bool,
    pub(crate) histogram: bool,
    pub(crate) threads: bool,
    pub(crate) chains: bool,
    pub(crate) temporary_within: Option<u64>,
    pub(crate) short_lived_us: Option<u64>,
    pub(crate) from: Option<Moment>,
    pub(crate) to: Option<Moment>,
    pub(crate) at: Option<Moment>,
    pub(crate) pid: Option<u32>,
}

impl From<LowEvents> for EventsView {
    fn from(low: LowEvents) -> Self {
        EventsView {
            timeline: low.timeline,
            histogram: low.histogram,
            threads: low.threads,
            chains: low.chains,
            temporary_within: low.temporary_within,
            short_lived_us: low.short_lived,
            from: low.from,
            to: low.to,
            at: low.at,
            pid: low.pid,
        }
    }
}

impl EventsView {
    /// Whether anything is asked for. A process alone is a question about the whole of its time.
    pub(crate) fn is_asked(&self) -> bool {
        *self != EventsView::default()
    }

    /// Whether a window is given.
    pub(crate) fn is_windowed(&self) -> bool {
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

    /// Whether sites in the window are shown: when nothing else is asked for, and for a moment always.
    pub(crate) fn shows_window_sites(&self) -> bool {
        self.at.is_some() || !self.has_analysis()
    }

    /// Whether the time line is all there is to find.
    pub(crate) fn is_only_timeline(&self) -> bool {
        let EventsView { from, to, pid, .. } = *self;
        *self == EventsView { timeline: true, from, to, pid, ..EventsView::default() }
    }

    /// The window. What lies at or behind the recording's end includes its last moment.
    pub(crate) fn window(&self, profile: &Profile) -> Result<Window, Failure> {
        let duration_us = profile.recording.duration_us;
        let in_us = |moment: Moment| match moment {
            LowMoment::Micros(us) => us,
            LowMoment::Share(millionths) => {
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
