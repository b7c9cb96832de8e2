//! Profiles written by hand for the tests of this crate.

use mallow_base::Frame;
use mallow_profile::{
    Address, Location, LocationId, Process, ProcessIndex, Profile, Site, SiteTotals, StackId, StackNode,
    Totals,
};

/// A frame as a compiler with line tables leaves it.
pub(crate) fn frame(function: &str, module: &str) -> Frame {
    Frame { function: function.into(), module: Some(module.into()), ..Frame::default() }
}

/// A profile with one process.
pub(crate) fn profile() -> Profile {
    Profile { processes: vec![Process { pid: 1, ..Process::default() }], ..Profile::default() }
}

/// Adds a site; each element of `locations`, leaf first, holds the frames of one address.
pub(crate) fn site(profile: &mut Profile, process: u32, locations: &[Vec<Frame>], totals: SiteTotals) {
    let mut parent = None;
    for frames in locations.iter().rev() {
        let location = LocationId(profile.stacks.locations.len() as u32);
        profile.stacks.locations.push(Location { address: Address::Unknown, frames: frames.clone() });
        profile.stacks.nodes.push(StackNode { parent, location });
        parent = Some(StackId(profile.stacks.nodes.len() as u32 - 1));
    }
    profile.sites.push(Site { process: ProcessIndex(process), stack: parent, totals });
    profile.processes[process as usize].totals.add(&Totals {
        allocations: totals.allocations,
        bytes: totals.bytes,
        temporary: totals.temporary,
        peak_bytes: totals.peak_bytes,
        peak_blocks: totals.peak_blocks,
        leaked_bytes: totals.leaked_bytes,
        leaked_blocks: totals.leaked_blocks,
        ..Totals::default()
    });
}

/// Metrics of a site that allocated and freed.
pub(crate) fn allocated(allocations: u64, bytes: u64) -> SiteTotals {
    SiteTotals { allocations, bytes, ..SiteTotals::default() }
}
