//! A command while it runs: the signals meant for it, its deadline, its end.

use crate::Interrupts;
use rustix::process::{Pid, Signal, kill_process_group};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// A command that was started, our child.
#[derive(Debug)]
pub struct RunningCommand {
    child: Child,
    has_ended: bool,
    status: Option<ExitStatus>,
    interrupts: Interrupts,
    interrupts_passed: usize,
    /// How often somebody had wanted it to end when it had.
    heard_at_end: usize,
    deadline: Option<Instant>,
    timed_out: bool,
}

impl RunningCommand {
    /// Looks after a child. `timeout` is that of the options with which it was started.
    pub fn new(child: Child, interrupts: Interrupts, timeout: Option<Duration>) -> RunningCommand {
        RunningCommand {
            child,
            has_ended: false,
            status: None,
            interrupts,
            interrupts_passed: 0,
            heard_at_end: 0,
            deadline: timeout.map(|timeout| Instant::now() + timeout),
            timed_out: false,
        }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended; none while it runs, when nobody has looked since, or when the system does not tell.
    pub fn status(&self) -> Option<ExitStatus> {
        self.status
    }

    /// Looks whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        if !self.has_ended {
            // Nobody else waits for our child, so it cannot be gone; if the system says so, its status is lost.
            (self.has_ended, self.status) =
                self.child.try_wait().map_or((true, None), |status| (status.is_some(), status));
            // What ended it may have been sent to its whole group, us among them: that was before its end.
            self.heard_at_end = self.interrupts.heard();
        }
        self.has_ended
    }

    /// Returns how it ended when all of its threads are known to have: it is then a matter of microseconds.
    pub fn wait_briefly(&mut self) -> Option<ExitStatus> {
        let since = Instant::now();
        while !self.has_ended() && since.elapsed() < Duration::from_secs(1) {}
        self.status
    }

    /// Passes signals on. Returns true when the user does not want to wait for its end, or for what it has left behind.
    pub fn is_interrupted(&mut self) -> bool {
        // The number of one that has ended may be another process's.
        let child = self.process().filter(|_| !self.has_ended);
        let interrupted =
            self.interrupts.look(child) || self.has_ended && self.interrupts.heard() > self.heard_at_end;
        let count = self.interrupts.count();
        // A command in a group of its own does not hear the terminal: what is meant for it is passed on. It has a group of its own
        // exactly when it has a deadline (`SpawnOptions::apply`), because killing it then kills what it started.
        if self.deadline.is_some() && count > self.interrupts_passed {
            self.interrupts_passed = count;
            let signal = if count == 1 { Signal::INT } else { Signal::KILL };
            if let Some(child) = child {
                let _ = kill_process_group(child, signal);
            }
        }
        interrupted
    }

    /// How often somebody wanted it, or us, to end.
    pub fn interrupts_heard(&self) -> usize {
        self.interrupts.heard()
    }

    /// Returns whether its time is up. Its process group is then killed; whoever has left that is the caller's to kill.
    pub fn is_overdue(&mut self) -> bool {
        if self.deadline.is_none_or(|deadline| Instant::now() < deadline) {
            return false;
        }
        if !self.timed_out
            && let Some(group) = self.process()
        {
            let _ = kill_process_group(group, Signal::KILL);
        }
        self.timed_out = true;
        true
    }

    /// Returns whether it took longer than it was given, and was killed.
    pub fn timed_out(&self) -> bool {
        self.timed_out
    }

    fn process(&self) -> Option<Pid> {
        Pid::from_raw(self.child.id() as i32)
    }
}
