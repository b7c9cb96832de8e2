//! Builds the profile of a massif file.

use super::Head;
use super::snapshot::{Clock, Snapshot};
use super::tree::Leaf;
use crate::import::valgrind_frames::{Frames, Overgrown};
use crate::{Format, ImportError};
use mallow_profile::{Availability, Process, ProcessIndex, ProfileBuilder, Recording, SiteTotals, TimeUnit};

pub(super) fn builder_of(head: &Head, last: &Snapshot, known: Availability) -> ProfileBuilder {
    let recording = Recording {
        command: head.command.split_ascii_whitespace().map(str::to_owned).collect(),
        duration_us: last.sample.time_us,
        time_unit: head.clock.unit(),
        ..Recording::default()
    };
    ProfileBuilder::new(recording, known)
}

pub(super) fn process_of(head: &Head, last: &Snapshot) -> Process {
    Process { command: head.command.clone(), ended_us: last.sample.time_us, ..Process::default() }
}

pub(super) fn overgrown(_: Overgrown) -> ImportError {
    let reason = String::from("its inlined frames unfold to far more than its size allows");
    ImportError::Unsupported { format: Format::Massif, reason }
}

pub(super) fn add_site(
    builder: &mut ProfileBuilder,
    process: ProcessIndex,
    frames: &mut Frames,
    leaf: &Leaf,
    totals: &SiteTotals,
) -> Result<(), Overgrown> {
    let stack = frames.stack(builder, &leaf.innermost_first)?;
    builder.add_site(process, stack, totals);
    Ok(())
}

impl Clock {
    fn unit(self) -> TimeUnit {
        match self {
            Clock::Instructions => TimeUnit::Instructions,
            Clock::Bytes => TimeUnit::Bytes,
            Clock::Milliseconds => TimeUnit::Microseconds,
        }
    }
}
