//! `mallow record` beside memray on scripts: the same programs in turns, each of which says itself how much time of the processors its work took.
//!
//! All objects are made by `malloc`, so that both see the same. What a tool adds is the median, over rounds, of what it took more than the bare run of
//! its round; what its own other processes take is not in it, for memray has none while it records. A deeper program makes the same objects below more
//! frames, so what two depths differ by is what the frames between cost.

use super::machine::Machine;
use super::plan::Plan;
use super::record;
use crate::run;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What one types after `--only`.
pub(super) const NAME: &str = "scripts";
const PYTHON: &str = "/usr/bin/python3";
/// Programs of `programs/scripts/costly.py`, with their rounds.
const PROGRAMS: [(&str, u64); 4] = [("json", 1500), ("5", 3_000_000), ("25", 3_000_000), ("45", 3_000_000)];
/// Of the programs that are named by their depth: allocations, and calls and frees, of a round.
const ALLOCATIONS: f64 = 3.0;
const EVENTS: f64 = 6.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tool {
    Bare,
    Record,
    Memray,
    MemrayNative,
}

const TOOLS: [Tool; 4] = [Tool::Bare, Tool::Record, Tool::Memray, Tool::MemrayNative];

impl Tool {
    fn name(self) -> &'static str {
        match self {
            Tool::Bare => "bare",
            Tool::Record => "mallow record",
            Tool::Memray => "memray",
            Tool::MemrayNative => "memray --native",
        }
    }
}

/// The seconds of each tool, by round.
#[derive(Debug, Default)]
struct Row {
    program: String,
    rounds_of_work: u64,
    seconds: [Vec<f64>; TOOLS.len()],
}

impl Row {
    /// What a tool adds.
    fn added_s(&self, tool: Tool) -> f64 {
        let bare = &self.seconds[0];
        let mut added: Vec<f64> =
            self.seconds[tool as usize].iter().zip(bare).map(|(with, bare)| with - bare).collect();
        median(&mut added)
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Measures, prints, and writes the record down where a folder is named.
pub(super) fn run(root: &Path, plan: &Plan, mallow: PathBuf) -> Result<(), String> {
    let machine = Machine::read(root)?;
    let scratch = tempfile::tempdir().map_err(|error| format!("no scratch folder: {error}."))?;
    let bench = Bench { mallow, root, folders: memray(root, scratch.path())?, scratch: scratch.path() };
    let mut rows = Vec::new();
    for (program, rounds) in PROGRAMS {
        eprintln!("    {program}");
        let rounds_of_work = if plan.quick { rounds / 1000 + 1 } else { rounds };
        let mut row = Row { program: program.to_owned(), rounds_of_work, ..Row::default() };
        for _ in 0..plan.rounds {
            for tool in TOOLS {
                row.seconds[tool as usize].push(bench.once(tool, program, rounds_of_work)?);
            }
        }
        rows.push(row);
    }
    let page = page(&machine, &rows, plan);
    print!("\n{page}");
    if let Some(folder) = &plan.output {
        let written = record::write(folder, &format!("{}-scripts", machine.stem()), &page, &csv(&rows))?;
        println!("\nwritten: {}", written.display());
    }
    Ok(())
}

/// The folders in which Python finds memray, with stand-ins for what it prints with, which is not measured.
fn memray(root: &Path, scratch: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(root.join("e2e/tests/memray/pinned.json"))
        .map_err(|error| format!("memray's version: {error}."))?;
    let pinned: Value = serde_json::from_str(&text).map_err(|error| format!("memray's version: {error}."))?;
    let version = pinned["version"].as_str().unwrap_or_default();
    let wheel = root.join(format!("target/judges/memray-{version}"));
    if !wheel.is_dir() {
        return Err(format!("{} is missing: `cargo xtask packages` fetches it.", wheel.display()));
    }
    let stubs = scratch.join("stubs");
    let put = |name: &str, text: &str| {
        std::fs::write(stubs.join(name), text).map_err(|error| format!("{name}: {error}."))
    };
    std::fs::create_dir_all(stubs.join("rich")).map_err(|error| format!("no scratch folder: {error}."))?;
    put("typing_extensions.py", "from typing import TypedDict\n")?;
    put("rich/__init__.py", "print = print\n")?;
    put("rich/progress.py", "def __getattr__(name):\n    return type(name, (), {})\n")?;
    Ok(format!("{}:{}", wheel.display(), stubs.display()))
}

struct Bench<'a> {
    mallow: PathBuf,
    root: &'a Path,
    folders: String,
    scratch: &'a Path,
}

impl Bench<'_> {
    /// The processors' seconds that a program's work takes under a tool.
    fn once(&self, tool: Tool, program: &str, rounds: u64) -> Result<f64, String> {
        let script = self.root.join("programs/scripts/costly.py");
        let result = self.scratch.join("result");
        let _ = std::fs::remove_file(&result);
        let mut command = match tool {
            Tool::Record => {
                let mut mallow = Command::new(&self.mallow);
                mallow.args(["record", "-o"]).arg(&result).args(["--", PYTHON]);
                mallow
            }
            _ => Command::new(PYTHON),
        };
        command.arg(script).args([program, &rounds.to_string()]);
        match tool {
            Tool::Memray => _ = command.arg("memray").arg(&result),
            Tool::MemrayNative => _ = command.arg("memray-native").arg(&result),
            Tool::Bare | Tool::Record => {}
        }
        command.env("PYTHONMALLOC", "malloc").env("PYTHONPATH", &self.folders).stderr(Stdio::null());
        let printed = run::captured(&mut command)?;
        let seconds = printed.split_whitespace().nth(1).and_then(|word| word.parse().ok());
        seconds.ok_or_else(|| format!("`{program}` printed no time under {}.", tool.name()))
    }
}

