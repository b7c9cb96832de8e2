//! The end of a recording: what is still open is closed, and names and figures go behind the events.

use crate::collector::Collector;
use crate::early_ends::early_ends;
use crate::error::CollectError;
use crate::exited::ExitedProcess;
use crate::findings::Findings;
use crate::limits;
use crate::profile::{CountedSites, process_of, profile_of};
use crate::regions::{self, WatchedProcess};
use crate::session::Session;
use crate::sink::Sink;
use crate::symbols::{Named, Resolve, symbols_of};
use crate::target::TracedCommand;
use mallow_base::grouped;
use mallow_profile::{Availability, EventsLost, Nameless, Process, Profile, Recording};
use mallow_trace::{
    ChunkKind, End, ProcessEnd, ProcessStart, TruncatedStacks, Unnamed, Unseen, encode_ended,
};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The results in memory when the trace is written.
pub(crate) enum Metrics {
    /// Everything, if somebody wants it still.
    Profile(Option<Box<Profile>>),
    /// The regions of each process, if they were requested.
    Regions(Vec<WatchedProcess>),
}

/// Closes what is still open, and adds symbols and sums. `started` is the command, if one was started. `nameless` tells of which modules `resolve` could not look
/// up the names, when it has been called. `meanwhile` is called with a profile and its sites before the trace is complete, while sums are packed;
/// it returns whether the profile is still wanted.
pub(crate) fn finish<S: Sink + Send>(
    collector: &mut Collector<S>,
    started: Option<&TracedCommand>,
    about: Recording,
    resolve: Resolve<'_>,
    nameless: &dyn Fn() -> Vec<Nameless>,
    meanwhile: &mut dyn FnMut(&mut Profile, &CountedSites<'_>, &Findings) -> bool,
) -> Result<Metrics, CollectError> {
    let duration_us = collector.now_us();
    collector.close_all()?;
    let nobody = collector.exited.is_empty().then_some("recorded");
    let was_full = collector.session().is_some_and(Session::was_full);
    collector.findings.unseen.extend(limits::sentence(nobody, was_full));
    collector.name_missing_starts();
    if collector.findings.python_objects == (true, false) {
        collector.findings.unseen.push(
            "no process let what Python hands out be recorded: is Python 3.8 or later the program, or among its libraries at its start?".into(),
        );
    }
    let (exited, is_own) = (std::mem::take(&mut collector.exited), collector.wanted.own);
    let remains = collector.remains.take();
    collector.findings.unseen.extend(began_late(collector.delay(), duration_us, &exited));
    let (index, now_us) = (collector.registered, collector.now_us());
    let sink: &mut dyn Sink = &mut collector.sink;
    let missing = match started {
        Some(command) => put_missing_child(sink, index, now_us, command, &about)?,
        None => None,
    };
    // A caller that needs only counts does not wait for the symbols of everything around them. The trace's reader
    // resolves the others.
    let addresses = match collector.wanted.regions {
        None => ExitedProcess::all_addresses,
        Some(_) => ExitedProcess::counted_addresses,
    };
    let is_profile = collector.wanted.regions.is_none();
    let findings = &collector.findings;
    let read = || {
        let Named { symbols, frames, locations } = symbols_of(&exited, addresses, resolve);
        let profile = is_profile.then(|| {
            let early_ends = early_ends(&exited, &frames, &locations);
            let (mut profile, sites) = profile_of(&exited, &symbols, frames, locations);
            profile.recording = Recording { duration_us, nameless: nameless(), early_ends, ..about };
            profile.processes.extend(missing);
            profile.known = if exited.is_empty() { Availability::NOTHING } else { profile.known };
            let is_wanted = meanwhile(&mut profile, &sites, findings);
            if is_wanted {
                sites.add_to(&mut profile);
            }
            (profile, is_wanted)
        });
        (symbols, profile)
    };
    let is_put = || {
        if let Some(remains) = remains {
            drop_beside(remains, is_own);
        }
    };
    let (symbols, profile) = put_sums_beside(&mut collector.sink, &exited, is_own, is_put, read)?;
    let sink: &mut dyn Sink = &mut collector.sink;
    let metrics = match profile {
        Some((profile, is_wanted)) => {
            let recording = profile.recording.clone();
            collector.findings.early = profile.early_ends();
            let (wanted, unwanted) =
                if is_wanted { (Some(Box::new(profile)), None) } else { (None, Some(profile)) };
            drop_beside((exited, unwanted), is_own);
            sink.put_whole(&symbols)?;
            put_gaps(sink, recording)?;
            Metrics::Profile(wanted)
        }
        None => Metrics::Regions(regions::watched(exited, &symbols)),
    };
    put_unseen(sink, &collector.findings)?;
    sink.put_whole(&End { duration_us })?;
    sink.flush()?;
    Ok(metrics)
}

/// Writes the sums of all processes while something else is done: packing those of 100,000 stacks takes as long as finding their names
/// and making the profile.
/// In the profiled process itself (`is_own`) it is done after it: a thread would be one more of the program's, and might be recorded. `is_put` is called
/// by the thread when it is done.
fn put_sums_beside<T>(
    sink: &mut (impl Sink + Send),
    exited: &[ExitedProcess],
    is_own: bool,
    is_put: impl FnOnce() + Send,
    beside: impl FnOnce() -> T,
) -> Result<T, CollectError> {
    let sink = Mutex::new(sink);
    let put = || {
        let mut sink = sink.lock().unwrap_or_else(PoisonError::into_inner);
        let sink: &mut dyn Sink = &mut **sink;
        exited.iter().try_for_each(|process| {
            sink.chunk(ChunkKind::FOLDED, process.index, &mut |out| encode_ended(&process.folded, out))
        })?;
        sink.flush()
    };
    let put_and_tell = || {
        let outcome = put();
        is_put();
        outcome
    };
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().name("mallow-sums".into());
        let thread = if is_own { None } else { builder.spawn_scoped(scope, put_and_tell).ok() };
        let done = beside();
        let put = match thread {
            Some(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            // Where no thread can be had it takes longer.
            None => put(),
        };
        put.map(|()| done)
    })
}

