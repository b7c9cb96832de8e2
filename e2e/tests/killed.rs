//! Nothing is lost on SIGKILL: of the program at random moments, and of mallow itself.

use e2e::program::build_text;
use e2e::run::{self, Exit};
use e2e::session::{json, metric, report_of};
use e2e::{Session, Workshop, stacks};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The maximum number of operations after those that a thread of `burst` published last.
const UNPUBLISHED_MAX: u64 = 64;
const THREADS: usize = 2;
/// How long the program may be blocked after mallow was killed.
const PATIENCE: Duration = Duration::from_secs(15);

/// `burst` is built once, in a folder below the target directory, so that it needs no cleanup.
fn burst() -> &'static Path {
    static BURST: OnceLock<PathBuf> = OnceLock::new();
    BURST.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("killed");
        std::fs::create_dir_all(&folder).unwrap();
        let sources = e2e::repository().join("programs/hazards");
        let header = format!("#include \"{}/hazard.h\"\n", sources.display());
        let source = std::fs::read_to_string(sources.join("burst.c")).unwrap();
        build_text(&folder, "burst", &source.replace("#include \"hazard.h\"\n", &header))
    })
}

/// What the threads published: the sums of completed allocations and frees.
#[derive(Clone, Copy, Debug, Default)]
struct Published {
    allocations: u64,
    frees: u64,
}

fn published(board: &Path) -> Published {
    let bytes = std::fs::read(board).unwrap_or_default();
    let word = |thread: usize, index: usize| {
        let at = thread * 64 + index * 8;
        bytes.get(at..at + 8).map_or(0, |word| u64::from_le_bytes(word.try_into().unwrap()))
    };
    (0..THREADS).fold(Published::default(), |sum, thread| Published {
        allocations: sum.allocations + word(thread, 0),
        frees: sum.frees + word(thread, 1),
    })
}

struct Recording {
    mallow: Child,
    line: String,
    program: u32,
    board: PathBuf,
    trace: PathBuf,
}

/// Records `burst` and waits until it runs its own code.
fn start(workshop: &Workshop) -> Recording {
    let (trace, board) = (workshop.file("burst.mallow"), workshop.file("board"));
    std::fs::remove_file(&board).ok();
    let mut command: Command = run::mallow();
    command.args(["record", "--force", "-o"]).arg(&trace).arg("--").arg(burst()).arg(&board);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mallow = command.spawn().unwrap();
    let start = Instant::now();
    let program = loop {
        if let Some(child) = child_named(mallow.id(), "burst") {
            break child;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "`{}` starts no program", run::line(&command));
        std::thread::yield_now();
    };
    Recording { mallow, line: run::line(&command), program, board, trace }
}

/// Returns the child of a process that has executed the program of this name.
fn child_named(parent: u32, name: &str) -> Option<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{parent}/task")).ok()?;
    tasks
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|children| {
            children.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<u32>>()
        })
        .find(|child| {
            std::fs::read_to_string(format!("/proc/{child}/comm")).is_ok_and(|comm| comm.trim_end() == name)
        })
}

fn kill(process: u32) {
    let _ = run::finish(run::command("kill").args(["-KILL", &process.to_string()]));
}

/// Pseudo-random numbers that are the same in every run.
struct Moments(u64);

impl Moments {
    fn next_us(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }
}

#[test]
fn forty_kills_lose_nothing() {
    kills_lose_nothing(40);
}

#[test]
#[ignore = "a minute, for the rate: in `cargo xtask long`"]
fn two_hundred_kills_lose_nothing() {
    kills_lose_nothing(200);
}

fn kills_lose_nothing(kills: usize) {
    let workshop = Workshop::new("killed");
    let mut moments = Moments(0x6d61_6c6c_6f77);
    let began = Instant::now();
    let mut with_events = 0;
    for round in 0..kills {
        let mut recording = start(&workshop);
        let delay_us = moments.next_us(20_000);
        std::thread::sleep(Duration::from_micros(delay_us));
        kill(recording.program);
        let context = format!("round {round}, killed after {delay_us} us: {}", recording.line);
        assert_eq!(run::wait(&mut recording.mallow, &recording.line), Exit::Status(137), "{context}");
        let report = json(&report_of(&recording.trace, &[]).well().stdout);
        let sum = published(&recording.board);
        let differences = differences(&report, sum);
        assert!(differences.is_empty(), "{context}\n  {}", differences.join("\n  "));
        with_events += usize::from(sum.allocations > 0);
    }
    let took_s = began.elapsed().as_secs();
    println!("{kills} kills, {with_events} of them into running work, took {took_s} s");
    assert!(with_events > kills / 2, "only {with_events} kills struck while the program worked");
}

