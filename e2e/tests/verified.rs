//! Every stack from the cache equals the one from a full stack walk.
//!
//! The recorder is built with the feature `verify` and compares each memoised stack with a walk from scratch and with
//! libgcc's unwinder, which shares no code with ours.

use crate::scripts::{pythons, rubies, script};
use e2e::program::Program;
use e2e::run::{self, command};
use e2e::session::metric;
use e2e::{Session, Workshop, repository};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::OnceLock;

/// The hazard programs whose stacks are difficult to unwind. `signal_storm` interrupts the recorder itself a thousand
/// times a second.
const HAZARDS: &[&str] = &[
    "alloca_frames",
    "cross_thread_free",
    "cxx_exceptions",
    "dead_return",
    "deep_recursion",
    "dlclose_same_address",
    "family_cxx",
    "fork_in_loop",
    "fork_with_threads",
    "guard_behind_stack",
    "longjmp_out",
    "malloc_in_signal",
    "many_stacks",
    "often_path",
    "overaligned_frames",
    "sigaltstack_handler",
    "signal_storm",
    "swapcontext_fibers",
    "thread_churn",
    "tls_destructors",
    "vfork_child",
    "wide_frames",
    "zero_return",
];

/// Builds the recorder that checks itself.
fn checking_recorder() -> &'static PathBuf {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("verify");
        let manifest = repository().join("recorder/Cargo.toml");
        let mut build = std::process::Command::new(env!("CARGO"));
        build.args(["build", "--release", "--locked", "--package", "mallow-preload"]);
        build.args(["--features", "mallow-preload/verify", "--manifest-path"]).arg(manifest);
        build.arg("--target-dir").arg(&target).env_remove("CARGO_TARGET_DIR");
        let _ = run::finish(&mut build).well();
        target.join("release/libmallow_preload.so")
    })
}

/// Returns the path of the C runtime's unwinder, as the compiler knows it.
fn libgcc() -> String {
    run::finish(command("gcc").arg("-print-file-name=libgcc_s.so.1")).well().stdout.trim().to_owned()
}

/// The number of stacks that were compared with each unwinder, and how many differed.
#[derive(Debug, Default)]
struct Verdict {
    walked: u64,
    walked_differ: u64,
    judged: u64,
    judged_differ: u64,
}

/// Script stacks that were compared with those from scratch, and how many differ; pairs of stacks, and how many have
/// more calls of the interpreter than the script has entries, and how many fewer.
type Scripts = [u64; 5];

/// Records a command with the checking recorder and returns what its processes report about their scripts, added up.
fn scripts(session: &Session) -> Scripts {
    let recorded =
        session.clone().env("MALLOW_PRELOAD", &checking_recorder().to_string_lossy()).record().well();
    let mut sum = Scripts::default();
    for line in recorded.stderr.lines().filter(|line| line.contains("stacks of scripts")) {
        let numbers: Vec<u64> = line
            .split(|letter: char| !letter.is_ascii_digit())
            .filter_map(|number| number.parse().ok())
            .collect();
        let [_pid, of_line @ ..] = &numbers[..] else { panic!("no numbers: {line}") };
        assert_eq!(of_line.len(), sum.len(), "{line}");
        sum.iter_mut().zip(of_line).for_each(|(sum, number)| *sum += number);
    }
    assert!(sum[0] > 0 && sum[2] > 0, "nothing was compared\n{recorded}");
    sum
}

/// Records a command with the checking recorder and adds up what its processes report.
fn verdict(session: &Session) -> Verdict {
    let recorded = session
        .clone()
        .env("MALLOW_PRELOAD", &checking_recorder().to_string_lossy())
        .env("LD_PRELOAD", &libgcc())
        .record();
    let mut sum = Verdict::default();
    for line in recorded.stderr.lines().filter(|line| line.contains("differ from a walk from scratch")) {
        let numbers: Vec<u64> = line
            .split(|letter: char| !letter.is_ascii_digit())
            .filter_map(|number| number.parse().ok())
            .collect();
        let [_pid, walked, walked_differ, judged, judged_differ] = numbers[..] else {
            panic!("this line should hold five numbers: {line}");
        };
        sum.walked += walked;
        sum.walked_differ += walked_differ;
        sum.judged += judged;
        sum.judged_differ += judged_differ;
    }
    assert!(sum.walked > 0, "nothing was compared\n{recorded}");
    let report = session.report(&[]);
    let recorded_calls = metric(&report["totals"], "allocations") + metric(&report["totals"], "failed");
    assert_eq!(sum.walked, recorded_calls, "a stack was not compared");
    assert_eq!(sum.judged, sum.walked, "libgcc was not there to judge");
    sum
}

