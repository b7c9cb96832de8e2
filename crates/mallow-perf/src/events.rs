//! The events of all threads and processors, and the rings for their records.

use crate::PerfError;
use crate::attr::{self, Event, Granted, Purpose, Rate, Wanted};
use crate::error::{refused, system};
use crate::ring::Ring;
use crate::sampling::SamplingOptions;

/// For how long a ring can store records until it is full.
const RING_SECONDS: f64 = 0.16;
/// The minimal and maximal size of a ring in bytes.
const RING_BYTES: std::ops::RangeInclusive<u64> = 128 << 10..=64 << 20;
/// Assumed samples per second if it is unknown: waits, and each N-th of events that come in bursts.
const WAITS_HZ: u64 = 2000;
const BURST_HZ: u64 = 8000;
/// Bytes of a ring of switches, which are small: a second of more than programs can make.
const SWITCH_RING_BYTES: u64 = 2 << 20;
/// A record beside the stack that it holds.
const RECORD_BYTES: u64 = 256;

const ESRCH: i32 = 3;
const ENODEV: i32 = 19;

/// The events that are open. Each processor has rings of its own.
pub(crate) struct Events {
    pub(crate) rings: Vec<Ring>,
    /// Each processor with its ring of samples.
    pub(crate) processors: Vec<(i32, usize)>,
    /// Events whose records go into the ring of their processor: of other threads.
    beside: Vec<Event>,
    /// The numbers of those of waits, in their order.
    of_waits: Vec<u64>,
    /// A ring's bytes, for each purpose: as many as the system allows, and as many as were asked for.
    ring_bytes: [u64; 3],
    asked_bytes: [u64; 3],
}

impl Events {
    /// Opens those of a process's threads, or of this thread and whatever it starts.
    pub(crate) fn open(
        wanted: &Wanted,
        granted: &Granted,
        options: &SamplingOptions,
        pid: Option<u32>,
    ) -> Result<Events, PerfError> {
        let threads = match pid {
            None => vec![0],
            Some(pid) => threads_of(pid)?.iter().map(|(tid, _)| *tid as i32).collect(),
        };
        let purposes = if options.off_cpu { &Purpose::ALL[..] } else { &[Purpose::Samples] };
        let asked_bytes = Purpose::ALL.map(|purpose| ring_bytes(options, purpose));
        let mut events = Events {
            rings: Vec::new(),
            processors: Vec::new(),
            beside: Vec::new(),
            of_waits: Vec::new(),
            ring_bytes: asked_bytes,
            asked_bytes,
        };
        for processor in processors() {
            // Each purpose has a ring of its own, so that nothing else is lost where waits have more stacks than can be taken.
            let mut rings: [Option<usize>; 3] = [None; 3];
            for (thread, purpose) in
                threads.iter().flat_map(|thread| purposes.iter().map(move |it| (thread, *it)))
            {
                match attr::open(wanted, granted, purpose, *thread, processor) {
                    Ok(event) => events.add(event, &mut rings[purpose as usize])?,
                    // A thread may have ended, and a processor be off.
                    Err(error) if matches!(error.raw_os_error(), Some(ESRCH | ENODEV)) => {}
                    Err(error) => return Err(refused(&error, pid, None)),
                }
            }
            events.processors.extend(rings[Purpose::Samples as usize].map(|ring| (processor, ring)));
        }
        if events.rings.is_empty() {
            return Err(pid.map_or_else(
                || refused(&std::io::Error::from_raw_os_error(ENODEV), pid, None),
                PerfError::NoProcess,
            ));
        }
        events.of_waits.sort_unstable();
        Ok(events)
    }

    /// Adds an event to those of a processor and a purpose, which share a ring: that of the first.
    fn add(&mut self, event: Event, ring: &mut Option<usize>) -> Result<(), PerfError> {
        if event.purpose == Purpose::Waits {
            self.of_waits.push(event.id().map_err(system("tell events apart"))?);
        }
        match *ring {
            None => {
                *ring = Some(self.rings.len());
                let bytes = &mut self.ring_bytes[event.purpose as usize];
                self.rings.push(mapped(event, bytes)?);
            }
            Some(ring) => {
                event.write_to_ring_of(&self.rings[ring].event).map_err(system("share a ring"))?;
                self.beside.push(event);
            }
        }
        Ok(())
    }

