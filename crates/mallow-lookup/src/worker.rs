//! A worker: looks at one module, answers, and ends.

use crate::isolation::{close_all_but_standard, exit};
use crate::messages::{self, BYTES_MAX, END, PART};
use crate::request::{Request, Served};
use crate::{filter, limits};
use mallow_symbols::{Answer, DebugServer, ModuleKey, OtherRoots, SearchPaths, look_up};
use rustix::io::Errno;
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Its nice value where nobody waits for it: it gets a third of another's share of a busy CPU.
const NICENESS: i32 = 5;
const BLOCK_BYTES: u64 = 512;

/// Answers the request that comes over `job`. `child` is the process that started it, with which it ends.
pub(crate) fn run(job: OwnedFd, child: u32) -> ! {
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    if getppid().is_none_or(|parent| parent.as_raw_nonzero().get() as u32 != child) {
        exit(1);
    }
    let job = alone_with(job);
    let answered = catch_unwind(AssertUnwindSafe(|| answer(&job)));
    exit(match answered {
        Ok(Ok(())) => 0,
        Ok(Err(_)) => 1,
        Err(_) => 2,
    });
}

/// Closes all files but the job and those that show nothing: other workers' jobs, and the child's own socket, are not a worker's.
fn alone_with(job: OwnedFd) -> OwnedFd {
    const JOB: i32 = 0;
    // SAFETY: the child's own socket becomes the job; its old number is closed with the others, so nobody owns it.
    let job = unsafe {
        libc::dup2(job.as_raw_fd(), JOB);
        std::mem::forget(job);
        OwnedFd::from_raw_fd(JOB)
    };
    close_all_but_standard();
    job
}

fn answer(job: &OwnedFd) -> Result<(), Errno> {
    let (request, svmas, roots) = received(job)?;
    let module = request.module();
    let stored_bytes = stored_bytes(&module.path);
    limits::of_worker(stored_bytes, request.patience);
    if !request.is_urgent() {
        let _ = rustix::process::nice(NICENESS);
    }
    let search = SearchPaths {
        debug_roots: request.debug_roots(),
        sysroot: request.sysroot(),
        other_roots: (!roots.is_empty()).then_some(OtherRoots(files_in_other_roots)),
        server: request.has_server.then_some(DebugServer(debug_file)),
        on_attempt: None,
    };
    let _ = ROOTS.set(roots);
    asked().served = request.served();
    #[cfg(debug_assertions)]
    crate::mischief::unfiltered(&module);
    filter::install();
    #[cfg(debug_assertions)]
    crate::mischief::before(&module);
    let mut on_opened = |bytes: u64| limits::of_memory(stored_bytes.max(bytes), request.patience);
    let answer = look_up(&search, &module, &svmas, &mut on_opened);
    send(job, &module, &svmas, &answer)
}

/// The request, its addresses, and files below other roots.
fn received(job: &OwnedFd) -> Result<(Request, Vec<u64>, Vec<OwnedFd>), Errno> {
    let mut buffer = vec![0; BYTES_MAX];
    let (length, files) = messages::receive(job, &mut buffer, true)?.ok_or(Errno::PIPE)?;
    let request: Request = serde_json::from_slice(&buffer[..length]).map_err(|_| Errno::BADMSG)?;
    let mut svmas = Vec::new();
    while (svmas.len() as u64) < request.addresses {
        let (length, _) = messages::receive(job, &mut buffer, true)?.ok_or(Errno::PIPE)?;
        svmas.extend(buffer[..length].as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)));
    }
    Ok((request, svmas, files))
}

fn send(job: &OwnedFd, _module: &ModuleKey, svmas: &[u64], answer: &Answer) -> Result<(), Errno> {
    #[cfg_attr(not(debug_assertions), expect(unused_mut, reason = "only tests change it"))]
    let mut bytes = answer.to_bytes(svmas);
    #[cfg(debug_assertions)]
    crate::mischief::with(job, _module, &mut bytes);
    for part in bytes.chunks(BYTES_MAX - 1) {
        messages::send(job, &[&[PART], part], &[], true)?;
    }
    let wanted = serde_json::to_vec(&asked().wanted).map_err(|_| Errno::INVAL)?;
    messages::send(job, &[&[END], &wanted], &[], true)
}

/// What a module's own file stores, before it is opened.
fn stored_bytes(path: &str) -> u64 {
    std::fs::metadata(path).map_or(0, |found| found.blocks().saturating_mul(BLOCK_BYTES))
}

/// Files at the module's path as other processes see it.
static ROOTS: OnceLock<Vec<OwnedFd>> = OnceLock::new();

fn files_in_other_roots(_: &Path) -> Vec<OwnedFd> {
    let files = ROOTS.get().map(Vec::as_slice).unwrap_or_default();
    files.iter().filter_map(|file| file.try_clone().ok()).collect()
}

/// What a server would be asked for: a worker has no network.
struct Asked {
    served: Served,
    wanted: Vec<Vec<u8>>,
}

static ASKED: Mutex<Asked> = Mutex::new(Asked { served: Vec::new(), wanted: Vec::new() });

fn asked() -> std::sync::MutexGuard<'static, Asked> {
    ASKED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn debug_file(build_id: &[u8]) -> Option<PathBuf> {
    let mut asked = asked();
    let found = asked.served.iter().find(|(known, _)| known == build_id).map(|(_, path)| path.clone());
    if found.is_none() {
        asked.wanted.push(build_id.to_vec());
    }
    found
}
