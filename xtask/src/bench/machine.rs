//! Where and with what the metrics were measured: without it they cannot be compared with others.

use super::plan::Plan;
use super::tools::Tools;
use crate::run;
use std::path::Path;
use std::process::Command;

/// Facts about the machine and the source alone.
#[derive(Debug, Clone, Default)]
pub(super) struct Machine {
    /// The day in UTC, as 2026-01-31.
    pub(super) date: String,
    pub(super) cpu: String,
    pub(super) cores: usize,
    pub(super) kernel: String,
    pub(super) rustc: String,
    /// The commit, and whether the checkout differed from it.
    pub(super) commit: String,
    /// Processes that wanted a core during the minute before.
    pub(super) load: f64,
}

impl Machine {
    pub(super) fn read(root: &Path) -> Result<Machine, String> {
        let file = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let git = |words: &[&str]| run::captured(Command::new("git").args(words).current_dir(root));
        let mut commit = git(&["rev-parse", "--short=12", "HEAD"])?.trim().to_owned();
        // What is written down here does not change what is measured.
        if !git(&["status", "--porcelain", "--", ".", ":!bench"])?.is_empty() {
            commit.push_str(" with uncommitted changes");
        }
        Ok(Machine {
            date: first_line(Command::new("date").args(["-u", "+%Y-%m-%d"]))?,
            cpu: cpu_of(&file("/proc/cpuinfo")),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: file("/proc/sys/kernel/osrelease").trim().to_owned(),
            rustc: first_line(Command::new("rustc").arg("--version").current_dir(root))?,
            commit,
            load: file("/proc/loadavg").split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0),
        })
    }

    /// The name of a record of today on this machine.
    pub(super) fn stem(&self) -> String {
        format!("{}-{}", self.date, slug_of(&self.cpu))
    }

    /// What has to be said when the metrics mean little.
    pub(super) fn doubts(&self, is_quick: bool) -> &'static str {
        if is_quick {
            "\n**Small inputs (`--quick`): this only shows that everything runs.**\n"
        } else if self.load > 0.5 {
            "\n**The machine was busy with something else when this began.**\n"
        } else {
            ""
        }
    }
}

/// Facts about the machine, the tools and the source.
#[derive(Debug, Clone, Default)]
pub(super) struct Facts {
    pub(super) machine: Machine,
    pub(super) mallow: String,
    pub(super) heaptrack: String,
    pub(super) rounds: u32,
    pub(super) is_quick: bool,
}

impl Facts {
    pub(super) fn read(root: &Path, tools: &Tools, plan: &Plan) -> Result<Facts, String> {
        Ok(Facts {
            machine: Machine::read(root)?,
            mallow: first_line(Command::new(&tools.mallow).arg("--version"))?,
            heaptrack: first_line(Command::new("heaptrack").arg("--version"))?,
            rounds: plan.rounds,
            is_quick: plan.quick,
        })
    }

    /// The sentences above the tables.
    pub(super) fn sentences(&self) -> String {
        let Facts { machine, mallow, heaptrack, rounds, is_quick } = self;
        let Machine { date, cpu, cores, kernel, rustc, commit, load } = machine;
        format!(
            "# What recording costs, {date}\n\n\
             - {cpu}, {cores} cores, Linux {kernel}\n\
             - {mallow}, commit {commit}\n\
             - {rustc}; {heaptrack}\n\
             - timed rounds: {rounds}; in each bare, mallow record, the same cold, heaptrack, mallow stat in turn;\n  \
             medians of the differences within a round. Memory was sampled in a round of its own.\n  \
             Load before: {load:.2}.\n{}",
            machine.doubts(*is_quick)
        )
    }
}

fn first_line(command: &mut Command) -> Result<String, String> {
    Ok(run::captured(command)?.lines().next().unwrap_or("").trim().to_owned())
}

fn slug_of(cpu: &str) -> String {
    let words = cpu.split(|c: char| !c.is_ascii_alphanumeric());
    let lower: Vec<String> = words.filter(|it| !it.is_empty()).map(str::to_ascii_lowercase).collect();
    if lower.is_empty() { "unknown-cpu".to_owned() } else { lower.join("-") }
}

/// The model's name; Arm's kernels give a part number instead.
fn cpu_of(cpuinfo: &str) -> String {
    let value = |key: &str| {
        let line = cpuinfo.lines().find(|line| line.starts_with(key))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let part = || Some(format!("{} part {}", std::env::consts::ARCH, value("CPU part")?));
    value("model name").or_else(part).unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_is_named_and_fits_into_a_file_name() {
        let cpu = cpu_of("processor\t: 0\nmodel name\t: Some(R) CPU @ 2.50GHz\nprocessor\t: 1\n");
        assert_eq!(cpu, "Some(R) CPU @ 2.50GHz");
        assert_eq!(slug_of(&cpu), "some-r-cpu-2-50ghz");
        assert!(cpu_of("CPU part\t: 0xd0c\n").ends_with(" part 0xd0c"));
        assert_eq!(slug_of(""), "unknown-cpu");
    }

    #[test]
    fn a_busy_machine_and_small_inputs_are_admitted() {
        let doubts = |load, is_quick| Machine { load, ..Machine::default() }.doubts(is_quick);
        assert_eq!(doubts(0.1, false), "");
        assert!(doubts(2.0, false).contains("busy"));
        assert!(doubts(0.1, true).contains("--quick"));
    }
}
