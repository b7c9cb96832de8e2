//! Fuzzing the parsers with libFuzzer on the stable compiler.
//!
//! The compiler's coverage pass is switched on by hand, so no nightly toolchain is needed. Before any real target
//! the canary runs: a target with a planted fault that only coverage guidance finds. If it survives, the fuzzer is
//! blind, and a quiet minute on the other targets would mean nothing.

mod executions;

use crate::run;
use executions::{Part, Record};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// What `-Zsanitizer` would set: edge coverage counters, and a table that tells libFuzzer their addresses. Code that a target cannot reach is
/// not linked: libFuzzer looks at all counters after each input.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table";

const PROGRAM: &str = "fuzz";
const CANARY: &str = "canary";
/// The variable that names the target to the program.
const TARGET_VARIABLE: &str = "MALLOW_FUZZ_TARGET";
/// The variable that names the one target for which it is built.
const ONLY_VARIABLE: &str = "MALLOW_FUZZ_ONLY";
/// The reader of our own trace, which everybody meets first.
const TRACE_TARGETS: &str = "trace_";
const CANARY_SECONDS: u32 = 60;
const TRACK_PANICKED: &str = "a track of the fuzzer panicked.";

/// Which targets to fuzz, and for how long each.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// For the readers of our own trace.
    seconds: u32,
    /// For the importers of other tools' files, of which there are many.
    seconds_of_importers: u32,
    /// Whether libraries are instrumented too, which are most of what a build takes, and each target has a program of its own.
    libraries: bool,
    /// Empty for all.
    targets: Vec<String>,
    /// Where it is written down how many inputs ran.
    output: Option<PathBuf>,
}

impl Default for Plan {
    fn default() -> Self {
        Plan { seconds: 60, seconds_of_importers: 60, libraries: true, targets: Vec::new(), output: None }
    }
}

impl Plan {
    /// What `cargo xtask ci` does: some seconds each, through our own code alone, so that what breaks at once is seen.
    pub(crate) fn of_ci() -> Plan {
        Plan { seconds: 4, seconds_of_importers: 1, libraries: false, ..Plan::default() }
    }

    /// What `cargo xtask long` does.
    pub(crate) fn of_long(root: &Path, seconds: u32) -> Plan {
        let output = Some(root.join("bench/record"));
        Plan { seconds, seconds_of_importers: seconds, output, ..Plan::default() }
    }

    fn seconds_of(&self, target: &str) -> u32 {
        if target.starts_with(TRACE_TARGETS) { self.seconds } else { self.seconds_of_importers }
    }

    /// Reads `[--seconds N] [--output FOLDER] [TARGET…]`.
    pub(crate) fn parse(words: &[&str]) -> Result<Plan, String> {
        let mut plan = Plan::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if *word == "--seconds" {
                let number = words.next().and_then(|number| number.parse().ok()).filter(|number| *number > 0);
                plan.seconds = number.ok_or("`--seconds` needs a whole number above 0.")?;
                plan.seconds_of_importers = plan.seconds;
            } else if *word == "--output" {
                plan.output = Some(words.next().ok_or("`--output` needs a folder.")?.into());
            } else if word.starts_with('-') {
                return Err(format!("`fuzz` does not know the option `{word}`."));
            } else {
                plan.targets.push((*word).to_owned());
            }
        }
        Ok(plan)
    }
}

/// Builds the targets, checks that the fuzzer sees, and fuzzes, as many at a time as there are cores.
pub(crate) fn run(root: &Path, plan: &Plan) -> Result<(), String> {
    let targets = chosen(&every_target(root)?, &plan.targets)?;
    let programs =
        if plan.libraries { Programs::Each(root, Mutex::new(())) } else { Programs::One(build_of_ci(root)?) };
    find_the_planted_fault(root, &programs)?;
    let next = AtomicUsize::new(0);
    let ended = Mutex::new(Vec::new());
    let record = plan.output.as_deref().map(|folder| Record::open(root, folder)).transpose()?;
    let tracks = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..tracks {
            scope.spawn(|| {
                while let Some(target) = targets.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let one = fuzz(root, &programs, target, plan.seconds_of(target));
                    // As soon as it has ended: a run of hours may be cut off.
                    let one = one.and_then(|(part, fault)| {
                        record.as_ref().map_or(Ok(()), |record| record.add(&part)).map(|()| fault)
                    });
                    if let Ok(mut ended) = ended.lock() {
                        ended.push(one);
                    }
                }
            });
        }
    });
    let ended = ended.into_inner().map_err(|_| TRACK_PANICKED)?;
    let faults = ended.into_iter().collect::<Result<Vec<Option<String>>, String>>()?;
    if let Some(record) = record {
        println!("    {}\n    written: {}", record.sum()?, record.path().display());
    }
    let faults: Vec<String> = faults.into_iter().flatten().collect();
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