#[track_caller]
fn assert_no_difference(name: &str, verdict: &Verdict) {
    assert_eq!((verdict.walked_differ, verdict.judged_differ), (0, 0), "{name}: {verdict:?}");
}

#[test]
fn hazards_have_the_stacks_that_two_judges_find() {
    for name in HAZARDS {
        let program = Program::load(name);
        let workshop = Workshop::new(&format!("verified-{name}"));
        let built = program.build(workshop.path(), &Value::Null);
        let words = program.words(&built);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        assert_no_difference(name, &verdict(&Session::new(workshop.path(), &words)));
    }
}

#[test]
fn real_programs_have_the_stacks_that_two_judges_find() {
    let workshop = Workshop::new("verified-real");
    let source = workshop.file("map.cpp");
    std::fs::write(&source, "#include <map>\n#include <string>\nstd::map<int, std::string> all;\n").unwrap();
    let source = source.to_string_lossy().into_owned();
    let commands: [&[&str]; 4] = [
        &[
            "/usr/bin/python3",
            "-c",
            "import json; print(len(json.dumps([{str(i): i} for i in range(2000)])))",
        ],
        &["/usr/bin/ruby", "-e", "p (1..2000).map { |i| i.to_s * 30 }.size"],
        &["/usr/bin/g++", "-O2", "-c", &source, "-o", "/dev/null"],
        &["/usr/bin/sqlite3", ":memory:", "create table t(a); insert into t values (1); select * from t;"],
    ];
    for words in commands {
        let session = Session::new(workshop.path(), words).env("PYTHONMALLOC", "malloc");
        assert_no_difference(words[0], &verdict(&session));
    }
}

/// Strings are made and freed, fibers and threads come and go, code is moved by the garbage collector.
#[test]
fn stacks_of_ruby_are_those_from_scratch_and_each_call_of_the_interpreter_has_its_frames() {
    for ruby in rubies() {
        for name in ["frames.rb", "reused.rb", "thread_ends.rb"] {
            let workshop = Workshop::new("verified-scripts");
            let [stacks, differ, _, more, fewer] =
                scripts(&Session::new(workshop.path(), &[&ruby, &script(name)]));
            println!("{ruby} {name}: {stacks} stacks");
            assert!(stacks > 20_000, "{ruby} {name}: {stacks}");
            assert_eq!((differ, more, fewer), (0, 0, 0), "{ruby} {name}");
        }
    }
}

/// A large gem at work, and code that Ruby compiles while it runs: there native stacks end at the compiled code, and
/// do not contain all calls of the interpreter.
#[test]
fn stacks_of_active_support_and_of_compiled_ruby_are_those_from_scratch() {
    let work = "require 'active_support/all'; rows = (1..3000).map { |i| {id: i, at: Time.at(i), name: 'ox'.pluralize(i), body: 'row'.titleize} }; \
                puts ActiveSupport::JSON.encode(rows).size + rows.index_by { |row| row[:id] }.size";
    for compiled in [false, true] {
        let workshop = Workshop::new("verified-gem");
        let mut words = vec!["/usr/bin/ruby", "-e", work];
        if compiled {
            words.splice(1..1, ["--yjit", "--yjit-call-threshold=2"]);
        }
        let [stacks, differ, _, more, fewer] = scripts(&Session::new(workshop.path(), &words));
        println!("active support, compiled {compiled}: {stacks} stacks");
        assert!(stacks > 300_000, "{stacks}");
        assert_eq!(differ, 0);
        assert_eq!((more, fewer > 0), (0, compiled), "{fewer}");
    }
}

/// Two threads, and tens of thousands of calls of every kind, each object a block of its own.
#[test]
fn stacks_of_scripts_are_those_from_scratch_and_each_call_of_the_interpreter_has_its_frames() {
    for python in pythons() {
        for name in ["frames.py", "reused.py", "called_otherwise.py"] {
            let workshop = Workshop::new("verified-scripts");
            let session =
                Session::new(workshop.path(), &[&python, &script(name)]).env("PYTHONMALLOC", "malloc");
            let [stacks, differ, _, more, fewer] = scripts(&session);
            println!("{python} {name}: {stacks} stacks");
            assert!(stacks > 50_000, "{python} {name}: {stacks}");
            assert_eq!((differ, more, fewer), (0, 0, 0), "{python} {name}");
        }
    }
}

