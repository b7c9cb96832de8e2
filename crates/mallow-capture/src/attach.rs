//! HotSpot's attach interface, spoken to directly and as the JVM's own user.
//!
//! Nothing of the JVM's is run: a `jcmd` that lies beside a program called `java` is whatever its owner has put there. Who attaches leaves a file
//! `.attach_pidN` in the JVM's working folder or in `/tmp`, and sends SIGQUIT; the JVM then listens at `/tmp/.java_pidN`. The protocol (OpenJDK,
//! `attachListener_posix.cpp`): the version `1`, the command, and three arguments, each ended by a zero byte; the answer is a line with a number, 0 if it
//! went well, and the text. N is the pid that the JVM knows itself by, and the folders are those of its own root.

use crate::process::{self, catches, file, inner_pid};
use rustix::process::{Gid, Pid, Signal, Uid};
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

/// Longer than any of the answers that are asked for.
const ANSWER_BYTES_MAX: u64 = 1 << 20;
const SIGQUIT: i32 = 3;
/// A JVM looks for the file when the signal comes; one that pauses takes longer.
const PAUSE: Duration = Duration::from_millis(5);

/// The answer of a JVM to a diagnostic command, such as `GC.run`.
///
/// # Errors
/// `TimedOut` when the deadline passes; `WouldBlock` when it does not listen yet; `Unsupported`, with the reason, when it is no JVM that can be attached to; `InvalidData`, with what it said, when it
/// refuses the command; others as the system says them.
pub fn ask(pid: u32, command: &str, deadline: Option<Instant>) -> io::Result<String> {
    as_its_user(pid, || {
        let stream = match connect(pid) {
            Err(fault) if matches!(fault.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
                open(pid, deadline)?
            }
            connected => connected?,
        };
        converse(stream, command, deadline)
    })
}

/// Does something with the rights of the process's user: what root would do in that user's folders, somebody else may have planted.
fn as_its_user<T: Send>(pid: u32, body: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let (uid, gid) = user(pid)?;
    if !rustix::process::geteuid().is_root() || uid.is_root() {
        return body();
    }
    // A thread has rights of its own, and this one ends with what it does.
    let within = move || {
        rustix::thread::set_thread_groups(&[])?;
        rustix::thread::set_thread_res_gid(gid, gid, gid)?;
        rustix::thread::set_thread_res_uid(uid, uid, uid)?;
        body()
    };
    thread::scope(|scope| scope.spawn(within).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}

/// Whose rights it has now.
fn user(pid: u32) -> io::Result<(Uid, Gid)> {
    let status = fs::read_to_string(file(pid, "status"))?;
    let effective = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().nth(1)?.parse::<u32>().ok()
    };
    let ids = effective("Uid:").zip(effective("Gid:"));
    let (uid, gid) = ids.ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "its user is not known"))?;
    Ok((Uid::from_raw(uid), Gid::from_raw(gid)))
}

fn temporary(pid: u32, name: &str) -> PathBuf {
    file(pid, "root/tmp").join(format!(".{name}_pid{}", inner_pid(pid)))
}

fn connect(pid: u32) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(temporary(pid, "java"))?;
    let peer = rustix::net::sockopt::socket_peercred(&stream)?;
    // Anybody can leave a socket in `/tmp`.
    if peer.pid.as_raw_nonzero().get() as u32 != pid {
        return Err(io::Error::new(ErrorKind::Unsupported, "another process listens in its place"));
    }
    Ok(stream)
}

/// Makes the JVM listen.
fn open(pid: u32, deadline: Option<Instant>) -> io::Result<UnixStream> {
    let unsupported = |why: &str| Err(io::Error::new(ErrorKind::Unsupported, why.to_owned()));
    // The signal would end anything else, and has another JVM write down all of its threads.
    if process::runtime(pid) != Some(process::Runtime::Jvm) || !process::is_hotspot(pid) {
        return unsupported("it is no HotSpot JVM");
    }
    if !catches(pid, SIGQUIT) {
        return Err(io::Error::new(
            ErrorKind::WouldBlock,
            "it is starting, and does not listen to SIGQUIT yet",
        ));
    }
    let asked = AttachFile::leave(pid)?;
    let target = Pid::from_raw(pid as i32).ok_or(ErrorKind::InvalidInput)?;
    rustix::process::kill_process(target, Signal::QUIT)?;
    let patience = Instant::now() + Duration::from_secs(10);
    let until = deadline.map_or(patience, |deadline| deadline.min(patience));
    loop {
        match connect(pid) {
            Err(fault) if matches!(fault.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {}
            connected => {
                drop(asked);
                return connected;
            }
        }
        if left_until(Some(until)).is_err() {
            if deadline.is_some_and(|deadline| deadline <= until) {
                return Err(ErrorKind::TimedOut.into());
            }
            return unsupported(
                "it does not open its attach interface (was it started with -XX:+DisableAttachMechanism?)",
            );
        }
        thread::sleep(PAUSE);
    }
}

/// The file that says that somebody wants to attach. It goes when it is dropped.
struct AttachFile(PathBuf);

impl AttachFile {
    fn leave(pid: u32) -> io::Result<AttachFile> {
        let place = file(pid, "cwd").join(format!(".attach_pid{}", inner_pid(pid)));
        let made = |place: PathBuf| match mallow_files::create_new(&place) {
            // Of somebody else who attaches at this moment.
            Err(fault) if fault.kind() != ErrorKind::AlreadyExists => Err(fault),
            _ => Ok(AttachFile(place)),
        };
        made(place).or_else(|_| made(temporary(pid, "attach")))
    }
}

impl Drop for AttachFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn converse(mut stream: UnixStream, command: &str, deadline: Option<Instant>) -> io::Result<String> {
    let left = left_until(deadline)?;
    stream.set_read_timeout(left)?;
    stream.set_write_timeout(left)?;
    stream.write_all(format!("1\0jcmd\0{command}\0\0\0").as_bytes())?;
    let mut answer = Vec::new();
    let read = stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer);
    // The kernel says "would block" when a time limit is over.
    read.map_err(
        |fault| if fault.kind() == ErrorKind::WouldBlock { ErrorKind::TimedOut.into() } else { fault },
    )?;
    let answer = String::from_utf8_lossy(&answer);
    match answer.split_once('\n') {
        Some(("0", text)) => Ok(text.to_owned()),
        Some((_, text)) => Err(io::Error::new(ErrorKind::InvalidData, text.trim().to_owned())),
        None => Err(io::Error::new(ErrorKind::InvalidData, "it does not say why")),
    }
}

fn left_until(deadline: Option<Instant>) -> io::Result<Option<Duration>> {
    let Some(deadline) = deadline else { return Ok(None) };
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
}

#[cfg(test)]
#[path = "attach_tests.rs"]
mod tests;
