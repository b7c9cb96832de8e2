//! `mallow cpu` against `perf record --call-graph dwarf`: the same programs in turns.
//!
//! What is hot must be the same for both, so samples of many runs are put together until there are enough, and the largest differences
//! are held against those of perf with itself. Self time needs no unwinding, so it compares the samples; perf's file is read by mallow, because perf
//! names functions otherwise. Whole stacks are counted in what each of them unwound. Then what it costs: time, files, and the collector.

mod agreement;

use super::machine::Machine;
use super::measure::children_cpu_s;
use super::plan::Plan;
use super::programs::{self, Program};
use super::record;
use crate::run;
use agreement::{Agreement, Shares};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// What one types after `--only`.
pub(super) const NAME: &str = "cpu";
/// Samples of each side that are compared, and what is enough to see that it runs. Functions with a share of 2.5 % are told apart to 0.1 points by
/// so many; with fewer their ranks are chance.
const SAMPLES: u64 = 32_000;
const SAMPLES_QUICK: u64 = 20;
/// Samples in a second, as both tools are used. With four times as many, either tool's own work on the other processor shifts the shares of a
/// program's phases by 2 points, each tool's in its own direction.
const USUAL_HZ: &str = "997";
/// Tells what the collector takes for a sample from what it takes for a run.
const MORE_HZ: &str = "3989";
/// How much of a stack perf copies: as recommended, and the most.
const PERF_STACK: &str = "dwarf,16384";
const PERF_STACK_MAX: &str = "dwarf,65528";
/// Runs with more samples.
const MORE_ROUNDS: u32 = 5;
/// Timed rounds.
const ROUNDS: usize = 15;
/// Functions in which stacks begin, by perf's names.
const STARTS: [&str; 6] =
    ["_start", "__libc_start_main", "__libc_start_call_main", "main", "clone3", "__clone3"];

/// What was measured of a program.
#[derive(Debug, Default)]
struct Row {
    name: String,
    samples: [u64; 2],
    agreement: Agreement,
    /// perf's first half of runs against its second.
    with_itself: Agreement,
    inclusive: Agreement,
    whole: [f64; 2],
    lost: u64,
    /// Added seconds of the whole command at the usual frequency: of each round, as it passed and as processors were taken.
    added_s: [f64; 2],
    added_cpu_s: [f64; 2],
    bare_s: f64,
    file_bytes: [u64; 2],
    collector: Collector,
}

/// What mallow's own process takes.
#[derive(Debug, Default)]
struct Collector {
    /// For each sample more of the same program.
    sample_us: f64,
    /// For each run, however many samples it has: names, the file.
    run_ms: f64,
}

impl Collector {
    /// Of the microseconds and samples of a run with few samples, and of one with many.
    fn of(few: [f64; 2], many: [f64; 2]) -> Collector {
        let sample_us = (many[0] - few[0]) / (many[1] - few[1]);
        Collector { sample_us, run_ms: (few[0] - sample_us * few[1]) / 1e3 }
    }
}

/// Measures, prints, and writes the record down where a folder is named.
pub(super) fn run(root: &Path, plan: &Plan, mallow: PathBuf) -> Result<(), String> {
    let machine = Machine::read(root)?;
    let scratch = tempfile::tempdir().map_err(|error| format!("no scratch folder: {error}."))?;
    let bench = Bench { mallow, scratch: scratch.path().to_owned(), plan };
    let mut rows = Vec::new();
    for program in programs_of(root, &bench)?.iter().filter(|it| plan.wants_in(NAME, &it.name)) {
        eprintln!("    {}", program.name);
        rows.push(bench.row(program)?);
    }
    let page = page(&machine, &rows, plan.quick);
    print!("\n{page}");
    if let Some(folder) = &plan.output {
        let written = record::write(folder, &format!("{}-cpu", machine.stem()), &page, &csv(&rows))?;
        println!("\nwritten: {}", written.display());
    }
    Ok(())
}

struct Bench<'a> {
    mallow: PathBuf,
    scratch: PathBuf,
    plan: &'a Plan,
}

