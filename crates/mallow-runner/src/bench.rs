//! The timed runs of a benchmark, from the setup of its commands to their cleanup.

use crate::command_line::Program;
use crate::spawn::{self, RunEnvironment, Spawner, end_words};
use crate::turns::Turns;
use crate::{Input, Output, Plan, RunnerError, Runs, Shell, machine, processes, shell_cost};
use mallow_bench::{BenchCommand, Order, Run, Session, ShellCost, Stop, compare};
use mallow_counters::{Refusal, usable};
use mallow_launch::started::name_of;
use mallow_launch::{Interrupts, open_files};
use mallow_stats::{Evaluations, is_precise};
use regex::Regex;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A benchmark that is being made.
#[derive(Debug)]
pub struct Bench<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) programs: Vec<Program>,
    pub(crate) interrupts: Interrupts,
    spawner: Spawner,
    shell: Option<ShellCost>,
    iterations: Vec<usize>,
    left: Vec<Left>,
    children: processes::ChildList,
    is_set_up: bool,
    notes: Vec<String>,
    seed: u64,
}

/// A process that a run has left behind.
#[derive(Debug)]
struct Left {
    pid: u32,
    command: usize,
    /// The run's number, those to warm up included.
    iteration: usize,
    /// What it was called when it was seen.
    name: String,
}

/// How far the timed runs are.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// What was measured until now.
    pub session: &'a Session,
    /// Which command runs next.
    pub command: usize,
    /// Its runs until now, those to warm up too while it warms up.
    pub runs: usize,
    /// How many it will have at least, or at the next look.
    pub wanted: usize,
    /// Whether this is the warm-up.
    pub is_warmup: bool,
    /// Since the first run.
    pub elapsed: Duration,
}

