//! Recording a command from start to end.

mod finish;

use crate::about::recording_of;
use crate::ahead::{Ahead, LookAhead};
use crate::clock::Clock;
use crate::ending::child_exit;
use crate::error::CollectError;
use crate::heap::Executables;
use crate::interrupts::Interrupts;
use crate::launch::{Launch, Mode};
use crate::marks::Counted;
use crate::output::{self, NO_TRACE, Opened, Output};
use crate::pause::Pause;
use crate::process::{Ended, Recorded, Wanted};
use crate::questions::Questions;
use crate::regions::WatchedProcess;
use crate::session::{Arrival, Session};
use crate::setting::Setting;
use crate::starts::Starts;
use crate::symbols::Resolve;
use crate::trace_file::TraceFile;
use mallow_profile::{Exit, Profile};
use mallow_trace as trace;
use mallow_wire::shared::HEARTBEAT_LEFT;
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// What to record, and how.
#[derive(Debug)]
pub struct RecordOptions {
    /// The command and its arguments.
    pub command: Vec<OsString>,
    /// Where the trace goes.
    pub output: Output,
    /// Keep figures per site only, not the events.
    pub summary_only: bool,
    /// Count the program's regions and its file descriptors.
    pub regions: Option<Counted>,
    /// What the command finds around it.
    pub setting: Setting,
    /// The preload library's bytes.
    pub preload: &'static [u8],
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct RecordOutcome {
    /// The trace.
    pub trace: PathBuf,
    /// How the command ended.
    pub exit: Exit,
    /// A second interrupt ended the recording before the command did.
    pub interrupted: bool,
    /// The command took longer than it was given, and was killed.
    pub timed_out: bool,
    /// The processes, when their regions were asked for.
    pub processes: Vec<WatchedProcess>,
    /// What the trace holds beside events and samples of resident memory; none when regions were asked for.
    pub profile: Option<Profile>,
    /// What the reader of the figures should know.
    pub warnings: Vec<String>,
    /// Those of the warnings, first among them, that say that a process's memory does not come by `malloc`: its figures are not
    /// those of its heap.
    pub blind: Vec<String>,
    /// What is as it should be, and worth knowing: processes that are managed runtimes.
    pub notes: Vec<String>,
    /// Those of the warnings after which the figures are not the program's: nothing may be judged by them.
    pub faults: Vec<String>,
    /// The trace says of nothing that it was not seen.
    pub complete: bool,
}

/// How a command ended whose memory was asked about while it ran.
#[derive(Clone, Debug)]
pub struct Ending {
    /// How.
    pub exit: Exit,
    /// As in [`RecordOutcome`].
    pub warnings: Vec<String>,
    /// As in [`RecordOutcome`].
    pub faults: Vec<String>,
}

/// Runs a command under the recorder and writes its trace. `resolve` names the addresses of a module: one
/// list of frames for each address, innermost first; the addresses point into their instructions. `look_ahead` may look them up
/// before, on another thread while the command runs, so that `resolve` finds most answers there.
///
/// # Errors
/// When the command cannot be run or recorded, nothing is left behind. When the trace cannot be written, the
/// command goes on unrecorded to its end, and what was written is removed.
pub fn record(
    options: &RecordOptions,
    resolve: Resolve<'_>,
    look_ahead: Option<LookAhead>,
) -> Result<RecordOutcome, CollectError> {
    if matches!(&options.output, Output::File { path, .. } if path == Path::new(NO_TRACE)) {
        return Err(CollectError::NoFile { path: PathBuf::from(NO_TRACE) });
    }
    let launch = Launch::new(&options.command)?;
    let session = Session::open()?;
    let interrupts = Interrupts::watch()?;
    let Opened { file, path, is_new } = output::open(&options.output)?;
    let clock = Clock::start();
    let mode = if options.regions.is_some() { Mode::Check } else { Mode::Record };
    let outcome = Recording::begin(options, &launch, mode, session, interrupts, clock, file, &path)
        .and_then(|recording| recording.run(resolve, look_ahead));
    if let Err((error, path)) = &outcome
        && !matches!(error, CollectError::Exists { .. })
        && is_new
    {
        let _ = std::fs::remove_file(path);
    }
    outcome.map_err(|(error, _)| error)
}

/// Runs a command under the recorder and answers questions while it runs; gives how it ended, and what should be said
/// about the answers. Nothing is written, and nobody's keys end it.
pub(crate) fn record_asked(
    options: &RecordOptions,
    mode: Mode,
    questions: Questions,
) -> Result<Ending, CollectError> {
    let launch = Launch::new(&options.command)?;
    let session = Session::open()?;
    let Opened { file, path, .. } = output::open(&options.output)?;
    let interrupts = Interrupts::deaf();
    let clock = Clock::start();
    Recording::begin(options, &launch, mode, session, interrupts, clock, file, &path)
        .and_then(|recording| recording.run_asked(questions))
        .map_err(|(error, _)| error)
}

/// A recording under way.
struct Recording {
    session: Session,
    interrupts: Interrupts,
    clock: Clock,
    file: TraceFile,
    child: Option<Pid>,
    exit: Option<Exit>,
    child_pid: u32,
    /// The child introduced itself.
    child_was_met: bool,
    /// The command line, blanks between arguments.
    command: String,
    about: mallow_profile::Recording,
    processes: Vec<Recorded>,
    ended: Vec<Ended>,
    next_index: u32,
    /// What is not in the trace, and is said in it.
    unseen: trace::Unseen,
    starts: Starts,
    executables: Executables,
    /// Of processes whose figures are not those of their heaps.
    blind: Vec<String>,
    /// Of processes that are managed runtimes.
    managed: Vec<String>,
    notes: Vec<String>,
    faults: Vec<String>,
    wanted: Wanted,
    deadline: Option<Instant>,
    timed_out: bool,
    interrupts_passed: usize,
    watched: Vec<WatchedProcess>,
    profile: Option<Profile>,
    /// None when nobody looks names up before the end.
    ahead: Option<Ahead>,
    /// None when a trace is written instead.
    questions: Option<Questions>,
}

type Failure = (CollectError, PathBuf);

/// How often resident memory is noted.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(10);
/// How often everything gathered is handed to the file, whether or not a chunk is full.
const WRITE_INTERVAL: Duration = Duration::from_millis(500);

impl Recording {
    #[allow(clippy::too_many_arguments)]
    fn begin(
        options: &RecordOptions,
        launch: &Launch<'_>,
        mode: Mode,
        session: Session,
        interrupts: Interrupts,
        clock: Clock,
        file: File,
        path: &Path,
    ) -> Result<Recording, Failure> {
        let fail = |error| (error, path.to_owned());
        let mut file = TraceFile::begin(path, file).map_err(fail)?;
        let about = recording_of(&options.command);
        file.put_whole(&about).and_then(|()| file.flush()).map_err(fail)?;
        let child = launch.start(&session, options.preload, mode, &options.setting).map_err(fail)?;
        let mut recording = Recording {
            session,
            interrupts,
            clock,
            file,
            child: Pid::from_raw(child.id() as i32),
            exit: None,
            child_pid: child.id(),
            child_was_met: false,
            command: launch.line(),
            about,
            processes: Vec::new(),
            ended: Vec::new(),
            next_index: 0,
            unseen: trace::Unseen::default(),
            starts: Starts::default(),
            executables: Executables::default(),
            blind: Vec::new(),
            managed: Vec::new(),
            notes: Vec::new(),
            faults: Vec::new(),
            wanted: Wanted {
                events: !options.summary_only,
                threads: mode != Mode::Soak,
                regions: options.regions,
            },
            deadline: options.setting.timeout.map(|timeout| Instant::now() + timeout),
            timed_out: false,
            interrupts_passed: 0,
            watched: Vec::new(),
            profile: None,
            ahead: None,
            questions: None,
        };
        if let Output::Default(directory) = &options.output {
            match output::name_by_process(path, directory, &launch.name(), child.id()) {
                Ok(named) => recording.file.renamed(named),
                Err(error) => {
                    recording.let_go();
                    return Err(fail(error));
                }
            }
        }
        Ok(recording)
    }

