//! Runs every server and mode of `programs/soak/expected.toml` many times, and writes down how often the verdict was
//! right: `cargo xtask soak-record [--runs N] [--minutes N] [--pairs N] [--jobs N]
//! [--only SERVER/MODE]… [--output FILE]`.
//!
//! An inconclusive verdict is not wrong, and is counted apart. What the recorder costs a server is measured first (`price.rs`).

mod price;

use e2e::soak::{CERTIFICATE, Mode, Said, certify, install, modes};
use price::Pair;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What was asked for.
struct Plan {
    runs: usize,
    /// No run begins after this time.
    minutes: u64,
    /// Pairs of seconds with and without the recorder.
    pairs: usize,
    jobs: usize,
    only: Vec<String>,
    output: Option<PathBuf>,
    target: PathBuf,
}

impl Plan {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Plan, String> {
        let target = PathBuf::from("target/soak-servers");
        let mut plan =
            Plan { runs: 20, minutes: 1_000_000, pairs: 40, jobs: 4, only: Vec::new(), output: None, target };
        while let Some(word) = words.next() {
            let value = words.next().ok_or(format!("{word} needs a value."))?;
            let number = || value.parse().map_err(|_| format!("{word} is `{value}`, which is no number."));
            match word.as_str() {
                "--runs" => plan.runs = number()?,
                "--minutes" => {
                    plan.minutes = value.parse().map_err(|_| format!("`{value}` is no number."))?
                }
                "--pairs" => plan.pairs = number()?,
                "--jobs" => plan.jobs = number()?.max(1),
                "--only" => plan.only.push(value),
                "--output" => plan.output = Some(value.into()),
                "--target" => plan.target = value.into(),
                _ => return Err(format!("`{word}` is not understood.")),
            }
        }
        Ok(plan)
    }

    fn has(&self, mode: &Mode) -> bool {
        let name = format!("{}/{}", mode.server, mode.name);
        self.only.is_empty() || self.only.iter().any(|only| name == *only || mode.server == *only)
    }
}

fn main() -> ExitCode {
    let plan = match Plan::parse(std::env::args().skip(1)) {
        Ok(plan) => plan,
        Err(sentence) => {
            eprintln!("{sentence}");
            return ExitCode::from(2);
        }
    };
    let target = std::path::absolute(&plan.target).expect("the current folder is known");
    let modes: Vec<Mode> = modes(&target).into_iter().filter(|mode| plan.has(mode)).collect();
    install(&target, &modes.iter().flat_map(|mode| &mode.packages).collect());
    if modes.iter().any(|mode| mode.tls) {
        certify(&target.join(CERTIFICATE));
    }
    let priced = modes.iter().filter(|mode| price::is_priced(mode));
    let costs: Vec<(&Mode, Vec<Pair>)> = priced.map(|mode| (mode, price::pairs(mode, plan.pairs))).collect();
    let began = Instant::now();
    let all = run_all(&modes, &plan);
    let page = page(
        &modes,
        &all,
        if plan.pairs > 0 { &costs } else { &[] },
        plan.jobs,
        began.elapsed().as_secs_f64(),
    );
    println!("\n{page}");
    if let Some(path) = &plan.output {
        std::fs::write(path, &page).expect("the record can be written");
    }
    let is_wrong = all.iter().flatten().any(|said| !said.faults.is_empty());
    if is_wrong { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Each mode's runs. Runs of one mode lie far apart in time, so that a busy minute does not meet all of one.
fn run_all(modes: &[Mode], plan: &Plan) -> Vec<Vec<Said>> {
    let (began, time) = (Instant::now(), Duration::from_secs(60 * plan.minutes));
    let next = AtomicUsize::new(0);
    let all = Mutex::new(vec![Vec::new(); modes.len()]);
    std::thread::scope(|scope| {
        for _ in 0..plan.jobs {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= modes.len() * plan.runs || began.elapsed() > time {
                        break;
                    }
                    let mode = &modes[at % modes.len()];
                    let said = said(mode);
                    tell(mode, &said);
                    all.lock().expect("nobody panics with it")[at % modes.len()].push(said);
                }
            });
        }
    });
    all.into_inner().expect("nobody panics with it")
}

