//! How long each analysis takes on a trace, and how much memory: `analysis_bench FILE [NAME]`.
//!
//! Without a name every analysis is measured, each in a process of its own, so that the high-water mark of its memory is its own.
//! A trace of 30 million events: `mallow record -o t -- storm 10 1 15000000`, or `trace_bench write t` for one with
//! 3,000 stacks and 100,000 live blocks.

use mallow_profile::ProcessIndex;
use mallow_profile::analysis::{Pass, Plan, Slices, Trend, Window};
use mallow_trace::Trace;
use std::fs::File;
use std::io::BufReader;
use std::process::Command;
use std::time::Instant;

const NAMES: [&str; 9] =
    ["nothing", "window", "timeline", "histogram", "threads", "chains", "temporary", "leaks", "everything"];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let file = arguments.get(1).expect("a file");
    match arguments.get(2) {
        Some(name) => measure(file, name),
        None => NAMES.iter().for_each(|name| {
            let status = Command::new(&arguments[0]).args([file, *name]).status().expect("a measurement");
            assert!(status.success(), "{name}: {status}");
        }),
    }
}

fn plan(name: &str, end_us: u64) -> Plan {
    let all = name == "everything";
    let wants = |what: &str| all || name == what;
    let window =
        if name == "window" { Window { from_us: end_us / 4, to_us: end_us / 2 } } else { Window::ALL };
    Plan {
        window,
        window_sites: wants("window"),
        timeline: wants("timeline").then(|| Slices::new(0, end_us, 70)),
        histogram: wants("histogram"),
        threads: wants("threads"),
        chains: wants("chains"),
        temporary_within: wants("temporary").then_some(10),
        shorter_than_us: wants("temporary").then_some(1_000),
        trends: wants("leaks").then(|| Trend::slices(0, end_us)),
        ..Plan::default()
    }
}

fn measure(file: &str, name: &str) {
    let started = Instant::now();
    let open = || Trace::open(BufReader::new(File::open(file).expect("a file"))).expect("a trace");
    let profile = open().import(Default::default()).expect("a profile").profile;
    let opened = started.elapsed();
    let plan = plan(name, profile.processes[0].ended_us);
    let mut pass = Pass::new(plan);
    let events = open().analyse(ProcessIndex(0), &mut pass).expect("events");
    let findings = pass.finish();
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let resident = status.lines().find(|line| line.starts_with("VmHWM")).expect("a line");
    let total = started.elapsed();
    println!(
        "{name:<12} {events} events, opened in {opened:.1?}, done in {total:.1?}, {:.1} ns/event, {resident}, {} sites",
        total.as_nanos() as f64 / events.max(1) as f64,
        findings.window_sites.len().max(findings.trends.len())
    );
}
