//! A running process as /proc shows it, and which runtime it is.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A runtime that can be asked for a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// Ruby, of any kind that has an `ObjectSpace`.
    Ruby,
    /// CPython.
    Python,
    /// Node.
    Node,
    /// A JVM, HotSpot.
    Jvm,
}

impl Runtime {
    /// How the names of its snapshots end.
    pub fn extension(self) -> &'static str {
        match self {
            Runtime::Ruby | Runtime::Python => "json",
            Runtime::Node => "heapsnapshot",
            Runtime::Jvm => "hprof",
        }
    }
}

impl fmt::Display for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Runtime::Ruby => "Ruby",
            Runtime::Python => "Python",
            Runtime::Node => "Node",
            Runtime::Jvm => "JVM",
        })
    }
}

/// The runtime of a process: by its program, or by the runtime's library where a program brings its own launcher.
pub fn runtime(pid: u32) -> Option<Runtime> {
    let exe = fs::read_link(file(pid, "exe")).unwrap_or_default();
    of_name(&name_of(&exe)).or_else(|| of_maps(&fs::read(file(pid, "maps")).unwrap_or_default()))
}

fn of_name(name: &str) -> Option<Runtime> {
    match name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') {
        "ruby" => Some(Runtime::Ruby),
        "python" => Some(Runtime::Python),
        "node" | "nodejs" => Some(Runtime::Node),
        "java" => Some(Runtime::Jvm),
        _ => None,
    }
}

fn of_maps(maps: &[u8]) -> Option<Runtime> {
    let maps = String::from_utf8_lossy(maps);
    let of_library = |name: &str| match () {
        () if name.starts_with("libruby.so") || name.starts_with("libruby-") => Some(Runtime::Ruby),
        () if name.starts_with("libpython") => Some(Runtime::Python),
        () if name.starts_with("libnode.so") => Some(Runtime::Node),
        () if name == "libjvm.so" => Some(Runtime::Jvm),
        () => None,
    };
    maps.lines().filter_map(|line| line.rsplit_once('/')).find_map(|(_, name)| of_library(name))
}

/// Returns whether it is a JVM. A launcher calls its first thread `java` before it has become one.
pub fn is_jvm(pid: u32) -> bool {
    let is_java = |path: PathBuf| path.file_name().is_some_and(|name| name == "java");
    name(pid) == "java" || fs::read_link(file(pid, "exe")).is_ok_and(is_java)
}

/// The name that it goes by.
pub fn name(pid: u32) -> String {
    fs::read_to_string(file(pid, "comm")).unwrap_or_default().trim_end().to_owned()
}

/// The pid that the process knows itself by.
pub fn inner_pid(pid: u32) -> u32 {
    let status = fs::read_to_string(file(pid, "status")).unwrap_or_default();
    let inner =
        status.lines().find_map(|line| line.strip_prefix("NSpid:")?.split_whitespace().last()?.parse().ok());
    inner.unwrap_or(pid)
}

/// Returns whether it has HotSpot's library in it, which OpenJ9 has a stand-in for.
pub(crate) fn is_hotspot(pid: u32) -> bool {
    let maps = fs::read_to_string(file(pid, "maps")).unwrap_or_default();
    maps.contains("/libjvm.so") && !maps.contains("/libj9")
}

/// Returns whether it has a handler for a signal.
pub(crate) fn catches(pid: u32, signal: i32) -> bool {
    let status = fs::read_to_string(file(pid, "status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    (1..=64).contains(&signal) && mask >> (signal - 1) & 1 == 1
}

/// A process and all that it and its children have started, in the order of their numbers; those whose parents have ended are none of them.
pub fn family(pid: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut parents: Vec<(u32, u32)> = pids.filter_map(|pid| Some((pid, parent(pid)?))).collect();
    parents.sort_unstable();
    let mut family = vec![pid];
    let mut at = 0;
    while let Some(parent) = family.get(at).copied() {
        family.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(child, _)| *child));
        at += 1;
    }
    family.sort_unstable();
    family
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(file(pid, "stat")).ok()?;
    // The state and the parent stand behind the name, which may hold anything.
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

/// A file of it in /proc.
pub(crate) fn file(pid: u32, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{name}"))
}

/// Its words, and then what is set in its environment, as lossy text.
///
/// # Errors
/// When they are not for us to read.
pub(crate) fn words_and_variables(pid: u32) -> io::Result<(Vec<String>, Vec<String>)> {
    let words = |name| Ok::<_, io::Error>(split(&fs::read(file(pid, name))?));
    Ok((words("cmdline")?, words("environ")?))
}

/// What its open files are called, with the link that opens them again.
///
/// # Errors
/// When they are not for us to look at.
pub(crate) fn open_files(pid: u32) -> io::Result<Vec<(PathBuf, String)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(file(pid, "fd"))? {
        let link = entry?.path();
        // One that was closed in between is none.
        if let Ok(target) = fs::read_link(&link) {
            files.push((link, String::from_utf8_lossy(&target.into_os_string().into_vec()).into_owned()));
        }
    }
    Ok(files)
}

fn split(bytes: &[u8]) -> Vec<String> {
    let words = bytes.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    words.map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // The program was replaced while it ran, as an upgrade does.
    name.strip_suffix(" (deleted)").unwrap_or(&name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtimes_are_known_by_program_and_by_library() {
        for (name, runtime) in [
            ("ruby3.1", Some(Runtime::Ruby)),
            ("ruby", Some(Runtime::Ruby)),
            ("python3.11", Some(Runtime::Python)),
            ("nodejs", Some(Runtime::Node)),
            ("java", Some(Runtime::Jvm)),
            ("rubyfmt", None),
            ("sleep", None),
        ] {
            assert_eq!(of_name(name), runtime, "{name}");
        }
        let maps = |path: &str| format!("7f00-7f01 r-xp 00000000 08:01 42   {path}\n").into_bytes();
        assert_eq!(of_maps(&maps("/usr/lib/libruby-3.1.so.3.1.2")), Some(Runtime::Ruby));
        assert_eq!(of_maps(&maps("/opt/jdk/lib/server/libjvm.so")), Some(Runtime::Jvm));
        assert_eq!(of_maps(&maps("/usr/lib/libc.so.6")), None);
    }

    #[test]
    fn children_of_children_belong_to_the_family() {
        let mut shell = std::process::Command::new("sh");
        let mut shell = shell.args(["-c", "(sleep 60 & echo; wait); exit"]);
        shell = shell.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped());
        let mut child = shell.spawn().unwrap();
        let mut line = [0];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
        let all = family(child.id());
        assert!(all.len() >= 3 && all.contains(&child.id()) && !all.contains(&std::process::id()), "{all:?}");
        assert!(family(std::process::id()).contains(&all[2]));
        for pid in all {
            let _ = std::process::Command::new("kill").arg(pid.to_string()).status();
        }
        child.wait().unwrap();
    }

    #[test]
    fn this_process_is_alive_and_no_runtime() {
        let pid = std::process::id();
        assert!(mallow_launch::started::is_alive(pid) && runtime(pid).is_none() && !catches(pid, 12));
        assert_eq!(inner_pid(pid), pid);
        assert!(!mallow_launch::started::is_alive(u32::MAX));
    }
}
