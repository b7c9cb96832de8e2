//! Our load generator against `hey` and `wrk`: the same nginx, the same connections, the same cores, in one run.
//!
//! nginx has one worker and one small file. The three take turns, and each round begins with another one. What counts is
//! the ratio within a round. The memory of ours is seen after a million and after ten million requests.

mod nginx;
mod page;

use super::machine;
use super::plan::Plan;
use super::record;
use crate::run;
use crate::workspaces;
use nginx::Nginx;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What one types after `--only`.
pub(super) const NAME: &str = "load";
/// Connections, of all three.
const CONNECTIONS: u32 = 50;
/// Seconds of a turn.
const SECONDS: &str = "4";
const SECONDS_QUICK: &str = "1";
/// Requests after which the generator's memory is seen.
const REQUESTS: [u64; 2] = [1_000_000, 10_000_000];
const REQUESTS_QUICK: [u64; 2] = [5_000, 50_000];

/// The three.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    Mallow,
    Hey,
    Wrk,
}

impl Tool {
    const ALL: [Tool; 3] = [Tool::Mallow, Tool::Hey, Tool::Wrk];

    fn name(self) -> &'static str {
        match self {
            Tool::Mallow => "mallow",
            Tool::Hey => "hey",
            Tool::Wrk => "wrk",
        }
    }
}

/// Requests a second of one turn.
#[derive(Debug, Clone, Copy)]
struct Turn {
    round: u32,
    tool: Tool,
    rate: f64,
}

/// The largest resident size of our generator in a run of so many requests.
#[derive(Debug, Clone, Copy)]
struct Peak {
    requests: u64,
    bytes: u64,
}

/// Everything that was measured.
#[derive(Debug)]
struct Measured {
    turns: Vec<Turn>,
    peaks: Vec<Peak>,
}

/// Measures, prints, and writes the record down unless the plan is a quick one.
/// It fails where a tool cannot be run, never because of a slow metric.
pub(super) fn run(root: &Path, plan: &Plan) -> Result<(), String> {
    let generator = generator(root, plan.quick)?;
    let machine = machine::Machine::read(root)?;
    let nginx = Nginx::start()?;
    let seconds = if plan.quick { SECONDS_QUICK } else { SECONDS };
    let mut measured = Measured { turns: Vec::new(), peaks: Vec::new() };
    // Whoever came first would find the server cold.
    turn(Tool::Wrk, &nginx, &generator, "1")?;
    for round in 1..=plan.rounds {
        for place in 0..Tool::ALL.len() {
            let tool = Tool::ALL[(place + round as usize) % Tool::ALL.len()];
            let rate = turn(tool, &nginx, &generator, seconds)?;
            eprintln!("    {NAME:<14} round {round}  {:<14} {rate:>8.0} requests/s", tool.name());
            measured.turns.push(Turn { round, tool, rate });
        }
    }
    for requests in if plan.quick { REQUESTS_QUICK } else { REQUESTS } {
        let peak = peak(&nginx, &generator, requests)?;
        eprintln!("    {NAME:<14} {requests} requests  {:>8} KiB at most", peak.bytes >> 10);
        measured.peaks.push(peak);
    }
    let page = page::page(&machine, &measured, plan);
    print!("\n{page}");
    let folder = plan.output.clone().or_else(|| (!plan.quick).then(|| root.join("bench/record")));
    if let Some(folder) = folder {
        let stem = format!("{}-{NAME}", machine.stem());
        let written = record::write(&folder, &stem, &page, &page::csv(&measured))?;
        println!("\nwritten: {}", written.display());
    }
    Ok(())
}

/// The generator on its own, which is an example of its crate. A quick run says nothing about speed, so it takes what was
/// built beside the tests, if it was.
fn generator(root: &Path, quick: bool) -> Result<PathBuf, String> {
    let all = workspaces::all(root)?;
    let workspace = all.iter().find(|workspace| workspace.is_root()).ok_or("there is no root workspace.")?;
    let target = workspace.target_folder(root)?;
    let built = target.join("debug/examples/load");
    if quick && built.is_file() {
        return Ok(built);
    }
    let words = ["build", "--release", "--package", "mallow-load", "--example", "load"];
    run::shown(Command::new("cargo").args(words).current_dir(root))?;
    Ok(target.join("release/examples/load"))
}

/// One tool's turn: requests a second, as it says itself.
fn turn(tool: Tool, nginx: &Nginx, generator: &Path, seconds: &str) -> Result<f64, String> {
    let (connections, url) = (CONNECTIONS.to_string(), nginx.url());
    let mut command = match tool {
        Tool::Mallow => {
            let mut command = Command::new(generator);
            command.args([nginx.address().as_str(), &connections, seconds]);
            command
        }
        Tool::Hey => {
            let mut command = Command::new("hey");
            command.args(["-z", &format!("{seconds}s"), "-c", &connections, &url]);
            command
        }
        Tool::Wrk => {
            let mut command = Command::new("wrk");
            command.args(["-t", "2", "-c", &connections, "-d", &format!("{seconds}s"), &url]);
            command
        }
    };
    let output = run::captured(&mut command)?;
    let failed = output.lines().any(|line| {
        let line = line.trim();
        ["Error distribution:", "Socket errors:", "Non-2xx"].iter().any(|start| line.starts_with(start))
            || line.strip_prefix("failed ").is_some_and(|count| count != "0")
    });
    if failed {
        return Err(format!("`{}` had requests that failed:\n{output}", run::as_typed(&command)));
    }
    metric(&output, "Requests/sec:").ok_or_else(|| {
        format!("`{}` does not say how many requests it sent:\n{output}", run::as_typed(&command))
    })
}

fn peak(nginx: &Nginx, generator: &Path, requests: u64) -> Result<Peak, String> {
    let mut command = Command::new(generator);
    command.args([nginx.address(), CONNECTIONS.to_string(), format!("{requests}n")]);
    let output = run::captured(&mut command)?;
    let said = metric(&output, "requests").zip(metric(&output, "resident_bytes_max"));
    match said {
        Some((done, bytes)) if done as u64 == requests => Ok(Peak { requests, bytes: bytes as u64 }),
        _ => Err(format!("`{}` did not do what it was told:\n{output}", run::as_typed(&command))),
    }
}

/// The metric after `label` on the line that begins with it.
fn metric(output: &str, label: &str) -> Option<f64> {
    let rest = output.lines().find_map(|line| line.trim().strip_prefix(label))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_take_turns_on_small_inputs() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let plan = Plan {
            only: vec![NAME.to_owned()],
            quick: true,
            rounds: 2,
            mallow: None,
            output: Some(folder.path().to_owned()),
        };
        run(root, &plan).unwrap();
        let mut written: Vec<PathBuf> =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        written.sort();
        assert_eq!(written.len(), 2, "{written:?}");
        let csv = std::fs::read_to_string(&written[0]).unwrap();
        let page = std::fs::read_to_string(&written[1]).unwrap();
        assert_eq!(csv.lines().count(), 1 + 6 + 2, "{csv}");
        for name in ["mallow", "hey", "wrk"] {
            assert!(page.contains(&format!("| {name} ")), "{page}");
        }
        assert!(page.contains("--quick"), "{page}");
        let long: Vec<&str> = page.lines().filter(|line| line.chars().count() > 100).collect();
        assert_eq!(long, Vec::<&str>::new());
    }
}
