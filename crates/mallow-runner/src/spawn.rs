//! One run: the spawner starts the command, waits, and reports.

use crate::command_line::Program;
use crate::{Output, RunnerError, processes};
use mallow_bench::{EventCount, Run, RunEnd};
use mallow_counters::{Counters, Event};
use mallow_launch::{Interrupts, explained, inherited, open_files};
use mallow_wire::spawning::{self as report, REQUEST_HEAD_BYTES, RequestHead};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::Signal;
use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, Write};
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// What a run is made in.
#[derive(Debug, Default)]
pub(crate) struct RunEnvironment {
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// None for no input.
    pub(crate) input: Option<PathBuf>,
    pub(crate) output: Output,
    /// Everything that is printed is kept for a look.
    pub(crate) is_kept: bool,
    /// Where it is started; none for where we are.
    pub(crate) directory: Option<PathBuf>,
    /// After which what runs is killed; none for never.
    pub(crate) timeout: Option<Duration>,
}

/// What a run came to.
pub(crate) struct Ran {
    pub(crate) run: Run,
    /// What it printed, if that was kept.
    pub(crate) printed: Option<String>,
}

/// How much of an output is looked through for a number.
const KEPT_BYTES_MAX: u64 = 64 << 20;
/// How often interrupts are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long an interrupted command may take to end.
const GRACE: Duration = Duration::from_secs(2);

/// The spawner's file, what is counted of its children, and one that has been started.
#[derive(Debug)]
pub(crate) struct Spawner {
    path: PathBuf,
    pub(crate) events: Vec<Event>,
    /// Our own environment.
    variables: Vec<(OsString, OsString)>,
    /// It serves as long as runs want the same of their standard streams.
    kept: RefCell<Option<Started>>,
}

/// A spawner that waits for requests. It ends with this value.
#[derive(Debug)]
struct Started {
    child: Child,
    stream: UnixStream,
    output: Output,
    directory: Option<PathBuf>,
}

impl Drop for Started {
    fn drop(&mut self) {
        // Its reading ends with this, and so does it.
        let _ = self.stream.shutdown(Shutdown::Both);
        let _ = self.child.wait();
    }
}

impl Spawner {
    pub(crate) fn new(path: PathBuf, events: Vec<Event>) -> Spawner {
        Spawner { path, events, variables: std::env::vars_os().collect(), kept: RefCell::new(None) }
    }

    /// The command that does nothing at all.
    pub(crate) fn nothing(&self) -> String {
        self.path.display().to_string()
    }

    /// Ends the process that lives on between runs.
    pub(crate) fn end(&self) {
        self.kept.take();
    }

    /// The process that lives on between runs.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.kept.borrow().as_ref().map(|started| started.child.id())
    }

    /// Runs a program once.
    pub(crate) fn run(
        &self,
        program: &Program,
        around: &RunEnvironment,
        interrupts: &Interrupts,
    ) -> Result<Ran, RunnerError> {
        let line = || program.words.join(" ".as_ref()).to_string_lossy().into_owned();
        let known = self.kept.take().filter(|started| around.is_served_by(started));
        let (mut started, mut printed_to) = match known {
            Some(started) => (started, None),
            None => self.start(around)?,
        };
        let request = request(program, &self.variables, &around.environment);
        let request = request.ok_or_else(|| RunnerError::CannotRun {
            line: line(),
            cause: std::io::Error::from_raw_os_error(Errno::TOOBIG.raw_os_error()),
        })?;
        let mut counters = Counters::of_children(started.child.id(), &self.events);
        let told = started.stream.write_all(&request);
        let deadline = around.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let words =
            told.ok().and_then(|()| wait(&mut started.stream, started.child.id(), interrupts, deadline));
        let counted = counters.read();
        let Some(words) = words else {
            let _ = started.stream.shutdown(Shutdown::Both);
            let ended = started.child.wait();
            let end = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
            return Err(RunnerError::NoReport { line: line(), end });
        };
        if around.is_plain() {
            self.kept.replace(Some(started));
        }
        let refused = || std::io::Error::from_raw_os_error(words[report::STATUS] as i32);
        match words[report::KIND] {
            report::CANNOT_RUN => {
                return Err(RunnerError::CannotRun { line: line(), cause: explained(refused()) });
            }
            report::NOT_WAITED_FOR => {
                return Err(RunnerError::System { what: "cannot wait for the command", cause: refused() });
            }
            _ => {}
        }
        let events = counted
            .into_iter()
            .map(|count| count.map(|count| EventCount { value: count.value, share: count.share }));
        let printed = printed_to.as_mut().map(printed);
        Ok(Ran { run: Run { events: events.collect(), ..run_of(&words) }, printed })
    }

    /// Starts the spawner with the standard streams that a run is to have. Returns the file that keeps what is printed, too.
    fn start(&self, around: &RunEnvironment) -> Result<(Started, Option<File>), RunnerError> {
        let system = |what| move |cause| RunnerError::System { what, cause };
        let (stream, theirs) = UnixStream::pair().map_err(system("cannot make a pair of sockets"))?;
        // It is the only descriptor of ours that the spawner keeps, and no command has it.
        fcntl_setfd(&theirs, FdFlags::empty())
            .map_err(|error| system("cannot share a socket")(error.into()))?;
        stream.set_read_timeout(Some(LOOK_EVERY)).map_err(system("cannot wait for a time"))?;
        let mut command = Command::new(&self.path);
        command.arg(theirs.as_raw_fd().to_string());
        let kept = around.attach(&mut command)?;
        if let Some(directory) = &around.directory {
            command.current_dir(directory);
        }
        // Streams are what bench is told.
        inherited::pass_on(&mut command, [false; 3]);
        let child = open_files::as_inherited(|| command.spawn());
        let mut child = child.map_err(system("cannot start the spawner"))?;
        if let Some(pipe) = child.stdout.take() {
            std::thread::spawn(move || std::io::copy(&mut { pipe }, &mut std::io::sink()));
        }
        let (output, directory) = (around.output.clone(), around.directory.clone());
        Ok((Started { child, stream, output, directory }, kept))
    }
}

