//! What a process did that its recorder could not see, as sentences.

use crate::heap::who;
use crate::mapping::Mapping;
use mallow_base::grouped;
use mallow_profile::EventsLost;
use mallow_wire::shared::GENERATION_COUNT;
use std::sync::atomic::Ordering;

/// Returns one sentence for each reason why metrics of a process are incomplete.
pub(crate) fn warnings(mapping: &Mapping, pid: u32) -> Vec<String> {
    let header = mapping.header();
    let mut warnings = Vec::new();
    let locked_in = header.threads_locked_in.load(Ordering::Relaxed);
    if locked_in > 0 {
        warnings.push(format!(
            "process {pid}: mallow cannot run in threads of it that went into seccomp's strict mode, gave up time stamps, whose system calls became \
             signals, or that began behind a filter against gettid (threads: {locked_in}); what they did from then on is missing"
        ));
    }
    let broken = header.invariants_broken.load(Ordering::Relaxed);
    if broken > 0 {
        warnings.push(format!(
            "process {pid}: the recorder found a fault of its own and stopped recording; the program went on. Please report it, with \
             the program and this mallow's version"
        ));
    }
    let filtered = header.children_filtered.load(Ordering::Relaxed);
    if filtered > 0 {
        warnings.push(format!(
            "process {pid}: what it forked behind its seccomp filter was not recorded (processes: {filtered})"
        ));
    }
    let unanswered = header.objects_unanswered.load(Ordering::Relaxed);
    if unanswered > 0 {
        warnings.push(format!(
            "process {pid}: mallow stood still when it was asked about what the process loaded, so what allocators of their own did there is \
             missing (executables and libraries: {unanswered})"
        ));
    }
    if header.namespaces.load(Ordering::Relaxed) > 0 {
        warnings.push(format!(
            "process {pid}: it has libraries in a namespace of their own (dlmopen, LD_AUDIT), with a C library of its own; what they \
             allocated there is missing"
        ));
    }
    let missing = header.children_missing.load(Ordering::Relaxed);
    if missing > 0 {
        warnings.push(format!(
            "process {pid}: what it forked could not reach mallow and was not recorded (processes: {missing}): another network \
             namespace, or a limit on memory or files"
        ));
    }
    let unnoted = header.starts_lost.load(Ordering::Relaxed);
    if unnoted > 0 {
        warnings.push(format!(
            "process {pid}: whether what it started while mallow stood still was recorded is not known (programs: {unnoted})"
        ));
    }
    warnings.extend(wrong_names(mapping, pid));
    warnings
}

/// Sentences for frames that may have no name, or another one's.
fn wrong_names(mapping: &Mapping, pid: u32) -> impl Iterator<Item = String> {
    let header = mapping.header();
    let unlogged = header.modules_unlogged.load(Ordering::Relaxed);
    let full = (unlogged > 0).then(|| {
        format!(
            "process {pid}: its list of modules was full, so frames in libraries that it loaded later have no names or another \
             library's (not listed: {unlogged})"
        )
    });
    let unloads = header.generation.load(Ordering::Relaxed);
    let wrapped = (unloads >= GENERATION_COUNT).then(|| {
        format!(
            "process {pid}: it unloaded libraries more often than can be told apart, so frames in libraries that came and went may \
             have another library's names (unloads: {unloads})"
        )
    });
    full.into_iter().chain(wrapped)
}

/// The sentence for frees and allocations that do not meet, where nothing explains it: what one function gives and the other takes goes by a
/// `malloc` that is not ours. A forked child frees its parent's blocks, and where recording begins late there are blocks already. Calls within a
/// function of a linked allocator are part of its call: what a failed one leaves, an exception's object, is freed later.
pub(crate) fn unpaired(
    mapping: &Mapping,
    pid: u32,
    lost: EventsLost,
    (frees_unmatched, freed_unseen): (u64, u64),
) -> Option<String> {
    let (header, at_start) = (mapping.header(), mapping.at_start());
    let is_explained = at_start.is_forked != 0
        || at_start.patches_made > 0
        || at_start.is_early.load(Ordering::Relaxed) != 0
        || header.namespaces.load(Ordering::Relaxed) != 0
        || lost != EventsLost::Exactly(0);
    let found = match (frees_unmatched, freed_unseen) {
        _ if is_explained => return None,
        (0, 0) => return None,
        (frees, 0) => format!("it freed blocks whose allocation was not seen ({})", grouped(frees)),
        (0, blocks) => format!("blocks of it were freed unseen ({})", grouped(blocks)),
        (frees, blocks) => format!(
            "it freed blocks whose allocation was not seen ({}), and others were freed unseen ({})",
            grouped(frees),
            grouped(blocks)
        ),
    };
    Some(format!(
        "process {pid}: {found}: a library calls another malloc than the program, as the constructors of one do that is loaded with \
         RTLD_DEEPBIND, and what it allocates is missing"
    ))
}

/// The sentence for a process that was not waited for, because somebody did not want to.
pub(crate) fn still_ran(pid: u32, mapping: &Mapping) -> String {
    format!(
        "{}: it still ran when this was ended; what it did from then on is missing, and what was live then counts as leaked",
        who(pid, mapping)
    )
}

/// Returns the events of a process that were not recorded; `is_damaged` says that the collector found invalid data.
pub(crate) fn events_lost(mapping: &Mapping, is_damaged: bool) -> EventsLost {
    let header = mapping.header();
    let uncounted = [&header.losses_uncounted, &header.invariants_broken, &header.threads_locked_in];
    if is_damaged || uncounted.into_iter().any(|times| times.load(Ordering::Relaxed) > 0) {
        return EventsLost::Unknown;
    }
    EventsLost::Exactly(mapping.events_lost())
}

/// The sentence for them, if there are any.
pub(crate) fn loss(lost: EventsLost, pid: u32) -> Option<String> {
    let how_many = match lost {
        EventsLost::Exactly(0) => return None,
        EventsLost::Exactly(1) => "1 event was".to_owned(),
        EventsLost::Exactly(events) => format!("{events} events were"),
        EventsLost::Unknown => "an unknown number of events were".to_owned(),
    };
    Some(format!("process {pid}: {how_many} not recorded, so its counts are too low"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared_memory::SharedMemory;

    #[test]
    fn as_many_unloads_as_can_be_told_apart_are_no_reason_for_a_warning() {
        let mapping = SharedMemory::new(1).map();
        for (unloads, count) in [(0, 0), (GENERATION_COUNT - 1, 0), (GENERATION_COUNT, 1)] {
            mapping.header().generation.store(unloads, Ordering::Relaxed);
            assert_eq!(warnings(&mapping, 7).len(), count, "{unloads}");
        }
    }
}