/// One target per folder of seeds; `mallow-fuzz`'s own tests hold that each has a parser.
fn every_target(root: &Path) -> Result<Vec<String>, String> {
    let folder = root.join("fuzz/corpus");
    let entries = std::fs::read_dir(&folder)
        .map_err(|error| format!("{} cannot be read: {error}.", folder.display()))?;
    let mut targets: Vec<String> =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    // The long ones first, so that no track ends with one alone.
    targets.sort_by_key(|name| (!name.starts_with(TRACE_TARGETS), name.clone()));
    Ok(targets)
}

fn chosen(known: &[String], asked: &[String]) -> Result<Vec<String>, String> {
    if let Some(unknown) = asked.iter().find(|name| !known.contains(name)) {
        return Err(format!("there is no fuzz target `{unknown}`; there are: {}.", known.join(", ")));
    }
    let targets = if asked.is_empty() { known.to_vec() } else { asked.to_vec() };
    if targets.is_empty() { Err("fuzz/corpus has no target.".to_owned()) } else { Ok(targets) }
}

/// What is run.
enum Programs<'a> {
    /// A program with all targets.
    One(PathBuf),
    /// One for each target, which holds the code of no other. Built when its turn has come, one after the other.
    Each(&'a Path, Mutex<()>),
}

impl Programs<'_> {
    /// Returns the program of a target.
    fn of(&self, target: &str) -> Result<PathBuf, String> {
        match self {
            Programs::One(program) => Ok(program.clone()),
            Programs::Each(root, turn) => {
                let _turn = turn.lock().map_err(|_| TRACK_PANICKED)?;
                build_of_target(root, target)
            }
        }
    }
}

/// The program with all targets. Only our own crates are instrumented, and the libraries are those that the tests were built with.
fn build_of_ci(root: &Path) -> Result<PathBuf, String> {
    let output = root.join("target");
    let mut cargo = build(root, &output);
    cargo.env("RUSTC_WORKSPACE_WRAPPER", root.join("fuzz/instrumented.sh")).env("COVERAGE", COVERAGE);
    run::shown(&mut cargo)?;
    Ok(output.join("debug").join(PROGRAM))
}

/// The program of one target, with its libraries instrumented. A target triple is named so that the coverage flags do not reach
/// build scripts.
fn build_of_target(root: &Path, target: &str) -> Result<PathBuf, String> {
    let version = run::captured(Command::new("rustc").arg("-vV"))?;
    let host = version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .ok_or("`rustc -vV` names no host.")?
        .to_owned();
    let output = root.join("target/fuzz-all");
    let mut cargo = build(root, &output);
    cargo.args(["--quiet", "--profile", "fuzz", "--target", &host]);
    run::shown(cargo.env("RUSTFLAGS", COVERAGE).env(ONLY_VARIABLE, target))?;
    let built = output.join(host).join("fuzz").join(PROGRAM);
    // The next target's program will lie where this one does.
    let program = root.join("target/fuzz/programs").join(target);
    let fault = |error: std::io::Error| format!("{} cannot be written: {error}.", program.display());
    std::fs::create_dir_all(root.join("target/fuzz/programs")).map_err(fault)?;
    std::fs::copy(&built, &program).map_err(fault)?;
    Ok(program)
}

fn build(root: &Path, output: &Path) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--package", "mallow-fuzz", "--features", "libfuzzer"]).current_dir(root);
    cargo.arg("--target-dir").arg(output);
    cargo
}

/// The canary must die of its planted fault, and of nothing else.
fn find_the_planted_fault(root: &Path, programs: &Programs<'_>) -> Result<(), String> {
    let artifacts = fresh_folder(&root.join("target/fuzz/canary"))?;
    let mut canary = Command::new(programs.of(CANARY)?);
    canary.arg(format!("-max_total_time={CANARY_SECONDS}")).arg("-seed=1").arg(prefix_option(&artifacts));
    canary.env(TARGET_VARIABLE, CANARY);
    println!("    $ {}", run::as_typed(&canary));
    let output = canary
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("the fuzz target `{CANARY}` could not be started: {error}."))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() && said.contains("the planted fault was found") {
        println!("    the canary's planted fault was found, so the fuzzer sees what it runs");
        return Ok(());
    }
    Err(format!(
        "the planted fault of fuzz/src/targets/{CANARY}.rs was not found in {CANARY_SECONDS} s: \
         the fuzzer is blind, so a quiet run of the other targets would say nothing."
    ))
}

