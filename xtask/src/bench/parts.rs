//! What the tables of whole runs cannot tell: the time that `mallow record` takes around a program, and what one event of a long loop
//! costs the program and the collector, and what a frame costs that is not the one of the stack before.
//!
//! The time around a program is that of the whole command less the program's life as the trace tells it: what comes before it and
//! what comes behind, which is measured by itself too. Warm, the answers about its symbols are kept; cold, the folder in which they are kept is empty.

use super::measure::{self, END_ROUND, MEMORY_ROUND};
use super::programs::{self, Program, compile_storm, storm_of};
use super::tools::{Tool, Tools};
use mallow_base::median;
use std::path::Path;

/// Its name for `--only`.
pub(super) const NAME: &str = "parts";

/// Pairs of malloc and free: enough that starting a process does not show.
const PAIRS: u64 = 15_000_000;
const PAIRS_QUICK: u64 = 50_000;
const ROUNDS: u32 = 5;
const ROUNDS_QUICK: u32 = 1;
/// Stacks of the shallower and the deeper kind: the difference between the two is frames.
const LEVELS: [u64; 2] = [10, 40];
const WALKS: u64 = 2_000_000;
const WALKS_QUICK: u64 = 1_000;
const THREADS: [u32; 2] = [1, 8];
/// Ten ticks of the clock that tells a process's own CPU time.
const OWN_CPU_MIN_S: f64 = 0.1;

/// Everything that was found.
#[derive(Debug, Clone)]
pub(super) struct Parts {
    pub(super) around: Vec<Around>,
    pub(super) loops: Vec<Loop>,
    /// CPU nanoseconds that `record` adds in the program for each frame that it walks anew.
    pub(super) frame_ns: f64,
}

/// Milliseconds of `mallow record` beside the program's own life, medians.
#[derive(Debug, Clone)]
pub(super) struct Around {
    pub(super) name: String,
    pub(super) warm: Extra,
    pub(super) cold: Extra,
}

/// Milliseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extra {
    /// Before its start and behind its end.
    pub(super) both_ms: f64,
    /// From its end to that of the command; none where a short program's end was never seen.
    pub(super) behind_ms: Option<f64>,
}

/// CPU nanoseconds per event of a loop of malloc and free, medians.
#[derive(Debug, Clone)]
pub(super) struct Loop {
    pub(super) threads: u32,
    /// Added in the program by `record`.
    pub(super) record_ns: f64,
    /// Of mallow's own process under `record`; none where its clock of hundredths of a second is too coarse.
    pub(super) collector_ns: Option<f64>,
    /// Added in the program by `stat`.
    pub(super) stat_ns: f64,
}

/// Measures both.
pub(super) fn measure(root: &Path, tools: &Tools, quick: bool) -> Result<Parts, String> {
    let (pairs, rounds) = if quick { (PAIRS_QUICK, ROUNDS_QUICK) } else { (PAIRS, ROUNDS) };
    let storm = compile_storm(root, &tools.scratch)?;
    let mut small = storm_of(&storm, 1, 1, 10);
    small.name = "small C program".to_owned();
    let of_all = programs::all(root, &tools.scratch, quick)?;
    let real = of_all.into_iter().filter(|program| ["python3", "cc1plus"].contains(&program.name.as_str()));
    let around = std::iter::once(small).chain(real).map(|program| around(&program, tools, rounds));

    let loops = THREADS
        .into_iter()
        .map(|threads| of_loop(&storm_of(&storm, 10, threads, pairs), threads, pairs, tools, rounds));
    Ok(Parts {
        around: around.collect::<Result<_, String>>()?,
        loops: loops.collect::<Result<_, String>>()?,
        frame_ns: of_frame(root, tools, if quick { WALKS_QUICK } else { WALKS }, rounds)?,
    })
}

fn around(program: &Program, tools: &Tools, rounds: u32) -> Result<Around, String> {
    let once = |tool| -> Result<(f64, Option<f64>), String> {
        let sample = measure::once(program, tools, tool, END_ROUND)?;
        Ok((1e3 * (sample.whole_s - tools.duration_s()?), sample.behind_s.map(|seconds| 1e3 * seconds)))
    };
    let (mut warm, mut cold) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        cold.push(once(Tool::RecordCold)?);
        warm.push(once(Tool::Record)?);
    }
    let of = |found: Vec<(f64, Option<f64>)>| Extra {
        both_ms: median(found.iter().map(|it| it.0)).unwrap_or(0.0),
        behind_ms: median(found.iter().filter_map(|it| it.1)),
    };
    Ok(Around { name: program.name.clone(), warm: of(warm), cold: of(cold) })
}

fn of_frame(root: &Path, tools: &Tools, walks: u64, rounds: u32) -> Result<f64, String> {
    let [shallow, deep] = LEVELS.map(|levels| programs::fresh_frames(root, &tools.scratch, levels, walks));
    let (shallow, deep) = (shallow?, deep?);
    let frames = (walks * (LEVELS[1] - LEVELS[0])) as f64;
    let mut found = Vec::new();
    for _ in 0..rounds {
        let added_s = |program| -> Result<f64, String> {
            let run = |tool| measure::once(program, tools, tool, MEMORY_ROUND + 1);
            let (bare, record) = (run(Tool::Bare)?, run(Tool::Record)?);
            Ok(record.cpu_s - record.own_cpu_s - bare.cpu_s)
        };
        found.push((added_s(&deep)? - added_s(&shallow)?) * 1e9 / frames);
    }
    Ok(median(found).unwrap_or(0.0))
}

fn of_loop(program: &Program, threads: u32, pairs: u64, tools: &Tools, rounds: u32) -> Result<Loop, String> {
    let per_event_ns = 1e9 / (2 * pairs) as f64;
    let mut found = Vec::new();
    for _ in 0..rounds {
        let run = |tool| measure::once(program, tools, tool, MEMORY_ROUND + 1);
        let (bare, record, stat) = (run(Tool::Bare)?, run(Tool::Record)?, run(Tool::Stat)?);
        let added = |sample: &measure::Sample| (sample.cpu_s - sample.own_cpu_s - bare.cpu_s) * per_event_ns;
        found.push([added(&record), record.own_cpu_s * per_event_ns, added(&stat)]);
    }
    let of = |index: usize| median(found.iter().map(|round| round[index])).unwrap_or(0.0);
    let collector_ns = Some(of(1)).filter(|ns| *ns >= OWN_CPU_MIN_S * per_event_ns);
    Ok(Loop { threads, record_ns: of(0), collector_ns, stat_ns: of(2) })
}
