//! `cargo xtask bench`: what mallow costs, measured side by side with `heaptrack` in one run.
//!
//! Each program runs bare, under `mallow record`, under `heaptrack`, under `mallow stat` and with a library that counts as `stat` does in the
//! fewest steps, round after round, and the metrics are medians of the differences within a round, so that a machine that grows slower
//! or faster meanwhile does not favour anybody. Memory is sampled in a round of its own, because sampling
//! disturbs what is timed. It prints metrics and never fails because of one: a busy machine is not a fault.

mod bars;
mod cpu;
mod ends;
mod inside;
mod large;
mod linked;
mod load;
mod machine;
mod measure;
mod memory;
mod metrics;
mod parts;
mod plan;
mod programs;
mod record;
mod redis;
mod scripts;
mod sites;
mod tables;
mod tools;
mod verdicts;

pub(crate) use plan::Plan;

use crate::run;
use crate::workspaces;
use measure::Sample;
use metrics::Row;
use programs::Program;
use std::path::{Path, PathBuf};
use std::process::Command;
use tools::{Tool, Tools};

/// Runs the benchmarks that `plan` asks for and prints their tables; a complete run is also written down.
/// It fails where a tool cannot be run, never because of a slow metric.
pub(crate) fn run(root: &Path, plan: &Plan) -> Result<(), String> {
    if plan.is_only(cpu::NAME) {
        return cpu::run(root, plan, mallow(root, plan)?);
    }
    if plan.is_only(verdicts::NAME) {
        return verdicts::run(root, plan, mallow(root, plan)?);
    }
    if plan.is_only(scripts::NAME) {
        return scripts::run(root, plan, mallow(root, plan)?);
    }
    if plan.is_only(sites::NAME) {
        return sites::run(root, plan, mallow(root, plan)?);
    }
    if plan.is_only(load::NAME) {
        return load::run(root, plan);
    }
    if plan.is_only(inside::NAME) {
        return inside::run(root, plan);
    }
    if plan.is_only(linked::NAME) {
        return linked::run(root, plan, mallow(root, plan)?);
    }
    let scratch = tempfile::tempdir().map_err(|error| format!("no scratch folder: {error}."))?;
    let tools = Tools::find(root, mallow(root, plan)?, scratch.path())?;
    let facts = machine::Facts::read(root, &tools, plan)?;
    let chosen: Vec<Program> = programs::all(root, scratch.path(), plan.quick)?
        .into_iter()
        .filter(|it| plan.wants(&it.name))
        .collect();
    let wants_large = plan.wants(large::NAME);
    let wants_parts = plan.wants(parts::NAME);
    if chosen.is_empty() && !wants_large && !wants_parts {
        return Err("no benchmark has such a name; see `cargo xtask help`.".to_owned());
    }
    let mut samples = Vec::new();
    for program in &chosen {
        samples.extend(all_rounds(program, &tools, plan.rounds)?);
    }
    let rows: Vec<Row> = chosen.iter().map(|program| Row::of(program, &samples)).collect();
    let large = if wants_large { Some(large::measure(root, &tools, plan.quick)?) } else { None };
    let parts = if wants_parts { Some(parts::measure(root, &tools, plan.quick)?) } else { None };
    let page = tables::page(&facts, &rows, large.as_ref(), parts.as_ref());
    print!("\n{page}");
    if let Some(folder) = plan.folder(root) {
        let written = record::write(&folder, &facts.machine.stem(), &page, &record::csv(&samples))?;
        println!("\nwritten: {}", written.display());
    }
    if plan.wants(load::NAME) { load::run(root, plan) } else { Ok(()) }
}

/// The first round samples memory and counts calls, and warms the caches; the others are timed.
fn all_rounds(program: &Program, tools: &Tools, rounds: u32) -> Result<Vec<Sample>, String> {
    let mut samples = Vec::new();
    for round in 0..=rounds {
        for tool in Tool::ALL {
            let sample = measure::once(program, tools, tool, round)?;
            let (name, tool) = (&program.name, tool.name());
            eprintln!("    {name:<14} round {round}  {tool:<14} {:>8.3} s", sample.whole_s);
            samples.push(sample);
        }
    }
    Ok(samples)
}

