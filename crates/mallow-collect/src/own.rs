//! A process that collects from itself: what `mallow-alloc` links into a program that cannot be started under mallow.
//!
//! It is the same collector on a thread of the program, with one process that nobody has to announce: the shared memory is given to it. The thread
//! must not be recorded, and no signal be handled on it, which is its starter's to see to. What is asked is answered between two
//! passes, behind everything that happened before the question.

use crate::about::recording_of;
use crate::ahead::{Ahead, ResolveAhead};
use crate::clock::Clock;
use crate::collector::{Collector, Observer};
use crate::command_lines::CommandLines;
use crate::error::CollectError;
use crate::live_stacks::LiveStacks;
use crate::output::Output;
use crate::peer::Peer;
use crate::process::{TracedProcess, Wanted};
use crate::record::finish::{Metrics, finish};
use crate::session::Registration;
use crate::sink::{NoSink, Sink};
use crate::symbols::Resolve;
use crate::target::Target;
use crate::trace_file::TraceFile;
use mallow_profile::{Exit, Profile, Summary, Totals};
use rustix::event::PollFd;
use std::ffi::OsString;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::time::Duration;

/// A query to a process's own collector, with the channel for its answer.
#[derive(Debug)]
pub enum OwnQuery {
    /// The sums since the begin.
    Totals(Sender<Totals>),
    /// The scope of this number begins.
    Begin(u64, Sender<()>),
    /// The thread of this id enters the scope of this number, unless that has ended.
    Enter(u64, u32, Sender<()>),
    /// It leaves it.
    Leave(u64, u32, Sender<()>),
    /// A scope's sums; none when it has ended.
    Scope(u64, Sender<Option<Totals>>),
    /// Ends a scope: returns its totals, and their stacks.
    EndScope(u64, Sender<ScopeEnd>),
    /// The recording ends.
    End,
}

/// The results of a scope.
#[derive(Clone, Debug)]
pub struct ScopeEnd {
    /// Its sums, by stack and all together.
    pub summary: Summary,
    /// Symbols of the stacks, resolved on request.
    pub stacks: LiveStacks,
}

/// What is recorded of the process itself.
#[derive(Debug)]
pub struct OwnOptions {
    /// Its shared memory.
    pub memory: OwnedFd,
    /// The trace; without one nothing but sums is kept.
    pub output: Option<Output>,
    /// Queries during the recording; it ends with [`OwnQuery::End`], or when no sender is left.
    pub queries: Receiver<OwnQuery>,
    /// Told when everything is ready: what happens from then on is recorded. Dropped when it cannot be.
    pub begun: Sender<()>,
    /// Looks names up meanwhile.
    pub look_ahead: Option<OwnAhead>,
}

/// What looks names up on a thread of its own while the program runs, so that few are left for its end.
pub struct OwnAhead {
    /// Done by that thread before anything is recorded: it must not be recorded itself.
    pub first: fn(),
    /// Starts no threads.
    pub look_up: ResolveAhead,
}

impl std::fmt::Debug for OwnAhead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OwnAhead")
    }
}

/// How long new addresses are gathered at least: many programs that profile themselves run for a moment, and their first stacks have most of their libraries in
/// them.
const GATHER: Duration = Duration::from_millis(4);

/// Collects from this process until it is told to end; returns the profile.
///
/// # Errors
/// If the trace cannot be written: the process goes on unrecorded, and what was written is removed.
pub fn collect_own(options: OwnOptions, resolve: Resolve<'_>) -> Result<Profile, CollectError> {
    let Some(output) = &options.output else { return collect(options, NoSink, false, resolve) };
    let mut trace = TraceFile::create(output)?;
    let outcome = collect(options, &mut trace, true, resolve);
    if outcome.is_err() {
        trace.discard();
    }
    outcome
}

