//! Passes over the events of a file: one for each process.

use crate::failure::Failure;
use crate::profile_file::{ProfileFile, refused};
use mallow_formats::{EventFile, ImportError};
use mallow_profile::analysis::{Findings, Pass, Plan};
use mallow_profile::{Process, ProcessIndex, Profile};

/// Every process of a profile.
pub(crate) fn all_processes(profile: &Profile) -> impl Iterator<Item = ProcessIndex> {
    (0..profile.processes.len() as u32).map(ProcessIndex)
}

/// Why there are no findings.
pub(crate) enum Stop {
    NoEvents,
    Failed(Failure),
}

/// One pass over each process. Blocks that the file's filter does not want are not heard of.
pub(crate) fn passes(
    document: &ProfileFile,
    processes: &[ProcessIndex],
    plan: impl Fn(&Process) -> Plan,
) -> Result<Vec<Findings>, Stop> {
    if !document.has_events() {
        return Err(Stop::NoEvents);
    }
    let failed = |error: ImportError| Stop::Failed(refused(&document.path, &error));
    let file = EventFile::open(&document.path, document.format).map_err(failed)?;
    let mut file = file.ok_or(Stop::NoEvents)?;
    let mut found = Vec::with_capacity(processes.len());
    for &index in processes {
        let process = &document.profile.processes[index.0 as usize];
        let choice = document.filtered.as_ref().map(|filtered| filtered.choice(index, process));
        let mut pass = Pass::of(plan(process), choice);
        if !file.feed(document.index_in_file(index), &mut pass).map_err(failed)? {
            return Err(Stop::NoEvents);
        }
        found.push(pass.finish());
    }
    Ok(found)
}
