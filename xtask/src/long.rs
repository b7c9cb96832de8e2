//! `cargo xtask long`: what takes hours and shows rates, where `cargo xtask ci` shows that things work. Every end-to-end test
//! over the release binary with as many repetitions as it knows, every fuzz target for a minute, every soak many times.
//!
//! A step that has passed on a commit is not run again on it, so an interrupted run goes on where it stopped. The record
//! in `bench/record/` says which commit it was. It must never call a step passed that did not run on that commit.

use crate::beside::Beside;
use crate::testing::{self, Lints, Mallow};
use crate::{dist, fuzz, miri, oracles, packages, run, soak_record, steps};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Soaks of each server and mode.
    runs: u32,
    /// For each fuzz target.
    seconds: u32,
    /// Empty for all.
    only: Vec<String>,
}

impl Plan {
    /// Reads `[--runs N] [--seconds N] [--only STEP]…`.
    pub(crate) fn parse(words: &[&str]) -> Result<Plan, String> {
        let mut plan = Plan { runs: 20, seconds: 60, only: Vec::new() };
        for pair in words.chunks(2) {
            let &[option, value] = pair else { return Err(format!("`{}` needs a value.", pair[0])) };
            let number = || {
                let number = value.parse().ok().filter(|number| *number > 0);
                number.ok_or_else(|| format!("`{option}` needs a whole number above 0."))
            };
            match option {
                "--runs" => plan.runs = number()?,
                "--seconds" => plan.seconds = number()?,
                "--only" if STEPS.iter().any(|(name, _)| *name == value) => plan.only.push(value.to_owned()),
                "--only" => {
                    let known: Vec<&str> = STEPS.iter().map(|(name, _)| *name).collect();
                    return Err(format!("there is no long step `{value}`; there are: {}.", known.join(", ")));
                }
                _ => return Err(format!("`long` does not know the option `{option}`.")),
            }
        }
        Ok(plan)
    }

    fn wants(&self, step: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == step)
    }

    /// What a step was asked to do, as the record says it.
    fn asked(&self, step: &str) -> String {
        match step {
            "tests" => "every test, those left out of ci too, over the release binary".to_owned(),
            "miri" => "the recorder's unit tests".to_owned(),
            "doc" => "the pages of all crates, binaries too".to_owned(),
            "dist" => "all packages, and the end-to-end tests of ci over the program in them".to_owned(),
            "fuzz" => format!("every target {} s, libraries instrumented", self.seconds),
            _ => format!("{} runs of each server and mode", self.runs),
        }
    }
}

type Body = fn(&Path, &Plan) -> Result<(), String>;

/// Every step, the cheapest first.
const STEPS: &[(&str, Body)] = &[
    ("tests", |root, _| {
        oracles::ensure_large(root)?;
        packages::ensure_large()?;
        testing::all(root, Mallow::Release, Lints::Off, Beside::NOTHING)
    }),
    ("dist", |root, _| {
        dist::run(root, &dist::Plan::Build { output: None })?;
        testing::end_to_end(root, Mallow::HandedOut)
    }),
    ("miri", |root, _| miri::run(root)),
    ("doc", |root, _| steps::doc(root)),
    ("fuzz", |root, plan| fuzz::run(root, &fuzz::Plan::of_long(root, plan.seconds))),
    ("soaks", |root, plan| soak_record::run(root, &["--runs", &plan.runs.to_string()])),
];

/// Runs what has not passed yet on this commit, and writes the record.
pub(crate) fn run(root: &Path, plan: &Plan) -> Result<(), String> {
    let commit = commit(root)?;
    let passed = root.join("target/long").join(&commit);
    std::fs::create_dir_all(&passed)
        .map_err(|error| format!("{} cannot be made: {error}.", passed.display()))?;
    let mut fault = None;
    for (name, body) in STEPS.iter().filter(|(name, _)| plan.wants(name)) {
        let mark = passed.join(name);
        if std::fs::read_to_string(&mark)
            .is_ok_and(|row| row.contains(&plan.asked(name)) && row.contains("passed"))
        {
            println!("    {name} has passed on this commit");
            continue;
        }
        println!("\n[long] {name}: {}", plan.asked(name));
        let began = Instant::now();
        let outcome = body(root, plan);
        let row = row(name, &plan.asked(name), outcome.is_ok(), began.elapsed().as_secs());
        std::fs::write(&mark, row)
            .map_err(|error| format!("{} cannot be written: {error}.", mark.display()))?;
        if let Err(sentence) = outcome {
            fault = Some(steps::with_cure(&format!("long --only {name}"), &sentence));
            break;
        }
    }
    let written = write_record(root, &commit, &passed)?;
    println!("\nwritten: {}", written.display());
    fault.map_or(Ok(()), Err)
}