/// Somebody who looks on.
pub trait Observer {
    /// Before each run.
    fn before_run(&mut self, progress: &Progress<'_>);
    /// When no more progress comes for now.
    fn pause(&mut self) {}
}

/// A benchmark of one command has at least so many runs, unless it is told otherwise or the time is over.
const RUNS_MIN: usize = 10;
/// One command, without anything to compare it with, runs for so long.
const ALONE: Duration = Duration::from_secs(3);

impl<'a> Bench<'a> {
    /// Makes ready: finds the programs, and what can be counted. Nothing of the commands has run.
    ///
    /// # Errors
    /// When a program is not there.
    pub fn new(plan: &'a Plan, spawner: PathBuf) -> Result<Bench<'a>, RunnerError> {
        let program = |line: &str| match Program::of_line(line, &plan.shell) {
            // What is no program may be a word of the shell's.
            Err(RunnerError::Launch(_)) if plan.shell == Shell::WhereNeeded && line.trim().contains(' ') => {
                Program::of_line(line, &Shell::Never)
            }
            other => other,
        };
        let programs =
            plan.commands.iter().map(|command| program(&command.line)).collect::<Result<Vec<_>, _>>()?;
        let usable = usable(&plan.events);
        let mut notes = refusals(&usable.refused);
        if !usable.without_kernel.is_empty() {
            let names = usable.without_kernel.join(", ");
            notes.push(format!(
                "{names}: only what the program did itself is counted, without the kernel's part; \
                 `sysctl kernel.perf_event_paranoid=1` shows that too."
            ));
        }
        processes::adopt_orphans();
        let mut seed = [0_u8; 8];
        let _ = rustix::rand::getrandom(&mut seed, rustix::rand::GetRandomFlags::empty());
        Ok(Bench {
            plan,
            programs,
            interrupts: Interrupts::watch()?,
            spawner: Spawner::new(spawner, usable.events),
            shell: None,
            iterations: vec![0; plan.commands.len()],
            left: Vec::new(),
            children: processes::ChildList::open(),
            is_set_up: false,
            notes,
            seed: u64::from_le_bytes(seed),
        })
    }

    /// Sets up, warms up and makes the timed runs. A run that fails ends them; what was measured before is in the session either way.
    pub fn timed(&mut self, observer: &mut dyn Observer) -> (Session, Option<RunnerError>) {
        let mut session = self.session();
        let failure = self.measure(&mut session, observer).err();
        observer.pause();
        if self.is_interrupted() {
            session.stop = Stop::Interrupted;
        } else if failure.is_some() {
            session.stop = Stop::Failed;
        }
        session.shell = self.shell.clone();
        self.name_left(&mut session);
        let failure = failure.filter(|_| session.stop != Stop::Interrupted);
        (session, failure)
    }

    /// Returns whether somebody wanted an end.
    pub fn is_interrupted(&self) -> bool {
        self.interrupts.heard() > 0
    }

    /// Cleans up. After an interrupt everything is ended that the commands have started.
    ///
    /// # Errors
    /// When a cleanup fails.
    pub fn finish(mut self) -> Result<(), RunnerError> {
        let mut outcome = Ok(());
        if self.is_set_up {
            for command in &self.plan.commands {
                outcome = outcome.and(self.step("cleanup", command.cleanup.as_deref(), None));
            }
        }
        self.spawner.end();
        if self.is_interrupted() {
            processes::end_all();
        }
        self.is_set_up = false;
        outcome
    }

    fn session(&self) -> Session {
        let command = |(planned, program): (&crate::PlannedCommand, &Program)| BenchCommand {
            name: planned.name.clone(),
            line: planned.line.clone(),
            parameters: planned.parameters.clone(),
            in_shell: program.in_shell,
            ..BenchCommand::default()
        };
        Session {
            commands: self.plan.commands.iter().zip(&self.programs).map(command).collect(),
            reference: 0,
            events: self.spawner.events.iter().map(|event| event.name().to_owned()).collect(),
            threshold: self.plan.threshold,
            error: self.looks().error(),
            order: self.plan.order,
            machine: machine::machine(),
            notes: self.notes.clone(),
            ..Session::default()
        }
    }

    fn looks(&self) -> Evaluations {
        let comparisons = self.plan.commands.len().saturating_sub(1);
        match self.plan.runs {
            Runs::Fixed(runs) => Evaluations::fixed(runs, comparisons),
            Runs::Adaptive { min, max, .. } => Evaluations::adaptive(min.unwrap_or(0), max, comparisons),
        }
    }

    fn measure(&mut self, session: &mut Session, observer: &mut dyn Observer) -> Result<(), RunnerError> {
        if self.programs.iter().any(|program| program.in_shell) {
            let cost = shell_cost::measure(&self.spawner, &self.plan.shell.words(), &self.interrupts)?;
            self.shell = Some(cost);
        }
        match self.plan.order {
            Order::Interleaved => {
                let all: Vec<usize> = (0..self.plan.commands.len()).collect();
                self.set_up(&all)?;
                self.warm_up(session, &all, observer)?;
                self.rounds(session, &all, observer)
            }
            Order::Sequential => {
                for index in 0..self.plan.commands.len() {
                    self.set_up(&[index])?;
                    self.warm_up(session, &[index], observer)?;
                    self.rounds(session, &[index], observer)?;
                    // The cleanup belongs to the command: the next one's setup begins after it.
                    let cleanup = self.plan.commands[index].cleanup.as_deref();
                    self.step("cleanup", cleanup, None)?;
                    self.is_set_up = false;
                }
                Ok(())
            }
        }
    }

    fn set_up(&mut self, commands: &[usize]) -> Result<(), RunnerError> {
        self.is_set_up = true;
        commands
            .iter()
            .try_for_each(|index| self.step("setup", self.plan.commands[*index].setup.as_deref(), None))
    }

    fn warm_up(
        &mut self,
        session: &mut Session,
        commands: &[usize],
        observer: &mut dyn Observer,
    ) -> Result<(), RunnerError> {
        let started = Instant::now();
        for round in 0..self.plan.warmup as usize {
            for index in commands {
                let wanted = self.plan.warmup as usize;
                let elapsed = started.elapsed();
                let (command, runs) = (*index, round);
                observer.before_run(&Progress { session, command, runs, wanted, is_warmup: true, elapsed });
                self.one(*index)?;
                if self.is_interrupted() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Rounds of runs until it is enough.
    fn rounds(
        &mut self,
        session: &mut Session,
        commands: &[usize],
        observer: &mut dyn Observer,
    ) -> Result<(), RunnerError> {
        let looks = self.looks();
        let mut turns = Turns::new(commands.len(), self.seed);
        let started = Instant::now();
        for done in 0.. {
            for index in turns.round().into_iter().map(|at| commands[at]) {
                if self.is_interrupted() || (done > 0 && self.is_time_over(started, done)) {
                    session.stop = Stop::Time;
                    return Ok(());
                }
                let wanted = self.wanted(&looks, session, index, done);
                let elapsed = started.elapsed();
                observer.before_run(&Progress {
                    session,
                    command: index,
                    runs: done,
                    wanted,
                    is_warmup: false,
                    elapsed,
                });
                let mut run = self.one(index)?;
                // What was interrupted is no run.
                if self.is_interrupted() {
                    return Ok(());
                }
                run.at = session.commands.iter().map(|command| command.runs.len()).sum();
                session.commands[index].runs.push(run);
            }
            if let Some(stop) = self.is_enough(session, commands, &looks, done + 1) {
                session.stop = stop;
                return Ok(());
            }
        }
        Ok(())
    }

    /// Two rounds are always made, and what was asked for.
    fn is_time_over(&self, started: Instant, done: usize) -> bool {
        match self.plan.runs {
            Runs::Fixed(_) => false,
            Runs::Adaptive { min, time_max, .. } => {
                done >= min.unwrap_or(2).max(2) && started.elapsed() >= time_max
            }
        }
    }

    fn wanted(&self, looks: &Evaluations, session: &Session, index: usize, done: usize) -> usize {
        match self.plan.runs {
            Runs::Adaptive { min, max, .. } if self.is_alone() => {
                alone(&session.commands[index].runs, self.taken_off_ns(index), min, max)
            }
            _ => looks.at().iter().copied().find(|at| *at > done).unwrap_or(looks.last()),
        }
    }

    /// What the shell took of each of a command's runs, and is not in them.
    fn taken_off_ns(&self, index: usize) -> u64 {
        let cost = self.shell.as_ref().filter(|_| self.programs[index].in_shell);
        cost.map_or(0, |cost| cost.wall_ns)
    }

    /// Returns whether nothing is compared while it runs.
    fn is_alone(&self) -> bool {
        self.plan.commands.len() == 1 || self.plan.order == Order::Sequential
    }

    fn is_enough(
        &self,
        session: &Session,
        commands: &[usize],
        looks: &Evaluations,
        done: usize,
    ) -> Option<Stop> {
        match self.plan.runs {
            Runs::Fixed(runs) => (done >= runs).then_some(Stop::Done),
            Runs::Adaptive { min, max, .. } if self.is_alone() => {
                let runs = &session.commands[commands[0]].runs;
                (done >= alone(runs, self.taken_off_ns(commands[0]), min, max)).then_some(Stop::Done)
            }
            Runs::Adaptive { .. } => {
                if !looks.at().contains(&done) {
                    return None;
                }
                let others = commands.iter().filter(|index| **index != session.reference);
                let mut ratios =
                    others.map(|index| compare(session, *index, mallow_bench::Metric::Wall).ratio);
                let is_known =
                    ratios.all(|ratio| ratio.is_some_and(|ratio| is_precise(&ratio, self.plan.threshold)));
                match (is_known, done >= looks.last()) {
                    (true, _) => Some(Stop::Precise),
                    (false, true) => Some(Stop::Done),
                    (false, false) => None,
                }
            }
        }
    }

    /// One run with what belongs before and after it.
    fn one(&mut self, index: usize) -> Result<Run, RunnerError> {
        let planned = &self.plan.commands[index];
        let iteration = self.iterations[index];
        self.step("prepare", planned.prepare.as_deref(), Some(iteration))?;
        let around = RunEnvironment {
            environment: environment(iteration, self.seed),
            input: self.input(),
            output: planned.output.clone(),
            is_kept: self.plan.printed.is_some(),
            ..RunEnvironment::default()
        };
        let mut ran = self.spawner.run(&self.programs[index], &around, &self.interrupts)?;
        self.iterations[index] += 1;
        self.note_left(index, iteration);
        if let (Some(cost), true) = (&self.shell, self.programs[index].in_shell) {
            ran.run = shell_cost::without(ran.run, cost);
        }
        ran.run.printed = number(self.plan.printed.as_ref(), ran.printed.as_deref());
        if !self.is_interrupted() && !self.plan.failures.allows(ran.run.end.code()) {
            let run = match iteration.checked_sub(self.plan.warmup as usize) {
                Some(timed) => format!("run {}", timed + 1),
                None => format!("warm-up run {}", iteration + 1),
            };
            let end = end_words(ran.run.end);
            return Err(RunnerError::Failed { line: planned.line.clone(), end, run });
        }
        self.step("conclude", planned.conclude.as_deref(), Some(iteration))?;
        Ok(ran.run)
    }

    pub(crate) fn input(&self) -> Option<PathBuf> {
        match &self.plan.input {
            Input::Null => None,
            Input::File(path) => Some(path.clone()),
        }
    }

    /// Notes the processes that a run has left behind.
    fn note_left(&mut self, command: usize, iteration: usize) {
        if self.left.is_empty() && self.children.is_only(self.spawner.pid()) {
            return;
        }
        let mut left = processes::left();
        left.retain(|pid| {
            Some(*pid) != self.spawner.pid() && self.left.iter().all(|known| known.pid != *pid)
        });
        self.ask_again();
        let noted = left.into_iter().map(|pid| Left { pid, command, iteration, name: name_of(pid) });
        self.left.extend(noted);
    }

    /// One that is seen early is still called as the shell that becomes it, and may be gone when the session ends: so the last ones are asked their
    /// names after the next run.
    fn ask_again(&mut self) {
        const ASKED: usize = 8;
        for left in self.left.iter_mut().rev().take(ASKED) {
            let now = name_of(left.pid);
            if !now.is_empty() {
                left.name = now;
            }
        }
    }

    /// Names them in their runs, by the names that they have by now.
    fn name_left(&mut self, session: &mut Session) {
        for Left { pid, command, iteration, name } in self.left.drain(..) {
            let run = iteration.checked_sub(self.plan.warmup as usize);
            let Some(run) = run.and_then(|at| session.commands[command].runs.get_mut(at)) else { continue };
            let later = name_of(pid);
            run.left.push(if later.is_empty() { name } else { later });
        }
    }

    /// Runs a command that belongs to the benchmark and is not measured.
    pub(crate) fn step(
        &self,
        what: &'static str,
        line: Option<&str>,
        iteration: Option<usize>,
    ) -> Result<(), RunnerError> {
        let Some(line) = line else { return Ok(()) };
        let program = match &self.plan.shell {
            Shell::Never => Program::of_line(line, &Shell::Never)?,
            shell => Program::in_shell(line, &shell.words())?,
        };
        let is_shown = self.plan.commands.iter().any(|command| command.output == Output::Inherit);
        let stream = || if is_shown { Stdio::inherit() } else { Stdio::null() };
        let mut command = Command::new(&program.path);
        command.args(&program.words[1..]).stdin(Stdio::null()).stdout(stream()).stderr(stream());
        if let Some(iteration) = iteration {
            command.envs(environment(iteration, self.seed));
        }
        let cannot = |cause| RunnerError::CannotRun { line: line.to_owned(), cause };
        let end = open_files::as_inherited(|| command.spawn()).and_then(spawn::finish).map_err(cannot)?;
        if end.code() != 0 && !self.is_interrupted() {
            return Err(RunnerError::Step { what, line: line.to_owned(), end: end_words(end) });
        }
        Ok(())
    }
}

/// How many runs a command alone has: those of three seconds, within what was asked for. What a shell took of each run is part of the time: a command
/// that takes none beside it would never have run for three seconds.
fn alone(runs: &[Run], taken_off_ns: u64, min: Option<usize>, max: Option<usize>) -> usize {
    let total: u64 = runs.iter().map(|run| run.wall_ns + taken_off_ns).sum();
    let mean = total.checked_div(runs.len() as u64).unwrap_or(0).max(1);
    let of_time = (ALONE.as_nanos() as u64 / mean) as usize;
    of_time.max(min.unwrap_or(RUNS_MIN)).min(max.unwrap_or(usize::MAX)).max(1)
}

/// Which run it is, and a text of random length: where the environment ends decides where the stack begins, and so how fast some programs
/// are. Both have the names that scripts written for hyperfine know.
fn environment(iteration: usize, seed: u64) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    let mixed = (seed ^ iteration as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52;
    vec![
        ("HYPERFINE_ITERATION".into(), iteration.to_string().into()),
        ("HYPERFINE_RANDOMIZED_ENVIRONMENT_OFFSET".into(), "X".repeat(mixed as usize).into()),
    ]
}

/// The first number that the pattern finds: its first group, or all of it.
fn number(pattern: Option<&Regex>, printed: Option<&str>) -> Option<f64> {
    let found = pattern?.captures(printed?)?;
    let text = found.get(1).or_else(|| found.get(0))?.as_str();
    text.trim().parse().ok().filter(|number: &f64| number.is_finite())
}

/// One sentence for each reason.
fn refusals(refused: &[(mallow_counters::Event, Refusal)]) -> Vec<String> {
    let mut reasons: Vec<(Refusal, Vec<&str>)> = Vec::new();
    for (event, reason) in refused {
        match reasons.iter_mut().find(|known| known.0 == *reason) {
            Some(known) => known.1.push(event.name()),
            None => reasons.push((*reason, vec![event.name()])),
        }
    }
    reasons.into_iter().map(|(reason, names)| reason.sentence(&names)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_found_where_the_pattern_says() {
        let pattern = Regex::new(r"took ([0-9.]+) ms").unwrap();
        assert_eq!(number(Some(&pattern), Some("a\ntook 12.5 ms\ntook 9 ms")), Some(12.5));
        assert_eq!(number(Some(&pattern), Some("nothing")), None);
        assert_eq!(number(Some(&Regex::new("[0-9]+").unwrap()), Some("x 42")), Some(42.0));
        assert_eq!(number(None, Some("1")), None);
    }

    #[test]
    fn the_environment_has_another_length_in_each_run() {
        let lengths: Vec<usize> = (0..20).map(|run| environment(run, 77)[1].1.len()).collect();
        assert!(lengths.iter().all(|length| *length < 4096));
        assert!(lengths.windows(2).any(|two| two[0] != two[1]));
        assert_eq!(environment(3, 77)[0].1, "3");
    }

    #[test]
    fn a_command_alone_runs_three_seconds_or_ten_times() {
        let run = |wall_ns| [Run { wall_ns, ..Run::default() }];
        assert_eq!(alone(&run(100_000_000), 0, None, None), 30);
        assert_eq!(alone(&run(1_000_000_000), 0, None, None), 10);
        assert_eq!(alone(&run(1_000_000_000), 0, Some(2), None), 3);
        assert_eq!(alone(&run(1_000_000), 0, None, Some(50)), 50);
        assert_eq!(alone(&run(0), 3_000_000, None, None), 1000, "the shell's time passes, too");
    }
}