/// What the spawner is told; none if the kernel would not take so much. A variable of the run takes the place of one of ours.
fn request(
    program: &Program,
    ours: &[(OsString, OsString)],
    of_run: &[(OsString, OsString)],
) -> Option<Vec<u8>> {
    let mut request = vec![0; REQUEST_HEAD_BYTES];
    let mut add = |parts: &[&OsStr]| {
        parts.iter().for_each(|part| request.extend_from_slice(part.as_bytes()));
        request.push(0);
    };
    add(&[program.path.as_os_str()]);
    program.words.iter().for_each(|word| add(&[word]));
    let is_ours = |(name, _): &&(OsString, OsString)| of_run.iter().all(|(other, _)| other != name);
    let mut variables = 0_usize;
    for (name, value) in ours.iter().filter(is_ours).chain(of_run) {
        add(&[name, "=".as_ref(), value]);
        variables += 1;
    }
    let number = |count: usize| u32::try_from(count).ok();
    let head = RequestHead {
        bytes: number(request.len() - REQUEST_HEAD_BYTES)?,
        words: number(program.words.len())?,
        environment: number(variables)?,
    };
    request[..REQUEST_HEAD_BYTES].copy_from_slice(&head.to_bytes());
    head.is_fitting().then_some(request)
}

impl RunEnvironment {
    /// Returns whether nothing of its streams is this run's alone: a file is opened anew for each run.
    fn is_plain(&self) -> bool {
        self.input.is_none() && !self.is_kept && matches!(self.output, Output::Null | Output::Inherit)
    }

    fn is_served_by(&self, started: &Started) -> bool {
        self.is_plain() && started.output == self.output && started.directory == self.directory
    }

    /// Connects stdin, stdout and stderr. Returns the file that keeps what is printed.
    fn attach(&self, command: &mut Command) -> Result<Option<File>, RunnerError> {
        let file = |path: &Path, opened: std::io::Result<File>| {
            opened.map_err(|cause| RunnerError::File { path: path.display().to_string(), cause })
        };
        command.stdin(match &self.input {
            Some(path) => file(path, File::open(path))?.into(),
            None => Stdio::null(),
        });
        command.stderr(if self.output == Output::Inherit { Stdio::inherit() } else { Stdio::null() });
        if self.is_kept {
            let made = |cause| RunnerError::System { what: "cannot make a temporary file", cause };
            let kept = tempfile::tempfile().map_err(made)?;
            command.stdout(kept.try_clone().map_err(made)?);
            return Ok(Some(kept));
        }
        command.stdout(match &self.output {
            Output::Null => Stdio::null(),
            Output::Pipe => Stdio::piped(),
            Output::Inherit => Stdio::inherit(),
            Output::File(path) => file(path, mallow_files::overwrite(path))?.into(),
        });
        Ok(None)
    }
}

