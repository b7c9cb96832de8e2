//! The ways of running a program, and the command line of each.

use super::programs::Program;
use crate::run;
use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A way of running a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    Bare,
    Record,
    /// The same without what earlier recordings kept about symbols.
    RecordCold,
    Heaptrack,
    Stat,
    /// A preloaded library that passes each call on and does nothing else: what no tool that is preloaded can do without.
    LeastStat,
}

impl Tool {
    /// The order within a round: who is compared stands side by side.
    pub(super) const ALL: [Tool; 6] =
        [Tool::Bare, Tool::Record, Tool::RecordCold, Tool::Heaptrack, Tool::Stat, Tool::LeastStat];

    pub(super) fn name(self) -> &'static str {
        match self {
            Tool::Bare => "bare",
            Tool::Record => "mallow record",
            Tool::RecordCold => "record cold",
            Tool::Heaptrack => "heaptrack",
            Tool::Stat => "mallow stat",
            Tool::LeastStat => "least stat",
        }
    }
}

/// Where the tools are, and where they write.
pub(super) struct Tools {
    pub(super) mallow: PathBuf,
    pub(super) scratch: PathBuf,
    /// The library of [`Tool::LeastStat`].
    least_stat: PathBuf,
    /// Newer versions open a window at the end unless they are told not to; older ones do not know the option.
    heaptrack_has_record_only: bool,
}

impl Tools {
    pub(super) fn find(root: &Path, mallow: PathBuf, scratch: &Path) -> Result<Tools, String> {
        let help = run::captured(Command::new("heaptrack").arg("--help"))
            .map_err(|sentence| format!("{sentence} Run `cargo xtask packages`."))?;
        let heaptrack_has_record_only = help.contains("--record-only");
        let least_stat = scratch.join("least_stat.so");
        let source = root.join("programs/real/least_stat.c");
        run::captured(
            Command::new("cc").args(["-O2", "-shared", "-fPIC", "-o"]).arg(&least_stat).arg(source),
        )?;
        Ok(Tools { mallow, scratch: scratch.to_owned(), least_stat, heaptrack_has_record_only })
    }

    /// `program` under `tool`. What a tool writes replaces what it wrote before.
    pub(super) fn command(&self, program: &Program, tool: Tool) -> Command {
        let mut command = match tool {
            Tool::Bare | Tool::LeastStat => Command::new(&program.executable),
            Tool::Record => self.mallow_command("record", &self.trace()),
            Tool::RecordCold => {
                let mut command = self.mallow_command("record", &self.trace());
                command.env("XDG_CACHE_HOME", self.cold_cache());
                command
            }
            Tool::Stat => self.mallow_command("stat", &self.scratch.join("stat.json")),
            Tool::Heaptrack => {
                let mut command = Command::new("heaptrack");
                if self.heaptrack_has_record_only {
                    command.arg("--record-only");
                }
                command.arg("-o").arg(self.scratch.join("heaptrack"));
                command
            }
        };
        match tool {
            Tool::Bare => {}
            Tool::LeastStat => {
                command.env("LD_PRELOAD", &self.least_stat);
            }
            Tool::Record | Tool::RecordCold | Tool::Heaptrack | Tool::Stat => {
                command.arg(&program.executable);
            }
        }
        command.args(&program.arguments).envs(program.environment.iter().copied());
        command.current_dir(&self.scratch);
        command
    }

    fn mallow_command(&self, verb: &str, output: &Path) -> Command {
        let mut command = Command::new(&self.mallow);
        command.args([OsStr::new(verb), "--force".as_ref(), "-o".as_ref(), output.as_ref(), "--".as_ref()]);
        command
    }

    /// Removes what [`Tool::RecordCold`] kept about symbols.
    pub(super) fn forget_symbols(&self) {
        // What is not there need not be removed.
        let _ = std::fs::remove_dir_all(self.cold_cache());
    }