fn programs_of(root: &Path, bench: &Bench<'_>) -> Result<Vec<Program>, String> {
    let quick = bench.plan.quick;
    let known = programs::all(root, &bench.scratch, quick)?;
    let mut all: Vec<Program> = known
        .into_iter()
        .filter(|it| ["cc1plus", "python3", "sqlite3"].contains(&it.name.as_str()))
        .collect();
    let folder = root.join("programs/csv-aggregate");
    let target = bench.scratch.join("csv");
    let build = ["build", "--release", "--locked", "--quiet", "--target-dir"];
    run::shown(Command::new("cargo").args(build).arg(&target).current_dir(folder))?;
    let input = bench.scratch.join("test.csv");
    run::captured(Command::new(target.join("release/csv-generate")).arg(&input))?;
    let rows = std::fs::read(&input).map_err(|error| error.to_string())?;
    std::fs::write(&input, rows.repeat(if quick { 1 } else { 20 })).map_err(|error| error.to_string())?;
    let input = input.display().to_string();
    all.push(Program::real("csv-map-per-row", target.join("release/csv-map-per-row"), &[&input]));
    let thrower = bench.scratch.join("exceptions");
    let source = root.join("programs/cpu/exceptions.cpp");
    run::shown(Command::new("g++").args(["-O2", "-g", "-std=c++17"]).arg(source).arg("-o").arg(&thrower))?;
    all.push(Program::real("exceptions", thrower, &[if quick { "3000" } else { "300000" }]));
    Ok(all)
}

