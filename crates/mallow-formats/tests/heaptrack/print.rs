//! heaptrack's own analysis of a file, to be compared with ours.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// What `heaptrack_print` counts in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Conclusion {
    /// `0.07` seconds.
    pub(crate) runtime: String,
    pub(crate) calls: u64,
    pub(crate) temporary_calls: u64,
    /// As printed, such as `73.88K`.
    pub(crate) peak: String,
    pub(crate) peak_rss: String,
    pub(crate) leaked: String,
    /// By stack: outermost call first, as it prints them.
    pub(crate) allocations: BTreeMap<String, u64>,
    pub(crate) temporary: BTreeMap<String, u64>,
    pub(crate) peak_bytes: BTreeMap<String, u64>,
    pub(crate) leaked_bytes: BTreeMap<String, u64>,
}

/// Runs `heaptrack_print`. Its built-in suppressions are off: they would hide leaks of the system's libraries.
pub(crate) fn judge(file: &Path) -> Conclusion {
    let (text, allocations) = print(file, "allocations");
    let after = |label: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(label));
        line.unwrap_or_else(|| panic!("no {label} in {text}")).trim().to_owned()
    };
    let count = |label| after(label).split(' ').next().unwrap().parse().unwrap();
    Conclusion {
        runtime: after("total runtime:"),
        calls: count("calls to allocation functions:"),
        temporary_calls: count("temporary memory allocations:"),
        peak: after("peak heap memory consumption:"),
        peak_rss: after("peak RSS (including heaptrack overhead):"),
        leaked: after("total memory leaked:"),
        allocations,
        temporary: print(file, "temporary").1,
        peak_bytes: print(file, "peak").1,
        leaked_bytes: print(file, "leaked").1,
    }
}

/// Returns its text, and a metric by stack; stacks without any are left out.
fn print(file: &Path, metric: &str) -> (String, BTreeMap<String, u64>) {
    let scratch = tempfile::tempdir().unwrap();
    let folded = scratch.path().join("folded");
    let output = Command::new("heaptrack_print")
        .args(["--disable-builtin-suppressions", "--shorten-templates=0", "--flamegraph-cost-type", metric])
        .arg("--print-flamegraph")
        .arg(&folded)
        .arg(file)
        .output()
        .expect("heaptrack_print runs; cargo xtask packages installs it");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut metrics = BTreeMap::new();
    for line in std::fs::read_to_string(&folded).unwrap().lines() {
        let (stack, metric) = line.rsplit_once(' ').unwrap();
        let metric: i64 = metric.parse().unwrap();
        if metric != 0 {
            *metrics.entry(stack.to_owned()).or_default() += u64::try_from(metric).unwrap();
        }
    }
    (text, metrics)
}

/// Formats bytes as it does.
pub(crate) fn bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "K", "M", "G"] {
        if value < 1000.0 {
            return if unit == "B" { format!("{bytes}B") } else { format!("{value:.2}{unit}") };
        }
        value /= 1000.0;
    }
    format!("{value:.2}T")
}