/// The report must say that the process was killed, and contain what it published and at most 64 more operations per
/// thread. Threads are not separated in the report, so both sides are sums over them.
fn differences(report: &Value, published: Published) -> Vec<String> {
    let mut differences = Vec::new();
    let mut expect = |is_so: bool, what: String| {
        if !is_so {
            differences.push(what);
        }
    };
    // Killed while the loader was running: there was no recorder yet, and this is reported.
    let was_too_early = published.allocations == 0
        && report["warnings"][0]
            .as_str()
            .is_some_and(|said| said.starts_with("no process took the recorder in"));
    let is_whole = report["complete"] == true || was_too_early;
    expect(is_whole, format!("the trace is not complete: {}", report["warnings"]));
    let processes = report["processes"].as_array().unwrap();
    expect(processes.len() == 1, format!("{} processes", processes.len()));
    for process in processes {
        expect(process["exit"] == json!({"signal": 9}), format!("exit is {}", process["exit"]));
    }
    let rows = stacks::of_site(report, &json!({"function": "burst_block"}), burst().parent().unwrap());
    let allocations: u64 = rows.iter().map(|row| metric(row, "allocations")).sum();
    let frees = metric(&report["totals"], "frees");
    expect(
        allocations >= published.allocations && frees >= published.frees,
        format!("{published:?} are published, but {allocations} allocations and {frees} frees recorded"),
    );
    let more = (allocations + frees).saturating_sub(published.allocations + published.frees);
    expect(
        more <= UNPUBLISHED_MAX * THREADS as u64,
        format!("{more} operations more than {published:?} are recorded: {allocations} and {frees}"),
    );
    for row in rows {
        let names = stacks::names(row);
        let depth = names.iter().filter(|name| *name == "under").count();
        let is_whole = names.iter().any(|name| name == "worker") && (1..=20).contains(&depth);
        expect(is_whole, format!("a stack is not whole: {names:?}"));
    }
    differences
}

#[test]
fn a_trace_of_a_killed_mallow_can_be_read() {
    traces_of_a_killed_mallow_can_be_read(1);
}

#[test]
#[ignore = "half a minute, for the rate: in `cargo xtask long`"]
fn ten_traces_of_a_killed_mallow_can_be_read() {
    traces_of_a_killed_mallow_can_be_read(10);
}

fn traces_of_a_killed_mallow_can_be_read(kills: usize) {
    let workshop = Workshop::new("killer");
    let mut moments = Moments(0x007a_6365);
    for round in 0..kills {
        let mut recording = start(&workshop);
        let start = Instant::now();
        while published(&recording.board).allocations == 0 && start.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_micros(moments.next_us(300_000)));
        let second_before = published(&recording.board);
        std::thread::sleep(Duration::from_secs(1));
        kill(recording.mallow.id());
        let exit = run::wait(&mut recording.mallow, &recording.line);
        // The program waits a few seconds for a collector without a heartbeat; then it continues without one.
        std::thread::sleep(Duration::from_millis(300));
        let (before, since) = (published(&recording.board), Instant::now());
        let goes_on = || published(&recording.board).allocations > before.allocations;
        while !goes_on() && since.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(50));
        }
        let goes_on = goes_on();
        kill(recording.program);
        assert_eq!(exit, Exit::Signal(9), "round {round}: {}", recording.line);
        assert!(goes_on, "the program stands still once mallow is gone: {before:?}");

        let finished = report_of(&recording.trace, &[]).well();
        assert!(finished.stderr.starts_with("mallow: warning: "), "{finished}");
        let report = json(&finished.stdout);
        assert_eq!(report["complete"], false, "{finished}");
        let found = ["allocations", "frees"].map(|name| metric(&report["totals"], name));
        assert!(
            found[0] >= second_before.allocations && found[1] >= second_before.frees,
            "a second before mallow was killed {second_before:?} were done; the trace has {found:?}"
        );
    }
}