impl Bench<'_> {
    fn row(&self, program: &Program) -> Result<Row, String> {
        let mut row = Row { name: program.name.clone(), ..Row::default() };
        let wanted = if self.plan.quick { SAMPLES_QUICK } else { SAMPLES };
        let (mut ours, mut theirs) = (Shares::default(), [Shares::default(), Shares::default()]);
        let (mut whole, mut few, mut runs) = ([0, 0], [0.0, 0.0], 0.0);
        for turn in 0.. {
            let (profile, data) = (self.file("ours.pb.gz"), self.file("theirs.data"));
            let said = self.sampled(program, USUAL_HZ, &profile)?;
            self.perf(program, USUAL_HZ, PERF_STACK, &data)?;
            let document = self.json(&profile)?;
            let number = |key: &str| document["quality"][key].as_u64().unwrap_or(0);
            whole = [whole[0] + number("whole"), whole[1] + number("samples") - number("kernel_only")];
            row.lost += number("lost");
            few[0] += collector_us(&said) * number("samples") as f64;
            few[1] += number("samples") as f64;
            runs += 1.0;
            ours.add(&self.folded(&profile)?);
            theirs[turn % 2].add(&self.folded(&data)?);
            row.samples = [ours.samples(), theirs[0].samples() + theirs[1].samples()];
            if row.samples.iter().all(|samples| *samples >= wanted) && turn > 0 {
                break;
            }
        }
        row.collector = Collector::of(few.map(|sum| sum / runs), self.many_samples(program)?);
        row.whole = [whole[0] as f64 / whole[1].max(1) as f64, self.whole_of_perf(program)?];
        row.with_itself = Agreement::of(&theirs[0], &theirs[1], agreement::Kind::Own);
        let [mut both, second] = theirs;
        both.put_together(&second);
        row.agreement = Agreement::of(&both, &ours, agreement::Kind::Own);
        row.inclusive = Agreement::of(&both, &ours, agreement::Kind::Inclusive);
        self.cost(program, &mut row)?;
        Ok(row)
    }

    /// The collector's microseconds and the samples of a run with more of them.
    fn many_samples(&self, program: &Program) -> Result<[f64; 2], String> {
        let (profile, mut sums) = (self.file("ours.pb.gz"), [0.0, 0.0]);
        let rounds = if self.plan.quick { 1 } else { MORE_ROUNDS };
        for _ in 0..rounds {
            let said = self.sampled(program, MORE_HZ, &profile)?;
            let samples = self.json(&profile)?["quality"]["samples"].as_f64().unwrap_or(0.0);
            sums = [sums[0] + collector_us(&said) * samples, sums[1] + samples];
        }
        Ok(sums.map(|sum| sum / f64::from(rounds)))
    }

    /// Time and files at the usual frequency.
    fn cost(&self, program: &Program, row: &mut Row) -> Result<(), String> {
        let (profile, data) = (self.file("ours.pb.gz"), self.file("theirs.data"));
        let (mut bare, mut added) = (Vec::new(), [const { Vec::new() }; 4]);
        for turn in 0..if self.plan.quick { 1 } else { ROUNDS } {
            let timed = |act: &dyn Fn() -> Result<(), String>| -> Result<[f64; 2], String> {
                let (began, before_s) = (Instant::now(), children_cpu_s()?);
                act()?;
                Ok([began.elapsed().as_secs_f64(), children_cpu_s()? - before_s])
            };
            let alone = timed(&|| finished(command(program, &[])).map(drop))?;
            bare.push(alone[0]);
            // Whoever comes first comes second in the next round.
            for side in if turn % 2 == 0 { [0, 1] } else { [1, 0] } {
                let took = match side {
                    0 => timed(&|| self.sampled(program, USUAL_HZ, &profile).map(drop))?,
                    _ => timed(&|| self.perf(program, USUAL_HZ, PERF_STACK, &data))?,
                };
                added[side].push(took[0] - alone[0]);
                added[2 + side].push(took[1] - alone[1]);
            }
        }
        row.bare_s = median(bare);
        let [ours, perf, ours_cpu, perf_cpu] = added.map(median);
        (row.added_s, row.added_cpu_s) = ([ours, perf], [ours_cpu, perf_cpu]);
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |found| found.len());
        self.perf(program, USUAL_HZ, PERF_STACK_MAX, &data)?;
        row.file_bytes = [size(&profile), size(&data)];
        Ok(())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    /// Gives what `mallow cpu` said.
    fn sampled(&self, program: &Program, hz: &str, to: &Path) -> Result<String, String> {
        let words = [self.mallow.as_os_str(), "cpu".as_ref(), "-F".as_ref(), hz.as_ref(), "--force".as_ref()];
        finished(command(program, &[&words[..], &["-o".as_ref(), to.as_os_str(), "--".as_ref()]].concat()))
    }

    fn perf(&self, program: &Program, hz: &str, stack: &str, to: &Path) -> Result<(), String> {
        let words = ["perf", "record", "-q", "-F", hz, "--call-graph", stack, "-o"].map(std::ffi::OsStr::new);
        finished(command(program, &[&words[..], &[to.as_os_str(), "--".as_ref()]].concat())).map(drop)
    }

    fn json(&self, profile: &Path) -> Result<Value, String> {
        let text = run::captured(Command::new(&self.mallow).args(["report", "--json"]).arg(profile))?;
        serde_json::from_str(&text).map_err(|error| error.to_string())
    }

    fn folded(&self, profile: &Path) -> Result<String, String> {
        // perf knows no scripts. Functions are those of the code: the many that are inlined have a few samples each.
        let words = ["export", "--format", "folded", "--metric", "samples", "--native", "--no-inline"];
        run::captured(Command::new(&self.mallow).args(words).arg(profile).stderr(Stdio::null()))
    }

    /// Which part of perf's own stacks ends where programs and threads start.
    fn whole_of_perf(&self, program: &Program) -> Result<f64, String> {
        let data = self.file("theirs.data");
        self.perf(program, USUAL_HZ, PERF_STACK, &data)?;
        let words = ["script", "--no-inline", "-F", "ip,sym", "-i"];
        let text = run::captured(Command::new("perf").args(words).arg(&data).stderr(Stdio::null()))?;
        let (mut whole, mut all) = (0_u32, 0_u32);
        for stack in text.split("\n\n").filter(|stack| !stack.trim().is_empty()) {
            let last = stack.trim_end().lines().last().unwrap_or_default();
            let name = last.trim().split_once(' ').map_or("", |(_, name)| name);
            let name = name.split(['+', '@']).next().unwrap_or_default().trim_end_matches("_impl");
            // Stacks of the kernel alone have no program in them.
            let is_kernel = last.trim_start().starts_with("ffffffff");
            all += u32::from(!is_kernel);
            whole += u32::from(!is_kernel && STARTS.contains(&name));
        }
        Ok(f64::from(whole) / f64::from(all.max(1)))
    }
}

/// `collecting took 12.3 ms, 9 µs a sample`: the latter.
fn collector_us(said: &str) -> f64 {
    let line = said.lines().find_map(|line| line.strip_prefix("collecting took "));
    let each = line.and_then(|line| line.split(", ").nth(1)).and_then(|text| text.split(' ').next());
    each.and_then(|number| number.parse().ok()).unwrap_or(f64::NAN)
}

fn command(program: &Program, before: &[&std::ffi::OsStr]) -> Command {
    let executable = program.executable.as_os_str();
    let mut words = before.iter().copied().chain([executable]);
    let mut command = Command::new(words.next().unwrap_or(executable));
    command.args(words).args(&program.arguments).envs(program.environment.iter().copied());
    if let Some(input) = program.input.as_ref().and_then(|path| std::fs::File::open(path).ok()) {
        command.stdin(input);
    }
    command
}