/// What one soak said. One that does not end, on a machine that does too much, is a fault of its own and not of the whole record.
fn said(mode: &Mode) -> Said {
    std::panic::catch_unwind(|| mode.judge(&mode.soak_short())).unwrap_or_else(|cause| {
        let why = cause.downcast_ref::<String>().map_or("no verdict", |why| why);
        Said { verdict: String::new(), faults: vec![why.to_owned()], per_request: 0.0, seconds: 0.0 }
    })
}

fn tell(mode: &Mode, said: &Said) {
    let Said { verdict, seconds, per_request, faults, .. } = said;
    let name = format!("{}/{}", mode.server, mode.name);
    let line = format!("{name:24} {verdict:16} {per_request:9.2} B/request {seconds:6.1} s");
    println!("{line}  {}", faults.join("; "));
}

fn page(
    modes: &[Mode],
    all: &[Vec<Said>],
    costs: &[(&Mode, Vec<Pair>)],
    jobs: usize,
    seconds: f64,
) -> String {
    let runs: usize = all.iter().map(Vec::len).sum();
    let mut text = format!(
        "# Verdicts of `mallow soak` on servers whose truth is known\n\n\
         {runs} runs of `mallow soak --iterations 20 --requests 1000` (Node: 4000) against the servers of `programs/soak`, {jobs} at a \
         time, in {:.0} minutes.\nWritten by `cargo xtask soak-record`. A verdict is right when `expected.toml` has it, and \
         with it the bytes per request,\nthe line of a leak and the exit code.\n\n",
        seconds / 60.0
    );
    text.push_str(&machine());
    text.push_str("\n## Verdicts\n\n");
    text.push_str("| server | mode | expected | right | inconclusive | wrong | B/request | seconds |\n");
    text.push_str("|---|---|---|--:|--:|--:|--:|--:|\n");
    let mut sums = [0; 3];
    for (mode, said) in modes.iter().zip(all) {
        let wrong = said.iter().filter(|said| !said.faults.is_empty()).count();
        let open = said.iter().filter(|said| said.verdict == "INCONCLUSIVE").count();
        let counts = [said.len() - wrong - open, open, wrong];
        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        let (low, middle, high) = spread(said.iter().map(|said| said.seconds));
        let leak = if mode.per_request.is_some() || mode.verdicts == ["leaking"] {
            format!("{:.1}", spread(said.iter().map(|said| said.per_request)).1)
        } else {
            String::new()
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {leak} | {middle:.0} ({low:.0} to {high:.0}) |",
            mode.server,
            mode.name,
            mode.verdicts.join(", "),
            counts[0],
            counts[1],
            counts[2],
        );
    }
    let [right, open, wrong] = sums;
    let _ = writeln!(text, "| all | | | {right} | {open} | {wrong} | | |");
    text.push_str(&faults(modes, all));
    if !costs.is_empty() {
        text.push_str("\n## What the recorder costs the server\n\n");
        text.push_str(
            "Two of the same server side by side, one under `mallow soak`; `wrk -t1 -c50` asks them in turn, a second each. \
             wrk, server\nand the recorder's collector share the processors.\n\n",
        );
        costs.iter().for_each(|(mode, pairs)| text.push_str(&price::in_words(mode, pairs)));
    }
    text
}

fn faults(modes: &[Mode], all: &[Vec<Said>]) -> String {
    let mut text = String::new();
    for (mode, said) in modes.iter().zip(all) {
        for said in said.iter().filter(|said| !said.faults.is_empty()) {
            let _ = writeln!(text, "- {}/{}: {}", mode.server, mode.name, said.faults.join("; "));
        }
    }
    if text.is_empty() { text } else { format!("\n## What was wrong\n\n{text}") }
}

/// Lowest, median, highest.
fn spread(metrics: impl Iterator<Item = f64>) -> (f64, f64, f64) {
    let mut metrics: Vec<f64> = metrics.collect();
    metrics.sort_by(f64::total_cmp);
    let at = |place: usize| metrics.get(place).copied().unwrap_or_default();
    let last = metrics.len().saturating_sub(1);
    (at(0), f64::midpoint(at(last / 2), at(last.div_ceil(2))), at(last))
}

fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let kernel = read("/proc/sys/kernel/osrelease");
    let load = read("/proc/loadavg");
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    format!(
        "{} ({processors} processors), Linux {}, load average at the end {}.\n",
        model.trim_start_matches([':', '\t', ' ']),
        kernel.trim(),
        load.split(' ').next().unwrap_or_default()
    )
}