/// The dynamic linker ends the program before any of its code, or the recorder's, has run; a kill may do so, too.
#[test]
fn a_program_that_ends_before_its_first_instruction_has_an_entry() {
    let workshop = Workshop::new("unlinked");
    std::fs::write(workshop.file("part.c"), "int part(void);\nint part(void) { return 3; }\n").unwrap();
    std::fs::write(workshop.file("whole.c"), "int part(void);\nint main(void) { return part(); }\n").unwrap();
    for words in ["-shared -fPIC part.c -o libpart.so", "whole.c -o whole -L. -lpart -Wl,-rpath,."] {
        let mut compiler = run::command("cc");
        let _ = run::finish(compiler.args(words.split(' ')).current_dir(workshop.path())).well();
    }
    std::fs::remove_file(workshop.file("libpart.so")).unwrap();
    let session = Session::new(workshop.path(), &["./whole"]);
    let recorded = session.record().ended(Exit::Status(127));
    let report = session.report(&[]);
    let processes = report["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 1, "{recorded}");
    assert_eq!(processes[0]["exit"], 127, "{recorded}");
    assert!(processes[0]["command"].as_str().unwrap().ends_with("whole"), "{recorded}");
}

/// The program continues without mallow; what it does meanwhile is counted, and what it does after mallow is back is recorded.
#[test]
fn a_mallow_that_stood_still_goes_on_and_counts_what_it_missed() {
    const PAIRS: u64 = 400_000;
    const LATER: u64 = 1_000;
    let workshop = Workshop::new("stood-still");
    let text = format!(
        "#include <stdlib.h>\n#include <unistd.h>\n\
         static void pair(void) {{ void *p = malloc(30); __asm__ volatile(\"\" : : \"r\"(p) : \"memory\"); free(p); }}\n\
         __attribute__((noinline)) void before(void) {{ for (int i = 0; i < {PAIRS}; i++) pair(); __asm__ volatile(\"\"); }}\n\
         __attribute__((noinline)) void later(void) {{ for (int i = 0; i < {LATER}; i++) pair(); __asm__ volatile(\"\"); }}\n\
         int main(void) {{\n\
         char byte;\n\
         if (write(1, \"r\", 1) != 1 || read(0, &byte, 1) != 1) return 2;\n\
         before();\n\
         if (write(1, \"b\", 1) != 1 || read(0, &byte, 1) != 1) return 3;\n\
         later();\n\
         return 0; }}\n"
    );
    let program = build_text(workshop.path(), "patient", &text);
    let trace = workshop.file("patient.mallow");
    let mut command = run::mallow();
    command.args(["record", "-o"]).arg(&trace).arg("--").arg(&program);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut mallow = command.spawn().unwrap();
    let (mut to, mut from) = (mallow.stdin.take().unwrap(), mallow.stdout.take().unwrap());
    // By then it has requested its patches, and has waited for the response.
    let mut byte = [0];
    from.read_exact(&mut byte).unwrap();
    let signal = |name: &str| {
        let _ = run::finish(run::command("kill").args([name, &mallow.id().to_string()])).well();
    };
    // The program's start has been read by then, or is read later: it is not lost either way.
    signal("-STOP");
    to.write_all(b"1").unwrap();
    from.read_exact(&mut byte).unwrap();
    signal("-CONT");
    // Long enough for a collector that runs again to read a ring.
    std::thread::sleep(Duration::from_secs(3));
    to.write_all(b"2").unwrap();
    assert_eq!(run::wait(&mut mallow, &run::line(&command)), Exit::Status(0));
    let report = json(&report_of(&trace, &[]).well().stdout);
    let of = |name: &str| {
        let rows = report["sites"].as_array().unwrap().iter();
        let rows = rows.filter(|row| stacks::names(row).iter().any(|frame| frame == name));
        rows.map(|row| metric(row, "allocations")).sum::<u64>()
    };
    assert_eq!(of("later"), LATER, "what was done when mallow was back");
    let recorded = metric(&report["totals"], "allocations") + metric(&report["totals"], "frees");
    let warning = report["warnings"][0].as_str().unwrap();
    let lost = warning.strip_suffix(" events were not recorded, so its counts are too low");
    let lost = lost.and_then(|said| said.rsplit_once(": ")).unwrap_or_else(|| panic!("{warning}")).1;
    let lost: u64 = lost.parse().unwrap();
    assert!(lost > PAIRS, "a ring holds less than half of it: {lost}");
    assert_eq!(recorded + lost, 2 * (PAIRS + LATER), "{report:#}");
    assert_eq!(report["complete"], false);
}