/// The binary to measure: the one that was named, else the release build of this checkout.
fn mallow(root: &Path, plan: &Plan) -> Result<PathBuf, String> {
    if let Some(path) = &plan.mallow {
        return path.canonicalize().map_err(|error| format!("{} cannot be used: {error}.", path.display()));
    }
    run::shown(Command::new("cargo").args(["build", "--release", "--package", "mallow"]).current_dir(root))?;
    let all = workspaces::all(root)?;
    let workspace = all.iter().find(|workspace| workspace.is_root()).ok_or("there is no root workspace.")?;
    Ok(workspace.target_folder(root)?.join("release/mallow"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every kind of program, every tool, table and file once, so that none of them can rot unseen.
    const KINDS: [&str; 7] =
        ["storm-10x1", "storm-10x8", "cc1plus", "python3", "ruby", "sqlite3", "redis-server"];

    /// A program of ours, a threaded one, one of the system, and a server.
    #[test]
    fn the_bench_runs_on_small_inputs() {
        runs_on_small_inputs(&["storm-10x1", "storm-10x8", "sqlite3", "redis-server"]);
    }

    #[test]
    #[ignore = "half a minute: in `cargo xtask long`"]
    fn the_whole_bench_runs_on_small_inputs() {
        runs_on_small_inputs(&KINDS);
    }

    #[test]
    #[ignore = "a minute: in `cargo xtask long`"]
    fn the_comparison_with_perf_runs_on_small_inputs() {
        assert_eq!(table_of(cpu::NAME).lines().count(), 1 + 5);
    }

    #[test]
    #[ignore = "seconds, beside a load of its own: in `cargo xtask long`"]
    fn the_comparison_with_hyperfine_runs_on_small_inputs() {
        // One word of each of six kinds of comparison.
        assert_eq!(table_of(verdicts::NAME).lines().count(), 1 + 6);
    }

    #[test]
    #[ignore = "a minute of building: in `cargo xtask long`"]
    fn the_comparison_with_dhat_rs_runs_on_small_inputs() {
        // Three programs, four tools.
        assert_eq!(table_of(inside::NAME).lines().count(), 1 + 3 * 4 * Plan::default().rounds as usize);
    }

    #[test]
    #[ignore = "a minute of building: in `cargo xtask long`"]
    fn the_comparison_of_allocators_runs_on_small_inputs() {
        // Three allocators, three figures; a crate in four ways, in three times as many rounds.
        assert_eq!(
            table_of(linked::NAME).lines().count(),
            1 + (3 * 3 + 4 * 3) * Plan::default().rounds as usize
        );
    }

    #[test]
    fn readings_of_large_profiles_run_on_small_inputs() {
        assert_eq!(table_of(sites::NAME).lines().count(), 1 + 7 * Plan::default().rounds as usize);
    }

    /// What a part that is measured alone writes down.
    fn table_of(part: &str) -> String {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let plan = Plan {
            only: vec![part.to_owned()],
            quick: true,
            mallow: std::env::var_os("MALLOW_BIN").map(PathBuf::from),
            output: Some(folder.path().to_owned()),
            ..Plan::default()
        };
        run(root, &plan).unwrap();
        let written = std::fs::read_dir(folder.path()).unwrap();
        let files: Vec<PathBuf> = written.map(|entry| entry.unwrap().path()).collect();
        let table = files.iter().find(|path| path.extension().is_some_and(|end| end == "csv")).unwrap();
        std::fs::read_to_string(table).unwrap()
    }

    fn runs_on_small_inputs(kinds: &[&str]) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let plan = Plan {
            only: kinds.iter().copied().chain([large::NAME, parts::NAME]).map(str::to_owned).collect(),
            quick: true,
            rounds: 1,
            mallow: std::env::var_os("MALLOW_BIN").map(PathBuf::from),
            output: Some(folder.path().to_owned()),
        };
        run(root, &plan).unwrap();
        let mut written: Vec<PathBuf> =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        written.sort();
        assert_eq!(written.len(), 2, "{written:?}");
        let csv = std::fs::read_to_string(&written[0]).unwrap();
        let page = std::fs::read_to_string(&written[1]).unwrap();
        for name in kinds {
            // A round of memory and one of time, with each way of running.
            assert_eq!(
                csv.lines().filter(|line| line.starts_with(&format!("{name},"))).count(),
                2 * tools::Tool::ALL.len(),
                "{name}"
            );
            assert!(page.contains(&format!("| {name} ")), "{name} is not in the tables");
        }
        let long: Vec<&str> = page.lines().filter(|line| line.chars().count() > 100).collect();
        assert_eq!(long, Vec::<&str>::new());
        // Every program and the largest storm took part: only what needs a million calls is left without a metric,
        // and what divides by a cost that may be lost in the noise of so small inputs.
        let unmeasured: Vec<&str> = page.lines().filter(|line| line.contains("unknown")).collect();
        let may_lack = |line: &&str| {
            [
                "behind a small C program",
                "the same, cold",
                "slowest long program",
                "8 threads over 1",
                "CPU per event of a loop",
                "CPU per event of a script",
            ]
            .iter()
            .any(|lacking| line.contains(lacking))
        };
        assert!(unmeasured.iter().all(may_lack) && !unmeasured.is_empty(), "{unmeasured:?}");
        assert!(page.contains("- 100,000 calls recorded in "), "{page}");
        storms_count_their_calls(&csv);
    }

    /// 20,000 pairs of malloc and free, whatever the number of threads; each further thread has its dtv besides.
    fn storms_count_their_calls(csv: &str) {
        let calls = |name: &str| -> u64 {
            let start = format!("{name},mallow record,0,");
            let line = csv.lines().find(|line| line.starts_with(&start)).unwrap();
            line.rsplit(',').next().unwrap().parse().unwrap()
        };
        assert_eq!(calls("storm-10x1"), 40_000);
        assert!((40_001..40_100).contains(&calls("storm-10x8")), "{}", calls("storm-10x8"));
    }
}
