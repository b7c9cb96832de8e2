//! Ends a pause of the collector when a ring fills.
//!
//! A collector sleeps on descriptors, and a recorder has none: programs close what they do not know. So a recorder rings by a word in the shared memory
//! (`recorder/mallow-recorder/src/doorbell.rs`), and a thread that sleeps on the words of many processes at once makes a descriptor ready. The kernel can do that from Linux 5.16
//! on. Before it, and for processes beyond the first [`BELLS_MAX`], a thread whose ring is full waits for the end of the pause, 4 ms at most and 32 among many idle processes.

use crate::mapping::Memory;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::thread::{ClockId, futex};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The collector's end.
#[derive(Debug)]
pub(crate) struct Doorbells {
    listener: Arc<Listener>,
    /// The processes that are listened to, by their indices.
    listed: Vec<u32>,
}

/// What both ends share.
#[derive(Debug)]
struct Listener {
    /// Ready when somebody has rung.
    ready: OwnedFd,
    bells: Mutex<Vec<Arc<Bell>>>,
    /// Goes up when there are other bells. The thread sleeps on it too.
    changed: AtomicU32,
    has_ended: AtomicBool,
}

/// A process's bell.
#[derive(Debug)]
struct Bell {
    process: u32,
    memory: Arc<Memory>,
    /// What [`mallow_wire::shared::Doorbell::rung`] was when it was heard.
    heard: AtomicU32,
}

/// The kernel waits for 128 words at once; one of them is ours.
const BELLS_MAX: usize = 127;
/// Who rings all the time is heard so often at most.
const REST: Duration = Duration::from_micros(100);
const STACK_BYTES: usize = 64 << 10;

impl Doorbells {
    /// Starts the thread; none where it cannot wait for many words.
    pub(crate) fn start() -> Option<Doorbells> {
        // Without a word to wait for, the kernel says whether it knows the call.
        if !matches!(wait_for(&[]), Err(Errno::INVAL)) {
            return None;
        }
        let ready = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok()?;
        let listener = Arc::new(Listener {
            ready,
            bells: Mutex::default(),
            changed: AtomicU32::new(0),
            has_ended: AtomicBool::new(false),
        });
        let thread = std::thread::Builder::new().name("mallow-bells".into()).stack_size(STACK_BYTES);
        let listening = Arc::clone(&listener);
        thread.spawn(move || listening.run()).ok()?;
        Some(Doorbells { listener, listed: Vec::new() })
    }

    /// Listens to these processes: their indices, and their memory.
    pub(crate) fn listen_to<'a>(&mut self, processes: impl Iterator<Item = (u32, &'a Arc<Memory>)> + Clone) {
        let processes = processes.take(BELLS_MAX);
        if processes.clone().map(|(index, _)| index).eq(self.listed.iter().copied()) {
            return;
        }
        self.listed = processes.clone().map(|(index, _)| index).collect();
        let mut bells = self.listener.bells.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::take(&mut *bells);
        let of = |(index, memory)| {
            let known = before.iter().find(|bell| bell.process == index).map(Arc::clone);
            known.unwrap_or_else(|| Arc::new(Bell::of(index, memory)))
        };
        *bells = processes.map(of).collect();
        drop(bells);
        self.listener.has_changed();
    }

    /// What is ready when somebody has rung.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.listener.ready.as_fd()
    }

    /// Returns whether somebody has rung since the last time.
    pub(crate) fn has_rung(&self) -> bool {
        rustix::io::read(&self.listener.ready, &mut [0; 8]).is_ok()
    }
}

impl Drop for Doorbells {
    fn drop(&mut self) {
        self.listener.has_ended.store(true, Ordering::SeqCst);
        self.listener.has_changed();
    }
}

impl Listener {
    fn has_changed(&self) {
        self.changed.fetch_add(1, Ordering::SeqCst);
        let _ = futex::wake(&self.changed, futex::Flags::empty(), 1);
    }

