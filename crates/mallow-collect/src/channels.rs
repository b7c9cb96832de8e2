//! The channels of a process: how far each is read, and giving those of ended threads back.
//!
//! The recorder hooks no thread's end, because by then thread-local destructors may still allocate. The
//! kernel knows better who is gone.

use crate::mapping::Mapping;
use mallow_profile::ThreadIndex;
use mallow_wire::shared::{CHANNEL_FREE, CHANNEL_OWNED};
use rustc_hash::FxHashMap;
use std::sync::atomic::Ordering;

/// The read position of a channel, and its owner.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChannelReader {
    /// The thread that owns the channel.
    pub(crate) thread: ThreadIndex,
    /// The owner's serial number; 0 before the first owner was seen.
    pub(crate) taken_serial: u64,
    /// Words consumed.
    pub(crate) tail: u64,
    /// The last time stamp in the ring: that of the records after it.
    pub(crate) tsc: u64,
}

/// The thread id in a free channel, and in one that is being taken: its new owner has not signed yet.
pub(crate) const NOBODY: u32 = 0;

/// Returns readers of channels that were used before, positioned after everything in them.
pub(crate) fn read_up(mapping: &Mapping) -> Vec<ChannelReader> {
    let at_head = |index| {
        let channel = mapping.channel(index);
        let head = channel.head.load(Ordering::Acquire);
        channel.tail.store(head, Ordering::Release);
        ChannelReader { thread: ThreadIndex(0), taken_serial: 0, tail: head, tsc: 0 }
    };
    (0..mapping.channels_high()).map(at_head).collect()
}

/// Releases the channels whose owners have ended, if `is_read_up`, called with the channel's index and its owner's
/// serial number, returns true.
pub(crate) fn recycle(mapping: &Mapping, pid: u32, is_read_up: impl Fn(usize, u64) -> bool) {
    // In another pid namespace the recorder's thread ids mean nothing to us.
    if mapping.at_start().pid != pid {
        return;
    }
    // The main thread's alone, which nobody else waits for. Of a thousand processes most have no other.
    if mapping.channels_high() <= 1 && mapping.channel(0).tid.load(Ordering::Relaxed) == pid {
        return;
    }
    let owned: Vec<(usize, u32, u64)> = (0..mapping.channels_high())
        .map(|index| (index, mapping.channel(index)))
        .filter(|(_, channel)| channel.state.load(Ordering::Acquire) == CHANNEL_OWNED)
        // The id first: it is written last.
        .map(|(index, channel)| {
            let tid = channel.tid.load(Ordering::Acquire);
            (index, tid, channel.taken_serial.load(Ordering::Relaxed))
        })
        .filter(|(_, tid, _)| *tid != NOBODY)
        .collect();
    // A thread id may be in use again: then the channel taken last is the living thread's.
    let mut newest: FxHashMap<u32, u64> = FxHashMap::default();
    for (_, tid, serial) in &owned {
        let known = newest.entry(*tid).or_default();
        *known = (*known).max(*serial);
    }
    for (index, tid, serial) in owned {
        let ended = newest[&tid] > serial || !thread_lives(tid);
        if ended && is_read_up(index, serial) {
            let channel = mapping.channel(index);
            channel.tid.store(NOBODY, Ordering::Relaxed);
            channel.state.store(CHANNEL_FREE, Ordering::Release);
        }
    }
}

/// `kill` with signal 0 finds threads by their id too.
fn thread_lives(tid: u32) -> bool {
    // To `kill`, what is negative means groups of processes; no thread has such an id.
    let Some(tid) = i32::try_from(tid).ok().and_then(rustix::process::Pid::from_raw) else { return false };
    rustix::process::test_kill_process(tid) != Err(rustix::io::Errno::SRCH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared_memory::SharedMemory;

    fn states(memory: &SharedMemory, count: usize) -> Vec<u32> {
        let mapping = memory.map();
        (0..count).map(|channel| mapping.channel(channel).state.load(Ordering::Relaxed)).collect()
    }

    /// The id of a thread that has ended.
    fn ended_tid() -> u32 {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        child.id()
    }

    #[test]
    fn channels_of_ended_threads_are_released_when_read() {
        let memory = SharedMemory::new(4);
        let ended = ended_tid();
        memory.own(0, std::process::id(), 1);
        memory.own(1, ended, 2);
        memory.own(2, ended_tid(), 3);
        let mut asked = std::cell::RefCell::new(Vec::new());
        recycle(&memory.map(), std::process::id(), |channel, serial| {
            asked.borrow_mut().push((channel, serial));
            channel != 1
        });
        assert_eq!(asked.get_mut().as_slice(), [(1, 2), (2, 3)]);
        assert_eq!(states(&memory, 4), [CHANNEL_OWNED, CHANNEL_OWNED, CHANNEL_FREE, CHANNEL_FREE]);
    }

    #[test]
    fn a_reused_thread_id_keeps_only_its_latest_channel() {
        let memory = SharedMemory::new(3);
        let living = std::process::id();
        memory.own(0, living, 9);
        memory.own(1, living, 4);
        memory.own(2, living, 5);
        recycle(&memory.map(), living, |_, _| true);
        assert_eq!(states(&memory, 3), [CHANNEL_OWNED, CHANNEL_FREE, CHANNEL_FREE]);
    }

    #[test]
    fn a_channel_that_is_being_claimed_is_not_released() {
        let memory = SharedMemory::new(1);
        memory.own(0, NOBODY, 7);
        recycle(&memory.map(), std::process::id(), |_, _| true);
        assert_eq!(states(&memory, 1), [CHANNEL_OWNED]);
    }

    #[test]
    fn thread_ids_of_another_pid_namespace_release_no_channel() {
        let memory = SharedMemory::new(1);
        memory.own(0, ended_tid(), 1);
        recycle(&memory.map(), std::process::id() + 1, |_, _| true);
        assert_eq!(states(&memory, 1), [CHANNEL_OWNED]);
    }

    #[test]
    fn an_invalid_thread_id_counts_as_ended() {
        let memory = SharedMemory::new(1);
        memory.own(0, u32::MAX, 1);
        recycle(&memory.map(), std::process::id(), |_, _| true);
        assert_eq!(states(&memory, 1), [CHANNEL_FREE]);
    }
}
