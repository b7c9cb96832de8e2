//! Whose processes are collected: a command that we started with the recorder in it.

use crate::ending::exit_of_status;
use crate::error::CollectError;
use crate::patching::Inside;
use crate::peer::Peer;
use crate::session::Session;
use mallow_launch::started::time_namespace;
use mallow_launch::{Interrupts, LIBRARY_NAME_START, Launch, Preload, RunningCommand, SpawnOptions};
use mallow_profile::Exit;
use mallow_wire::handshake::SESSION_VARIABLE;
use mallow_wire::patches::PATCHES_VARIABLE;
use mallow_wire::shared::{BEGIN_VARIABLE, MODE_VARIABLE};
use rustix::time::{ClockId, clock_gettime};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// What a collector needs to know of the processes that it collects from.
pub(crate) trait Target {
    /// Returns whether collecting must end now, even if processes are running.
    fn is_interrupted(&mut self) -> bool;
    /// Returns whether time is up, and every process is to be killed.
    fn is_overdue(&mut self) -> bool;
    /// Returns whether no new process can be started any more.
    fn has_ended(&mut self) -> bool;
    /// Returns the process that was started first.
    fn first(&self) -> u32;
    /// Returns what is ready when the one that was started has ended; `None` when it was seen to have.
    fn pidfd(&self) -> Option<BorrowedFd<'_>>;
    /// A process has registered.
    fn registered(&mut self, pid: u32);
    /// Returns whether a process is the one that was started, which is its owner's to wait for.
    fn is_own(&self, pid: u32) -> bool;
    /// Returns how a process ended whose threads have ended, if it is ours to know.
    fn own_exit(&mut self, pid: u32) -> Option<Exit>;
}

/// The recorder's mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Every event with its stack.
    Record,
    /// The same, so long from now on.
    RecordFrom(Duration),
    /// The same, with the program's marks and its file descriptors.
    Check,
    /// Every event, and a helper thread that speaks to the allocator.
    Soak,
    /// Sums only.
    Stat,
}

impl Mode {
    fn word(self) -> &'static str {
        match self {
            Mode::Record | Mode::RecordFrom(_) => "record",
            Mode::Check => "check",
            Mode::Soak => "soak",
            Mode::Stat => "stat",
        }
    }
}

/// The time so long from now, as [`BEGIN_VARIABLE`] has it.
fn begin_behind(delay: Duration) -> String {
    let behind = |clock| {
        let now = clock_gettime(clock);
        let now = Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32);
        u64::try_from(now.saturating_add(delay).as_nanos()).unwrap_or(u64::MAX)
    };
    let [monotonic_ns, real_ns] = [ClockId::Monotonic, ClockId::Realtime].map(behind);
    format!("{monotonic_ns}:{}:{real_ns}", time_namespace())
}

/// A command with the recorder in it.
#[derive(Debug)]
pub(crate) struct TracedCommand {
    command: RunningCommand,
    peer: Peer,
    was_registered: bool,
}

impl TracedCommand {
    /// Starts it.
    pub(crate) fn start(
        launch: &Launch<'_>,
        session: &Session,
        inside: &Inside<'_>,
        mode: Mode,
        options: &SpawnOptions,
        interrupts: Interrupts,
    ) -> Result<TracedCommand, CollectError> {
        let session = session.variable();
        let mut variables = vec![(SESSION_VARIABLE, session.as_str()), (MODE_VARIABLE, mode.word())];
        let begin = if let Mode::RecordFrom(delay) = mode { Some(begin_behind(delay)) } else { None };
        variables.extend(begin.as_deref().map(|begin| (BEGIN_VARIABLE, begin)));
        variables.extend(inside.plan.as_deref().map(|path| (PATCHES_VARIABLE, path)));
        let preload =
            Preload { name_start: LIBRARY_NAME_START, library: inside.library, variables: &variables };
        let child = launch.start(preload, options)?;
        let peer = Peer::of_pid(child.id());
        let command = RunningCommand::new(child, interrupts, options.timeout);
        Ok(TracedCommand { command, peer, was_registered: false })
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.command.pid()
    }

    /// Returns how it ended, as far as it is known.
    pub(crate) fn exit(&self) -> Option<Exit> {
        self.command.status().map(exit_of_status)
    }

    /// Returns whether it was killed because its time was up.
    pub(crate) fn timed_out(&self) -> bool {
        self.command.timed_out()
    }

    /// How often somebody wanted it, or us, to end.
    pub(crate) fn interrupts_heard(&self) -> usize {
        self.command.interrupts_heard()
    }

    /// Returns whether it has ever registered: one that ended before did nothing that we know of.
    pub(crate) fn was_registered(&self) -> bool {
        self.was_registered
    }
}

impl Target for TracedCommand {
    fn is_interrupted(&mut self) -> bool {
        self.command.is_interrupted()
    }

    fn is_overdue(&mut self) -> bool {
        self.command.is_overdue()
    }

    fn has_ended(&mut self) -> bool {
        self.command.has_ended()
    }

    fn first(&self) -> u32 {
        self.pid()
    }

    fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.peer.pidfd.as_ref().filter(|_| self.command.status().is_none()).map(OwnedFd::as_fd)
    }

    fn registered(&mut self, pid: u32) {
        self.was_registered |= pid == self.pid();
    }

    fn is_own(&self, pid: u32) -> bool {
        pid == self.pid()
    }

    fn own_exit(&mut self, pid: u32) -> Option<Exit> {
        (pid == self.pid()).then(|| self.command.wait_briefly().map(exit_of_status))?
    }
}
