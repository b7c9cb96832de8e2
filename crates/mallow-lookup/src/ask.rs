//! The side that asks: starts the child, sends it a job for each module, and gives up on one that does not end.

use crate::job::{ABANDONED, Answered, Failure, Job, is_abandoned, sockets};
use crate::request::{Request, Served};
use crate::{child, limits, messages};
use mallow_symbols::{Answer, DebugServer, LookUp, ModuleKey, OtherRoots, SearchPaths, Urgency};
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long an answer about one module is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long all those may take that end without an answer, and all together. One module that never ends is waited for while the program runs and at its end, and costs
/// no other its names.
const WASTED_MAX: Duration = Duration::from_secs(200);
const SPENT_MAX: Duration = Duration::from_secs(300);
/// How often a child is started, where children do not last.
const STARTS_MAX: u32 = 16;
/// How often a module is asked for again, with debug files that a server had.
const ROUNDS_MAX: usize = 3;

/// Looks addresses up in a child process; all that there are share one.
#[derive(Clone, Copy, Debug)]
pub struct InChild {
    /// How many times as much memory and time as usual a look-up may take.
    pub patience: u32,
}

impl InChild {
    /// Starts the child on another thread, so that it is there when it is needed.
    pub fn prepare() {
        let start = || {
            let _ = running().started();
        };
        let _ = std::thread::Builder::new().name("mallow-names".into()).spawn(start);
    }

    fn time(self) -> Duration {
        #[cfg(debug_assertions)]
        if let Some(time) = crate::mischief::patience() {
            return time;
        }
        PATIENCE * self.patience
    }

    fn asked(self, question: &AddressQuery<'_>, served: &Served) -> Result<Answered, Failure> {
        let mut has_tried = false;
        loop {
            let (ours, theirs) = sockets().map_err(Failure::Refused)?;
            let by = running().give(theirs)?;
            let job = Job { socket: ours, until: Instant::now() + self.time() };
            let began = Instant::now();
            let answered = job.ask(&question.request(self, served), question.svmas, question.roots);
            let mut running = running();
            running.spent += began.elapsed();
            match answered {
                Err(failure) => {
                    running.wasted += began.elapsed();
                    // A worker that has ended is no reason to end the child; others may be busy.
                    if !matches!(failure, Failure::Died { .. }) && running.starts == by {
                        running.reap();
                    }
                    // It may have ended for another's fault, or for nobody's.
                    if failure != Failure::Gone || has_tried {
                        return Err(failure);
                    }
                    has_tried = true;
                }
                answered => return answered,
            }
        }
    }
}

/// What is asked of a worker.
struct AddressQuery<'a> {
    search: &'a SearchPaths,
    module: &'a ModuleKey,
    svmas: &'a [u64],
    roots: &'a [OwnedFd],
    urgency: Urgency,
}

impl AddressQuery<'_> {
    fn request(&self, by: InChild, served: &Served) -> Request {
        let places = (&self.search.debug_roots[..], self.search.sysroot.as_deref());
        let mut request = Request::new(self.module, places, served, self.urgency);
        request.has_server = self.search.server.is_some();
        request.addresses = self.svmas.len() as u64;
        request.patience = by.patience;
        request
    }
}

impl LookUp for InChild {
    fn look_up(
        &self,
        search: &SearchPaths,
        module: &ModuleKey,
        svmas: &[u64],
        urgency: Urgency,
    ) -> Result<Answer, String> {
        if is_abandoned() {
            return Err(ABANDONED.to_owned());
        }
        let (wasted, spent) = running().times();
        if wasted > WASTED_MAX * self.patience || spent > SPENT_MAX * self.patience {
            return Err("was not asked, because others took too long".to_owned());
        }
        let path = module.path.strip_suffix(" (deleted)").unwrap_or(&module.path);
        let roots = search.other_roots.map(|OtherRoots(files)| files(Path::new(path))).unwrap_or_default();
        let question = AddressQuery { search, module, svmas, roots: &roots, urgency };
        let mut served = Served::new();
        for _ in 1..ROUNDS_MAX {
            let (answer, wanted) =
                self.asked(&question, &served).map_err(|failure| self.reason(failure, path))?;
            let known = served.len();
            for build_id in wanted {
                let is_known = served.iter().any(|(known, _)| *known == build_id);
                if let Some(DebugServer(ask)) = search.server.filter(|_| !is_known)
                    && let Some(file) = ask(&build_id)
                {
                    served.push((build_id, file));
                }
            }
            if served.len() == known {
                return Ok(answer);
            }
        }
        let answered = self.asked(&question, &served);
        answered.map(|(answer, _)| answer).map_err(|failure| self.reason(failure, path))
    }
}

impl InChild {
    fn reason(self, failure: Failure, path: &str) -> String {
        let stored_bytes = std::fs::metadata(path).map_or(0, |found| found.blocks().saturating_mul(512));
        failure.reason(self.time(), limits::memory_bytes(stored_bytes, self.patience))
    }
}

/// The child, if there is one.
#[derive(Debug)]
struct Running {
    child: Option<(Child, OwnedFd)>,
    starts: u32,
    /// Those that were killed, and not yet seen to have ended.
    buried: Vec<Child>,
    /// How long look-ups took that failed, and all of them.
    wasted: Duration,
    spent: Duration,
}

static RUNNING: Mutex<Running> = Mutex::new(Running {
    child: None,
    starts: 0,
    buried: Vec::new(),
    wasted: Duration::ZERO,
    spent: Duration::ZERO,
});

fn running() -> MutexGuard<'static, Running> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the child without waiting for it. A program does so before it ends; without it the child ends when it has.
pub fn end() {
    running().reap();
}

impl Running {
    fn times(&self) -> (Duration, Duration) {
        (self.wasted, self.spent)
    }

    /// The socket over which the child gets jobs.
    fn started(&mut self) -> Result<&OwnedFd, Failure> {
        if self.child.is_none() {
            if self.starts == STARTS_MAX {
                return Err(Failure::Gone);
            }
            self.starts += 1;
            let started = start()
                .map_err(|error| Failure::Refused(Errno::from_io_error(&error).unwrap_or(Errno::NOEXEC)))?;
            self.child = Some(started);
        }
        self.child.as_ref().map(|(_, control)| control).ok_or(Failure::Gone)
    }

    /// Gives the child a job; a new child, if the old one has ended. Tells which child it is.
    fn give(&mut self, job: OwnedFd) -> Result<u32, Failure> {
        for _ in 0..2 {
            match messages::send(self.started()?, &[&[0]], &[job.as_fd()], false) {
                Ok(()) => return Ok(self.starts),
                Err(_) => self.reap(),
            }
        }
        Err(Failure::Gone)
    }

    /// Kills the child, and with it its workers.
    fn reap(&mut self) {
        if let Some((mut child, _)) = self.child.take() {
            let _ = child.kill();
            self.buried.push(child);
        }
        self.buried.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    }
}

/// Starts the child: this program's own executable, as it runs, without its environment, in a group of its own so that the terminal's keys do not end it.
fn start() -> std::io::Result<(Child, OwnedFd)> {
    let (ours, theirs) = sockets()?;
    let mut command = Command::new("/proc/self/exe");
    command.arg0("mallow").arg(child::WORD).env_clear().process_group(0);
    #[cfg(debug_assertions)]
    crate::mischief::pass_on(&mut command);
    let child = command.stdin(theirs).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    Ok((child, ours))
}