/// Every version has as many stacks as a program that runs for hours: other interpreters, greenlets, threads that outlive the interpreter.
#[test]
#[ignore = "minutes for each interpreter: in `cargo xtask long`"]
fn ten_million_stacks_of_each_python_are_those_from_scratch() {
    const STACKS: u64 = 10_000_000;
    for python in every_python() {
        let mut sum = Scripts::default();
        let greenlets = greenlets(&python);
        for run in 0.. {
            // One of four runs has other lists of frames, too; it is the longer one.
            let words = match run % 4 {
                0 => vec!["3", "other", &greenlets],
                _ => vec!["3", "own"],
            };
            let workshop = Workshop::new("verified-hazards");
            let path = script("hazards.py");
            let session = Session::new(workshop.path(), &[&[&*python, &path], &words[..]].concat())
                .env("PYTHONMALLOC", "malloc");
            let [stacks, differ, pairs, more, fewer] = scripts(&session);
            assert_eq!(differ, 0, "{python}, run {run}: {stacks} stacks");
            // Each other stack is one that the guide names: what the interpreter calls while it refuses a call that
            // is too deep, and an exception that is thrown into a generator which delegates to another one.
            let known = if words[1] == "own" { more + fewer } else { fewer };
            assert!(known <= 20, "{python}, run {run}: {more} more, {fewer} fewer of {pairs} pairs");
            sum.iter_mut().zip([stacks, differ, pairs, more, fewer]).for_each(|(sum, one)| *sum += one);
            if sum[0] >= STACKS {
                break;
            }
        }
        println!("{python}: {sum:?}");
    }
}

#[test]
#[ignore = "minutes for each interpreter: in `cargo xtask long`"]
fn ten_million_stacks_of_each_ruby_are_those_from_scratch() {
    const STACKS: u64 = 10_000_000;
    for ruby in rubies() {
        let mut sum = Scripts::default();
        while sum[0] < STACKS {
            for name in ["frames.rb", "reused.rb", "thread_ends.rb"] {
                let workshop = Workshop::new("verified-ruby");
                let of_name = scripts(&Session::new(workshop.path(), &[&ruby, &script(name)]));
                assert_eq!((of_name[1], of_name[3], of_name[4]), (0, 0, 0), "{ruby} {name}: {of_name:?}");
                sum.iter_mut().zip(of_name).for_each(|(sum, one)| *sum += one);
            }
        }
        println!("{ruby}: {sum:?}");
    }
}

/// Returns all Pythons of a machine: Debian's, those of `MALLOW_PYTHONS`, and those of pyenv.
pub(crate) fn every_python() -> Vec<String> {
    let mut all = pythons();
    let home = std::env::var("PYENV_ROOT")
        .map(PathBuf::from)
        .unwrap_or_else(|_| PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".pyenv"));
    let folders = std::fs::read_dir(home.join("versions")).into_iter().flatten().flatten();
    let mut of_pyenv: Vec<String> = folders
        .map(|folder| folder.path().join("bin/python3").to_string_lossy().into_owned())
        .filter(|path| minor(path).is_some_and(|minor| minor >= 8))
        .collect();
    of_pyenv.sort();
    all.extend(of_pyenv);
    all
}

/// Returns the folder of greenlets for a Python, which the long suite fetches.
fn greenlets(python: &str) -> String {
    let minor = minor(python).unwrap();
    let pinned = repository().join(format!("e2e/tests/greenlet/3.{minor}.json"));
    let pinned: Value = serde_json::from_str(&std::fs::read_to_string(pinned).unwrap()).unwrap();
    let version = pinned["version"].as_str().unwrap();
    let judges = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).with_file_name("judges");
    let folder = judges.join(format!("greenlet-{version}-python3.{minor}"));
    assert!(folder.is_dir(), "{} is missing: `cargo xtask long` fetches it", folder.display());
    folder.to_string_lossy().into_owned()
}

/// Returns the minor version of a Python 3.
fn minor(python: &str) -> Option<u32> {
    let asked =
        std::process::Command::new(python).args(["-c", "import sys; print(sys.version_info[1])"]).output();
    String::from_utf8_lossy(&asked.ok()?.stdout).trim().parse().ok()
}
