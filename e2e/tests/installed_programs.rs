//! All programs of this system, with one argument each: `record` counts what a library counts that does nothing else (`programs/real/counting.c`), and what they
//! write to stdout and how they end is as without either.

use e2e::Workshop;
use e2e::program::build_text_with;
use e2e::run::{self, Exit, Finished};
use e2e::session::json;
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const FOLDERS: [&str; 2] = ["/usr/bin", "/usr/sbin"];
/// Those that end others or the system, whatever their argument is.
const NOT_STARTED: [&str; 7] = ["killall5", "halt", "poweroff", "reboot", "shutdown", "init", "telinit"];
/// Those that look at all processes, and mallow is one; and Node, which mallow has write the names of its code.
const DIFFERENT: [&str; 4] = ["fuser", "peekfd", "node", "nodejs"];
const SECONDS_MAX: &str = "10";
/// How often a program is run again whose counts differ.
const RUNS_MAX: usize = 8;
/// Fewer would be no test.
const COMPARED_MIN: usize = 100;

/// Allocations, frees and bytes.
type Counts = [u64; 3];

struct Bench {
    workshop: Workshop,
    library: PathBuf,
}

impl Bench {
    fn new() -> Bench {
        let workshop = Workshop::new("installed");
        let text = fs::read_to_string(e2e::repository().join("programs/real/counting.c")).unwrap();
        let library = build_text_with(workshop.path(), "c.so", &text, &["-shared", "-fPIC"]);
        Bench { workshop, library }
    }

    fn run(&self, words: &[&OsStr]) -> Finished {
        let mut command = run::command("timeout");
        command.args(["-k", "1", SECONDS_MAX]).args(words).current_dir(self.workshop.path());
        run::finish(command.env("HOME", self.workshop.path()))
    }

    fn recorded(&self, words: &[&OsStr]) -> Finished {
        let mallow = run::mallow_binary();
        let record = ["-q", "record", "-o", "a.mallow", "--force", "--"].map(OsStr::new);
        self.run(&[&[mallow.as_os_str()], &record[..], words].concat())
    }

    /// What mallow counts; none where the program cannot be recorded.
    fn counts(&self) -> Option<Counts> {
        let mut report = run::mallow();
        report.args(["report", "--json", "--limit", "1"]).arg(self.workshop.file("a.mallow"));
        let totals = &json(&run::finish(&mut report).well().stdout)["totals"];
        let count = |name: &str| totals[name].as_u64();
        Some([count("allocations")?, count("frees")?, count("bytes")?])
    }

    /// What the library counts, in an environment with as many letters as mallow gives, and how the program ends beside it. No counts where no process has
    /// loaded it.
    fn counted(&self, words: &[&OsStr], variables: &[(String, usize)]) -> (Exit, Option<Counts>) {
        let sums = self.workshop.file("sums");
        fs::write(&sums, [0; 4096]).unwrap();
        let mut command = vec![OsStr::new("env").to_owned()];
        for (name, length) in variables {
            let value = match name.as_str() {
                "LD_PRELOAD" => padded(&self.library, *length),
                "MALLOW_SESSION" => padded(&sums, *length),
                _ => "-".repeat(*length),
            };
            command.push(format!("{name}={value}").into());
        }
        let command: Vec<&OsStr> = command.iter().map(|word| &**word).chain(words.iter().copied()).collect();
        let exit = self.run(&command).exit;
        let bytes = fs::read(&sums).unwrap();
        let [processes, counts @ ..] = [0, 1, 2, 3].map(|at| u64::from_le_bytes(bytes.as_chunks().0[at]));
        (exit, (processes > 0).then_some(counts))
    }

    /// The variables that mallow gives a program, and how long their values are.
    fn variables(&self) -> Vec<(String, usize)> {
        let shown = self.recorded(&[OsStr::new("env")]).well().stdout;
        let of_mallow = |line: &str| {
            let (name, value) = line.split_once('=')?;
            let is_given = name == "LD_PRELOAD" || name.starts_with("MALLOW_");
            is_given.then(|| (name.to_owned(), value.len()))
        };
        shown.lines().filter_map(of_mallow).collect()
    }
}