fn collect<S: Sink + Send>(
    options: OwnOptions,
    mut sink: S,
    events: bool,
    resolve: Resolve<'_>,
) -> Result<Profile, CollectError> {
    let OwnOptions { memory, queries, begun, look_ahead, .. } = options;
    let command: Vec<OsString> = std::env::args_os().collect();
    let about = recording_of(&command, CommandLines::Whole, Duration::ZERO, false);
    let put: &mut dyn Sink = &mut sink;
    put.put_whole(&about)?;
    put.flush()?;
    let wanted = Wanted { events, threads: true, regions: None, exited: true, own: true };
    let mut collector = Collector::new(None, Clock::start(), sink, wanted);
    collector.take_in(Registration {
        memory,
        peer: Peer::of_pid(std::process::id()),
        command: CommandLines::Whole.line(&command),
    })?;
    let ahead = look_ahead.and_then(|it| Ahead::start_with(it.look_up, GATHER, it.first));
    let _ = begun.send(());
    drop(begun);
    let mut asked = Asked { queries, taken: Vec::new(), is_over: false, ahead };
    collector.run(&mut Itself, &mut asked)?;
    if let Some(ahead) = asked.ahead.take() {
        ahead.end_and_wait();
    }
    match finish(&mut collector, None, about, resolve, &Vec::new, &mut |_, _, _| true)? {
        Metrics::Profile(Some(profile)) => Ok(*profile),
        Metrics::Profile(None) | Metrics::Regions(_) => Ok(Profile::default()),
    }
}

/// This process, which has not ended while it can say so.
struct Itself;

impl Target for Itself {
    fn is_interrupted(&mut self) -> bool {
        false
    }

    fn is_overdue(&mut self) -> bool {
        false
    }

    fn has_ended(&mut self) -> bool {
        false
    }

    fn first(&self) -> u32 {
        std::process::id()
    }

    fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn registered(&mut self, _pid: u32) {}

    fn is_own(&self, _pid: u32) -> bool {
        true
    }

    fn own_exit(&mut self, _pid: u32) -> Option<Exit> {
        None
    }
}

/// Those who ask.
struct Asked {
    queries: Receiver<OwnQuery>,
    taken: Vec<OwnQuery>,
    is_over: bool,
    ahead: Option<Ahead>,
}

impl Asked {
    fn take(&mut self, query: OwnQuery) {
        match query {
            OwnQuery::End => self.is_over = true,
            query => self.taken.push(query),
        }
    }
}

impl Observer for Asked {
    /// Accepts the queries that were sent until now.
    fn before_pass(&mut self) {
        while !self.is_over {
            match self.queries.try_recv() {
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => self.is_over = true,
                Ok(query) => self.take(query),
            }
        }
    }

    /// A query ends the pause: its sender waits.
    fn pause(&mut self, longest: Duration, _watched: &mut [PollFd<'_>]) -> bool {
        match self.queries.recv_timeout(longest) {
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => self.is_over = true,
            Ok(query) => self.take(query),
        }
        false
    }

    /// Answers what was taken up.
    fn after_pass(&mut self, processes: &mut [TracedProcess]) {
        for query in std::mem::take(&mut self.taken) {
            let Some(process) = processes.first_mut() else { return };
            match query {
                OwnQuery::Totals(reply) => _ = reply.send(process.fold().totals()),
                OwnQuery::Begin(scope, reply) => {
                    process.scopes().begin(scope);
                    _ = reply.send(());
                }
                OwnQuery::Enter(scope, tid, reply) => {
                    process.enter_scope(scope, tid);
                    _ = reply.send(());
                }
                OwnQuery::Leave(scope, tid, reply) => {
                    process.leave_scope(scope, tid);
                    _ = reply.send(());
                }
                OwnQuery::Scope(scope, reply) => _ = reply.send(process.scopes().totals(scope)),
                OwnQuery::EndScope(scope, reply) => {
                    let end_us = process.last_us();
                    let summary = process.scopes().end(scope, end_us);
                    _ = reply.send(ScopeEnd { summary, stacks: LiveStacks::of(processes) });
                }
                OwnQuery::End => {}
            }
        }
    }

    fn sampled(&mut self, process: &TracedProcess) {
        if let Some(ahead) = &mut self.ahead {
            ahead.sampled(process);
        }
    }

    fn is_over(&self) -> bool {
        self.is_over
    }
}
