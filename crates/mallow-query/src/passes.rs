//! Passes over the events of a trace: one for each process.

use crate::failure::{Failure, reason};
use crate::profile_file::ProfileFile;
use mallow_profile::analysis::{Findings, Pass, Plan};
use mallow_profile::{Process, ProcessIndex, Profile};
use mallow_trace::{Trace, TraceError};
use std::fs::File;
use std::io::BufReader;

/// Every process of a profile.
pub(crate) fn all_processes(profile: &Profile) -> impl Iterator<Item = ProcessIndex> {
    (0..profile.processes.len() as u32).map(ProcessIndex)
}

/// Why there are no findings.
pub(crate) enum Stop {
    NoEvents,
    Failed(Failure),
}

/// One pass over each process.
pub(crate) fn passes(
    document: &ProfileFile,
    processes: &[ProcessIndex],
    plan: impl Fn(&Process) -> Plan,
) -> Result<Vec<Findings>, Stop> {
    let refused = |error: TraceError| match error {
        TraceError::NoEvents => Stop::NoEvents,
        TraceError::Io(error) => Stop::Failed(Failure::new(format!(
            "cannot read {}: {}.",
            document.path.display(),
            reason(&error)
        ))),
        other => Stop::Failed(Failure::new(format!("cannot read {}: {other}.", document.path.display()))),
    };
    let file = File::open(&document.path).map_err(|error| refused(TraceError::Io(error)))?;
    let mut trace = Trace::open(BufReader::new(file)).map_err(refused)?;
    let mut found = Vec::with_capacity(processes.len());
    for &index in processes {
        let mut pass = Pass::new(plan(&document.profile.processes[index.0 as usize]));
        trace.analyse(document.index_in_file(index), &mut pass).map_err(refused)?;
        found.push(pass.finish());
    }
    Ok(found)
}