/// A path with so many letters.
fn padded(path: &Path, length: usize) -> String {
    let path = path.to_str().unwrap();
    assert!(path.len() <= length, "{path} has more than {length} letters");
    "/".repeat(length - path.len()) + path
}

/// Executables, each name once.
fn installed() -> Vec<PathBuf> {
    let mut programs = vec![];
    for folder in FOLDERS {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let is_program = || {
                let is_executable =
                    fs::metadata(&path).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0);
                is_executable && begins_as_elf(&path)
            };
            if !NOT_STARTED.contains(&&*name) && is_program() {
                programs.push(path);
            }
        }
    }
    programs.sort();
    programs
}

fn begins_as_elf(path: &Path) -> bool {
    let mut magic = [0; 4];
    fs::File::open(path).is_ok_and(|mut file| file.read_exact(&mut magic).is_ok()) && magic == *b"\x7fELF"
}

/// Numbers are those of processes, times and addresses.
fn without_numbers(text: &str) -> String {
    text.chars().filter(|c| !c.is_ascii_hexdigit()).collect()
}

/// What came of one program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// mallow says that it cannot record it, or there is no process that loads libraries.
    Unrecorded,
    /// It does not end, does something else each time, or is one of those that differ.
    Unsteady,
    Equal,
    Wrong,
}

fn outcome(bench: &Bench, program: &Path, variables: &mut Vec<(String, usize)>) -> Outcome {
    let words = [program.as_os_str(), OsStr::new("--help")];
    let ends = |finished: &Finished| (finished.exit, without_numbers(&finished.stdout));
    let bare = bench.run(&words);
    if bare.exit == Exit::Status(124) || ends(&bare) != ends(&bench.run(&words)) {
        return Outcome::Unsteady;
    }
    let recorded = bench.recorded(&words);
    if recorded.exit == Exit::Status(125) && recorded.stderr.contains("mallow: cannot record") {
        return Outcome::Unrecorded;
    }
    if ends(&recorded) != ends(&bare) {
        println!("bare {bare}recorded {recorded}");
        return Outcome::Wrong;
    }
    let mut counts = bench.counts();
    let (exit, mut counted) = bench.counted(&words, variables);
    if exit != bare.exit {
        println!("{} ends with {exit:?} beside the library", program.display());
        return Outcome::Wrong;
    }
    if counted.is_none() {
        return Outcome::Unrecorded;
    }
    if DIFFERENT.iter().any(|name| program.ends_with(name)) || counted != bench.counted(&words, variables).1 {
        return Outcome::Unsteady;
    }
    // The number of a process has a digit more, or a program's hash tables depend on addresses: by chance both agree on no three numbers that are wrong.
    for _ in 0..RUNS_MAX {
        if counts == counted {
            return Outcome::Equal;
        }
        *variables = bench.variables();
        bench.recorded(&words);
        (counts, counted) = (bench.counts(), bench.counted(&words, variables).1);
    }
    println!("{}: {counts:?}, of the library {counted:?}", program.display());
    Outcome::Wrong
}

#[test]
#[ignore = "two minutes: in `cargo xtask long`"]
fn each_counts_as_under_a_library_that_does_nothing_else_and_prints_and_ends_as_bare() {
    let bench = Bench::new();
    let mut variables = bench.variables();
    let programs = installed();
    let outcomes: Vec<Outcome> =
        programs.iter().map(|program| outcome(&bench, program, &mut variables)).collect();
    let of = |wanted: Outcome| outcomes.iter().filter(|outcome| **outcome == wanted).count();
    let (equal, unrecorded) = (of(Outcome::Equal), of(Outcome::Unrecorded));
    println!("of {} programs {equal} are equal, {unrecorded} cannot be recorded", programs.len());
    assert_eq!(of(Outcome::Wrong), 0, "{equal} are equal");
    assert!(equal >= COMPARED_MIN, "{equal} of {} programs were compared", programs.len());
    assert!(
        of(Outcome::Unsteady) * 10 < programs.len() - unrecorded,
        "of {} programs {equal} were",
        programs.len()
    );
}
