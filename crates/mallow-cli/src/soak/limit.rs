//! The default memory limit of a server: its control group's, or the machine's.

use std::path::Path;

/// Returns the lowest limit of this process, in bytes; `root` is `/`, except in tests.
pub(crate) fn memory_limit(root: &Path) -> Option<u64> {
    let machine = std::fs::read_to_string(root.join("proc/meminfo")).ok().and_then(|text| of_machine(&text));
    let groups = std::fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let limits = groups.lines().filter_map(|line| line.strip_prefix("0::")).flat_map(|path| {
        let mut folder = root.join("sys/fs/cgroup").join(path.trim_start_matches('/'));
        let mut limits = Vec::new();
        // The limits of all enclosing groups apply, too.
        while folder.starts_with(root.join("sys/fs/cgroup")) {
            let text = std::fs::read_to_string(folder.join("memory.max")).ok();
            limits.extend(text.and_then(|text| text.trim().parse::<u64>().ok()));
            if !folder.pop() {
                break;
            }
        }
        limits
    });
    machine.into_iter().chain(limits).min()
}

fn of_machine(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_least_limit_counts() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert_eq!(memory_limit(root.path()), None);
        write("proc/meminfo", "MemTotal:       4096 kB\nMemFree:  12 kB\n");
        assert_eq!(memory_limit(root.path()), Some(4 << 20));
        write("proc/self/cgroup", "0::/a/b\n");
        write("sys/fs/cgroup/a/b/memory.max", "max\n");
        assert_eq!(memory_limit(root.path()), Some(4 << 20));
        write("sys/fs/cgroup/a/memory.max", "1048576\n");
        assert_eq!(memory_limit(root.path()), Some(1 << 20));
    }
}
