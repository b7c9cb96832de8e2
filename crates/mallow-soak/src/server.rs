//! The server's lifetime: it is started, observed, and stopped with all processes that it started.

use crate::error::SoakError;
use crate::holders::Holders;
use crate::options::{Ready, Server, SoakOptions};
use crate::processes::{self, Process};
use crate::tail::Tail;
use mallow_collect::{CollectError, Ending, LiveHeap, LiveSession};
use mallow_launch::{LaunchError, SpawnOptions, start_unrecorded};
use mallow_profile::Exit;
use rustc_hash::FxHashSet;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::cell::RefCell;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::time::{Duration, Instant};

/// A running server.
#[derive(Debug)]
pub(crate) struct Running {
    life: Option<Life>,
    pid: u32,
    /// All of its processes that were ever seen: one that leaves its family still belongs to the server.
    known: RefCell<FxHashSet<Process>>,
    holders: Holders,
    tail: Option<Tail>,
    began: Instant,
}

#[derive(Debug)]
enum Life {
    Recorded(LiveSession),
    Plain(Child),
    /// It ran before the soak and will run after it.
    Foreign,
}

/// How long a server may take to exit after SIGTERM.
const STOP_PATIENCE: Duration = Duration::from_secs(10);

impl Running {
    /// Starts the server, or attaches to a running one. `warn` receives the reason if it is not recorded.
    pub(crate) fn start(
        options: &SoakOptions,
        environment: Vec<(OsString, OsString)>,
        warn: &mut dyn FnMut(String),
    ) -> Result<Running, SoakError> {
        let command = match &options.server {
            Server::Command(command) => command,
            Server::Pid(pid) => return Running::adopt(*pid),
        };
        let text = match &options.ready {
            Ready::Says(text) => Some(text.as_str()),
            _ => None,
        };
        let copy = options
            .server_output
            .as_ref()
            .map(|path| {
                mallow_files::overwrite(path)
                    .map_err(|cause| SoakError::CannotWrite { path: path.clone(), cause })
            })
            .transpose()?;
        let (tail, output) = Tail::open(text, copy)
            .map_err(|cause| SoakError::System { what: "open a pipe for the server's output", cause })?;
        let setting =
            SpawnOptions { environment, output: Some(output), own_group: true, ..SpawnOptions::default() };
        let life = launch(command, setting, options, warn)?;
        let pid = match &life {
            Life::Recorded(watched) => watched.pid(),
            Life::Plain(child) => child.id(),
            Life::Foreign => 0,
        };
        let running = Running {
            life: Some(life),
            pid,
            known: RefCell::default(),
            holders: Holders::default(),
            tail: Some(tail),
            began: Instant::now(),
        };
        running.processes();
        Ok(running)
    }

    fn adopt(pid: u32) -> Result<Running, SoakError> {
        let gone = |cause| SoakError::NoProcess { pid, cause };
        processes::process(pid).ok_or_else(|| gone(std::io::Error::other("there is no such process")))?;
        File::open(format!("/proc/{pid}/smaps")).map_err(gone)?;
        Ok(Running {
            life: Some(Life::Foreign),
            pid,
            known: RefCell::default(),
            holders: Holders::default(),
            tail: None,
            began: Instant::now(),
        })
    }

