//! What `report` and `diff` take of a profile with half a million distinct sites: time, and the highest resident memory.

use super::large::peak_of;
use super::machine::Machine;
use super::plan::Plan;
use super::record;
use crate::run;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What one types after `--only`.
pub(super) const NAME: &str = "sites";
const SITES: u64 = 500_000;
const SITES_QUICK: u64 = 2_000;

/// One command that reads the profiles: what it may take.
struct Reading {
    /// Its words, where `A` is the profile, `B` one of the same program again, and `C` one of a build in which a function has another name.
    words: &'static str,
    wall_s_max: f64,
    megabytes_max: f64,
}

const fn reading(words: &'static str, wall_s_max: f64, megabytes_max: f64) -> Reading {
    Reading { words, wall_s_max, megabytes_max }
}

const READINGS: [Reading; 7] = [
    reading("report A", 1.5, 400.0),
    reading("report A --metric leaked", 1.5, 400.0),
    reading("report A --tree", 1.5, 400.0),
    reading("report A --functions", 1.5, 400.0),
    reading("diff A A", 4.0, 600.0),
    reading("diff A B", 4.0, 600.0),
    reading("diff A C", 4.0, 600.0),
];

/// Seconds and bytes of one run.
type Taken = (f64, u64);

/// Measures, prints, and writes the record down where a folder is named.
pub(super) fn run(root: &Path, plan: &Plan, mallow: PathBuf) -> Result<(), String> {
    let machine = Machine::read(root)?;
    let scratch = tempfile::tempdir().map_err(|error| format!("no scratch folder: {error}."))?;
    let sites = if plan.quick { SITES_QUICK } else { SITES };
    for (name, flags) in [("A", &[][..]), ("B", &[]), ("C", &["-DRENAMED"])] {
        record_one(root, scratch.path(), &mallow, name, flags, sites)?;
    }
    let mut rows: Vec<Vec<Taken>> = Vec::new();
    for reading in &READINGS {
        // The first one warms the files.
        let runs = (0..=plan.rounds).map(|_| peak_of(command(&mallow, scratch.path(), reading)));
        let runs = runs.collect::<Result<Vec<_>, String>>()?;
        eprintln!("    {:<26} {:>8.3} s", reading.words, median_s(&runs[1..]));
        rows.push(runs[1..].to_vec());
    }
    let page = page(&machine, &rows, sites, plan);
    print!("\n{page}");
    if let Some(folder) = &plan.output {
        let written = record::write(folder, &format!("{}-sites", machine.stem()), &page, &csv(&rows))?;
        println!("\nwritten: {}", written.display());
    }
    Ok(())
}

/// Builds the program, in a folder of its own, and records it.
fn record_one(
    root: &Path,
    scratch: &Path,
    mallow: &Path,
    name: &str,
    flags: &[&str],
    sites: u64,
) -> Result<(), String> {
    let folder = scratch.join(format!("of_{name}"));
    std::fs::create_dir(&folder).map_err(|error| format!("no scratch folder: {error}."))?;
    let program = folder.join("many_sites");
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-g", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"]).args(flags);
    cc.arg("-o").arg(&program).arg(root.join("programs/hazards/many_sites.c"));
    run::captured(&mut cc)?;
    let mut record = Command::new(mallow);
    record.args(["-q", "record", "-o"]).arg(scratch.join(name)).arg("--").arg(program).arg(sites.to_string());
    run::captured(&mut record).map(drop)
}

fn command(mallow: &Path, scratch: &Path, reading: &Reading) -> Command {
    let mut command = Command::new(mallow);
    command.args(reading.words.split(' ')).current_dir(scratch);
    command
}

fn median_s(runs: &[Taken]) -> f64 {
    mallow_base::median(runs.iter().map(|run| run.0)).unwrap_or(0.0)
}

fn page(machine: &Machine, rows: &[Vec<Taken>], sites: u64, plan: &Plan) -> String {
    let Machine { date, cpu, cores, kernel, commit, load, .. } = machine;
    let mut text = format!(
        "# Large profiles\n{}\n{date}, {cpu}, {cores} cores, Linux {kernel}, commit {commit}, load {load} at the start. Written by `cargo xtask bench --only sites \
         --output bench/record`.\n\n{sites} distinct sites with three live blocks each (`programs/hazards/many_sites.c`). B is the same program again, in C one of its functions has \
         another name. Median of {} runs, and the highest resident memory of any; the files are warm.\n\n\
         | `mallow …` | s | may be | MB | may be | |\n|---|--:|--:|--:|--:|---|\n",
        machine.doubts(plan.quick),
        plan.rounds,
    );
    for (reading, runs) in READINGS.iter().zip(rows) {
        let wall_s = median_s(runs);
        let megabytes = runs.iter().map(|run| run.1).max().unwrap_or(0) as f64 / 1e6;
        let holds = wall_s <= reading.wall_s_max && megabytes <= reading.megabytes_max;
        let _ = writeln!(
            text,
            "| `{}` | {wall_s:.2} | {} | {megabytes:.0} | {} | {} |",
            reading.words,
            reading.wall_s_max,
            reading.megabytes_max,
            if holds { "" } else { "**missed**" }
        );
    }
    text
}

fn csv(rows: &[Vec<Taken>]) -> String {
    let mut text = String::from("command,round,wall_s,peak_bytes\n");
    for (reading, runs) in READINGS.iter().zip(rows) {
        for (round, (wall_s, bytes)) in runs.iter().enumerate() {
            let _ = writeln!(text, "{},{round},{wall_s:.6},{bytes}", reading.words);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missed_is_marked() {
        let rows: Vec<Vec<Taken>> = (0..READINGS.len() as u64)
            .map(|at| vec![(1.0, 100_000_000), (1.2, 300_000_000 + at * 150_000_000), (9.0, 1)])
            .collect();
        let page = page(&Machine::default(), &rows, 9, &Plan::default());
        let lines: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).skip(1).collect();
        assert_eq!(lines[0], "| `report A` | 1.20 | 1.5 | 300 | 400 |  |");
        assert_eq!(lines[1], "| `report A --metric leaked` | 1.20 | 1.5 | 450 | 400 | **missed** |");
        assert_eq!(csv(&rows[..1]).lines().nth(2), Some("report A,1,1.200000,300000000"));
    }
}