    fn run(mut self, resolve: Resolve<'_>, look_ahead: Option<LookAhead>) -> Result<RecordOutcome, Failure> {
        self.ahead = look_ahead.and_then(Ahead::start);
        let outcome = self.collect().and_then(|interrupted| self.finish(resolve).map(|()| interrupted));
        let path = self.file.path().to_owned();
        match outcome {
            Ok(interrupted) => Ok(RecordOutcome {
                trace: path,
                exit: self.exit.unwrap_or(Exit::Signal(2)),
                interrupted,
                timed_out: self.timed_out,
                processes: std::mem::take(&mut self.watched),
                profile: self.profile.take(),
                faults: std::mem::take(&mut self.faults),
                blind: self.blind.clone(),
                notes: std::mem::take(&mut self.managed),
                complete: self.unseen.sentences.is_empty() && self.blind.is_empty(),
                warnings: self.into_warnings(),
            }),
            Err(error) => {
                self.let_go();
                Err((error, path))
            }
        }
    }

    fn run_asked(mut self, mut questions: Questions) -> Result<Ending, Failure> {
        questions.started(self.child_pid);
        self.questions = Some(questions);
        match self.collect() {
            Ok(_) => Ok(Ending {
                exit: self.exit.unwrap_or(Exit::Signal(2)),
                faults: std::mem::take(&mut self.faults),
                warnings: self.into_warnings(),
            }),
            Err(error) => {
                self.let_go();
                Err((error, self.file.path().to_owned()))
            }
        }
    }

