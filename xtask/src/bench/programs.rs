//! What is measured: the programs, their inputs, and how long each of them has to work.

use crate::run;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Pairs of malloc and free in a storm, shared by its threads: enough for the slowest tool to take seconds.
const STORM_PAIRS: u64 = 2_400_000;
const STORM_PAIRS_QUICK: u64 = 20_000;

/// What bar a program is held against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Does nothing but allocate and free.
    Storm {
        /// Frames above the loop.
        depth: u32,
        /// Threads that storm at once.
        threads: u32,
    },
    /// Does somebody's work.
    Real,
}

/// Something to run.
#[derive(Debug, Clone)]
pub(super) struct Program {
    /// Its name in the tables and for `--only`.
    pub(super) name: String,
    pub(super) kind: Kind,
    /// An ELF executable: a script would be a shell under measurement.
    pub(super) executable: PathBuf,
    pub(super) arguments: Vec<String>,
    pub(super) environment: Vec<(&'static str, &'static str)>,
    /// What it reads from stdin.
    pub(super) input: Option<PathBuf>,
    /// For a server, the requests of each kind that its client sends.
    pub(super) requests: Option<u32>,
}

impl Program {
    pub(super) fn real(name: &str, executable: PathBuf, arguments: &[&str]) -> Program {
        Program {
            name: name.to_owned(),
            kind: Kind::Real,
            executable,
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
            environment: Vec::new(),
            input: None,
            requests: None,
        }
    }
}

/// Every program, in the order of the tables. Storms are compiled into `scratch`.
pub(super) fn all(root: &Path, scratch: &Path, quick: bool) -> Result<Vec<Program>, String> {
    let storm = compile_storm(root, scratch)?;
    let pairs = if quick { STORM_PAIRS_QUICK } else { STORM_PAIRS };
    let mut programs = Vec::new();
    for depth in [10, 40] {
        for threads in [1, 2, 8] {
            programs.push(storm_of(&storm, depth, threads, pairs));
        }
    }
    programs.push(cc1plus(root, quick)?);
    programs.extend(interpreters(root, quick)?);
    programs.push(sqlite(root, scratch, quick)?);
    let mut redis = Program::real("redis-server", executable("redis-server")?, &[]);
    redis.requests = Some(if quick { 500 } else { 60_000 });
    programs.push(redis);
    Ok(programs)
}

/// The storm with its threads sharing `pairs` pairs.
pub(super) fn storm_of(executable: &Path, depth: u32, threads: u32, pairs: u64) -> Program {
    let iterations = pairs / u64::from(threads);
    Program {
        kind: Kind::Storm { depth, threads },
        ..Program::real(
            &format!("storm-{depth}x{threads}"),
            executable.to_owned(),
            &[&depth.to_string(), &threads.to_string(), &iterations.to_string()],
        )
    }
}

/// Compiles the storm as its hazard test does.
pub(super) fn compile_storm(root: &Path, scratch: &Path) -> Result<PathBuf, String> {
    compile(root, scratch, "storm")
}

/// Stacks whose frames are all walked anew, `levels` of them each time.
///
/// # Errors
/// As [`compile_storm`].
pub(super) fn fresh_frames(root: &Path, scratch: &Path, levels: u64, rounds: u64) -> Result<Program, String> {
    let executable = compile(root, scratch, "fresh_frames")?;
    Ok(Program::real("fresh frames", executable, &[&levels.to_string(), &rounds.to_string()]))
}

fn compile(root: &Path, scratch: &Path, name: &str) -> Result<PathBuf, String> {
    compile_with(root, scratch, name, name, &[])
}

