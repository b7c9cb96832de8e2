//! What recording costs with an allocator that is linked in, beside the C library's; and `mallow-alloc` in a program that nobody watches, beside none.
//!
//! A call of a patched function comes by a jump more than one that the loader leads to the recorder; a shared library of the same allocator is led there by the loader, so what lies between
//! the two is the patch's. Each round runs the same loop with each allocator: bare,
//! under `record` and under `stat`. What is added is held against what is added to the C library's in the same round. The crate is held against
//! a program without it, and so is another run of that very program: what two runs of one program differ by cannot be told from nothing.

use super::inside;
use super::machine::Machine;
use super::measure::{self, MEMORY_ROUND};
use super::plan::Plan;
use super::programs::{self, Program, storm_of};
use super::record;
use super::tools::{Tool, Tools};
use mallow_base::median;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// What one types after `--only`.
pub(super) const NAME: &str = "linked";

/// The C library's first; and what a program is linked with.
const ALLOCATORS: [(&str, &[&str]); 5] = [
    ("the C library's", &[]),
    ("jemalloc", &["-l:libjemalloc.a", "-lstdc++", "-lm", "-ldl"]),
    ("jemalloc, shared", &["-Wl,--no-as-needed", "-l:libjemalloc.so.2"]),
    ("tcmalloc", &["-l:libtcmalloc_minimal.a", "-lstdc++", "-lm"]),
    ("tcmalloc, shared", &["-Wl,--no-as-needed", "-l:libtcmalloc_minimal.so.4"]),
];
/// Pairs of malloc and free.
const PAIRS: u64 = 15_000_000;
const PAIRS_QUICK: u64 = 50_000;

/// The crate in a program: what it is called, the words of cargo.
const CRATES: [(&str, &[&str]); 4] = [
    ("none", &[]),
    ("none, again", &[]),
    ("its feature off", &["--features", "off"]),
    ("nobody watches", &["--features", "mallow"]),
];
const MILLIONS: u64 = 50;

/// Nanoseconds of the processor for each event, by round.
#[derive(Debug, Default)]
struct Row {
    name: &'static str,
    bare_ns: Vec<f64>,
    /// Added by `record`, and by `stat`.
    added_ns: [Vec<f64>; 2],
}

/// Measures, prints, and writes the record down where a folder is named.
pub(super) fn run(root: &Path, plan: &Plan, mallow: PathBuf) -> Result<(), String> {
    let machine = Machine::read(root)?;
    let scratch = tempfile::tempdir().map_err(|error| format!("no scratch folder: {error}."))?;
    let tools = Tools::find(root, mallow, scratch.path())?;
    let rows = patched(root, plan, &tools)?;
    let crates = of_crate(root, plan, scratch.path())?;
    let page = page(&machine, &rows, &crates, plan);
    print!("\n{page}");
    if let Some(folder) = &plan.output {
        let written =
            record::write(folder, &format!("{}-linked", machine.stem()), &page, &csv(&rows, &crates))?;
        println!("\nwritten: {}", written.display());
    }
    Ok(())
}

fn patched(root: &Path, plan: &Plan, tools: &Tools) -> Result<Vec<Row>, String> {
    let pairs = if plan.quick { PAIRS_QUICK } else { PAIRS };
    let mut programs = Vec::new();
    for (index, (name, libs)) in ALLOCATORS.into_iter().enumerate() {
        let storm = programs::compile_with(root, &tools.scratch, "storm", &format!("storm-{index}"), libs)?;
        programs.push(Program { name: name.to_owned(), ..storm_of(&storm, 10, 1, pairs) });
    }
    let mut rows: Vec<Row> = ALLOCATORS.iter().map(|(name, _)| Row { name, ..Row::default() }).collect();
    // The first round warms caches, and is none.
    for round in 0..=plan.rounds {
        for (program, row) in programs.iter().zip(&mut rows) {
            let run = |tool| -> Result<f64, String> {
                let sample = measure::once(program, tools, tool, MEMORY_ROUND + 1)?;
                Ok((sample.cpu_s - sample.own_cpu_s) * 1e9 / (2 * pairs) as f64)
            };
            // Without mallow the whole of it is the command's own process.
            let bare =
                measure::once(program, tools, Tool::Bare, MEMORY_ROUND + 1)?.cpu_s * 1e9 / (2 * pairs) as f64;
            let with = [run(Tool::Record)?, run(Tool::Stat)?];
            eprintln!(
                "    {:<16} round {round}  {bare:>6.1} ns, record +{:.1}, stat +{:.1}",
                program.name,
                with[0] - bare,
                with[1] - bare
            );
            if round > 0 {
                row.bare_ns.push(bare);
                row.added_ns.iter_mut().zip(with).for_each(|(all, with)| all.push(with - bare));
            }
        }
    }
    Ok(rows)
}