fn row(name: &str, asked: &str, is_ok: bool, seconds: u64) -> String {
    let verdict = if is_ok { "passed" } else { "FAILED" };
    format!("| {name} | {asked} | {verdict} | {} min {:02} s |\n", seconds / 60, seconds % 60)
}

/// The commit of the checkout, which must be all that there is.
fn commit(root: &Path) -> Result<String, String> {
    let git = |words: &[&str]| run::captured(Command::new("git").args(words).current_dir(root));
    let changes = git(&["status", "--porcelain"])?;
    // Records are what this command writes.
    let foreign = |line: &&str| !line.get(3..).unwrap_or_default().starts_with("bench/record/");
    if let Some(change) = changes.lines().find(foreign) {
        return Err(format!(
            "the record says which commit was tested, and this checkout differs from its commit:\n{change}\n\
             Commit or stash, then run it again."
        ));
    }
    Ok(git(&["rev-parse", "HEAD"])?.trim().to_owned())
}

/// The page of this commit, with what has run so far.
fn write_record(root: &Path, commit: &str, passed: &Path) -> Result<PathBuf, String> {
    let date = run::captured(Command::new("date").args(["-u", "+%Y-%m-%d"]))?;
    let rows: Vec<Option<String>> =
        STEPS.iter().map(|(name, _)| std::fs::read_to_string(passed.join(name)).ok()).collect();
    let path = root.join(format!("bench/record/{}-long.md", date.trim()));
    std::fs::write(&path, page(commit, date.trim(), &rows))
        .map_err(|error| format!("{} cannot be written: {error}.", path.display()))?;
    Ok(path)
}

fn page(commit: &str, date: &str, rows: &[Option<String>]) -> String {
    let mut text = format!(
        "# The long suite\n\nCommit {commit}, {date}. Written by `cargo xtask long`; the figures of the soaks are in a record of \
         their own.\n\n| step | what | verdict | took |\n|---|---|---|--:|\n"
    );
    for ((name, _), row) in STEPS.iter().zip(rows) {
        match row {
            Some(row) => text.push_str(row),
            None => _ = writeln!(text, "| {name} | | not run on this commit | |"),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_slips_are_named() {
        let plan = Plan::parse(&["--runs", "2", "--only", "fuzz"]).unwrap();
        assert_eq!(plan, Plan { runs: 2, seconds: 60, only: vec!["fuzz".to_owned()] });
        assert!(plan.wants("fuzz") && !plan.wants("soaks"));
        for (words, fault) in [
            (&["--runs", "no"][..], "`--runs` needs a whole number above 0."),
            (&["--runs"], "`--runs` needs a value."),
            (
                &["--only", "dreams"],
                "there is no long step `dreams`; there are: tests, dist, miri, doc, fuzz, soaks.",
            ),
            (&["--fast", "1"], "`long` does not know the option `--fast`."),
        ] {
            assert_eq!(Plan::parse(words).unwrap_err(), fault);
        }
    }

    #[test]
    fn the_usage_names_every_step() {
        let names: Vec<&str> = STEPS.iter().map(|(name, _)| *name).collect();
        assert!(crate::USAGE.contains(&format!("[--only {}]", names.join("|"))), "{}", crate::USAGE);
    }

    #[test]
    fn what_did_not_run_is_said_in_the_record() {
        let plan = Plan::parse(&[]).unwrap();
        let tests = row("tests", &plan.asked("tests"), true, 125);
        let rows = [Some(tests), None, None, None, Some(row("fuzz", "x", false, 9)), None];
        assert_eq!(rows.len(), STEPS.len());
        let page = page("abc", "2026-01-02", &rows);
        assert!(page.contains("Commit abc, 2026-01-02."), "{page}");
        assert!(page.contains(
            "| tests | every test, those left out of ci too, over the release binary | passed | 2 min 05 s |"
        ));
        assert!(page.contains("| fuzz | x | FAILED | 0 min 09 s |"), "{page}");
        assert!(page.contains("| doc | | not run on this commit | |"), "{page}");
        assert!(page.contains("| soaks | | not run on this commit | |"), "{page}");
    }
}
