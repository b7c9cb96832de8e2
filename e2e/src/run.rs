//! Runs commands under an environment that is the same on every machine, and keeps what they printed.

use std::fmt;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Longer than any command of the tests takes on a slow machine; a hang must become a failure.
const TIME_MAX: Duration = Duration::from_secs(300);

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It ended with this status.
    Status(i32),
    /// This signal killed it.
    Signal(i32),
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        match status.signal() {
            Some(signal) => Exit::Signal(signal),
            None => Exit::Status(status.code().unwrap_or(-1)),
        }
    }
}

/// A command that has ended.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The command as a line that a shell takes.
    pub line: String,
    /// How it ended.
    pub exit: Exit,
    /// What it wrote to stdout.
    pub stdout: String,
    /// What it wrote to stderr.
    pub stderr: String,
}

impl Finished {
    /// The command itself when it ended with `exit`.
    ///
    /// # Panics
    /// When it ended otherwise, with all that it printed.
    #[must_use]
    #[track_caller]
    pub fn ended(self, exit: Exit) -> Self {
        assert!(self.exit == exit, "expected {exit:?}\n{self}");
        self
    }

    /// The command itself when it ended with status 0.
    ///
    /// # Panics
    /// When it ended otherwise, with all that it printed.
    #[must_use]
    #[track_caller]
    pub fn well(self) -> Self {
        self.ended(Exit::Status(0))
    }
}

impl fmt::Display for Finished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, exit, stdout, stderr } = self;
        writeln!(f, "repeat with: {line}\nended: {exit:?}")?;
        for (name, text) in [("stdout", stdout), ("stderr", stderr)] {
            let start: String = text.chars().take(2000).collect();
            writeln!(f, "--- {name}, {} bytes\n{start}", text.len())?;
        }
        Ok(())
    }
}

/// `program` with nothing in its environment but PATH and LC_ALL, so that programs that copy their environment
/// allocate the same everywhere, and with no signal ignored, as tests that a script runs in the background would hand on.
#[must_use]
pub fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("/usr/bin/env");
    command.arg("--default-signal").arg(program);
    command.env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C").stdin(Stdio::null());
    command
}

/// The `mallow` under test, named by MALLOW_BIN.
///
/// # Panics
/// When MALLOW_BIN does not name a file.
#[must_use]
pub fn mallow_binary() -> PathBuf {
    let binary = std::env::var_os("MALLOW_BIN")
        .expect("MALLOW_BIN must name the mallow binary; `cargo xtask test e2e` builds it and sets it");
    assert!(
        Path::new(&binary).is_file(),
        "MALLOW_BIN names {}, which is no file; `cargo xtask test e2e` builds it and sets it",
        binary.display()
    );
    binary.into()
}

/// A command of the `mallow` under test.
///
/// # Panics
/// As [`mallow_binary`].
#[must_use]
pub fn mallow() -> Command {
    command(mallow_binary())
}

/// The words before a program under each way of watching it whose status mallow passes on.
pub const WATCHES: [&[&str]; 4] = [
    &["record", "-o", "a.mallow", "--force", "--"],
    &["stat", "-o", "stat.json", "--force", "--"],
    &["cpu", "-o", "cpu.mallow", "--force", "--"],
    &["cpu", "-e", "timers", "-o", "cpu.mallow", "--force", "--"],
];

/// Runs a command to its end.
///
/// # Panics
/// When it cannot be started or does not end.
#[must_use]
#[track_caller]
pub fn finish(command: &mut Command) -> Finished {
    let (mut stdout, mut stderr) = (catch(), catch());
    command.stdout(stdout.try_clone().expect("a file has room for another handle"));
    command.stderr(stderr.try_clone().expect("a file has room for another handle"));
    let line = line(command);
    let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start `{line}`: {error}"));
    let exit = wait(&mut child, &line);
    Finished { line, exit, stdout: text(&mut stdout), stderr: text(&mut stderr) }
}

/// Waits until a child ends.
///
/// # Panics
/// When it takes longer than any command of the tests should.
#[track_caller]
pub fn wait(child: &mut Child, line: &str) -> Exit {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return status.into();
        }
        if start.elapsed() > TIME_MAX {
            child.kill().ok();
            panic!("`{line}` did not end within {} s", TIME_MAX.as_secs());
        }
        let pause_us = if start.elapsed() < Duration::from_millis(50) { 500 } else { 5_000 };
        std::thread::sleep(Duration::from_micros(pause_us));
    }
}

/// Output goes to a file and not to a pipe: a grandchild that outlives the command would hold a pipe open.
fn catch() -> File {
    tempfile::tempfile().expect("the temporary folder takes another file")
}

fn text(file: &mut File) -> String {
    use std::io::{Read, Seek};
    let mut bytes = Vec::new();
    file.rewind().expect("a file can be read from its start");
    file.read_to_end(&mut bytes).expect("a file can be read");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A command as a line for a shell: folder, environment, program, arguments.
#[must_use]
pub fn line(command: &Command) -> String {
    let mut words = vec!["env".to_owned(), "-i".to_owned()];
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            words.push(quoted(&format!("{}={}", name.display(), value.display())));
        }
    }
    words.push(quoted(&command.get_program().to_string_lossy()));
    words.extend(command.get_args().map(|argument| quoted(&argument.to_string_lossy())));
    let folder =
        command.get_current_dir().map(|folder| format!("cd {} && ", quoted(&folder.to_string_lossy())));
    folder.unwrap_or_default() + &words.join(" ")
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-=+:,@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_can_be_typed_into_a_shell() {
        let mut run = command("/bin/echo");
        run.args(["a b", "it's"]);
        assert_eq!(
            line(&run),
            r"env -i LC_ALL=C PATH=/usr/bin:/bin /usr/bin/env --default-signal /bin/echo 'a b' 'it'\''s'"
        );
        let repeated = finish(command("/bin/sh").args(["-c", &line(&run)])).well();
        assert_eq!(repeated.stdout, "a b it's\n");
    }

    #[test]
    fn output_and_end_are_kept() {
        let finished = finish(command("/bin/sh").args(["-c", "echo out; echo err >&2; kill -9 $$"]));
        assert_eq!((finished.stdout.as_str(), finished.stderr.as_str()), ("out\n", "err\n"));
        assert_eq!(finished.exit, Exit::Signal(9));
    }
}