/// Drops what is no longer needed while something else is done: to unmap the memory that a program shared, and the tables of its blocks and stacks, takes
/// some milliseconds. Nobody waits for that; the end of the process would take as long for it. While sums are packed it would take the time
/// from them. In the profiled process itself (`is_own`) there is no thread for it either.
fn drop_beside(unneeded: impl Send + 'static, is_own: bool) {
    if !is_own {
        // Where no thread can be had it is dropped here.
        let _ = std::thread::Builder::new().name("mallow-unmap".into()).spawn(|| drop(unneeded));
    }
}

/// Says what is not known because recording began some time after the command.
fn began_late(delay: Duration, duration_us: u64, exited: &[ExitedProcess]) -> Option<String> {
    let frees: u64 = exited.iter().map(|process| process.folded.frees_unmatched).sum();
    if delay.is_zero() {
        return None;
    }
    Some(match duration_us {
        0 => format!("the command ended before the delay of {delay:?} was over, so nothing was recorded"),
        _ => format!(
            "recording began {delay:?} after the command: blocks that it had allocated until then are not known and are in no figure, and {} frees were of blocks \
             that are not known",
            grouped(frees)
        ),
    })
}

/// Says of which modules names are missing, and in which ones stacks end too early.
fn put_gaps(sink: &mut dyn Sink, recording: Recording) -> Result<(), CollectError> {
    let Recording { nameless, early_ends, .. } = recording;
    if !nameless.is_empty() {
        sink.put_whole(&Unnamed { modules: nameless })?;
    }
    if !early_ends.is_empty() {
        sink.put_whole(&TruncatedStacks { early_ends })?;
    }
    Ok(())
}

/// Says what is missing in the trace.
fn put_unseen(sink: &mut dyn Sink, findings: &Findings) -> Result<(), CollectError> {
    let sentences: Vec<String> = findings.blind.iter().chain(&findings.unseen).cloned().collect();
    if sentences.is_empty() { Ok(()) } else { sink.put_whole(&Unseen { sentences }) }
}

/// A command that ended before it could register, or had no room for the recorder, was there: killed at once, without one of its libraries, below a limit. What it did
/// is not known.
fn put_missing_child(
    sink: &mut dyn Sink,
    index: u32,
    ended_us: u64,
    command: &TracedCommand,
    about: &Recording,
) -> Result<Option<Process>, CollectError> {
    if command.was_registered() {
        return Ok(None);
    }
    let parent_pid = std::process::id();
    let start =
        ProcessStart { pid: command.pid(), parent_pid, command: about.command.join(" "), started_us: 0 };
    sink.put(index, &start)?;
    // No metrics follow: they are not zero.
    let end = ProcessEnd { ended_us, exit: command.exit(), events_lost: EventsLost::Unknown };
    sink.put(index, &end)?;
    Ok(Some(process_of(start, end)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::{ThreadId, current};

    /// Notes which thread writes.
    struct Noting(Option<ThreadId>);

    impl Sink for Noting {
        fn chunk(
            &mut self,
            _: ChunkKind,
            _: u32,
            _: &mut dyn FnMut(&mut Vec<u8>),
        ) -> Result<(), CollectError> {
            Ok(())
        }

        fn flush(&mut self) -> Result<(), CollectError> {
            self.0 = Some(current().id());
            Ok(())
        }
    }

    #[test]
    fn the_process_that_profiles_itself_gets_no_thread_for_its_sums() {
        for is_own in [true, false] {
            let mut sink = Noting(None);
            assert_eq!(put_sums_beside(&mut sink, &[], is_own, || (), || 7).unwrap(), 7);
            assert!(sink.0.is_some());
            assert_eq!(sink.0 == Some(current().id()), is_own);
        }
    }
}
