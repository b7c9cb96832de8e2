//! A profile from inside beside dhat-rs: the same programs without either, with `mallow-alloc` and with dhat-rs, in turns.
//!
//! What a tool adds is the median, over rounds, of what it took more than the bare run of its round: the whole time from the start to the end, in which the file
//! is written and its names are looked up, and the processors' time of all threads.

use super::machine::Machine;
use super::measure::children_cpu_s;
use super::plan::Plan;
use super::record;
use crate::run;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// What one types after `--only`.
pub(super) const NAME: &str = "inside";
/// By their place; the words of cargo that make them.
const TOOLS: [(&str, &[&str]); 4] = [
    ("bare", &[]),
    ("mallow", &["--features", "mallow"]),
    ("mallow, DHAT's format", &["--features", "mallow"]),
    ("dhat-rs", &["--features", "dhat"]),
];
const DHAT: usize = 3;
/// The folder under `programs/`, the program, its rounds.
const PROGRAMS: [(&str, &str, usize); 3] =
    [("csv-aggregate", "csv-map-per-row", 0), ("inside-cost", "tree", 20), ("inside-cost", "threads", 5)];

/// Wall and processor seconds of each tool, by round.
#[derive(Debug, Default)]
struct Row {
    program: String,
    seconds: [Vec<[f64; 2]>; TOOLS.len()],
}

