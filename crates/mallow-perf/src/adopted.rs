//! Processes that run a script: events of their own with a signal, at which a handler in the process leaves the script's frames.
//!
//! The events that all processes inherit cannot have a signal: it would meet programs without a handler. So a process that has one asks for others,
//! which write into the same rings; from then on the inherited ones do not count for it. They end when it executes another program, and no child
//! inherits them; it asks for itself.

use crate::attr::{self, Event, Granted, Wanted};
use crate::clock::now_ns;
use crate::memory::{Head, Memory, own_filters};
use crate::ring::Ring;
use mallow_wire::timers::{
    BY_EVENTS, REGION_ASKS, REGION_ENDS, REGION_REFUSED, REGION_SAMPLED, WAKE_VARIABLE,
};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::thread::futex;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::Ordering;

/// Slots of each CPU: for a second and more without a reader.
const SLOTS_EACH: u32 = 512;
const SLOTS_MAX: u32 = 8192;
/// Room of a slot: a page for reading, and frames.
const ROOM_BYTES: u32 = 16 << 10;

/// A process that has events of its own.
struct Process {
    pid: u32,
    region: u32,
    since_ns: u64,
    /// When its events ended, as it wanted; it still has its region.
    until_ns: Option<u64>,
    events: Vec<Event>,
}

/// The processes that have requested events.
pub(crate) struct Adopted {
    pub(crate) memory: Memory,
    asks: OwnedFd,
    /// It is open as long as a process may send a request.
    wakes: OwnedFd,
    processes: Vec<Process>,
    /// The numbers of their events, in order; an event that has ended may still have records in a ring.
    ids: Vec<u64>,
    /// Samples that ended events could not write.
    lost: u64,
    /// Why the last one was refused that was.
    refused: Option<io::Error>,
}

/// What processes that send a request get.
pub(crate) struct SharedSampling<'a> {
    pub(crate) wanted: &'a Wanted,
    pub(crate) granted: &'a Granted,
    /// Each processor with its ring.
    pub(crate) processors: &'a [(i32, usize)],
    pub(crate) rings: &'a [Ring],
}

impl Adopted {
    /// Without any request.
    pub(crate) fn new(processors: usize) -> io::Result<Adopted> {
        let slots = (processors as u32).saturating_mul(SLOTS_EACH).clamp(SLOTS_EACH, SLOTS_MAX);
        let head = Head { period_ns: 1, tick_ns: 1, filters: own_filters(), way: BY_EVENTS };
        let memory = Memory::create(slots, ROOM_BYTES, head)?;
        let (asks, wakes) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let (processes, ids) = (Vec::new(), Vec::new());
        Ok(Adopted { memory, asks, wakes, processes, ids, lost: 0, refused: None })
    }

    /// The variable with the pipe's path, for the command.
    pub(crate) fn wake_variable(&self) -> (&'static str, String) {
        (WAKE_VARIABLE, format!("/proc/{}/fd/{}", std::process::id(), self.wakes.as_raw_fd()))
    }

    /// Becomes readable when a process sends a request.
    pub(crate) fn asks(&self) -> &OwnedFd {
        &self.asks
    }

    /// Answers pending requests.
    pub(crate) fn answer(&mut self, sampling: &SharedSampling<'_>) {
        let mut bytes = [0; 64];
        while rustix::io::read(&self.asks, &mut bytes).is_ok_and(|read| read > 0) {}
        for number in 0..self.memory.regions().len() {
            let region = &self.memory.regions()[number];
            let (pid, state) = (region.pid.load(Ordering::Acquire), region.state.load(Ordering::Acquire));
            let answer = match state {
                REGION_ASKS if self.adopt(pid, number as u32, sampling) => REGION_SAMPLED,
                REGION_ASKS => REGION_REFUSED,
                REGION_ENDS => {
                    self.pause(number as u32);
                    REGION_REFUSED
                }
                _ => continue,
            };
            let state = &self.memory.regions()[number].state;
            state.store(answer, Ordering::Release);
            // Who does not sleep does not mind.
            let _ = futex::wake(state, futex::Flags::empty(), 1);
        }
    }

