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
    /// A JVM with `jcmd`.
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

/// Whether it is a JVM. A launcher calls its first thread `java` before it has become one.
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

/// The JDK's own `jcmd` if the JVM has one, otherwise that on PATH.
pub fn jcmd(pid: u32) -> PathBuf {
    let beside = fs::read_link(file(pid, "exe")).map(|exe| exe.with_file_name("jcmd"));
    beside.ok().filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from("jcmd"))
}

/// Whether it has a handler for a signal.
pub(crate) fn catches(pid: u32, signal: i32) -> bool {
    let status = fs::read_to_string(file(pid, "status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    (1..=64).contains(&signal) && mask >> (signal - 1) & 1 == 1
}

/// Whether it is there and runs.
pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(file(pid, "stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
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
    fn this_process_is_alive_and_no_runtime() {
        let pid = std::process::id();
        assert!(is_alive(pid) && runtime(pid).is_none() && !catches(pid, 12));
        assert_eq!(inner_pid(pid), pid);
        assert!(!is_alive(u32::MAX));
    }
}
