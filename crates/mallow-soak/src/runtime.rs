//! Managed runtimes: makes them collect, and reads their own metrics, without a change to the program.
//!
//! Ruby, Python and Node load a script of ours because of their environment ([`Runtimes::environment`]). It connects
//! to a socket here, from a thread or handle that keeps no process alive, and responds to each request after a full
//! collection ([`hook`]). A JVM is queried through its attach interface ([`jvm`]). The socket is in the abstract
//! namespace: it has no file, so it is found after a chroot, and ends with this process.
//!
//! The same hooks write snapshots of a heap that grows ([`Runtimes::snapshot`]).
//!
//! Only processes that the caller names are queried, and only their responses are used.

mod hook;
mod jvm;

use hook::Hooks;
use jvm::Jvms;
use mallow_evidence::RuntimeMetrics;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const RUBY: &str = include_str!("runtime/ruby.rb");
const PYTHON: &str = include_str!("runtime/python.py");
const NODE: &str = include_str!("runtime/node.js");

/// `sun_path` without its leading zero byte.
const ABSTRACT_NAME_BYTES: usize = 107;

/// The managed runtimes of a server.
pub(crate) struct Runtimes {
    /// The folder of the scripts; deleted on drop.
    scripts: TempDir,
    hooks: Hooks,
    jvms: Jvms,
}

impl Runtimes {
    /// Writes the scripts, and waits for runtimes to connect.
    ///
    /// # Errors
    /// If the temporary folder or the socket cannot be created.
    pub(crate) fn open() -> io::Result<Runtimes> {
        let scripts = tempfile::Builder::new().prefix("mallow-soak-").tempdir_in(scripts_parent())?;
        fs::create_dir(scripts.path().join("python"))?;
        // Readable by all: a server that drops its privileges and then starts itself again must still find them, or
        // it would not start. There is no secret in them, and no other user can change them.
        let python = [mallow_capture::PYTHON_HEAP, PYTHON].concat();
        for (name, text) in [("mallow.rb", RUBY), ("mallow.js", NODE), ("python/sitecustomize.py", &python)] {
            let file = scripts.path().join(name);
            mallow_files::replace(&file, text.as_bytes())?;
            fs::set_permissions(&file, Permissions::from_mode(0o644))?;
        }
        for folder in [scripts.path().join("python"), scripts.path().to_owned()] {
            fs::set_permissions(folder, Permissions::from_mode(0o755))?;
        }
        let unique = scripts.path().file_name().unwrap_or_default().to_string_lossy();
        // The maximum length of an address: libuv pads it with zero bytes up to version 1.48, and does not later.
        let name = format!("{unique:-<ABSTRACT_NAME_BYTES$}");
        Ok(Runtimes { hooks: Hooks::listen(name)?, scripts, jvms: Jvms::default() })
    }

    /// Returns the variables to set for the server; `existing` returns the present value of one.
    pub(crate) fn environment(
        &self,
        existing: &dyn Fn(&str) -> Option<OsString>,
    ) -> Vec<(OsString, OsString)> {
        let folder = self.scripts.path();
        let ruby = option("-r", &folder.join("mallow.rb"));
        let node = option("--require=", &folder.join("mallow.js"));
        let mut socket = OsString::from("@");
        socket.push(self.hooks.name());
        let joined = |name: &str, more: OsString, separator: &str| {
            let mut value = existing(name).filter(|value| !value.is_empty()).unwrap_or_default();
            if !value.is_empty() {
                value.push(separator);
            }
            value.push(more);
            (OsString::from(name), value)
        };
        let mut python = folder.join("python").into_os_string();
        if let Some(others) = existing("PYTHONPATH").filter(|value| !value.is_empty()) {
            python.push(":");
            python.push(others);
        }
        vec![
            joined("RUBYOPT", ruby, " "),
            joined("NODE_OPTIONS", node, " "),
            joined("JAVA_TOOL_OPTIONS", "-XX:NativeMemoryTracking=summary".into(), " "),
            ("PYTHONPATH".into(), python),
            ("MALLOW_SOAK_SOCKET".into(), socket),
        ]
    }

    /// Makes every runtime among `pids` collect, and returns the metrics that they report, in the order of their
    /// pids. A runtime that has not responded after `timeout` is left out.
    pub(crate) fn collect(&mut self, pids: &[u32], timeout: Duration) -> Vec<RuntimeMetrics> {
        let deadline = Instant::now() + timeout;
        self.hooks.ask(pids);
        let mut metrics = self.jvms.collect(pids, deadline);
        metrics.extend(self.hooks.answers(pids, deadline));
        metrics.sort_by_key(|metrics| metrics.pid);
        metrics
    }

    /// Makes every JVM among `pids` write a perf map of its compiled code; Node does so all the time.
    pub(crate) fn write_code_names(&mut self, pids: &[u32], timeout: Duration) {
        self.jvms.write_code_names(pids, Instant::now() + timeout);
    }

    /// Makes a process write a snapshot of its managed heap to a new file, in a folder that it can write to: by its
    /// hook, or else as `mallow heap capture` does.
    ///
    /// # Errors
    /// Why there is no snapshot.
    pub(crate) fn snapshot(&mut self, pid: u32, file: &Path, timeout: Duration) -> Result<(), String> {
        let deadline = Instant::now() + timeout;
        let path = file.to_str().ok_or("the folder's name is no text")?;
        if let Some(done) = self.hooks.snapshot(pid, path, deadline) {
            return done;
        }
        let options = mallow_capture::Options { output: Some(file), ..mallow_capture::Options::default() };
        mallow_capture::capture(pid, &options, |_| ()).map(drop).map_err(|error| error.to_string())
    }
}

/// RUBYOPT has no quoting, so the folder's path must not contain blanks.
fn scripts_parent() -> std::path::PathBuf {
    let folder = std::env::temp_dir();
    let is_plain =
        folder.to_str().is_some_and(|path| !path.contains(|c: char| c.is_whitespace() || c == '"'));
    if is_plain && folder.is_absolute() { folder } else { Path::new("/tmp").to_owned() }
}

fn option(name: &str, path: &Path) -> OsString {
    let mut word = OsString::from(name);
    word.push(OsStr::new(path));
    word
}

#[cfg(test)]
mod tests;
