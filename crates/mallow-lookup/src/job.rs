//! One question to a worker: sent, and the answer taken, which may be anything.

use crate::limits;
use crate::messages::{self, BYTES_MAX, DIED, END, FILES_MAX, PART};
use crate::request::Request;
use mallow_symbols::{Answer, ModuleKey};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// The longest answer, of any module and for each of its addresses.
const ANSWER_BYTES_ALLOWED: usize = 64 << 20;
const ANSWER_BYTES_PER_ADDRESS: usize = 4 << 10;
/// How many builds a module may want of a server: its own, and the shared file's of its debug file.
const WANTED_MAX: usize = 4;
const BUILD_ID_BYTES_MAX: usize = 64;

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// None came in time.
    Late,
    /// The worker ended before.
    Died { is_signal: bool, number: i32 },
    /// The worker's end of the socket was closed, and nobody said why.
    Gone,
    /// What came is no answer about these addresses.
    Nonsense,
    /// Nobody wants it any more.
    Abandoned,
    /// The system refused.
    Refused(Errno),
}

static IS_ABANDONED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
/// How soon a wait notices that. A signal ends the wait of one thread alone, which may be another's.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What a signal handler sets when nobody wants to wait for names any more: that ends every wait, those under way and those to come.
pub fn abandoned() -> Arc<AtomicBool> {
    Arc::clone(&IS_ABANDONED)
}

/// Returns whether nobody waits for names any more.
pub(crate) fn is_abandoned() -> bool {
    IS_ABANDONED.load(Ordering::Relaxed)
}

/// An answer, and builds that a server may have.
pub(crate) type Answered = (Answer, Vec<Vec<u8>>);

/// A new socket: ours, and a worker's.
pub(crate) fn sockets() -> Result<(OwnedFd, OwnedFd), Errno> {
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
}

/// A question that is under way.
pub(crate) struct Job {
    pub(crate) socket: OwnedFd,
    pub(crate) until: Instant,
}

impl Job {
    /// Asks, and takes the answer.
    pub(crate) fn ask(
        &self,
        request: &Request,
        svmas: &[u64],
        roots: &[OwnedFd],
    ) -> Result<Answered, Failure> {
        let header = serde_json::to_vec(request).map_err(|_| Failure::Refused(Errno::INVAL))?;
        let roots: Vec<_> = roots.iter().take(FILES_MAX).map(AsFd::as_fd).collect();
        self.send(&header, &roots)?;
        for some in svmas.chunks(BYTES_MAX / size_of::<u64>()) {
            let bytes: Vec<u8> = some.iter().flat_map(|svma| svma.to_le_bytes()).collect();
            self.send(&bytes, &[])?;
        }
        self.answer(&request.module(), svmas)
    }

    fn send(&self, message: &[u8], files: &[std::os::fd::BorrowedFd<'_>]) -> Result<(), Failure> {
        loop {
            match messages::send(&self.socket, &[message], files, false) {
                Err(Errno::AGAIN) => self.wait(PollFlags::OUT)?,
                // Why it has gone is read where its answer would be.
                Err(Errno::PIPE | Errno::CONNRESET) | Ok(()) => return Ok(()),
                Err(error) => return Err(Failure::Refused(error)),
            }
        }
    }

    fn answer(&self, module: &ModuleKey, svmas: &[u64]) -> Result<Answered, Failure> {
        let bytes_max =
            ANSWER_BYTES_ALLOWED.saturating_add(svmas.len().saturating_mul(ANSWER_BYTES_PER_ADDRESS));
        let (mut parts, mut buffer) = (Vec::new(), vec![0; BYTES_MAX]);
        loop {
            let length = match messages::receive(&self.socket, &mut buffer, false) {
                Err(Errno::AGAIN) => {
                    self.wait(PollFlags::IN)?;
                    continue;
                }
                Ok(Some((length, _))) => length,
                Ok(None) | Err(Errno::CONNRESET) => return Err(Failure::Gone),
                Err(error) => return Err(Failure::Refused(error)),
            };
            match (buffer[0], &buffer[1..length]) {
                (PART, part) if parts.len() + part.len() <= bytes_max => parts.extend_from_slice(part),
                (END, wanted) => {
                    let answer = Answer::from_bytes(&parts, module, svmas).ok_or(Failure::Nonsense)?;
                    return Ok((answer, wanted_builds(wanted).ok_or(Failure::Nonsense)?));
                }
                (DIED, [is_signal, number @ ..]) => {
                    let number = i32::from_le_bytes(number.try_into().map_err(|_| Failure::Nonsense)?);
                    return Err(Failure::Died { is_signal: *is_signal == 1, number });
                }
                _ => return Err(Failure::Nonsense),
            }
        }
    }

    fn wait(&self, what: PollFlags) -> Result<(), Failure> {
        if is_abandoned() {
            return Err(Failure::Abandoned);
        }
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Failure::Late);
        }
        let left = left.min(LOOK_EVERY);
        let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&self.socket, what)], Some(&left)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(Failure::Refused(error)),
        }
    }
}

fn wanted_builds(bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let wanted: Vec<Vec<u8>> = serde_json::from_slice(bytes).ok()?;
    let is_id = |id: &Vec<u8>| !id.is_empty() && id.len() <= BUILD_ID_BYTES_MAX;
    (wanted.len() <= WANTED_MAX && wanted.iter().all(is_id)).then_some(wanted)
}

/// Said of whoever was not waited for.
pub(crate) const ABANDONED: &str = "was not waited for, because of an interrupt";

impl Failure {
    /// Says it, as the end of a sentence about the process that was asked.
    pub(crate) fn reason(self, time: Duration, memory_bytes: u64) -> String {
        const ABRT: i32 = libc::SIGABRT;
        const XCPU: i32 = libc::SIGXCPU;
        match self {
            Failure::Late => format!("did not answer within {} s", time.as_secs()),
            Failure::Died { is_signal: true, number: ABRT } => format!(
                "gave up: it needs more than {} MB of memory, or more stack than there is",
                memory_bytes >> 20
            ),
            Failure::Died { is_signal: true, number: XCPU } => {
                format!("needs more than {} s of the processor", limits::SECONDS_MAX)
            }
            Failure::Died { is_signal: true, number } => format!("was ended by signal {number}"),
            Failure::Died { is_signal: false, number } => format!("ended with status {number}"),
            Failure::Gone => "ended without an answer".to_owned(),
            Failure::Abandoned => ABANDONED.to_owned(),
            Failure::Nonsense => "did not answer what it was asked".to_owned(),
            Failure::Refused(error) => format!("cannot be asked: {}", std::io::Error::from(error)),
        }
    }
}
