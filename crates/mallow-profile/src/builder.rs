//! The door by which a foreign profile enters: tables without doubles, ids that exist, parents before children.
//!
//! An importer hands over processes, frames and metrics in whatever order its file has them; sites of equal process and stack are
//! added up.

use crate::{Availability, ByteAccesses, Process, Profile, Recording, Site, SiteTotals};
use hashbrown::HashTable;
use mallow_base::Frame;
use mallow_stacks::{Address, LocationId, Module, ModuleId, ProcessIndex, StackId, StacksBuilder};
use rustc_hash::FxBuildHasher;
use std::hash::BuildHasher;

/// Builds a profile. Every id that a method takes must come from the same builder.
#[derive(Debug, Default)]
pub struct ProfileBuilder {
    profile: Profile,
    stacks: StacksBuilder,
    /// Indices of the profile's sites, by process and stack.
    sites: HashTable<u32>,
}

impl ProfileBuilder {
    /// Returns an empty profile of a source that has the metrics `known`.
    pub fn new(recording: Recording, known: Availability) -> ProfileBuilder {
        let profile = Profile { recording, known, ..Profile::default() };
        ProfileBuilder { profile, ..ProfileBuilder::default() }
    }

    /// Returns the recording so far.
    pub fn recording(&mut self) -> &mut Recording {
        &mut self.profile.recording
    }

    /// Returns a process so far.
    pub fn process(&mut self, process: ProcessIndex) -> &mut Process {
        &mut self.profile.processes[process.0 as usize]
    }

    /// Which metrics the source can tell, to be changed when a file turns out to hold more or less.
    pub fn known(&mut self) -> &mut Availability {
        &mut self.profile.known
    }

    /// Adds a process.
    pub fn add_process(&mut self, process: Process) -> ProcessIndex {
        self.profile.processes.push(process);
        ProcessIndex(self.profile.processes.len() as u32 - 1)
    }

    /// The stacks so far, for a reader that knows nothing of what is counted.
    pub fn stacks(&mut self) -> &mut StacksBuilder {
        &mut self.stacks
    }

    /// The id of a module.
    pub fn module(&mut self, module: Module) -> ModuleId {
        self.stacks.module(module)
    }

    /// The id of a location; see [`StacksBuilder::location`].
    pub fn location(&mut self, address: Address, frames: Vec<Frame>) -> LocationId {
        self.stacks.location(address, frames)
    }

    /// The id of one call on a stack.
    pub fn node(&mut self, parent: Option<StackId>, location: LocationId) -> StackId {
        self.stacks.node(parent, location)
    }

    /// The id of a whole stack, given outermost call first; none when it is empty.
    pub fn stack(&mut self, outermost_first: impl IntoIterator<Item = LocationId>) -> Option<StackId> {
        self.stacks.stack(outermost_first)
    }

    /// Adds metrics to the site of a process and stack.
    pub fn add_site(&mut self, process: ProcessIndex, stack: Option<StackId>, totals: &SiteTotals) {
        let sites = &mut self.profile.sites;
        let hash_of = |site: &Site| FxBuildHasher.hash_one((site.process, site.stack));
        let new = Site { process, stack, totals: *totals };
        let is_it = |at: &u32| (sites[*at as usize].process, sites[*at as usize].stack) == (process, stack);
        if let Some(known) = self.sites.find(hash_of(&new), is_it) {
            sites[*known as usize].totals.add(totals);
            return;
        }
        let next = sites.len() as u32;
        sites.push(new);
        self.sites.insert_unique(hash_of(&new), next, |at| hash_of(&sites[*at as usize]));
    }

    /// Adds how often each byte of a part of a site's blocks was accessed; none where they have several sizes.
    pub fn add_accesses(
        &mut self,
        process: ProcessIndex,
        stack: Option<StackId>,
        accesses: Option<ByteAccesses>,
    ) {
        self.profile.accesses.add(process, stack, accesses);
    }

    /// The profile.
    pub fn finish(self) -> Profile {
        Profile { stacks: self.stacks.finish(), ..self.profile }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str) -> Vec<Frame> {
        vec![Frame { function: function.to_owned(), ..Frame::default() }]
    }

    #[test]
    fn what_is_given_twice_stands_once() {
        let mut builder = ProfileBuilder::new(Recording::default(), Availability::NOTHING);
        let process = builder.add_process(Process::default());
        for _ in 0..2 {
            let main = builder.location(Address::Unknown, frame("main"));
            let work = builder.location(Address::Unknown, frame("work"));
            let stack = builder.stack([main, work]);
            builder.add_site(
                process,
                stack,
                &SiteTotals { allocations: 2, bytes: 10, ..SiteTotals::default() },
            );
            builder.add_site(process, None, &SiteTotals { allocations: 1, ..SiteTotals::default() });
        }
        let profile = builder.finish();
        assert_eq!(
            (profile.stacks.locations.len(), profile.stacks.nodes.len(), profile.sites.len()),
            (2, 2, 2)
        );
        let names: Vec<&str> =
            profile.frames(profile.sites[0].stack).map(|frame| frame.function.as_str()).collect();
        assert_eq!(names, ["work", "main"]);
        assert_eq!((profile.sites[0].totals.allocations, profile.sites[0].totals.bytes), (4, 20));
        assert_eq!(profile.sites[1].totals.allocations, 2);
    }
}
