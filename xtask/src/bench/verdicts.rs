//! How often `mallow bench` says the wrong word: equal commands, and a difference of 2 %, on a quiet and on a busy machine.
//!
//! The same equal commands go through `hyperfine`, which runs first all of one and then all of the other; Welch's test of its times is what
//! its own scripts do. Both tools' overhead is what a command line of very short runs takes beyond the runs themselves.

use super::machine::Machine;
use super::plan::Plan;
use super::record;
use crate::run;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// What one types after `--only`.
pub(super) const NAME: &str = "verdicts";
/// Comparisons of equal commands, and of those that differ by 2 % and take half a second.
const COMPARISONS: usize = 100;
const COMPARISONS_LONG: usize = 20;
const PAIRS_MAX: &str = "40";
/// Runs of a command that ends at once, for the overhead.
const SHORT_RUNS: &str = "1000";
const SHORT_S: f64 = 0.02;
const LONG_S: f64 = 0.5;
/// What |t| exceeds by chance in one of a hundred comparisons of 40 runs with 40.
const T_OF_ONE_PERCENT: f64 = 2.64;

/// What was said of one kind of comparison.
#[derive(Debug, Default)]
struct Row {
    what: String,
    comparisons: usize,
    words: BTreeMap<String, usize>,
    pairs: u64,
}

/// A tool's view of a command that ends at once.
#[derive(Debug)]
struct Overhead {
    tool: &'static str,
    median_ms: f64,
    beyond_ms: f64,
}

/// Measures, prints, and writes the record down where a folder is named.
pub(super) fn run(root: &Path, plan: &Plan, mallow: PathBuf) -> Result<(), String> {
    let machine = Machine::read(root)?;
    let scratch = tempfile::tempdir().map_err(|error| format!("no scratch folder: {error}."))?;
    let bench = Bench { mallow, spin: scratch.path().join("spin"), times: scratch.path().join("times.json") };
    let source = root.join("programs/cpu/spin.c");
    run::shown(Command::new("cc").arg("-O2").arg(source).arg("-o").arg(&bench.spin))?;
    let rounds_per_s = bench.rounds_per_s()?;
    let rounds = |seconds: f64| if plan.quick { 1000 } else { (rounds_per_s * seconds) as u64 };
    let times = |count: usize| if plan.quick { 1 } else { count };
    let (short, long) = (rounds(SHORT_S), rounds(LONG_S));
    let overheads = [bench.our_overhead(plan.quick)?, bench.their_overhead(plan.quick)?];
    let mut rows = Vec::new();
    for is_busy in [false, true] {
        let moment = if is_busy { "busy" } else { "quiet" };
        let neighbours = is_busy.then(|| Neighbours::start(&bench.spin, machine.cores, short)).transpose()?;
        rows.push(bench.ours(format!("{moment}: equal, 20 ms"), times(COMPARISONS), short, short)?);
        rows.push(bench.theirs(format!("{moment}: equal, 20 ms, hyperfine"), times(COMPARISONS), short)?);
        let (count, base) = if is_busy { (COMPARISONS, short) } else { (COMPARISONS_LONG, long) };
        let what = format!("{moment}: 2 % more, {} ms", if is_busy { 20 } else { 500 });
        rows.push(bench.ours(what, times(count), base, base + base / 50)?);
        drop(neighbours);
    }
    let page = page(&machine, &hyperfine_version()?, &rows, &overheads, plan.quick);
    print!("\n{page}");
    if let Some(folder) = &plan.output {
        let written = record::write(folder, &format!("{}-verdicts", machine.stem()), &page, &csv(&rows))?;
        println!("\nwritten: {}", written.display());
    }
    Ok(())
}

/// Programs that want all cores most of the time, in turns of many lengths. They end with this value.
struct Neighbours(Vec<Child>);

