//! Lanes: each recorded thread has one, with a ring, room for its state, and a memo.
//!
//! A thread takes a lane at its first call. The collector gives it back when the thread is gone and its ring is read. Where all are
//! taken by living threads, calls are counted as lost.

use crate::bootstrap;
use crate::bounds::at;
use crate::memo::Memo;
use crate::process;
use crate::sys;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use mallow_wire::shared::*;

static MEMOS: [AtomicPtr<Memo>; LANE_COUNT_MAX] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; LANE_COUNT_MAX];

/// A lane and what belongs to it.
#[derive(Debug)]
pub struct Place {
    /// Room of `THREAD_BYTES` for the thread's state.
    pub thread: *mut u8,
    /// The lane.
    pub lane: *const Lane,
    /// Its ring.
    pub ring: *mut u64,
    /// The memo of this lane; null when there is no memory for it.
    pub memo: *mut Memo,
    /// The process id.
    pub pid: u32,
    /// Count only.
    pub counts: bool,
    /// The lane's number.
    pub index: u32,
}

/// Why a thread has no lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoLane {
    /// All are taken by threads that live. The call is counted as lost.
    Full,
    /// The process is not recorded, or it is too early to tell.
    NotRecorded,
}

/// A lane for the calling thread, starting the process first if need be.
///
/// # Errors
/// Why there is none.
pub fn take_lane() -> Result<Place, NoLane> {
    if process::has_ended() || !bootstrap::started() {
        return Err(NoLane::NotRecorded);
    }
    let header = process::header();
    // SAFETY: the lanes lie in the shared memory.
    let lanes = unsafe {
        core::slice::from_raw_parts(
            process::shared().add(LANES_OFFSET).cast::<Lane>(),
            header.lane_count as usize,
        )
    };
    let index = claim(header, lanes).ok_or(NoLane::Full)?;
    let lane = lanes.get(index).ok_or(NoLane::Full)?;
    // An owner that died while it waited at a mark may have left one that nobody will answer: it is not ours.
    lane.marks_asked.store(lane.marks_answered.load(Ordering::Relaxed), Ordering::Relaxed);
    header.lanes_high.fetch_max(index as u32 + 1, Ordering::Relaxed);
    lane.taken_serial.store(header.lanes_taken.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
    // The id last. Until it is there the lane is nobody's to the collector; with it in front, a thread with the id of one that has
    // ended would stand behind the serial number of the lane's last owner, and the lane would be given back.
    lane.tid.store(sys::gettid(), Ordering::Release);
    let counts = header.mode == MODE_STAT;
    if counts && index > 0 {
        header.threads_many.store(1, Ordering::SeqCst);
    }
    Ok(Place {
        // SAFETY: one state and one ring for each lane.
        thread: unsafe { process::thread_room(index) },
        lane,
        // SAFETY: as above.
        ring: unsafe { process::shared().add(RINGS_OFFSET + index * RING_BYTES).cast() },
        memo: if counts { core::ptr::null_mut() } else { memo_of(index) },
        pid: header.pid,
        counts,
        index: index as u32,
    })
}

/// Gives back a lane that was taken and not used, and counts the call that wanted it as lost.
///
/// # Safety
/// `lane` was given by [`take_lane`] to this thread, which has written nothing to its ring.
pub unsafe fn give_back(lane: *const Lane) {
    process::header().events_lost.fetch_add(1, Ordering::Relaxed);
    // SAFETY: by contract.
    let lane = unsafe { &*lane };
    lane.tid.store(0, Ordering::Relaxed);
    lane.state.store(LANE_FREE, Ordering::Release);
}

/// Finds a free lane, waiting a moment for the collector to give back those of dead threads. Once that was in vain nobody
/// waits, until a lane was found again.
fn claim(header: &Header, lanes: &[Lane]) -> Option<usize> {
    const WAIT_MS: u64 = 1;
    const WAITS_MAX: u32 = 50;
    static FULL: AtomicBool = AtomicBool::new(false);
    let take = || {
        lanes.iter().position(|lane| {
            lane.state.load(Ordering::Relaxed) == LANE_FREE
                && lane
                    .state
                    .compare_exchange(LANE_FREE, LANE_OWNED, Ordering::AcqRel, Ordering::Relaxed)
                    .is_ok()
        })
    };
    let mut waits = 0;
    loop {
        if let Some(index) = take() {
            if FULL.load(Ordering::Relaxed) {
                FULL.store(false, Ordering::Relaxed);
            }
            return Some(index);
        }
        if waits == WAITS_MAX || FULL.load(Ordering::Relaxed) {
            FULL.store(true, Ordering::Relaxed);
            header.events_lost.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        waits += 1;
        header.lanes_wanted.fetch_add(1, Ordering::SeqCst);
        sys::futex_wait(&header.heartbeat, header.heartbeat.load(Ordering::Relaxed), WAIT_MS);
        header.lanes_wanted.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Whether a thread without a lane should look for one again: now and then, and in a forked child, which has lanes of
/// its own. Otherwise its call is counted as lost.
pub fn wants_another_try() -> bool {
    const CALLS_BETWEEN: u64 = 1024;
    if process::has_ended() {
        return false;
    }
    if !process::is_ready() {
        return true;
    }
    let is_turn = process::header().events_lost.load(Ordering::Relaxed) % CALLS_BETWEEN == CALLS_BETWEEN - 1;
    if !is_turn {
        process::header().events_lost.fetch_add(1, Ordering::Relaxed);
    }
    is_turn
}

fn memo_of(index: usize) -> *mut Memo {
    let memo = at(&MEMOS, index).load(Ordering::Acquire);
    if !memo.is_null() {
        return memo;
    }
    let memo = Memo::map();
    at(&MEMOS, index).store(memo, Ordering::Release);
    memo
}

#[cfg(test)]
#[path = "lanes_tests.rs"]
mod tests;
