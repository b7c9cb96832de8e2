//! Asking Ruby and Python, through the hook that is in them (`ruby.rb` and `python.py`, where the steps are told).

use crate::CaptureError;
use crate::process::{self, Runtime};
use crate::redact::Redaction;
use crate::target::Target;
use mallow_launch::started::is_alive;
use rustix::fs::{FlockOperation, OFlags, fcntl_getfl, fcntl_setfl, flock};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long the hook may take to hear us: its thread waits for Ruby's lock.
const TIME_MAX: Duration = Duration::from_secs(20);

/// What the lines of a dump never begin with: behind it stands how it ended.
const END: u8 = 0;

/// Takes a snapshot, and returns its bytes.
pub(crate) fn capture(
    (pid, runtime): (u32, Runtime),
    target: &Target,
    redact: bool,
    begins: impl FnOnce(),
) -> Result<u64, CaptureError> {
    // Python leaves contents out itself: keys of dictionaries are some too.
    let is_redacted_here = redact && runtime == Runtime::Ruby;
    let asked: &[u8] = if redact && !is_redacted_here { b"dump redacted\n" } else { b"dump\n" };
    let looking = |cause: io::Error| match cause.kind() {
        ErrorKind::PermissionDenied => CaptureError::NotOurs(pid),
        _ => CaptureError::Looking { pid, cause },
    };
    let link = find(pid, "request").map_err(looking)?.ok_or(CaptureError::NoHook { pid, runtime })?;
    let mut request = open(OpenOptions::new().write(true), &link).map_err(looking)?;
    flock(&request, FlockOperation::NonBlockingLockExclusive).map_err(|_| CaptureError::Busy(pid))?;
    // Before the program is asked for anything.
    let mut file = target.begin()?;
    begins();
    request.write_all(asked).map_err(|_| CaptureError::NoAnswer(pid))?;
    let answer = open_answer(pid).map_err(looking)?.ok_or(CaptureError::NoAnswer(pid))?;
    request.write_all(b"go\n").map_err(|_| CaptureError::NoAnswer(pid))?;
    let mut redaction = is_redacted_here.then(Redaction::new);
    let mut out = BufWriter::with_capacity(1 << 20, file.as_file_mut());
    let mut lines = BufReader::with_capacity(1 << 20, answer);
    let incomplete = |cause: &str| CaptureError::Incomplete { pid, cause: cause.to_owned() };
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = lines.read_until(b'\n', &mut line).map_err(looking)?;
        if read == 0 {
            return Err(incomplete("the process that wrote it has ended"));
        }
        if line[0] == END {
            break;
        }
        let written = match &mut redaction {
            Some(redaction) => redaction.write(&line, &mut out),
            None => out.write_all(&line),
        };
        written.map_err(|cause| target.writing(cause))?;
    }
    match line[1..].trim_ascii() {
        b"whole" => {}
        said => return Err(incomplete(&format!("{runtime} raised {}", String::from_utf8_lossy(said)))),
    }
    out.flush().map_err(|cause| target.writing(cause))?;
    drop(out);
    target.keep(file)
}

/// The newest of the hook's FIFOs of a kind.
fn find(pid: u32, kind: &str) -> io::Result<Option<PathBuf>> {
    let name = format!("/.mallow-capture-{kind}.");
    Ok(process::open_files(pid)?.into_iter().find(|(_, target)| target.contains(&name)).map(|(link, _)| link))
}

fn open_answer(pid: u32) -> io::Result<Option<File>> {
    let deadline = Instant::now() + TIME_MAX;
    while Instant::now() < deadline && is_alive(pid) {
        if let Some(link) = find(pid, "answer")? {
            let answer = open(OpenOptions::new().read(true), &link)?;
            fcntl_setfl(&answer, fcntl_getfl(&answer)? - OFlags::NONBLOCK)?;
            return Ok(Some(answer));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(None)
}

/// Without waiting for another end.
fn open(options: &mut OpenOptions, link: &PathBuf) -> io::Result<File> {
    options.custom_flags(OFlags::NONBLOCK.bits() as i32).open(link)
}