fn printed(kept: &mut File) -> String {
    let mut bytes = Vec::new();
    let _ = kept.rewind().and_then(|()| kept.take(KEPT_BYTES_MAX).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Waits for the report. When somebody interrupts, or at the deadline, what runs is ended; none without a report.
fn wait(
    stream: &mut UnixStream,
    spawner: u32,
    interrupts: &Interrupts,
    deadline: Option<Instant>,
) -> Option<[u64; report::WORDS]> {
    let heard = interrupts.heard();
    let mut interrupted: Option<(Instant, bool)> = None;
    let mut bytes = [0_u8; report::BYTES];
    let mut filled = 0;
    while filled < bytes.len() {
        match stream.read(&mut bytes[filled..]) {
            Ok(0) => return None,
            Ok(count) => filled += count,
            Err(error)
                if [ErrorKind::WouldBlock, ErrorKind::TimedOut, ErrorKind::Interrupted]
                    .contains(&error.kind()) => {}
            Err(_) => return None,
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            processes::signal(&processes::descendants(spawner), Signal::KILL);
        }
        if interrupts.heard() > heard {
            let (since, is_asked) = interrupted.get_or_insert((Instant::now(), false));
            // The terminal has told it as well; whoever was told alone, as by `kill`, passes it on.
            if !*is_asked && since.elapsed() > LOOK_EVERY {
                *is_asked = true;
                processes::signal(&processes::descendants(spawner), Signal::TERM);
            }
            if since.elapsed() > GRACE || interrupts.heard() > heard + 1 {
                processes::signal(&processes::descendants(spawner), Signal::KILL);
            }
        }
    }
    let mut words = [0_u64; report::WORDS];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
    }
    Some(words)
}

fn run_of(words: &[u64; report::WORDS]) -> Run {
    let time_ns = |at: usize| words[at] * 1_000_000_000 + words[at + 1] * 1000;
    Run {
        wall_ns: words[report::ENDED_NS].saturating_sub(words[report::STARTED_NS]),
        user_ns: time_ns(report::RUSAGE),
        system_ns: time_ns(report::RUSAGE + 2),
        peak_rss_bytes: words[report::PEAK_RSS_KIB] * 1024,
        minor_faults: words[report::MINOR_FAULTS],
        major_faults: words[report::MAJOR_FAULTS],
        voluntary_switches: words[report::VOLUNTARY_SWITCHES],
        involuntary_switches: words[report::INVOLUNTARY_SWITCHES],
        end: end_of(ExitStatus::from_raw(words[report::STATUS] as i32)),
        ..Run::default()
    }
}

pub(crate) fn end_of(status: ExitStatus) -> RunEnd {
    match (status.code(), status.signal()) {
        (Some(code), _) => RunEnd::Status(code),
        (None, signal) => RunEnd::Signal(signal.unwrap_or_default()),
    }
}

/// How something ended, in words.
pub(crate) fn end_words(end: RunEnd) -> String {
    match end {
        RunEnd::Status(status) => format!("exit status {status}"),
        RunEnd::Signal(signal) => format!("signal {signal}"),
    }
}

/// Waits for a child that is no timed run.
pub(crate) fn finish(mut child: Child) -> std::io::Result<RunEnd> {
    child.wait().map(end_of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_path_words_and_environment() {
        let program =
            Program { path: "/bin/echo".into(), words: vec!["echo".into(), "a b".into()], in_shell: false };
        let ours: Vec<(OsString, OsString)> =
            [("HOME", "/"), ("ITERATION", "3")].map(|(name, value)| (name.into(), value.into())).into();
        let told = request(&program, &ours, &[("ITERATION".into(), "7".into())]).unwrap();
        let (head, texts) = told.split_first_chunk().unwrap();
        let head = RequestHead::from_bytes(*head);
        assert_eq!((head.bytes as usize, head.words), (texts.len(), 2));
        assert!(texts.starts_with(b"/bin/echo\0echo\0a b\0") && texts.ends_with(b"\0"));
        let environment: Vec<&[u8]> = texts[19..texts.len() - 1].split(|byte| *byte == 0).collect();
        assert_eq!(environment.len(), head.environment as usize);
        assert_eq!(environment, [&b"HOME=/"[..], b"ITERATION=7"]);
        // More than the kernel takes is not asked for.
        let long = Program { words: vec!["x".repeat(2 << 20).into()], ..program };
        assert_eq!(request(&long, &ours, &[]), None);
    }
}