/// Compiles a hazard's source under another name, with more for the linker.
///
/// # Errors
/// As [`compile_storm`].
pub(super) fn compile_with(
    root: &Path,
    scratch: &Path,
    name: &str,
    as_name: &str,
    libs: &[&str],
) -> Result<PathBuf, String> {
    let program = scratch.join(as_name);
    let flags = ["-O2", "-g", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-pthread", "-o"];
    let mut command = Command::new("cc");
    let source = root.join("programs/hazards").join(name).with_extension("c");
    run::captured(command.args(flags).arg(&program).arg(source).args(libs))?;
    Ok(program)
}

/// The compiler proper: the driver `g++` only starts it. Some distributions' cc1plus does not know the folder of
/// the machine's own headers unless the driver names it.
fn cc1plus(root: &Path, quick: bool) -> Result<Program, String> {
    let said = |option: &str| run::captured(Command::new("g++").arg(option));
    let executable = executable(said("-print-prog-name=cc1plus")?.trim())?;
    let headers = said("-print-multiarch")?;
    let source = if quick { "programs/hazards/cxx_exceptions.cpp" } else { "programs/real/templates.cpp" };
    let source = root.join(source).display().to_string();
    // Not -O1: heaptrack 1.4's interpreter then asks for memory without end and dies of it.
    let mut words = vec!["-quiet", "-D_GNU_SOURCE", "-std=c++17", "-O0"];
    if !headers.trim().is_empty() {
        words.extend(["-imultiarch", headers.trim()]);
    }
    words.extend([source.as_str(), "-o", "/dev/null"]);
    Ok(Program::real("cc1plus", executable, &words))
}

fn interpreters(root: &Path, quick: bool) -> Result<[Program; 2], String> {
    let path = |name: &str| root.join("programs/real").join(name).display().to_string();
    // The distribution's own; a name on PATH may be a version manager's script.
    let (python, ruby) = (executable("/usr/bin/python3")?, executable("/usr/bin/ruby")?);
    let mut python = if quick {
        Program::real("python3", python, &["-S", "-c", "print(len([str(i) for i in range(5000)]))"])
    } else {
        Program::real("python3", python, &[&path("alloc.py")])
    };
    // Without its own pools every object is a call of malloc; without a seed the counts differ between runs.
    python.environment = vec![("PYTHONMALLOC", "malloc"), ("PYTHONHASHSEED", "0")];
    let ruby = if quick {
        Program::real(
            "ruby",
            ruby,
            &["--disable-gems", "-e", "puts (1..2000).map { |i| 'x' * (100 + i % 50) }.length"],
        )
    } else {
        Program::real("ruby", ruby, &[&path("alloc.rb")])
    };
    Ok([python, ruby])
}

fn sqlite(root: &Path, scratch: &Path, quick: bool) -> Result<Program, String> {
    let mut program = Program::real("sqlite3", executable("sqlite3")?, &[":memory:"]);
    let mut script = root.join("programs/real/index.sql");
    if quick {
        script = scratch.join("small.sql");
        let text = "CREATE TABLE t(a); INSERT INTO t VALUES (1), (2); CREATE INDEX i ON t(a);\n";
        std::fs::write(&script, text).map_err(|error| format!("{}: {error}.", script.display()))?;
    }
    program.input = Some(script);
    Ok(program)
}

/// The path of an ELF executable. Links are not followed: redis-server is one to a program that goes by the name
/// it is called with.
pub(super) fn executable(name: &str) -> Result<PathBuf, String> {
    let path = if name.contains('/') {
        PathBuf::from(name)
    } else {
        let found = run::captured(Command::new("sh").args(["-c", "command -v \"$1\"", "sh", name]));
        PathBuf::from(
            found.map_err(|_| format!("`{name}` is missing; run `cargo xtask packages`."))?.trim_end(),
        )
    };
    let mut magic = [0; 4];
    match File::open(&path).and_then(|mut file| file.read_exact(&mut magic)) {
        Ok(()) if magic == *b"\x7fELF" => Ok(path),
        Ok(()) => Err(format!("{} is a script; the program itself has to be measured.", path.display())),
        Err(error) => Err(format!("{} cannot be read: {error}; run `cargo xtask packages`.", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_share_the_pairs_of_a_storm() {
        let program = storm_of(Path::new("storm"), 40, 8, 800);
        assert_eq!((program.name.as_str(), program.arguments.join(" ").as_str()), ("storm-40x8", "40 8 100"));
    }

    #[test]
    fn a_script_is_no_executable() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("shim");
        std::fs::write(&script, "#!/bin/sh\n").unwrap();
        let fault = executable(&script.display().to_string()).unwrap_err();
        assert!(fault.ends_with("is a script; the program itself has to be measured."), "{fault}");
        assert!(executable("mallow-has-no-such-program").unwrap_err().contains("is missing"));
        assert!(executable("sh").unwrap().is_absolute());
    }
}
