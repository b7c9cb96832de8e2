//! Benchmarks of real commands: all metrics are those of the commands, there is a verdict only if the data decide,
//! and bad input leaves no file behind.

use e2e::session::json;
use e2e::{Exit, Finished, Workshop, run};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn bench(folder: &Path, words: &[&str]) -> Finished {
    run::finish(run::mallow().arg("bench").args(words).current_dir(folder))
}

fn document(folder: &Path, words: &[&str]) -> Value {
    let words: Vec<&str> = ["--json"].iter().chain(words).copied().collect();
    json(&bench(folder, &words).well().stdout)
}

/// Builds a C program, with `flags`, which may leave libc out.
fn built(workshop: &Workshop, name: &str, source: &str, flags: &[&str]) -> PathBuf {
    let (file, program) = (workshop.file(&format!("{name}.c")), workshop.file(name));
    std::fs::write(&file, source).unwrap();
    let _ = run::finish(run::command("cc").arg("-O1").args(flags).arg(&file).arg("-o").arg(&program)).well();
    program
}

/// Returns a program that exits at once and has few pages.
fn nothing(workshop: &Workshop) -> String {
    let source = r#"void _start(void) { __asm__ volatile("mov $60, %eax; xor %edi, %edi; syscall"); }"#;
    built(workshop, "nothing", source, &["-static", "-nostdlib"]).display().to_string()
}

