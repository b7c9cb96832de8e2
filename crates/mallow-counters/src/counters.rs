//! Counters of one process and what it starts.

use crate::{Event, Refusal};
use perf_event_open_sys::{bindings as sys, perf_event_open};
use rustix::io::Errno;
use std::fs::File;
use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd};

/// What was counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Count {
    /// The number; where the counter ran for a part of the time only, what that part says of all of it.
    pub value: f64,
    /// The part of the time for which it ran, 0 to 1. Processors have few counters, and the kernel lets events take turns.
    pub share: f64,
}

/// Which events can be counted here.
#[derive(Clone, Debug, Default)]
pub struct Usable {
    /// These, some of them perhaps without the kernel's part.
    pub events: Vec<Event>,
    /// These not.
    pub refused: Vec<(Event, Refusal)>,
    /// Of those that can be, these only in the program: the kernel's part is not ours to see.
    pub without_kernel: Vec<String>,
}

/// Finds out which events can be counted, with a counter of this process each.
pub fn usable(events: &[Event]) -> Usable {
    let mut usable = Usable::default();
    for event in events {
        match open(event, 0) {
            Ok(_) => usable.events.push(event.clone()),
            Err(refusal) => {
                let in_program = Event { user_only: true, ..event.clone() };
                let can_do_without =
                    refusal == Refusal::NotPermitted && !event.user_only && !event.kernel_only;
                match can_do_without.then(|| open(&in_program, 0)) {
                    Some(Ok(_)) => {
                        usable.without_kernel.push(event.name().to_owned());
                        usable.events.push(in_program);
                    }
                    _ => usable.refused.push((event.clone(), refusal)),
                }
            }
        }
    }
    usable
}

/// Open counters, one for each event, on a process that will start a command.
#[derive(Debug)]
pub struct Counters(Vec<Option<File>>);

impl Counters {
    /// Opens them. They count nothing of the process itself: they begin in each of its children when that becomes another program.
    pub fn of_children(pid: u32, events: &[Event]) -> Counters {
        Counters(events.iter().map(|event| open(event, pid as i32).ok().map(File::from)).collect())
    }

    /// What was counted until now; none for what could not be opened, or never ran.
    pub fn read(&mut self) -> Vec<Option<Count>> {
        self.0.iter_mut().map(|file| file.as_mut().and_then(read)).collect()
    }
}

fn read(file: &mut File) -> Option<Count> {
    let mut bytes = [0_u8; 24];
    file.read_exact(&mut bytes).ok()?;
    let word =
        |index: usize| -> u64 { u64::from_le_bytes(bytes[index * 8..][..8].try_into().unwrap_or_default()) };
    Count::scaled(word(0), word(1), word(2))
}

impl Count {
    /// The count of a counter that was wanted for `enabled` nanoseconds and ran for `running` of them.
    fn scaled(value: u64, enabled: u64, running: u64) -> Option<Count> {
        if running == 0 {
            return None;
        }
        let share = (running as f64 / enabled.max(running) as f64).min(1.0);
        Some(Count { value: value as f64 / share, share })
    }
}

fn open(event: &Event, pid: i32) -> Result<OwnedFd, Refusal> {
    const CLOSE_ON_EXEC: u64 = sys::PERF_FLAG_FD_CLOEXEC as u64;
    let mut wanted = sys::perf_event_attr {
        size: size_of::<sys::perf_event_attr>() as u32,
        type_: event.kind,
        config: event.config,
        read_format: (sys::PERF_FORMAT_TOTAL_TIME_ENABLED | sys::PERF_FORMAT_TOTAL_TIME_RUNNING).into(),
        ..sys::perf_event_attr::default()
    };
    wanted.set_disabled(1);
    wanted.set_inherit(1);
    wanted.set_enable_on_exec(1);
    wanted.set_exclude_hv(1);
    wanted.set_exclude_kernel(event.user_only.into());
    wanted.set_exclude_user(event.kernel_only.into());
    // SAFETY: the structure is ours, of the size that it says.
    let fd = unsafe { perf_event_open(&raw mut wanted, pid, -1, -1, CLOSE_ON_EXEC) };
    if fd < 0 {
        let error = std::io::Error::last_os_error();
        return Err(Refusal::of(Errno::from_io_error(&error).unwrap_or(Errno::INVAL)));
    }
    // SAFETY: the kernel has just given this descriptor to us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_took_turns_is_scaled_and_says_so() {
        assert_eq!(Count::scaled(100, 1000, 1000), Some(Count { value: 100.0, share: 1.0 }));
        assert_eq!(Count::scaled(100, 1000, 250), Some(Count { value: 400.0, share: 0.25 }));
        assert_eq!(Count::scaled(0, 1000, 0), None);
    }

    #[test]
    fn the_kernels_own_counters_are_there_and_no_count_is_made_up() {
        let event = |name| Event::named(name).unwrap();
        let found = usable(&[event("task-clock"), event("r0ffffffffff")]);
        assert!(found.events.iter().any(|event| event.name() == "task-clock"), "{found:?}");
        assert_eq!(found.events.len() + found.refused.len(), 2);
        // Nothing was started, so nothing ran.
        let mut counters = Counters::of_children(std::process::id(), &found.events[..1]);
        assert_eq!(counters.read(), [None]);
    }
}
