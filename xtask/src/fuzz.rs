//! Fuzzing the parsers with libFuzzer on the stable compiler.
//!
//! The compiler's coverage pass is switched on by hand, so no nightly toolchain is needed. Before any real target
//! the canary runs: a target with a planted fault that only coverage guidance finds. If it survives, the fuzzer is
//! blind, and a quiet minute on the other targets would mean nothing.

use crate::run;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What `-Zsanitizer` would set: edge coverage counters, and a table that tells libFuzzer their addresses.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Clink-dead-code";

const CANARY: &str = "canary";
/// The reader of our own trace, which everybody meets first.
const TRACE_TARGETS: &str = "trace_";
const CANARY_SECONDS: u32 = 60;

/// Which targets to fuzz, and for how long each.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// For the readers of our own trace.
    seconds: u32,
    /// For the importers of other tools' files, of which there are many.
    seconds_of_importers: u32,
    /// Empty for all.
    targets: Vec<String>,
}

impl Default for Plan {
    fn default() -> Self {
        Plan { seconds: 60, seconds_of_importers: 60, targets: Vec::new() }
    }
}

impl Plan {
    /// What `cargo xtask ci` does: a minute for our own trace, a moment for each importer, so that what breaks at once is seen.
    pub(crate) fn of_ci() -> Plan {
        Plan { seconds_of_importers: 5, ..Plan::default() }
    }

    fn seconds_of(&self, target: &str) -> u32 {
        if target.starts_with(TRACE_TARGETS) { self.seconds } else { self.seconds_of_importers }
    }

    /// Reads `[--seconds N] [TARGET…]`.
    ///
    /// # Errors
    /// A sentence that says what was not understood.
    pub(crate) fn parse(words: &[&str]) -> Result<Plan, String> {
        let mut plan = Plan::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if *word == "--seconds" {
                let number = words.next().and_then(|number| number.parse().ok()).filter(|number| *number > 0);
                plan.seconds = number.ok_or("`--seconds` needs a whole number above 0.")?;
                plan.seconds_of_importers = plan.seconds;
            } else if word.starts_with('-') {
                return Err(format!("`fuzz` does not know the option `{word}`."));
            } else {
                plan.targets.push((*word).to_owned());
            }
        }
        Ok(plan)
    }
}

/// Builds the targets, checks that the fuzzer sees, and fuzzes.
///
/// # Errors
/// A sentence that names the target and the input that broke it.
pub(crate) fn run(root: &Path, plan: &Plan) -> Result<(), String> {
    let targets = chosen(&every_target(root)?, &plan.targets)?;
    let programs = build(root)?;
    find_the_planted_fault(root, &programs)?;
    targets.iter().try_for_each(|target| fuzz(root, &programs, target, plan.seconds_of(target)))
}

/// One target per file of `fuzz/fuzz_targets`, except the canary.
fn every_target(root: &Path) -> Result<Vec<String>, String> {
    let folder = root.join("fuzz/fuzz_targets");
    let entries = std::fs::read_dir(&folder)
        .map_err(|error| format!("{} cannot be read: {error}.", folder.display()))?;
    let mut targets: Vec<String> = entries
        .filter_map(|entry| Some(entry.ok()?.file_name().to_str()?.strip_suffix(".rs")?.to_owned()))
        .filter(|name| name != CANARY)
        .collect();
    targets.sort();
    Ok(targets)
}

fn chosen(known: &[String], asked: &[String]) -> Result<Vec<String>, String> {
    if let Some(unknown) = asked.iter().find(|name| !known.contains(name)) {
        return Err(format!("there is no fuzz target `{unknown}`; there are: {}.", known.join(", ")));
    }
    let targets = if asked.is_empty() { known.to_vec() } else { asked.to_vec() };
    if targets.is_empty() { Err("fuzz/fuzz_targets has no target.".to_owned()) } else { Ok(targets) }
}

/// Builds every target and returns the folder of the programs. A target triple is named so that the coverage
/// flags reach the targets and not the build scripts.
fn build(root: &Path) -> Result<PathBuf, String> {
    let version = run::captured(Command::new("rustc").arg("-vV"))?;
    let host = version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .ok_or("`rustc -vV` names no host.")?
        .to_owned();
    let output = root.join("fuzz/target");
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "--manifest-path", "fuzz/Cargo.toml"]);
    cargo.args(["--target", &host]).arg("--target-dir").arg(&output);
    run::shown(cargo.env("RUSTFLAGS", COVERAGE).current_dir(root))?;
    Ok(output.join(host).join("release"))
}

/// The canary must die of its planted fault, and of nothing else.
fn find_the_planted_fault(root: &Path, programs: &Path) -> Result<(), String> {
    let artifacts = fresh_folder(&root.join("fuzz/target/canary"))?;
    let mut canary = Command::new(programs.join(CANARY));
    canary.arg(format!("-max_total_time={CANARY_SECONDS}")).arg("-seed=1").arg(prefix_option(&artifacts));
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
        "the planted fault of fuzz/fuzz_targets/{CANARY}.rs was not found in {CANARY_SECONDS} s: \
         the fuzzer is blind, so a quiet run of the other targets would say nothing."
    ))
}

/// New inputs go to a folder under `fuzz/target`; the seeds of the repository stay as they are.
fn fuzz(root: &Path, programs: &Path, target: &str, seconds: u32) -> Result<(), String> {
    let seeds = root.join("fuzz/corpus").join(target);
    let has_seed = std::fs::read_dir(&seeds).is_ok_and(|mut entries| entries.next().is_some());
    if !has_seed {
        return Err(format!(
            "fuzz/corpus/{target} holds no seed; without one the fuzzer would not get past the first bytes."
        ));
    }
    let found = root.join("fuzz/target/corpus").join(target);
    let artifacts = root.join("fuzz/artifacts").join(target);
    for folder in [&found, &artifacts] {
        std::fs::create_dir_all(folder)
            .map_err(|error| format!("{} cannot be made: {error}.", folder.display()))?;
    }
    let mut fuzzer = Command::new(programs.join(target));
    fuzzer.args([format!("-max_total_time={seconds}"), prefix_option(&artifacts)]);
    // A fixed seed: what fails on the server fails here too. The inputs kept from earlier runs lead further each time.
    fuzzer.arg("-seed=1");
    fuzzer.args(["-timeout=10", "-rss_limit_mb=1024", "-print_final_stats=1", "-print_funcs=0"]);
    run::shown(fuzzer.args([&found, &seeds])).map_err(|sentence| {
        format!("{sentence} The input that broke `{target}` is under fuzz/artifacts/{target}.")
    })
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
        let plan = Plan::parse(&["--seconds", "5", "trace_reader"]).unwrap();
        let targets = vec!["trace_reader".to_owned()];
        assert_eq!(plan, Plan { seconds: 5, seconds_of_importers: 5, targets });
        assert_eq!(Plan::parse(&[]).unwrap(), Plan::default());
    }

    #[test]
    fn our_own_trace_gets_a_minute_in_every_run_and_importers_a_moment() {
        let seconds = |plan: &Plan| [plan.seconds_of("trace_reader"), plan.seconds_of("heaptrack")];
        assert_eq!([seconds(&Plan::of_ci()), seconds(&Plan::default())], [[60, 5], [60, 60]]);
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