fn floats(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

fn median(value: &Value) -> f64 {
    let mut values = floats(value);
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn the_peak_of_memory_is_the_commands_own() {
    let workshop = Workshop::new("bench-rss");
    let nothing = nothing(&workshop);
    let large = "python3 -c 'x = bytearray(200 << 20)'";
    let document = document(workshop.path(), &["-N", "-r", "2", "--recorder-runs", "0", large, &nothing]);
    let peaks = |index: usize| floats(&document["results"][index]["memory_usage_byte"]);
    assert!(peaks(0).iter().all(|peak| *peak > 200.0 * 1048576.0), "{:?}", peaks(0));
    // Neither the largest command before it nor its parent: a few pages, for which the kernel may report 0.
    assert!(peaks(1).iter().all(|peak| *peak < 300_000.0), "{:?}", peaks(1));
}

#[test]
fn commands_run_in_blocks_that_mirror_themselves() {
    let workshop = Workshop::new("bench-turns");
    let words = ["-r", "8", "--recorder-runs", "0", "printf a >> log", "printf b >> log", "printf c >> log"];
    let _ = bench(workshop.path(), &words).well();
    let log = std::fs::read_to_string(workshop.file("log")).unwrap();
    assert_eq!(log.len(), 24);
    for block in log.as_bytes().chunks(6) {
        let mut mirrored = block[3..].to_vec();
        mirrored.reverse();
        assert_eq!(&block[..3], mirrored, "{log}");
    }
}

#[test]
fn a_ratio_has_an_interval_and_a_verdict() {
    let workshop = Workshop::new("bench-ratio");
    let words = ["-N", "-r", "12", "--recorder-runs", "0", "sleep 0.01", "sleep 0.05"];
    let document = document(workshop.path(), &words);
    let comparison = &document["results"][1]["mallow"]["comparison"]["wall"];
    let of = |key: &str| comparison[key].as_f64().unwrap();
    assert!(of("low") <= of("ratio") && of("ratio") <= of("high"), "{comparison}");
    assert_eq!((&comparison["verdict"], &comparison["pairs"]), (&"slower".into(), &12.into()));
    assert!(document["results"][0]["mallow"]["comparison"].is_null());
}

#[test]
fn too_few_runs_are_unclear_and_never_the_same() {
    let workshop = Workshop::new("bench-few");
    let words = ["-N", "-r", "3", "--recorder-runs", "0", "--threshold", "90%", "sleep 0.01", "sleep 0.01"];
    let document = document(workshop.path(), &words);
    let comparison = &document["results"][1]["mallow"]["comparison"]["wall"];
    assert_eq!((&comparison["verdict"], &comparison["low"]), (&"unclear".into(), &Value::Null));
}

/// The same command with and without a shell: the correction is what a shell costs that starts a program, and not
/// what an empty shell costs. Half of the cost is more than the noise of a median of forty; where other programs run in one half of it, it is measured again.
#[test]
fn a_shell_costs_what_it_costs() {
    let workshop = Workshop::new("bench-shell");
    let nothing = nothing(&workshop);
    let measured = || {
        let bare = document(workshop.path(), &["-N", "-r", "40", "--recorder-runs", "0", &nothing]);
        let shell = document(workshop.path(), &["-S", "sh", "-r", "40", "--recorder-runs", "0", &nothing]);
        let cost = shell["mallow"]["shell"]["wall_ns"].as_f64().unwrap() / 1e9;
        let [bare, through] = [bare, shell].map(|document| median(&document["results"][0]["times"]));
        (through, bare, cost)
    };
    let is_right = |(through, bare, cost): &(f64, f64, f64)| {
        *cost > 0.0001 && (through - bare).abs() < cost / 2.0 + 0.0003
    };
    let mut wrong = Vec::new();
    while wrong.len() < 5 {
        let one = measured();
        if is_right(&one) {
            return;
        }
        wrong.push(one);
    }
    panic!("{wrong:?}");
}

#[test]
fn allocations_are_exact_and_without_the_shells() {
    let workshop = Workshop::new("bench-allocations");
    let source = "#include <stdlib.h>\nint main(int c, char **v) { (void)v; for (int i = 0; i < 1000 * c; i++) free(malloc(64)); return 0; }\n";
    let program = built(&workshop, "allocates", source, &["-fno-builtin"]).display().to_string();
    let through = format!("{program} one | cat > /dev/null; true");
    let words = ["-r", "2", &program, &format!("{program} more"), &through];
    let document = document(workshop.path(), &words);
    let of = |index: usize| &document["results"][index]["mallow"]["allocations"]["allocations"];
    assert_eq!((&of(0)["exact"], &of(0)["min"]), (&true.into(), &1000.into()));
    assert_eq!((&of(1)["exact"], &of(1)["min"]), (&true.into(), &2000.into()));
    // `cat` has some of its own.
    assert!((2000..2200).contains(&of(2)["min"].as_u64().unwrap()), "{}", of(2));
    let limited = |limit: &str| bench(workshop.path(), &["-r", "2", "--fail-on", limit, words[2], words[3]]);
    let broken = limited("allocations>+99%").ended(Exit::Status(1));
    assert!(broken.stdout.contains("allocations>+99% is exceeded by 2:"), "{broken}");
    let _ = limited("allocations>+1000").well();
    let _ = limited("wall>+50%").ended(Exit::Status(3));
}

#[test]
fn what_cannot_be_recorded_is_timed_and_says_why() {
    let workshop = Workshop::new("bench-static");
    let nothing = nothing(&workshop);
    let shown = bench(workshop.path(), &["-N", "-r", "2", &nothing]).well();
    assert!(shown.stdout.contains("Allocations were not counted: cannot record"), "{shown}");
    let words = ["-N", "-r", "2", "--explain", "--export-json", "out.json", &nothing, "sleep 0.01"];
    let unexplained = bench(workshop.path(), &words).ended(Exit::Status(2));
    assert!(unexplained.stdout.contains("2: sleep 0.01"), "{unexplained}");
    assert!(unexplained.stderr.contains("static program"), "{unexplained}");
    let _ = bench(workshop.path(), &["-N", "-r", "2", "--fail-on", "allocations>5", &nothing])
        .ended(Exit::Status(3));
}

#[test]
fn what_hyperfine_writes_is_written() {
    let workshop = Workshop::new("bench-hyperfine");
    // So far apart that both tools find the same one faster, even on a busy machine.
    let options = ["-r", "3", "-N", "-L", "n", "0.01,0.50", "--export-json"];
    let rest = ["--export-markdown", "out.md", "--export-csv", "out.csv", "--export-asciidoc", "out.adoc"];
    let run_of = |mut command: Command, file: &str| {
        command.args(options).arg(file).args(rest).arg("sleep {n}").current_dir(workshop.path());
        let _ = run::finish(&mut command).well();
        let read = |name: &str| std::fs::read_to_string(workshop.file(name)).unwrap();
        let document: Value = serde_json::from_str(&read(file)).unwrap();
        (document, [read("out.md"), read("out.csv"), read("out.adoc")])
    };
    let (theirs, their_tables) = run_of(run::command("hyperfine"), "theirs.json");
    let mut command = run::mallow();
    command.arg("bench");
    let (ours, our_tables) = run_of(command, "ours.json");
    for (one, other) in theirs["results"].as_array().unwrap().iter().zip(ours["results"].as_array().unwrap())
    {
        for (key, value) in one.as_object().unwrap() {
            let mine = &other[key];
            let kind =
                |value: &Value| (value.is_number(), value.is_string(), value.is_array(), value.is_object());
            assert_eq!(kind(value), kind(mine), "{key}: {value} {mine}");
            let length = |value: &Value| value.as_array().map(Vec::len);
            assert_eq!(length(value), length(mine), "{key}");
        }
        assert_eq!((&one["command"], &one["parameters"]), (&other["command"], &other["parameters"]));
    }
    // The numbers differ; everything around them is the same.
    let masked = |text: &str| {
        let kept = text.split(|letter: char| letter.is_ascii_digit() || letter == '.');
        kept.filter(|part| !part.trim().is_empty()).collect::<Vec<_>>().join("#")
    };
    for (one, other) in their_tables.iter().zip(&our_tables) {
        assert_eq!(masked(one), masked(other), "{one}\n{other}");
    }
}

#[test]
fn lines_of_hyperfines_users_run() {
    let workshop = Workshop::new("bench-lines");
    std::fs::write(workshop.file("data.txt"), "one\ntwo\n").unwrap();
    let lines: [&[&str]; 9] = [
        &["--runs", "2", "sleep 0.01"],
        &["--warmup", "1", "-r", "2", "grep -R one *"],
        &["-r", "2", "--prepare", "touch made", "--conclude", "rm made", "test -e made"],
        &["-r", "2", "--setup", "mkdir {a}", "--cleanup", "rmdir {a}", "-L", "a", "x,y", "test -d {a}"],
        &["-r", "2", "-P", "delay", "0.01", "0.02", "-D", "0.01", "sleep {delay}"],
        &["-r", "2", "-i", "false", "true"],
        &["-r", "2", "-S", "bash --norc", "for i in {1..10}; do echo test; done"],
        &["-r", "2", "--input", "data.txt", "--output", "pipe", "grep -q two"],
        &[
            "-r",
            "2",
            "--reference",
            "sleep 0.01",
            "--reference-name",
            "short",
            "--sort",
            "mean-time",
            "sleep 0.02",
        ],
    ];
    for line in lines {
        let _ = bench(workshop.path(), &[&["--recorder-runs", "0"], line].concat()).well();
    }
    assert_eq!(workshop.names(), ["data.txt"]);
}

#[test]
fn counters_are_shown_as_perf_stat_does() {
    let workshop = Workshop::new("bench-counters");
    let shown =
        bench(workshop.path(), &["--counters", "-r", "3", "-e", "task-clock,page-faults", "ls /"]).well();
    assert!(shown.stdout.contains("Performance counter stats for 'ls /' (3 runs):"), "{shown}");
    for part in ["msec task-clock", "page-faults", "seconds time elapsed", "( +-"] {
        assert!(shown.stdout.contains(part), "{part}: {shown}");
    }
    // Page faults are software events, which are counted here too, in the same runs: those of the command and not of its parent.
    let document =
        document(workshop.path(), &["-r", "3", "--recorder-runs", "0", "-e", "page-faults", "ls /"]);
    for run in document["results"][0]["mallow"]["runs"].as_array().unwrap() {
        let counted = run["events"][0]["value"].as_f64().unwrap();
        let told = run["minor_faults"].as_f64().unwrap() + run["major_faults"].as_f64().unwrap();
        assert!((told - counted).abs() < 40.0 && counted > 50.0, "{counted} {told}");
    }
    let refused = bench(workshop.path(), &["-e", "cycle", "ls"]).ended(Exit::Status(2));
    assert!(refused.stderr.contains("`cycle` is no event"), "{refused}");
}

#[test]
fn a_printed_number_is_measured() {
    let workshop = Workshop::new("bench-metric");
    let words =
        ["-r", "3", "--recorder-runs", "0", "--metric", r"rate: ([0-9.]+)", "echo rate: 12.5 per second"];
    let document = document(workshop.path(), &words);
    for run in document["results"][0]["mallow"]["runs"].as_array().unwrap() {
        assert_eq!(run["printed"], 12.5);
    }
}

#[test]
fn a_baseline_is_compared_with() {
    let workshop = Workshop::new("bench-baseline");
    let first = ["-r", "2", "--save", "base.json", "sleep 0.01"];
    let _ = bench(workshop.path(), &first).well();
    let words = ["-r", "2", "--baseline", "base.json", "--fail-on", "allocations>+0", "sleep 0.01"];
    let again = bench(workshop.path(), &words).well();
    assert!(again.stdout.contains("Against the baseline"), "{again}");
    assert!(again.stdout.contains("allocations>+0 holds for 1: sleep 0.01 against the baseline."), "{again}");
    let other = ["-r", "2", "--baseline", "base.json", "--fail-on", "allocations>+0", "sleep 0.02"];
    let _ = bench(workshop.path(), &other).ended(Exit::Status(3));
    std::fs::write(workshop.file("base.json"), "{}").unwrap();
    let refused = bench(workshop.path(), &words).ended(Exit::Status(2));
    assert!(refused.stderr.contains("it is no result of mallow bench"), "{refused}");
}

#[test]
fn a_command_that_does_not_exist_is_refused_before_anything_runs() {
    let workshop = Workshop::new("bench-missing");
    let words = ["--export-json", "out.json", "touch ran", "no-such-program-anywhere now"];
    let refused = bench(workshop.path(), &words).ended(Exit::Status(2));
    assert!(refused.stderr.contains("cannot run 'no-such-program-anywhere'"), "{refused}");
    assert_eq!(workshop.names(), Vec::<String>::new());
}

#[test]
fn a_failure_in_run_7_leaves_the_six_before_it() {
    let workshop = Workshop::new("bench-fails");
    let line = "echo x >> log; test $(wc -l < log) -lt 7";
    let words = ["-r", "10", "--recorder-runs", "0", "--export-json", "out.json", line];
    let failed = bench(workshop.path(), &words).ended(Exit::Status(2));
    assert!(failed.stderr.contains("exit status 1 in run 7"), "{failed}");
    let written: Value =
        serde_json::from_str(&std::fs::read_to_string(workshop.file("out.json")).unwrap()).unwrap();
    assert_eq!(written["results"][0]["times"].as_array().unwrap().len(), 6);
    assert_eq!(written["mallow"]["stop"], "failed");
}

#[test]
fn a_command_that_reads_gets_no_input() {
    let workshop = Workshop::new("bench-input");
    let _ = bench(workshop.path(), &["-r", "2", "cat"]).well();
}

#[test]
fn children_that_are_left_are_named_and_not_waited_for() {
    let workshop = Workshop::new("bench-children");
    let words = ["-r", "2", "--recorder-runs", "0", "sleep 20.125 & sleep 0.2"];
    let started = Instant::now();
    let shown = bench(workshop.path(), &words).well();
    assert!(started.elapsed() < Duration::from_secs(20), "{shown}");
    assert!(shown.stdout.contains("After 2 runs processes were still running, such as sleep"), "{shown}");
    // It has another name at the end of the run than after the next one.
    let words = ["-r", "3", "--recorder-runs", "0", "(exec sleep 3) & true", "sleep 0.5"];
    let shown = bench(workshop.path(), &words).well();
    assert!(shown.stdout.contains("processes were still running, such as sleep"), "{shown}");
}

/// Returns whether a process with this word in its command line is running.
fn runs_with(word: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines.into_iter().any(|line| line.split(|byte| *byte == 0).any(|it| it == word.as_bytes()))
}

#[test]
fn an_interrupt_leaves_a_result_and_nothing_that_runs() {
    let workshop = Workshop::new("bench-interrupt");
    // A length of sleep that no other process uses.
    let length = format!("77.{}", std::process::id());
    let line = format!("echo x >> log; sleep {length} & test $(wc -l < log) -lt 4 || sleep {length}");
    let mut command = run::mallow();
    command.args(["bench", "-r", "100", "--recorder-runs", "0", "--export-json", "out.json", &line]);
    let mut child =
        command.current_dir(workshop.path()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let log = workshop.file("log");
    while std::fs::read_to_string(&log).unwrap_or_default().lines().count() < 4 {
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = run::finish(run::command("kill").args(["-INT", &child.id().to_string()])).well();
    assert_eq!(run::wait(&mut child, "mallow bench"), Exit::Status(130));
    assert!(!runs_with(&length));
    assert_eq!(workshop.names(), ["log", "out.json"]);
    let written: Value =
        serde_json::from_str(&std::fs::read_to_string(workshop.file("out.json")).unwrap()).unwrap();
    assert_eq!(written["mallow"]["stop"], "interrupted");
    assert_eq!(written["results"][0]["times"].as_array().unwrap().len(), 3);
}

/// The program of the guide's walk-through: a map per row, and a record that is reused.
#[test]
fn the_map_per_row_is_named_as_the_reason() {
    let workshop = Workshop::new("bench-story");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("csv-aggregate");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--release", "--locked", "--target-dir"]).arg(&target);
    let _ = run::finish(cargo.current_dir(e2e::repository().join("programs/csv-aggregate"))).well();
    let program = |name: &str| target.join("release").join(name).display().to_string();
    let _ = run::finish(run::command(program("csv-generate")).arg(workshop.file("test.csv"))).well();
    let (before, after) =
        (program("csv-map-per-row") + " test.csv", program("csv-reused-record") + " test.csv");
    let words = [
        "--max-time",
        "8s",
        "--explain",
        "--flamegraph",
        "why.svg",
        "--export-json",
        "out.json",
        &before,
        &after,
    ];
    let shown = bench(workshop.path(), &words).well();
    let written: Value =
        serde_json::from_str(&std::fs::read_to_string(workshop.file("out.json")).unwrap()).unwrap();
    let allocations = |index: usize| &written["results"][index]["mallow"]["allocations"]["allocations"];
    assert_eq!((&allocations(0)["exact"], &allocations(0)["min"]), (&true.into(), &374_540.into()));
    assert_eq!((&allocations(1)["exact"], &allocations(1)["min"]), (&true.into(), &45.into()));
    let comparison = &written["results"][1]["mallow"]["comparison"]["wall"];
    assert!(comparison["pairs"].as_u64().unwrap() >= 2, "{comparison}");
    let (heap, cpu) = shown.stdout.split_once("\nWhere 2: ").unwrap_or_else(|| panic!("{shown}"));
    for part in ["gone: -374,495 allocations", "csv_map_per_row::read_csv", "visit_map"] {
        assert!(heap.contains(part), "{part}: {shown}");
    }
    // The time is spent in the map, too: it is gone with the allocations.
    let gone = cpu.split("\ngone: -").nth(1).unwrap_or_else(|| panic!("{shown}"));
    for part in [" ms at ", "csv_map_per_row::read_csv"] {
        assert!(gone.contains(part), "{part}: {shown}");
    }
    assert!(
        std::fs::read_to_string(workshop.file("why.svg")).unwrap().contains("csv_reused_record::read_csv")
    );
    let of_time = std::fs::read_to_string(workshop.file("why.cpu.svg")).unwrap();
    for part in ["Time on processors: 2: ", "csv_reused_record::read_csv"] {
        assert!(of_time.contains(part), "{part}: {of_time}");
    }
}