    /// The recording failed; the program shall not.
    fn let_go(&mut self) {
        self.processes.iter().for_each(Recorded::leave);
        while self.exit.is_none() && !self.interrupts.look(self.child) {
            for arrival in self.session.arrivals() {
                if let Ok(mapping) = crate::mapping::Mapping::new(&arrival.memory) {
                    mapping.header().heartbeat.store(HEARTBEAT_LEFT, Ordering::SeqCst);
                }
            }
            self.reap();
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn into_warnings(mut self) -> Vec<String> {
        self.unseen.sentences.extend(self.starts.sentences());
        // First what makes the others small matters.
        self.blind.into_iter().chain(self.unseen.sentences).chain(self.notes).collect()
    }

    /// Drains until everybody has ended; gives true when the user did not want to wait for that.
    fn collect(&mut self) -> Result<bool, CollectError> {
        let (mut sampled, mut written, mut ends_looked_at) = (Instant::now(), Instant::now(), Instant::now());
        let mut pause = Pause::default();
        let mut has_admitted = false;
        loop {
            let interrupted = self.interrupts.look(self.child);
            self.pass_interrupts();
            self.look_at_deadline();
            // The ends are looked for first: what a process did before it ended is then seen by the pass
            // below.
            // Where some come, others end, and hold memory of ours.
            let look_at_ends =
                has_admitted || pause.is_idle() || ends_looked_at.elapsed() > Duration::from_millis(5);
            let ended: Vec<u32> = if look_at_ends {
                ends_looked_at = Instant::now();
                self.reap();
                self.processes
                    .iter()
                    .filter(|process| process.has_ended())
                    .map(|process| process.index)
                    .collect()
            } else {
                Vec::new()
            };
            has_admitted = self.admit()?;
            if let Some(questions) = &mut self.questions {
                questions.take();
            }
            let until_tsc = self.clock.note();
            let mut words = 0;
            for process in &mut self.processes {
                let until = if ended.contains(&process.index) || interrupted { u64::MAX } else { until_tsc };
                words += process.drain(&self.clock, until, &mut self.file)?;
                process.take_starts(&mut self.starts);
            }
            self.bury(&ended)?;
            if let Some(questions) = &mut self.questions {
                questions.answer(&self.processes);
            }
            if interrupted || (self.exit.is_some() && self.processes.is_empty() && !self.admit()?) {
                return Ok(interrupted);
            }
            self.processes.iter().filter(|process| process.wants_lanes()).for_each(Recorded::recycle_lanes);
            if sampled.elapsed() >= SAMPLE_INTERVAL {
                sampled = Instant::now();
                self.sample();
            }
            if written.elapsed() >= WRITE_INTERVAL {
                written = Instant::now();
                self.write()?;
            }
            // More may stand at the door.
            if !has_admitted {
                pause.after(words);
            }
        }
    }

    /// A command in a group of its own does not hear the terminal: what is meant for it is passed on. It has a group of its
    /// own exactly when it has a deadline (`Setting::put_around`), because killing it then kills what it started.
    fn pass_interrupts(&mut self) {
        let count = self.interrupts.count();
        if self.deadline.is_none() || count <= self.interrupts_passed {
            return;
        }
        self.interrupts_passed = count;
        let signal = if count == 1 { Signal::INT } else { Signal::KILL };
        if let Some(child) = self.child.filter(|_| self.exit.is_none()) {
            let _ = kill_process_group(child, signal);
        }
    }

    /// Kills a command that has taken its time, and what it started: its group, and whoever has left that and is recorded.
    /// Our own child may have ended before; one that began while others were killed is killed in a later pass.
    fn look_at_deadline(&mut self) {
        if self.deadline.is_none_or(|deadline| Instant::now() < deadline) {
            return;
        }
        if !self.timed_out
            && let Some(group) = self.child
        {
            let _ = kill_process_group(group, Signal::KILL);
        }
        self.timed_out = true;
        self.processes.iter().for_each(Recorded::kill);
    }

    fn sample(&mut self) {
        for process in &mut self.processes {
            process.sample(&self.clock);
            process.recycle_lanes();
            if let Some(ahead) = &self.ahead {
                ahead.offer(process);
            }
        }
    }

    fn write(&mut self) -> Result<(), CollectError> {
        for process in &mut self.processes {
            process.write(&mut self.file)?;
        }
        self.file.flush()
    }

    fn reap(&mut self) {
        if self.exit.is_none()
            && let Some(child) = self.child
        {
            self.exit = child_exit(child);
        }
    }

    /// Takes in who is at the door. Gives true when somebody was there.
    fn admit(&mut self) -> Result<bool, CollectError> {
        let arrivals = self.session.arrivals();
        let any = !arrivals.is_empty();
        for arrival in arrivals {
            self.child_was_met |= arrival.pid == self.child_pid;
            self.succeed(&arrival)?;
            let (index, wanted) = (self.next_index, self.wanted);
            let executables = &mut self.executables;
            match Recorded::begin(arrival, index, wanted, executables, &self.clock, &mut self.file) {
                Ok(process) => {
                    self.starts.meet(process.header().pid, process.header().started_ns);
                    self.processes.push(process);
                    self.next_index += 1;
                }
                Err(error @ CollectError::CannotWrite { .. }) => return Err(error),
                Err(error) => self.unseen.sentences.push(error.to_string()),
            }
        }
        Ok(any)
    }

    /// A process that introduces itself again has become another program.
    fn succeed(&mut self, arrival: &Arrival) -> Result<(), CollectError> {
        if let Some(at) = self.processes.iter().position(|process| process.pid == arrival.pid) {
            let mut before = self.processes.remove(at);
            self.clock.note();
            before.drain(&self.clock, u64::MAX, &mut self.file)?;
            self.close(before, Some(Exit::Exec))?;
        }
        Ok(())
    }

    /// Closes the processes that have ended and are read to their last word.
    fn bury(&mut self, ended: &[u32]) -> Result<(), CollectError> {
        for index in ended {
            let Some(at) = self.processes.iter().position(|process| process.index == *index) else {
                continue;
            };
            let mut process = self.processes.remove(at);
            let exit = match process.pid == self.child_pid {
                true => self.wait_for_child(),
                false => process.exit(),
            };
            process.drain(&self.clock, u64::MAX, &mut self.file)?;
            self.close(process, exit)?;
        }
        Ok(())
    }

    /// Our child has ended, so this is a matter of microseconds.
    fn wait_for_child(&mut self) -> Option<Exit> {
        let since = Instant::now();
        while self.exit.is_none() && since.elapsed() < Duration::from_secs(1) {
            self.reap();
        }
        self.exit
    }

    fn close(&mut self, mut process: Recorded, exit: Option<Exit>) -> Result<(), CollectError> {
        process.take_starts(&mut self.starts);
        if let Some(ahead) = &self.ahead {
            ahead.offer(&mut process);
        }
        self.unseen.sentences.extend(process.warnings());
        self.faults.extend(process.faults());
        self.notes.extend(process.verification());
        let heap = process.heap_sentence();
        let mut ended = process.end(exit, &self.clock, &mut self.file)?;
        match heap {
            Some((true, sentence)) => {
                ended.blind = Some(sentence.clone());
                self.blind.push(sentence);
            }
            Some((false, sentence)) => self.managed.push(sentence),
            None => {}
        }
        // A server may start and end processes for days.
        if self.questions.is_none() {
            self.ended.push(ended);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cannot_be_recorded(directory: &Path, command: &str) -> String {
        let options = RecordOptions {
            command: vec![command.into()],
            output: Output::Default(directory.to_owned()),
            summary_only: false,
            regions: None,
            setting: Setting::default(),
            preload: b"",
        };
        record(&options, &mut |_, _| Vec::new(), None).unwrap_err().to_string()
    }

    #[test]
    fn a_command_that_cannot_be_run_leaves_no_file() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let output = directory.path().join("out");
        std::fs::create_dir(&output).unwrap();
        let missing = cannot_be_recorded(&output, "/nonexistent/program");
        assert!(missing.starts_with("cannot run '/nonexistent/program'"), "{missing}");
        // This one passes every check before the start and is refused by the kernel.
        let odd = directory.path().join("odd");
        std::fs::write(&odd, b"\x7fELF but nothing more than that").unwrap();
        std::fs::set_permissions(&odd, std::fs::Permissions::from_mode(0o755)).unwrap();
        let refused = cannot_be_recorded(&output, odd.to_str().unwrap());
        assert!(refused.starts_with("cannot run"), "{refused}");
        assert_eq!(std::fs::read_dir(&output).unwrap().count(), 0);
    }
}
