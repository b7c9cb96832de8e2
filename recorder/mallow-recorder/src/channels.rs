//! Channels: each recorded thread owns one, with a ring, room for its state, and a memo.
//!
//! A thread claims a channel at its first call. The collector releases it when the thread has ended and its ring is read. If
//! living threads own all channels, calls of further threads are counted as lost.

use crate::bootstrap;
use crate::bounds::at;
use crate::collector_timeout;
use crate::filters;
use crate::memo::Memo;
use crate::process;
use crate::sys;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use mallow_wire::shared::*;

static MEMOS: [AtomicPtr<Memo>; CHANNEL_COUNT_MAX] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; CHANNEL_COUNT_MAX];

/// A channel and what belongs to it.
#[derive(Debug)]
pub struct Place {
    /// Room of `THREAD_BYTES` for the thread's state.
    pub thread: *mut u8,
    /// The channel.
    pub channel: *const Channel,
    /// Its ring.
    pub ring: *mut u64,
    /// The memo of this channel; null when there is no memory for it.
    pub memo: *mut Memo,
    /// The process id.
    pub pid: u32,
    /// Count only.
    pub counts: bool,
    /// The channel's number.
    pub index: u32,
}

/// Why a thread has no channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoChannel {
    /// Living threads own all channels. The call is counted as lost.
    Full,
    /// The process is not recorded, or not yet, or it is too early to know.
    NotRecorded,
    /// The thread would be killed if it asked for its number, by which it owns a channel.
    Hidden,
}

/// A channel for the calling thread, starting the process first if need be.
///
/// # Errors
/// Why there is none.
pub fn take_channel() -> Result<Place, NoChannel> {
    if process::has_ended() || !bootstrap::started() {
        return Err(NoChannel::NotRecorded);
    }
    let header = process::header();
    if header.is_early.load(Ordering::Relaxed) != 0 {
        return Err(NoChannel::NotRecorded);
    }
    if filters::hide_threads() {
        return Err(NoChannel::Hidden);
    }
    // SAFETY: the channels lie in the shared memory.
    let channels = unsafe {
        core::slice::from_raw_parts(
            process::shared().add(CHANNELS_OFFSET).cast::<Channel>(),
            header.channel_count as usize,
        )
    };
    let index = claim(header, channels).ok_or(NoChannel::Full)?;
    let channel = channels.get(index).ok_or(NoChannel::Full)?;
    // An owner that died while it waited at a mark may have left one without a reply: it is not ours.
    channel.marks_asked.store(channel.marks_answered.load(Ordering::Relaxed), Ordering::Relaxed);
    header.channels_high.fetch_max(index as u32 + 1, Ordering::Relaxed);
    channel.taken_serial.store(header.channels_taken.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
    // The thread's id last. Until it is there, the channel has no owner for the collector. In the other order, a
    // thread with the id of one that has ended would appear with the serial number of the channel's last owner, and
    // the channel would be released.
    channel.tid.store(sys::gettid(), Ordering::Release);
    let counts = header.mode == MODE_STAT;
    if counts && index > 0 {
        header.threads_many.store(1, Ordering::SeqCst);
    }
    Ok(Place {
        // SAFETY: one state and one ring for each channel.
        thread: unsafe { process::thread_room(index) },
        channel,
        // SAFETY: as above.
        ring: unsafe { process::shared().add(RINGS_OFFSET + index * RING_BYTES).cast() },
        memo: if counts { core::ptr::null_mut() } else { memo_of(index) },
        pid: header.pid,
        counts,
        index: index as u32,
    })
}

/// Releases a channel that was claimed and not used, and counts the call that wanted it as lost.
///
/// # Safety
/// `channel` was returned by [`take_channel`] to this thread, which has written nothing to its ring.
pub unsafe fn release(channel: *const Channel) {
    process::header().events_lost.fetch_add(1, Ordering::Relaxed);
    // SAFETY: by contract.
    let channel = unsafe { &*channel };
    channel.tid.store(0, Ordering::Relaxed);
    channel.state.store(CHANNEL_FREE, Ordering::Release);
}

/// Finds a free channel, and waits a moment for the collector to release those of dead threads. After a wait in vain
/// no thread waits, until a channel was found again.
fn claim(header: &Header, channels: &[Channel]) -> Option<usize> {
    const WAIT_MS: u64 = 1;
    const WAITS_MAX: u32 = 50;
    static FULL: AtomicBool = AtomicBool::new(false);
    let take = || {
        channels.iter().position(|channel| {
            channel.state.load(Ordering::Relaxed) == CHANNEL_FREE
                && channel
                    .state
                    .compare_exchange(CHANNEL_FREE, CHANNEL_OWNED, Ordering::AcqRel, Ordering::Relaxed)
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
        header.channels_wanted.fetch_add(1, Ordering::SeqCst);
        collector_timeout::wait(&header.heartbeat, header.heartbeat.load(Ordering::Relaxed), WAIT_MS);
        header.channels_wanted.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Returns whether a thread without a channel should look for one again: now and then, and in a forked child, which
/// has channels of its own. Otherwise its call is counted as lost.
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
#[path = "channels_tests.rs"]
mod tests;