    fn all(&self) -> impl Iterator<Item = &Event> {
        self.rings.iter().map(|ring| &ring.event).chain(&self.beside)
    }

    /// Begins to sample.
    pub(crate) fn enable(&self) -> Result<(), PerfError> {
        self.all().try_for_each(|event| event.enable(true)).map_err(system("begin to sample"))
    }

    /// Ends it.
    pub(crate) fn disable(&self) {
        for event in self.all() {
            let _ = event.enable(false);
        }
    }

    /// Whether the event with this number makes a sample of each wait.
    pub(crate) fn is_of_wait(&self, id: u64) -> bool {
        self.of_waits.binary_search(&id).is_ok()
    }

    /// How many records the kernel has lost: of waits, or all others.
    pub(crate) fn lost(&self, of_waits: bool) -> u64 {
        self.all().filter(|event| (event.purpose == Purpose::Waits) == of_waits).map(Event::lost).sum()
    }

    /// Says that rings are smaller than they should be.
    pub(crate) fn note(&self) -> Option<String> {
        (self.ring_bytes != self.asked_bytes).then(|| {
            format!(
                "the system allows only {} KiB of locked memory for samples of each processor, so some may be lost; raise \
                 kernel.perf_event_mlock_kb or run mallow with sudo",
                self.ring_bytes[Purpose::Samples as usize] >> 10
            )
        })
    }
}

/// How many bytes a ring needs.
pub(crate) fn ring_bytes(options: &SamplingOptions, purpose: Purpose) -> u64 {
    let record = u64::from(options.stack_bytes) + RECORD_BYTES;
    let hz = match (purpose, options.rate) {
        (Purpose::Switches, _) => return SWITCH_RING_BYTES,
        (Purpose::Waits, _) => WAITS_HZ,
        (Purpose::Samples, Rate::Hz(hz)) => hz,
        (Purpose::Samples, Rate::Every(_)) => BURST_HZ,
    };
    let bytes = (record * hz) as f64 * RING_SECONDS;
    (bytes as u64).clamp(*RING_BYTES.start(), *RING_BYTES.end()).next_power_of_two()
}

/// Maps a ring as large as the system allows.
fn mapped(event: Event, bytes: &mut u64) -> Result<Ring, PerfError> {
    let mut event = event;
    loop {
        match Ring::map(event, *bytes as usize) {
            Ok(ring) => return Ok(ring),
            Err((back, error)) if error.raw_os_error() == Some(1) && *bytes > *RING_BYTES.start() => {
                event = back;
                *bytes /= 2;
            }
            Err((_, error)) => return Err(system("map a ring for samples")(error)),
        }
    }
}

/// The processors that are on.
fn processors() -> Vec<i32> {
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let parts = online.trim().split(',').filter_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<i32>().ok()?..=last.parse::<i32>().ok()?)
    });
    let processors: Vec<i32> = parts.flatten().collect();
    if processors.is_empty() { vec![0] } else { processors }
}

/// The threads of a process, with their names.
pub(crate) fn threads_of(pid: u32) -> Result<Vec<(u32, String)>, PerfError> {
    let folder = std::fs::read_dir(format!("/proc/{pid}/task")).map_err(|_| PerfError::NoProcess(pid))?;
    let threads = folder.flatten().filter_map(|entry| {
        let name = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        Some((entry.file_name().to_str()?.parse().ok()?, name.trim_end().to_owned()))
    });
    Ok(threads.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallow_launch::Content;

    #[test]
    fn a_ring_holds_a_sixth_of_a_second() {
        let options = |hz, stack_bytes| SamplingOptions {
            event: None,
            rate: Rate::Hz(hz),
            off_cpu: false,
            stack_bytes,
            summary_only: false,
            duration: None,
            timers_only: false,
            inside: Content::Plain(&[]),
            leaves_alone: true,
        };
        let ring_bytes = |options, purpose| ring_bytes(&options, purpose);
        assert_eq!(ring_bytes(options(997, 32 << 10), Purpose::Samples), 8 << 20);
        assert_eq!(ring_bytes(options(1, 8), Purpose::Samples), 128 << 10);
        assert_eq!(ring_bytes(options(100_000, 65_528), Purpose::Samples), 64 << 20);
        assert_eq!(ring_bytes(options(1, 32 << 10), Purpose::Waits), 16 << 20);
    }
}
