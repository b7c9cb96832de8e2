//! A JVM: collected and asked through its attach interface.
//!
//! `jcmd` opens that interface: it makes the JVM listen at a socket of its own. Once it does, the socket is spoken to
//! directly, because a `jcmd` is a JVM itself and takes half a second to say what takes a millisecond. The protocol
//! (OpenJDK, `attachListener_linux.cpp`): the version `1`, the command, and three arguments, each ended by a zero byte;
//! the answer is a line with a number, 0 if it went well, and the text.

mod metrics;

use mallow_capture::process::{inner_pid, is_jvm, jcmd};
use mallow_evidence::RuntimeMetrics;
use std::collections::BTreeSet;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than any of the answers that are asked for.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// What is known of JVMs.
#[derive(Default)]
pub(super) struct Jvms {
    /// Those that could not be attached to; they are not asked again, since each attempt is a signal.
    refused: BTreeSet<u32>,
}

impl Jvms {
    /// Lets the JVMs among `pids` collect one after the other, and asks for their metrics.
    pub(super) fn collect(&mut self, pids: &[u32], deadline: Instant) -> Vec<RuntimeMetrics> {
        let mut all = Vec::new();
        for &pid in pids.iter().filter(|&&pid| is_jvm(pid)) {
            if self.refused.contains(&pid) {
                continue;
            }
            match metrics_of(pid, deadline) {
                Ok(metrics) => all.push(metrics),
                Err(fault) if fault.kind() == ErrorKind::TimedOut => {}
                Err(_) => {
                    self.refused.insert(pid);
                }
            }
        }
        all
    }

    /// Has the JVMs among `pids` write their perf maps. One that does not know how (before 17) has none.
    pub(super) fn write_code_names(&mut self, pids: &[u32], deadline: Instant) {
        for &pid in pids.iter().filter(|&&pid| is_jvm(pid) && !self.refused.contains(&pid)) {
            let _ = ask(pid, "Compiler.perfmap", deadline);
        }
    }
}

fn metrics_of(pid: u32, deadline: Instant) -> io::Result<RuntimeMetrics> {
    ask(pid, "GC.run", deadline)?;
    let heap = ask(pid, "GC.heap_info", deadline)?;
    let native = ask(pid, "VM.native_memory summary", deadline).unwrap_or_default();
    let managed_bytes = metrics::heap_used(&heap)
        .ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "the JVM does not tell what its heap uses"))?;
    let mut metrics = metrics::native_memory(&native);
    metrics.extend(metrics::metaspace(&heap));
    metrics.insert("heap_used".to_owned(), managed_bytes as f64);
    let name = "jvm".to_owned();
    Ok(RuntimeMetrics { name, pid, managed_bytes, objects: None, in_malloc: false, metrics })
}

/// The answer to a diagnostic command.
fn ask(pid: u32, command: &str, deadline: Instant) -> io::Result<String> {
    match ask_directly(pid, command, deadline) {
        Err(fault) if matches!(fault.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
            ask_by_jcmd(pid, command, deadline)
        }
        answer => answer,
    }
}

fn ask_directly(pid: u32, command: &str, deadline: Instant) -> io::Result<String> {
    let name = format!(".java_pid{}", inner_pid(pid));
    let mut stream = UnixStream::connect(Path::new(&format!("/proc/{pid}/root/tmp")).join(name))?;
    let left = left_until(deadline)?;
    stream.set_read_timeout(Some(left))?;
    stream.set_write_timeout(Some(left))?;
    stream.write_all(format!("1\0jcmd\0{command}\0\0\0").as_bytes())?;
    let mut answer = String::new();
    let read = stream.take(ANSWER_BYTES_MAX).read_to_string(&mut answer);
    // The kernel says "would block" when a time limit is over.
    read.map_err(
        |fault| if fault.kind() == ErrorKind::WouldBlock { ErrorKind::TimedOut.into() } else { fault },
    )?;
    match answer.split_once('\n') {
        Some(("0", text)) => Ok(text.to_owned()),
        _ => Err(io::Error::new(ErrorKind::InvalidData, "the JVM refuses")),
    }
}

fn ask_by_jcmd(pid: u32, command: &str, deadline: Instant) -> io::Result<String> {
    let mut child = Command::new(jcmd(pid))
        .arg(pid.to_string())
        .args(command.split(' '))
        .env_remove("JAVA_TOOL_OPTIONS")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    // Its answers fit into a pipe or are read to the end; a `jcmd` that hangs is ended.
    while child.try_wait()?.is_none() {
        if left_until(deadline).is_err() {
            child.kill()?;
            child.wait()?;
            return Err(ErrorKind::TimedOut.into());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        return Err(io::Error::other("jcmd failed"));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn left_until(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}
