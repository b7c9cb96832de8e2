//! The machine that the runs were made on.

use mallow_bench::Machine;

/// What is known of it; empty where the system does not say.
pub(crate) fn machine() -> Machine {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let uname = rustix::system::uname();
    Machine {
        processor: name.map(|(_, name)| name.trim().to_owned()).unwrap_or_default(),
        processors: std::thread::available_parallelism().map_or(0, usize::from),
        kernel: uname.release().to_string_lossy().into_owned(),
    }
}