/// New inputs go to a folder under `target/fuzz`; the seeds of the repository stay as they are. Gives what ran, and the fault that was found.
fn fuzz(
    root: &Path,
    programs: &Programs<'_>,
    target: &str,
    seconds: u32,
) -> Result<(Part, Option<String>), String> {
    let seeds = root.join("fuzz/corpus").join(target);
    let found = root.join("target/fuzz/corpus").join(target);
    let artifacts = root.join("fuzz/artifacts").join(target);
    for folder in [&found, &artifacts] {
        std::fs::create_dir_all(folder)
            .map_err(|error| format!("{} cannot be made: {error}.", folder.display()))?;
    }
    let program = programs.of(target)?;
    let mut fuzzer = Command::new(&program);
    fuzzer.env(TARGET_VARIABLE, target);
    fuzzer.args([format!("-max_total_time={seconds}"), prefix_option(&artifacts)]);
    // Another seed each time, or a fresh checkout would repeat the same seconds; what fails is kept as a file. The inputs kept from earlier runs
    // lead further.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_nanos() as u32);
    fuzzer.arg(format!("-seed={}", now.max(1)));
    fuzzer.args(["-timeout=10", "-rss_limit_mb=1024", "-print_final_stats=1", "-print_funcs=0"]);
    // Weighing inputs by how rare what they reach is took half of the reader's time, and replacing inputs by smaller ones an eighth to a fourth;
    // without both, more was reached in the same seconds.
    fuzzer.args(["-entropic=0", "-reduce_inputs=0"]);
    fuzzer.args([&found, &seeds]).stdin(Stdio::null());
    let line = run::as_typed(&fuzzer);
    let output = fuzzer.output().map_err(|error| format!("`{line}` could not be started: {error}."))?;
    // Several run at a time: what belongs together is written at once.
    let said = String::from_utf8_lossy(&output.stderr);
    let runs = executed(&said);
    println!(
        "    {target:<18}{seconds:>4} s{:>12} inputs",
        runs.map_or("?".to_owned(), |runs| runs.to_string())
    );
    let fault = match runs {
        _ if !output.status.success() => Some(format!(
            "the fuzz target `{target}` found a fault ({}); the input is under fuzz/artifacts/{target}.\n{}\n\
             alone: cargo xtask fuzz --seconds {seconds} {target}",
            output.status,
            last_lines(&said, 20)
        )),
        Some(runs) if runs > 0 => None,
        _ => Some(format!("the fuzz target `{target}` ran no input:\n{}", last_lines(&said, 20))),
    };
    let is_ok = fault.is_none();
    if is_ok && matches!(programs, Programs::Each(..)) {
        // A hundred megabytes each.
        let _ = std::fs::remove_file(&program);
    }
    Ok((Part { target: target.to_owned(), seconds, inputs: runs, is_ok }, fault))
}

/// What libFuzzer counts at the end: `stat::number_of_executed_units: 1234`.
fn executed(said: &str) -> Option<u64> {
    let line = said.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"))?;
    line.trim().parse().ok()
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

fn prefix_option(folder: &Path) -> String {
    format!("-artifact_prefix={}/", folder.display())
}

fn fresh_folder(folder: &Path) -> Result<PathBuf, String> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(format!("{} cannot be emptied: {error}.", folder.display()));
        }
        _ => {}
    }
    std::fs::create_dir_all(folder)
        .map_err(|error| format!("{} cannot be made: {error}.", folder.display()))?;
    Ok(folder.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_targets_are_read() {
        let plan = Plan::parse(&["--seconds", "5", "trace_reader", "--output", "here"]).unwrap();
        let targets = vec!["trace_reader".to_owned()];
        let output = Some(PathBuf::from("here"));
        assert_eq!(plan, Plan { seconds: 5, seconds_of_importers: 5, libraries: true, targets, output });
        assert_eq!(Plan::parse(&[]).unwrap(), Plan::default());
    }

    #[test]
    fn our_own_trace_gets_most_of_the_time_in_every_run() {
        let seconds = |plan: &Plan| [plan.seconds_of("trace_reader"), plan.seconds_of("heaptrack")];
        assert_eq!([seconds(&Plan::of_ci()), seconds(&Plan::default())], [[4, 1], [60, 60]]);
    }

    #[test]
    fn inputs_are_counted_by_the_fuzzers_own_word() {
        assert_eq!(executed("Done\nstat::number_of_executed_units: 1234\n"), Some(1234));
        assert_eq!(executed("Done\n"), None);
        assert_eq!(last_lines("a\nb\nc", 2), "b\nc");
    }

    #[test]
    fn what_is_not_understood_is_said() {
        for words in [&["--seconds"][..], &["--seconds", "0"], &["--seconds", "soon"]] {
            assert_eq!(Plan::parse(words).unwrap_err(), "`--seconds` needs a whole number above 0.");
        }
        assert_eq!(Plan::parse(&["--long"]).unwrap_err(), "`fuzz` does not know the option `--long`.");
    }

    #[test]
    fn a_target_that_does_not_exist_is_refused() {
        let known = ["trace_reader".to_owned()];
        assert_eq!(chosen(&known, &[]).unwrap(), known);
        assert_eq!(
            chosen(&known, &["dreams".to_owned()]).unwrap_err(),
            "there is no fuzz target `dreams`; there are: trace_reader."
        );
        assert!(chosen(&[], &[]).is_err());
    }
}