    fn adopt(&mut self, pid: u32, region: u32, sampling: &SharedSampling<'_>) -> bool {
        // Everybody may write there, and a signal ends a process that has no handler.
        if !self.memory.is_mapped_by(pid) {
            return false;
        }
        let mut events = Vec::new();
        for (processor, ring) in sampling.processors {
            let event = attr::open_with_signal(sampling.wanted, sampling.granted, pid as i32, *processor);
            let shared = event.and_then(|event| {
                event.write_to_ring_of(&sampling.rings[*ring].event)?;
                Ok((event.id()?, event))
            });
            match shared {
                Ok((id, event)) => {
                    self.ids.push(id);
                    events.push(event);
                }
                // A processor may be off.
                Err(error) if error.raw_os_error() == Some(19) => {}
                Err(error) => {
                    self.refused = Some(error);
                    return false;
                }
            }
        }
        self.ids.sort_unstable();
        let since_ns = now_ns();
        let is_on = events.iter().all(|event| event.enable(true).is_ok());
        if is_on {
            self.processes.push(Process { pid, region, since_ns, until_ns: None, events });
        }
        is_on
    }

    fn pause(&mut self, region: u32) {
        for process in self.processes.iter_mut().filter(|process| process.region == region) {
            process.events.iter().for_each(|event| drop(event.enable(false)));
            self.lost += process.events.drain(..).map(|event| event.lost()).sum::<u64>();
            process.until_ns.get_or_insert_with(now_ns);
        }
    }

    fn release(&mut self, is_it: impl Fn(&Process) -> bool) {
        for process in self.processes.extract_if(.., |process| is_it(process)) {
            process.events.iter().for_each(|event| drop(event.enable(false)));
            self.lost += process.events.iter().map(Event::lost).sum::<u64>();
        }
    }

    /// Returns whether a sample is of an event with a signal.
    pub(crate) fn has(&self, id: u64) -> bool {
        self.ids.binary_search(&id).is_ok()
    }

    /// Returns whether a sample of another event counts twice.
    pub(crate) fn is_double(&self, pid: u32, time_ns: u64) -> bool {
        let is_within = |process: &Process| {
            process.since_ns <= time_ns && process.until_ns.is_none_or(|until_ns| time_ns < until_ns)
        };
        self.processes.iter().any(|process| process.pid == pid && is_within(process))
    }

    /// A process has ended, or executes another program. Returns its regions.
    pub(crate) fn gone(&mut self, pid: u32, time_ns: u64) -> Vec<u32> {
        let is_it = |process: &Process| process.pid == pid && process.since_ns <= time_ns;
        let its = self.processes.iter().filter(|it| is_it(it));
        let mut regions: Vec<u32> = its.map(|process| process.region).collect();
        regions.dedup();
        self.release(is_it);
        regions
    }

    /// Returns the region of a process that has ended and had no events, if it had one.
    pub(crate) fn region_without_events(&self, pid: u32) -> Option<u32> {
        let mut numbered = self.memory.regions().iter().zip(0..);
        let is_sampled = |number| self.processes.iter().any(|process| process.region == number);
        numbered
            .find(|(region, number)| region.pid.load(Ordering::Acquire) == pid && !is_sampled(*number))
            .map(|(_, number)| number)
    }

    /// Stops all events; later samples are not read.
    pub(crate) fn stop(&mut self) {
        self.memory.header().is_over.store(1, Ordering::Relaxed);
        self.release(|_| true);
    }

    /// Returns how many samples events with a signal could not write.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Why a process got no events, if one did not.
    pub(crate) fn refused(&self) -> Option<&io::Error> {
        self.refused.as_ref()
    }
}