/// Runs a command to its end, and gives what it said beside its output.
fn finished(mut command: Command) -> Result<String, String> {
    let output = command.stdout(Stdio::null()).stderr(Stdio::piped()).output();
    let output = output.map_err(|error| format!("{command:?}: {error}; run `cargo xtask packages`."))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(said) } else { Err(format!("{command:?}: {}: {said}", output.status)) }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn page(machine: &Machine, rows: &[Row], is_quick: bool) -> String {
    let mut text = format!(
        "# `mallow cpu` and `perf record --call-graph dwarf`, {}\n\n{}, {} cores, Linux {}, {}, commit {}.\n{}\n",
        machine.date,
        machine.cpu,
        machine.cores,
        machine.kernel,
        machine.rustc,
        machine.commit,
        machine.doubts(is_quick)
    );
    text += "Hottest ten functions: rho is Spearman's of their shares, overlap how many are among both tens, the last the largest\ndifference in points. `self`: mallow with perf, and perf with itself, of which each half has half of the samples.\n`children`: mallow with perf, without those of 98 % and more.\n\n";
    text += "| program | samples | self: rho, overlap, points | perf with itself | children |\n|---|---|---|---|---|\n";
    for row in rows {
        let [ours, theirs] = row.samples;
        text += &format!(
            "| {} | {ours} / {theirs} | {} | {} | {} |\n",
            row.name, row.agreement, row.with_itself, row.inclusive
        );
    }
    text += "\nAdded time is that of the whole command at 997 Hz, the median of what each of 15 interleaved rounds added, as time that passed and as time that all processors took; perf copies 16 KiB, and 64 KiB for the file. What the collector takes for a sample and for a run is told apart by runs at 3989 Hz.\n\n";
    text += "| program | whole stacks, perf's | lost | alone | added, perf's | the same of processors | file, perf's | collector: a sample, a run |\n|---|---|---|---|---|---|---|---|\n";
    for row in rows {
        text += &format!(
            "| {} | {:.1} % / {:.1} % | {} | {:.2} s | {:+.2} / {:+.2} s | {:+.2} / {:+.2} s | {} KiB / {:.1} MiB | {:.1} µs, {:.0} ms |\n",
            row.name,
            row.whole[0] * 100.0,
            row.whole[1] * 100.0,
            row.lost,
            row.bare_s,
            row.added_s[0],
            row.added_s[1],
            row.added_cpu_s[0],
            row.added_cpu_s[1],
            row.file_bytes[0] >> 10,
            row.file_bytes[1] as f64 / 1_048_576.0,
            row.collector.sample_us,
            row.collector.run_ms
        );
    }
    text
}

fn csv(rows: &[Row]) -> String {
    let mut text = String::from(
        "program,samples,perf_samples,rho,overlap,points,perf_rho,perf_overlap,perf_points,whole,perf_whole,lost,bare_s,added_s,perf_added_s,added_cpu_s,perf_added_cpu_s,file_bytes,perf_file_bytes,collector_sample_us,collector_run_ms\n",
    );
    for row in rows {
        let (one, other) = (&row.agreement, &row.with_itself);
        text += &format!(
            "{},{},{},{:.3},{},{:.3},{:.3},{},{:.3},{:.4},{:.4},{},{:.4},{:.4},{:.4},{:.4},{:.4},{},{},{:.1},{:.1}\n",
            row.name,
            row.samples[0],
            row.samples[1],
            one.rho,
            one.overlap,
            one.points,
            other.rho,
            other.overlap,
            other.points,
            row.whole[0],
            row.whole[1],
            row.lost,
            row.bare_s,
            row.added_s[0],
            row.added_s[1],
            row.added_cpu_s[0],
            row.added_cpu_s[1],
            row.file_bytes[0],
            row.file_bytes[1],
            row.collector.sample_us,
            row.collector.run_ms
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_collector_took_is_read_from_the_summary() {
        let said = "app: 3 s\ncollecting took 12.3 ms, 9 µs a sample\n";
        assert_eq!(collector_us(said), 9.0);
        assert!(collector_us("nothing").is_nan());
    }

    #[test]
    fn what_a_run_takes_is_told_from_what_its_samples_take() {
        // 10 µs a sample and 8 ms a run.
        let collector = Collector::of([11_500.0, 350.0], [22_000.0, 1_400.0]);
        assert_eq!((collector.sample_us, collector.run_ms), (10.0, 8.0));
    }
}