impl Row {
    /// What a tool adds: of the wall's time, and of the processors'.
    fn added_s(&self, tool: usize) -> [f64; 2] {
        let rounds = self.seconds[tool].iter().zip(&self.seconds[0]);
        [0, 1].map(|kind| median(rounds.clone().map(|(with, bare)| with[kind] - bare[kind]).collect()))
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Measures, prints, and writes the record down where a folder is named.
pub(super) fn run(root: &Path, plan: &Plan) -> Result<(), String> {
    let machine = Machine::read(root)?;
    let scratch = tempfile::tempdir().map_err(|error| format!("no scratch folder: {error}."))?;
    let mut rows = Vec::new();
    for (folder, program, rounds) in PROGRAMS {
        let tools = built(root, scratch.path(), folder, program, &TOOLS.map(|(_, words)| words))?;
        let word = if folder == "csv-aggregate" {
            input(root, scratch.path())?
        } else {
            (if plan.quick { 1 } else { rounds }).to_string()
        };
        let mut row = Row { program: program.to_owned(), ..Row::default() };
        // The first round warms caches, and is none.
        for round in 0..=plan.rounds {
            for (tool, path) in tools.iter().enumerate() {
                let seconds = once(path, &word, scratch.path(), TOOLS[tool].0.contains("DHAT"))?;
                eprintln!("    {program:<16} round {round}  {:<22} {:>8.3} s", TOOLS[tool].0, seconds[0]);
                if round > 0 {
                    row.seconds[tool].push(seconds);
                }
            }
        }
        rows.push(row);
    }
    let page = page(&machine, &rows, plan);
    print!("\n{page}");
    if let Some(folder) = &plan.output {
        let written = record::write(folder, &format!("{}-inside", machine.stem()), &page, &csv(&rows))?;
        println!("\nwritten: {}", written.display());
    }
    Ok(())
}

/// The target folder that builds of these programs share.
fn target(root: &Path) -> PathBuf {
    root.join("target/inside-cost")
}

/// The program for each of these words of cargo. A build overwrites the last one, so each is put elsewhere.
pub(super) fn built(
    root: &Path,
    scratch: &Path,
    folder: &str,
    program: &str,
    tools: &[&[&str]],
) -> Result<Vec<PathBuf>, String> {
    let build = ["build", "--release", "--locked", "--quiet", "--bin", program, "--target-dir"];
    let mut paths = Vec::new();
    for (tool, features) in tools.iter().enumerate() {
        let mut cargo = Command::new("cargo");
        cargo.args(build).arg(target(root)).args(*features).current_dir(root.join("programs").join(folder));
        run::shown(&mut cargo)?;
        let path = scratch.join(format!("{program}-{tool}"));
        std::fs::copy(target(root).join("release").join(program), &path)
            .map_err(|error| format!("{program} was not built: {error}."))?;
        paths.push(path);
    }
    Ok(paths)
}

/// The document's input.
fn input(root: &Path, scratch: &Path) -> Result<String, String> {
    let build = ["run", "--release", "--locked", "--quiet", "--bin", "csv-generate", "--target-dir"];
    let path = scratch.join("test.csv");
    let mut cargo = Command::new("cargo");
    cargo.args(build).arg(target(root)).arg("--").arg(&path);
    run::captured(cargo.current_dir(root.join("programs/csv-aggregate")))?;
    Ok(path.display().to_string())
}

/// Runs a program once: wall and processor seconds.
pub(super) fn once(path: &Path, word: &str, folder: &Path, as_dhat: bool) -> Result<[f64; 2], String> {
    let mut command = Command::new(path);
    command.arg(word).current_dir(folder);
    if as_dhat {
        command.env("INSIDE_DHAT", "1");
    }
    let (before_s, started) = (children_cpu_s()?, Instant::now());
    run::captured(&mut command)?;
    let wall_s = started.elapsed().as_secs_f64();
    Ok([wall_s, children_cpu_s()? - before_s])
}

fn page(machine: &Machine, rows: &[Row], plan: &Plan) -> String {
    let Machine { date, cpu, cores, kernel, commit, load, .. } = machine;
    let mut text = format!(
        "# Profiles from inside: mallow-alloc beside dhat-rs\n{}\n{date}, {cpu}, {cores} cores, Linux {kernel}, commit {commit}, load {load} at the start. Written by `cargo \
         xtask bench --only inside --output bench/record`.\n\nSeconds that a tool adds, from the start to the end of the process, medians of {} rounds in turns; behind the stroke those of \
         all processors.\n\n\
         | program | bare | mallow | mallow, DHAT's format | dhat-rs | of dhat-rs's | DHAT's format of dhat-rs's |\n|---|--:|--:|--:|--:|--:|--:|\n",
        machine.doubts(plan.quick),
        plan.rounds,
    );
    for row in rows {
        let added = [1, 2, DHAT].map(|tool| row.added_s(tool));
        let bare = [0, 1].map(|kind| median(row.seconds[0].iter().map(|round| round[kind]).collect()));
        let pair = |values: [f64; 2]| format!("{:.3} / {:.3}", values[0], values[1]);
        let of_dhat =
            |values: [f64; 2]| format!("{:.2} / {:.2}", values[0] / added[2][0], values[1] / added[2][1]);
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} |",
            row.program,
            pair(bare),
            pair(added[0]),
            pair(added[1]),
            pair(added[2]),
            of_dhat(added[0]),
            of_dhat(added[1]),
        );
    }
    text
}

fn csv(rows: &[Row]) -> String {
    let mut text = String::from("program,tool,round,wall_s,cpu_s\n");
    for row in rows {
        for (tool, rounds) in row.seconds.iter().enumerate() {
            for (round, [wall_s, cpu_s]) in rounds.iter().enumerate() {
                let name = TOOLS[tool].0.replace(',', "");
                let _ = writeln!(text, "{},{name},{round},{wall_s:.6},{cpu_s:.6}", row.program);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_tool_adds_is_against_the_bare_run_of_its_round() {
        let seconds = [
            vec![[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]],
            vec![[1.1, 1.5], [2.3, 2.5], [3.1, 3.5]],
            vec![[1.2, 2.0], [2.2, 3.0], [3.2, 4.0]],
            vec![[3.0, 2.0], [4.0, 3.0], [5.0, 5.0]],
        ];
        let row = Row { program: "tree".into(), seconds };
        let page = page(&Machine::default(), &[row], &Plan::default());
        let line = "| tree | 2.000 / 2.000 | 0.100 / 0.500 | 0.200 / 1.000 | 2.000 / 1.000 | 0.05 / 0.50 | 0.10 / 1.00 |";
        assert!(page.contains(line), "{page}");
    }
}