/// Nanoseconds for each call of the program with each kind of crate, by round.
fn of_crate(root: &Path, plan: &Plan, scratch: &Path) -> Result<Vec<(&'static str, Vec<f64>)>, String> {
    let millions = if plan.quick { 1 } else { MILLIONS };
    let tools: Vec<&[&str]> = CRATES.iter().map(|(_, words)| *words).collect();
    let paths = inside::built(root, scratch, "inside-cost", "pairs", &tools)?;
    let mut rows: Vec<(&str, Vec<f64>)> = CRATES.iter().map(|(name, _)| (*name, Vec::new())).collect();
    for round in 0..=plan.rounds * 3 {
        for (path, (name, row)) in paths.iter().zip(&mut rows) {
            let [_, cpu_s] = inside::once(path, &millions.to_string(), scratch, false)?;
            let ns = cpu_s * 1e9 / (2_000_000 * millions) as f64;
            eprintln!("    {name:<16} round {round}  {ns:>6.2} ns");
            if round > 0 {
                row.push(ns);
            }
        }
    }
    Ok(rows)
}

/// The median of what one has more than the other of the same round, the smallest and the largest.
fn more(with: &[f64], without: &[f64]) -> [f64; 3] {
    let mut all: Vec<f64> = with.iter().zip(without).map(|(with, without)| with - without).collect();
    all.sort_by(f64::total_cmp);
    let middle = median(all.iter().copied()).unwrap_or(0.0);
    [middle, all.first().copied().unwrap_or(0.0), all.last().copied().unwrap_or(0.0)]
}

fn page(machine: &Machine, rows: &[Row], crates: &[(&'static str, Vec<f64>)], plan: &Plan) -> String {
    let Machine { date, cpu, cores, kernel, commit, load, .. } = machine;
    let mut text = format!(
        "# Allocators that are linked in, and the crate\n{}\n{date}, {cpu}, {cores} cores, Linux {kernel}, commit {commit}, load {load} at the start. Written by `cargo \
         xtask bench --only linked --output bench/record`.\n\nNanoseconds of the processor in the program for each event, of a loop of malloc and free ten frames below its thread's first; \
         medians of {} rounds in turns. Behind a median, what a round gave at least and at most. The bar: within 3 ns of the C library's.\n\n\
         | allocator | bare | record adds | more than to the C library's | stat adds | more than to the C library's |\n|---|--:|--:|--:|--:|--:|\n",
        machine.doubts(plan.quick),
        plan.rounds,
    );
    let spread = |[middle, least, most]: [f64; 3]| format!("{middle:+.1} ({least:+.1} to {most:+.1})");
    let of = |values: &[f64]| median(values.iter().copied()).unwrap_or(0.0);
    for row in rows {
        let [record, stat] =
            [0, 1].map(|tool| (of(&row.added_ns[tool]), more(&row.added_ns[tool], &rows[0].added_ns[tool])));
        let _ = writeln!(
            text,
            "| {} | {:.1} | {:.1} | {} | {:.1} | {} |",
            row.name,
            of(&row.bare_ns),
            record.0,
            spread(record.1),
            stat.0,
            spread(stat.1),
        );
    }
    let _ = write!(
        text,
        "\nThe crate `mallow-alloc` over the C library's allocator, while nobody records: nanoseconds for each call of a loop of boxes, {} rounds. The bar: no more than \
         the same program differs from itself.\n\n| the crate | a call | more than without |\n|---|--:|--:|\n",
        plan.rounds * 3
    );
    for (name, values) in crates {
        let [middle, least, most] = more(values, &crates[0].1);
        let _ = writeln!(text, "| {name} | {:.2} | {middle:+.2} ({least:+.2} to {most:+.2}) |", of(values));
    }
    text
}

fn csv(rows: &[Row], crates: &[(&'static str, Vec<f64>)]) -> String {
    let mut text = String::from("what,kind,round,ns\n");
    let mut add = |what: &str, kind: &str, values: &[f64]| {
        let what = what.replace(',', "");
        values.iter().enumerate().for_each(|(round, ns)| _ = writeln!(text, "{what},{kind},{round},{ns:.4}"));
    };
    for row in rows {
        add(row.name, "bare", &row.bare_ns);
        add(row.name, "record adds", &row.added_ns[0]);
        add(row.name, "stat adds", &row.added_ns[1]);
    }
    crates.iter().for_each(|(name, values)| add(name, "the crate", values));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_more_is_so_within_a_round() {
        let row = |name, added: f64| Row {
            name,
            bare_ns: vec![5.0; 3],
            added_ns: [vec![20.0 + added, 30.0 + added, 40.0 + 2.0 * added], vec![3.0; 3]],
        };
        let crates = [("none", vec![4.0, 5.0, 6.0]), ("none, again", vec![4.1, 4.9, 6.0])];
        let page =
            page(&Machine::default(), &[row("libc", 0.0), row("jemalloc", 1.5)], &crates, &Plan::default());
        assert!(
            page.contains("| jemalloc | 5.0 | 31.5 | +1.5 (+1.5 to +3.0) | 3.0 | +0.0 (+0.0 to +0.0) |"),
            "{page}"
        );
        assert!(page.contains("| none, again | 4.90 | +0.00 (-0.10 to +0.10) |"), "{page}");
    }
}