fn page(machine: &Machine, rows: &[Row], plan: &Plan) -> String {
    let Machine { date, cpu, cores, kernel, commit, load, .. } = machine;
    let mut text = format!(
        "# Scripts: mallow record beside memray\n{}\n{date}, {cpu}, {cores} cores, Linux {kernel}, commit {commit}, load {load} at the start. Written by `cargo \
         xtask bench --only scripts --output bench/record`.\n\nSeconds of the processors that a tool adds to the program's own process, {} rounds, `PYTHONMALLOC=malloc`.\n\n\
         | program | bare | mallow record | memray | memray --native | of memray's | of memray's --native |\n|---|--:|--:|--:|--:|--:|--:|\n",
        machine.doubts(plan.quick),
        plan.rounds,
    );
    for row in rows {
        let [ours, theirs, native] =
            [Tool::Record, Tool::Memray, Tool::MemrayNative].map(|tool| row.added_s(tool));
        let name = if row.program == "json" { "json".to_owned() } else { format!("{} frames", row.program) };
        let _ = writeln!(
            text,
            "| {name} | {:.3} | {ours:.3} | {theirs:.3} | {native:.3} | {:.2} | {:.2} |",
            median(&mut row.seconds[0].clone()),
            ours / theirs,
            ours / native,
        );
    }
    let of = |program: &str| rows.iter().find(|row| row.program == program);
    if let (Some(few), Some(many)) = (of("5"), of("45")) {
        let rounds = few.rounds_of_work as f64;
        let further = (many.added_s(Tool::Record) - few.added_s(Tool::Record)) / 40.0 / rounds * 1e9;
        let _ = writeln!(
            text,
            "\nAll that recording adds at 5 frames, native stack and event included: {:.1} ns for each call or free. Each further frame: {:.2} ns for each allocation, {:.2} for \
             each call or free.",
            few.added_s(Tool::Record) / rounds / EVENTS * 1e9,
            further / ALLOCATIONS,
            further / EVENTS,
        );
    }
    text
}

fn csv(rows: &[Row]) -> String {
    let mut text = String::from("program,tool,round,cpu_s\n");
    for row in rows {
        for tool in TOOLS {
            for (round, seconds) in row.seconds[tool as usize].iter().enumerate() {
                let _ = writeln!(text, "{},{},{round},{seconds:.6}", row.program, tool.name());
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
        let seconds = [vec![1.0, 2.0, 3.0], vec![1.5, 2.7, 3.5], vec![2.0, 3.0, 9.0], vec![5.0, 6.0, 7.0]];
        let row = Row { program: "5".into(), rounds_of_work: 10, seconds };
        assert_eq!(
            [Tool::Record, Tool::Memray, Tool::MemrayNative].map(|tool| row.added_s(tool)),
            [0.5, 1.0, 4.0]
        );
        let page = page(&Machine::default(), &[row], &Plan::default());
        assert!(page.contains("| 5 frames | 2.000 | 0.500 | 1.000 | 4.000 | 0.50 | 0.12 |"), "{page}");
    }
}