    /// Returns the pid of its first process.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns the seconds since it was started or attached to.
    pub(crate) fn seconds(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// Returns its recording, if there is one.
    pub(crate) fn watched(&self) -> Option<&LiveSession> {
        match &self.life {
            Some(Life::Recorded(watched)) => Some(watched),
            _ => None,
        }
    }

    /// Returns the end of its output.
    pub(crate) fn last_words(&self) -> String {
        self.tail.as_ref().map(Tail::last_words).unwrap_or_default()
    }

    /// Returns whether it has printed the text that makes it ready.
    pub(crate) fn was_said(&self) -> bool {
        self.tail.as_ref().is_some_and(Tail::was_said)
    }

    /// Returns its live processes, and the number of their threads.
    pub(crate) fn processes(&self) -> (Vec<u32>, u64) {
        let group = (!matches!(self.life, Some(Life::Foreign))).then_some(self.pid);
        let recorded = self.watched().map(LiveSession::pids).unwrap_or_default();
        let mut known = self.known.borrow_mut();
        let (alive, threads) = processes::of_server(self.pid, group, &recorded, &known);
        known.extend(alive.iter().copied());
        (alive.into_iter().map(|process| process.pid).collect(), threads)
    }

    /// Returns how many of its processes have exited that were seen working.
    pub(crate) fn ended(&self) -> u32 {
        let alive = self.processes().0.len();
        self.known.borrow().len().saturating_sub(alive) as u32
    }

    /// Returns which allocator holds the memory of one of its processes, if malloc does not.
    pub(crate) fn foreign_heap(&self, pids: &[u32], look: Option<&LiveHeap>) -> Option<String> {
        self.holders.of(pids, look)
    }

    /// Returns whether all of its processes are gone. Its first process may exit while others continue, and one that it has left behind is
    /// known when it registers: the recording waits for that.
    pub(crate) fn has_ended(&self) -> bool {
        self.processes().0.is_empty() && self.watched().is_none_or(LiveSession::has_ended)
    }

    /// Stops it: sends SIGTERM, waits, and then kills what is left. Returns how it ended.
    pub(crate) fn stop(&mut self) -> Stopped {
        if matches!(self.life, Some(Life::Foreign)) {
            return Stopped { how: "still running".into(), ..Stopped::default() };
        }
        if self.life.is_none() {
            return Stopped::default();
        }
        // The recording stays until they have ended: of a process that went into the background nothing else tells.
        self.signal(Signal::TERM);
        let asked = Instant::now();
        // Two impatient Ctrl-C also lead here: the server gets its time in any case.
        while !self.has_ended() && asked.elapsed() < STOP_PATIENCE {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.kill();
        self.life.take().map(how_it_ended).unwrap_or_default()
    }

    /// Kills what is left. The kernel may keep a process for a while; the wait for that is bounded.
    fn kill(&self) {
        let begun = Instant::now();
        while !self.has_ended() && begun.elapsed() < STOP_PATIENCE {
            self.signal(Signal::KILL);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = Pid::from_raw(self.pid as i32) {
            let _ = kill_process_group(group, signal);
        }
        let (alive, _) = self.processes();
        for pid in alive.into_iter().filter_map(|pid| Pid::from_raw(pid as i32)) {
            let _ = kill_process(pid, signal);
        }
    }
}

impl Drop for Running {
    /// No process that was started here survives an error.
    fn drop(&mut self) {
        if matches!(self.life, Some(Life::Recorded(_) | Life::Plain(_))) {
            self.kill();
            if let Some(life) = self.life.take() {
                how_it_ended(life);
            }
        }
    }
}

/// A server that was stopped.
#[derive(Debug, Default)]
pub(crate) struct Stopped {
    /// How it ended.
    pub(crate) how: String,
    /// What the user should know about the metrics.
    pub(crate) warnings: Vec<String>,
    /// Those of the warnings that invalidate the metrics.
    pub(crate) faults: Vec<String>,
}

fn launch(
    command: &[OsString],
    setting: SpawnOptions,
    options: &SoakOptions,
    warn: &mut dyn FnMut(String),
) -> Result<Life, SoakError> {
    if !options.record {
        return Ok(Life::Plain(start_unrecorded(command, &setting)?));
    }
    let spare = SpawnOptions {
        environment: setting.environment.clone(),
        output: setting.output.as_ref().and_then(|output| output.try_clone().ok()),
        own_group: true,
        ..SpawnOptions::default()
    };
    match LiveSession::start(command.to_vec(), options.command_lines, setting, options.preload) {
        Ok(watched) => Ok(Life::Recorded(watched)),
        Err(
            error
            @ CollectError::Launch(LaunchError::CannotPreload { .. } | LaunchError::CannotInject { .. }),
        ) => {
            warn(format!("{error}; so only the memory that the kernel counts is looked at"));
            Ok(Life::Plain(start_unrecorded(command, &spare)?))
        }
        Err(error) => Err(error.into()),
    }
}

fn how_it_ended(life: Life) -> Stopped {
    let how = match life {
        Life::Recorded(watched) => match watched.end() {
            Ok(Ending { exit, warnings, faults }) => {
                return Stopped { how: exit.map_or_else(unknown, in_words), warnings, faults };
            }
            Err(error) => error.to_string(),
        },
        Life::Plain(mut child) => match child.wait() {
            Ok(status) => match (status.code(), status.signal()) {
                (Some(code), _) => in_words(Exit::Status(code)),
                (_, Some(signal)) => in_words(Exit::Signal(signal)),
                _ => unknown(),
            },
            Err(error) => error.to_string(),
        },
        Life::Foreign => String::from("still running"),
    };
    Stopped { how, ..Stopped::default() }
}

fn unknown() -> String {
    String::from("nobody knows how")
}

fn in_words(exit: Exit) -> String {
    match exit {
        Exit::Status(status) => format!("exit status {status}"),
        Exit::Signal(signal) => format!("killed by signal {signal}"),
        Exit::Exec => String::from("became another program"),
        Exit::GoesOn => String::from("went on"),
    }
}