    fn cold_cache(&self) -> PathBuf {
        self.scratch.join("cold")
    }

    /// Where `mallow record` writes.
    pub(super) fn trace(&self) -> PathBuf {
        self.scratch.join("trace.mallow")
    }

    /// Bytes of what `tool` wrote last; 0 for a tool that leaves no trace.
    pub(super) fn trace_bytes(&self, tool: Tool) -> Result<u64, String> {
        let bytes = |path: &Path| path.metadata().map(|metadata| metadata.len());
        match tool {
            Tool::Bare | Tool::Stat | Tool::LeastStat => Ok(0),
            Tool::Record | Tool::RecordCold => {
                bytes(&self.trace()).map_err(|error| format!("the trace is missing: {error}."))
            }
            // The ending tells which compressor it found.
            Tool::Heaptrack => ["heaptrack.zst", "heaptrack.gz"]
                .iter()
                .find_map(|name| bytes(&self.scratch.join(name)).ok())
                .ok_or_else(|| "heaptrack wrote no trace.".to_owned()),
        }
    }

    /// Calls in the trace that was recorded last.
    pub(super) fn events(&self) -> Result<u64, String> {
        calls(&self.report()?["totals"])
    }

    /// How long the program lived that was recorded last, its children included: the recording's duration.
    pub(super) fn duration_s(&self) -> Result<f64, String> {
        let duration_us = self.report()?["duration"].as_f64();
        duration_us.map(|us| us / 1e6).ok_or_else(|| "the report has no `duration`.".to_owned())
    }

    fn report(&self) -> Result<Value, String> {
        let mut command = Command::new(&self.mallow);
        command.arg("report").arg(self.trace()).args(["--json", "--limit", "1"]);
        let text = run::captured(&mut command)?;
        serde_json::from_str(&text).map_err(|error| format!("the report's JSON is broken: {error}."))
    }
}

/// Calls of the malloc family: one that moved or resized a block counts as an allocation and a free, but is one.
fn calls(totals: &Value) -> Result<u64, String> {
    let metric = |name: &str| totals[name].as_u64().ok_or_else(|| format!("the report has no `{name}`."));
    let counted = metric("allocations")? + metric("frees")? + metric("failed")?;
    Ok(counted.saturating_sub(metric("reallocations")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_reallocation_is_one_call() {
        let totals = json!({"allocations": 10, "frees": 8, "reallocations": 3, "failed": 1});
        assert_eq!(calls(&totals), Ok(16));
        assert_eq!(calls(&json!({"frees": 1})), Err("the report has no `allocations`.".to_owned()));
    }

    #[test]
    fn every_tool_gets_the_same_program_and_environment() {
        let mut program = super::super::programs::storm_of(Path::new("/bin/storm"), 1, 1, 5);
        program.environment = vec![("A", "b")];
        let tools = Tools {
            mallow: "/m".into(),
            scratch: "/s".into(),
            least_stat: "/s/least_stat.so".into(),
            heaptrack_has_record_only: true,
        };
        let typed = |tool| run::as_typed(&tools.command(&program, tool));
        assert_eq!(typed(Tool::Bare), "A=b /bin/storm 1 1 5");
        assert_eq!(typed(Tool::Record), "A=b /m record --force -o /s/trace.mallow -- /bin/storm 1 1 5");
        assert_eq!(
            typed(Tool::RecordCold),
            "A=b XDG_CACHE_HOME=/s/cold /m record --force -o /s/trace.mallow -- /bin/storm 1 1 5"
        );
        assert_eq!(typed(Tool::Stat), "A=b /m stat --force -o /s/stat.json -- /bin/storm 1 1 5");
        assert_eq!(typed(Tool::LeastStat), "A=b LD_PRELOAD=/s/least_stat.so /bin/storm 1 1 5");
        assert_eq!(typed(Tool::Heaptrack), "A=b heaptrack --record-only -o /s/heaptrack /bin/storm 1 1 5");
    }
}
