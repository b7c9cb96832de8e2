//! Giving the lanes of ended threads back to the process.
//!
//! The recorder hooks no thread's end, because by then thread-local destructors may still allocate. The kernel knows better who is gone.

use crate::mapping::Mapping;
use mallow_wire::shared::{LANE_FREE, LANE_OWNED};
use rustc_hash::FxHashMap;
use std::sync::atomic::Ordering;

/// The thread id in a free lane, and in one that is being taken: its new owner has not signed yet.
const NOBODY: u32 = 0;

/// Frees the lanes whose owners have ended, if `is_read_up`, which is given the lane's index and its owner's serial number, agrees.
pub(crate) fn recycle(mapping: &Mapping, pid: u32, is_read_up: impl Fn(usize, u64) -> bool) {
    // In another pid namespace the recorder's thread ids mean nothing to us.
    if mapping.header().pid != pid {
        return;
    }
    let owned: Vec<(usize, u32, u64)> = (0..mapping.lanes_high())
        .map(|index| (index, mapping.lane(index)))
        .filter(|(_, lane)| lane.state.load(Ordering::Acquire) == LANE_OWNED)
        .map(|(index, lane)| {
            (index, lane.taken_serial.load(Ordering::Acquire), lane.tid.load(Ordering::Relaxed))
        })
        .filter(|(_, _, tid)| *tid != NOBODY)
        .map(|(index, serial, tid)| (index, tid, serial))
        .collect();
    // A thread id may be in use again: then the lane taken last is the living thread's.
    let mut newest: FxHashMap<u32, u64> = FxHashMap::default();
    for (_, tid, serial) in &owned {
        let known = newest.entry(*tid).or_default();
        *known = (*known).max(*serial);
    }
    for (index, tid, serial) in owned {
        let ended = newest[&tid] > serial || !thread_lives(tid);
        if ended && is_read_up(index, serial) {
            let lane = mapping.lane(index);
            lane.tid.store(NOBODY, Ordering::Relaxed);
            lane.state.store(LANE_FREE, Ordering::Release);
        }
    }
}

/// `kill` with signal 0 finds threads by their id too.
fn thread_lives(tid: u32) -> bool {
    let Some(tid) = rustix::process::Pid::from_raw(tid as i32) else { return false };
    rustix::process::test_kill_process(tid) != Err(rustix::io::Errno::SRCH)
}