impl Neighbours {
    fn start(spin: &Path, cores: usize, short: u64) -> Result<Neighbours, String> {
        // Each neighbour works and sleeps in a rhythm of its own, so that the load changes all the time.
        let script = |nth: usize| {
            let (work, pause) = (short * (1 + 3 * nth as u64), 0.013 * (1 + nth) as f64);
            format!("while :; do '{}' {work}; sleep {pause}; done", spin.display())
        };
        let start = |nth: usize| Command::new("sh").arg("-c").arg(script(nth)).stdout(Stdio::null()).spawn();
        let started: Result<Vec<Child>, _> = (0..cores + 1).map(start).collect();
        started.map(Neighbours).map_err(|error| format!("`sh` cannot be started: {error}."))
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // What has ended already is only to be waited for.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

struct Bench {
    mallow: PathBuf,
    spin: PathBuf,
    times: PathBuf,
}

impl Bench {
    fn rounds_per_s(&self) -> Result<f64, String> {
        const ROUNDS: u64 = 200_000_000;
        let began = Instant::now();
        run::captured(Command::new(&self.spin).arg(ROUNDS.to_string()))?;
        Ok(ROUNDS as f64 / began.elapsed().as_secs_f64())
    }

    fn spinning(&self, rounds: u64) -> String {
        format!("{} {rounds}", self.spin.display())
    }

    /// The words of as many comparisons of two numbers of rounds.
    fn ours(&self, what: String, comparisons: usize, one: u64, other: u64) -> Result<Row, String> {
        eprintln!("    {what}");
        let mut row = Row { what, comparisons, ..Row::default() };
        for _ in 0..comparisons {
            let words = ["bench", "-N", "--json", "--recorder-runs", "0", "--max-runs", PAIRS_MAX];
            let mut command = Command::new(&self.mallow);
            command.args(words).args(["--max-time", "60s"]).args([self.spinning(one), self.spinning(other)]);
            let document = parsed(&run::captured(command.stderr(Stdio::null()))?)?;
            let wall = &document["results"][1]["mallow"]["comparison"]["wall"];
            let word = wall["verdict"].as_str().ok_or("`bench --json` has no verdict on wall time.")?;
            *row.words.entry(word.to_owned()).or_default() += 1;
            row.pairs += wall["pairs"].as_u64().unwrap_or(0);
        }
        Ok(row)
    }

    /// The same number of runs of equal commands by hyperfine, judged by Welch's test at 1 %.
    fn theirs(&self, what: String, comparisons: usize, rounds: u64) -> Result<Row, String> {
        eprintln!("    {what}");
        let mut row = Row { what, comparisons, ..Row::default() };
        for _ in 0..comparisons {
            let equal = [self.spinning(rounds), self.spinning(rounds)];
            let results = self.hyperfine(PAIRS_MAX, &equal)?;
            let times = |nth: usize| -> Vec<f64> {
                results[nth]["times"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
            };
            let t = welch_t(&times(0), &times(1));
            let word = if t.abs() <= T_OF_ONE_PERCENT {
                "no difference"
            } else if t > 0.0 {
                "faster"
            } else {
                "slower"
            };
            *row.words.entry(word.to_owned()).or_default() += 1;
            row.pairs += 40;
        }
        Ok(row)
    }

    fn hyperfine(&self, runs: &str, commands: &[String]) -> Result<Value, String> {
        let mut command = Command::new("hyperfine");
        command.args(["-N", "--style", "none", "-r", runs, "--export-json"]).arg(&self.times).args(commands);
        run::captured(command.stderr(Stdio::null()))?;
        let text = std::fs::read_to_string(&self.times).map_err(|error| error.to_string())?;
        Ok(parsed(&text)?["results"].take())
    }

    fn our_overhead(&self, is_quick: bool) -> Result<Overhead, String> {
        let began = Instant::now();
        let words = ["bench", "-N", "--json", "--recorder-runs", "0", "-r", short_runs(is_quick)];
        let mut command = Command::new(&self.mallow);
        command.args(words).arg(self.spinning(0));
        let text = run::captured(command.stderr(Stdio::null()))?;
        let whole_s = began.elapsed().as_secs_f64();
        overhead("mallow bench", whole_s, &parsed(&text)?["results"][0])
    }

    fn their_overhead(&self, is_quick: bool) -> Result<Overhead, String> {
        let began = Instant::now();
        let results = self.hyperfine(short_runs(is_quick), &[self.spinning(0)])?;
        overhead("hyperfine", began.elapsed().as_secs_f64(), &results[0])
    }
}

fn short_runs(is_quick: bool) -> &'static str {
    if is_quick { "10" } else { SHORT_RUNS }
}

fn overhead(tool: &'static str, whole_s: f64, result: &Value) -> Result<Overhead, String> {
    let times: Vec<f64> =
        result["times"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
    let median_s = result["median"].as_f64().ok_or_else(|| format!("{tool} gave no median."))?;
    let beyond_s = (whole_s - times.iter().sum::<f64>()) / times.len().max(1) as f64;
    Ok(Overhead { tool, median_ms: median_s * 1e3, beyond_ms: beyond_s * 1e3 })
}

fn parsed(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("broken JSON: {error}."))
}

fn hyperfine_version() -> Result<String, String> {
    Ok(run::captured(Command::new("hyperfine").arg("--version"))?.trim().to_owned())
}

/// Welch's t of the second series over the first.
fn welch_t(one: &[f64], other: &[f64]) -> f64 {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let error = |values: &[f64]| {
        let middle = mean(values);
        let squares: f64 = values.iter().map(|value| (value - middle).powi(2)).sum();
        squares / (values.len() as f64 - 1.0) / values.len() as f64
    };
    (mean(one) - mean(other)) / (error(one) + error(other)).sqrt()
}

fn page(machine: &Machine, hyperfine: &str, rows: &[Row], overheads: &[Overhead], is_quick: bool) -> String {
    let mut text = format!(
        "# The words of `mallow bench`, {}\n\n{}, {} cores, Linux {}, {}, commit {}; {hyperfine}.\n{}\n",
        machine.date,
        machine.cpu,
        machine.cores,
        machine.kernel,
        machine.rustc,
        machine.commit,
        machine.doubts(is_quick)
    );
    text += "`mallow bench --max-runs 40` with its threshold of 1 %; hyperfine with 40 runs of each, judged by Welch's test at 1 %. The second\n";
    text += "command does the same work, or 2 % more. While it is busy, one program more than there are cores works beside it in turns.\n\n";
    text += "| what | comparisons | said | pairs on average |\n|---|---|---|---|\n";
    for row in rows {
        let said: Vec<String> = row.words.iter().map(|(word, count)| format!("{word} {count}")).collect();
        let pairs = row.pairs as f64 / row.comparisons as f64;
        text += &format!("| {} | {} | {} | {pairs:.0} |\n", row.what, row.comparisons, said.join(", "));
    }
    text += "\nA command that ends at once: the median of its runs, and what the tool needs beyond them, its own start included.\n\n";
    text += "| tool | median | beyond, per run |\n|---|---|---|\n";
    for Overhead { tool, median_ms, beyond_ms } in overheads {
        text += &format!("| {tool} | {median_ms:.3} ms | {beyond_ms:.3} ms |\n");
    }
    text
}

fn csv(rows: &[Row]) -> String {
    let mut text = String::from("what,comparisons,word,count,pairs\n");
    for row in rows {
        for (word, count) in &row.words {
            text += &format!("\"{}\",{},{word},{count},{}\n", row.what, row.comparisons, row.pairs);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Means 2 and 5, variances 1 and 4 of three each: 3 / sqrt(1/3 + 4/3).
    #[test]
    fn welch_by_hand() {
        let t = welch_t(&[1.0, 2.0, 3.0], &[3.0, 5.0, 7.0]);
        assert!((t + 3.0 / (5.0_f64 / 3.0).sqrt()).abs() < 1e-12, "{t}");
    }
}