    fn run(&self) {
        // Nothing is allocated for a ring: how often there is one is a matter of time. The memory of the words is that of the bells.
        let (mut bells, mut waits): (Vec<Arc<Bell>>, Vec<futex::Wait>) = (Vec::new(), Vec::new());
        while !self.has_ended.load(Ordering::SeqCst) {
            waits.clear();
            // Read before the list: what changes behind it ends the wait at once.
            waits.push(wait_while(&self.changed, self.changed.load(Ordering::SeqCst)));
            bells.clone_from(&self.bells.lock().unwrap_or_else(PoisonError::into_inner));
            let has_rung = bells.iter().fold(false, |any, bell| bell.is_new(&mut waits) | any);
            if has_rung {
                let _ = rustix::io::write(&self.ready, &1u64.to_ne_bytes());
                std::thread::sleep(REST);
                continue;
            }
            match wait_for(&waits) {
                Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }
}

impl Bell {
    fn of(process: u32, memory: &Arc<Memory>) -> Bell {
        let heard = AtomicU32::new(memory.header().doorbell.rung.load(Ordering::SeqCst));
        Bell { process, memory: Arc::clone(memory), heard }
    }

    /// Returns whether it was rung since it was heard; adds its word.
    fn is_new(&self, waits: &mut Vec<futex::Wait>) -> bool {
        let word = &self.memory.header().doorbell.rung;
        let rung = word.load(Ordering::SeqCst);
        waits.push(wait_while(word, rung));
        self.heard.swap(rung, Ordering::Relaxed) != rung
    }
}

/// Sleeps until one of the waits ends.
fn wait_for(waits: &[futex::Wait]) -> Result<(), Errno> {
    futex::waitv(waits, futex::WaitvFlags::empty(), None, ClockId::Monotonic).map(drop)
}

/// A wait that ends when the word is woken, or is not this value.
fn wait_while(word: &AtomicU32, value: u32) -> futex::Wait {
    let mut wait = futex::Wait::new();
    wait.val = u64::from(value);
    wait.uaddr = futex::WaitPtr::new(word.as_ptr().cast());
    wait.flags = futex::WaitFlags::SIZE_U32;
    wait
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll_backoff::sleep_until_ready;
    use crate::shared_memory::SharedMemory;
    use rustix::event::{PollFd, PollFlags};

    fn ring(memory: &Arc<Memory>) {
        let word = &memory.header().doorbell.rung;
        word.fetch_add(1, Ordering::SeqCst);
        let _ = futex::wake(word, futex::Flags::empty(), 1);
    }

    fn is_heard(doorbells: &Doorbells, longest: Duration) -> bool {
        let descriptor = doorbells.descriptor();
        sleep_until_ready(longest, &mut [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)])
            && doorbells.has_rung()
    }

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(30);

    #[test]
    fn whoever_is_listened_to_is_heard_and_nobody_else() {
        let memories = [(); 3].map(|()| SharedMemory::new(1).map().memory().clone());
        let mut doorbells = Doorbells::start().unwrap();
        for listed in [&[0, 1, 2][..], &[1, 2], &[2, 0]] {
            doorbells.listen_to(listed.iter().map(|index| (*index as u32, &memories[*index])));
            for (index, memory) in memories.iter().enumerate() {
                ring(memory);
                let is_listed = listed.contains(&index);
                assert_eq!(
                    is_heard(&doorbells, if is_listed { LONG } else { SHORT }),
                    is_listed,
                    "{index} {listed:?}"
                );
                assert!(!doorbells.has_rung(), "once");
            }
        }
        // One rings while the thread is busy with another's.
        ring(&memories[2]);
        assert!(is_heard(&doorbells, LONG));
        ring(&memories[0]);
        assert!(is_heard(&doorbells, LONG));
    }

    #[test]
    fn more_processes_than_the_kernel_waits_for_are_listened_to_as_far_as_it_goes() {
        let memory = SharedMemory::new(1).map().memory().clone();
        let last = SharedMemory::new(1).map().memory().clone();
        let mut doorbells = Doorbells::start().unwrap();
        let all = (0..BELLS_MAX as u32).map(|index| (index, &memory)).chain([(1000, &last)]);
        doorbells.listen_to(all);
        ring(&last);
        assert!(!is_heard(&doorbells, SHORT));
        doorbells.listen_to((1..BELLS_MAX as u32).map(|index| (index, &memory)).chain([(1000, &last)]));
        ring(&last);
        assert!(is_heard(&doorbells, LONG));
    }

    #[test]
    fn the_thread_ends_with_it() {
        let doorbells = Doorbells::start().unwrap();
        let listener = Arc::downgrade(&doorbells.listener);
        drop(doorbells);
        while listener.upgrade().is_some() {
            std::thread::yield_now();
        }
    }
}
