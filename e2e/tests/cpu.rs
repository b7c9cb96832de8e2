//! CPU profiles: programs with shares that follow from their source are sampled, and every view of the profile shows
//! these.
//!
//! The number of samples depends on time, so shares have a tolerance for a busy machine; everything else is exact.

use e2e::program::build_text;
use e2e::session::json;
use e2e::{Exit, Finished, Workshop, run};
use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Builds a program of `programs/cpu`.
pub(crate) fn built(workshop: &Workshop, name: &str) -> PathBuf {
    let source = e2e::repository().join("programs/cpu").join(format!("{name}.c"));
    build_text(workshop.path(), name, &std::fs::read_to_string(source).unwrap())
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

pub(crate) fn cpu(workshop: &Workshop, words: &[&str]) -> Finished {
    run::finish(run::mallow().arg("cpu").args(words).current_dir(workshop.path()))
}

pub(crate) fn mallow(workshop: &Workshop, words: &[&str]) -> Finished {
    run::finish(run::mallow().args(words).current_dir(workshop.path()))
}

pub(crate) fn report(workshop: &Workshop, words: &[&str]) -> Value {
    json(&mallow(workshop, &[&["report", "--json", "--all-frames"], words].concat()).well().stdout)
}

pub(crate) fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} should be a number"))
}

/// Returns the samples of a function: its own, and with its callees; over all files that have a function of that name.
pub(crate) fn of_function(report: &Value, name: &str) -> (u64, u64) {
    let rows = report["functions"].as_array().unwrap().iter().filter(|row| row["function"] == name);
    rows.fold((0, 0), |(own, under), row| {
        (own + number(&row["self"]["samples"]), under + number(&row["children"]["samples"]))
    })
}

/// Records `shares` into `shares.pb.gz`.
fn shares(workshop: &Workshop) -> Finished {
    let program = built(workshop, "shares");
    cpu(workshop, &["-o", "shares.pb.gz", "--", text(&program), "120"]).ended(Exit::Status(7))
}

#[test]
fn of_a_program_with_a_thread_and_a_child_is_found_where_it_goes() {
    let workshop = Workshop::new("cpu-shares");
    let recorded = shares(&workshop);
    let document = report(&workshop, &["shares.pb.gz"]);
    let all = number(&document["totals"]["samples"]);
    assert!(all >= 50, "too few samples for what follows: {recorded}");
    let quality = &document["quality"];
    assert_eq!((&quality["lost"], &quality["samples"]), (&0.into(), &all.into()), "{recorded}");
    // Samples at the very beginning are in the loader, which has no unwind tables yet.
    assert!(number(&quality["truncated"]) * 50 <= all, "{quality}");
    let whole = number(&quality["whole"]) + number(&quality["kernel_only"]) + number(&quality["truncated"]);
    assert_eq!(whole, all, "{quality}");
    let (own, under) = of_function(&document, "spin");
    assert!(own * 100 >= all * 90 && under >= own, "{own} of {all}");
    for (name, sevenths) in [("three", 3), ("of_thread", 2), ("deep", 1), ("of_child", 1)] {
        let (own, under) = of_function(&document, name);
        let expected = all as f64 * f64::from(sevenths) / 7.0;
        assert!((under as f64 - expected).abs() < all as f64 * 0.15, "{name}: {under} of {all}");
        assert!(own * 20 <= all, "{name} itself: {own} of {all}");
    }
    // Whole stacks: whatever is below `spin` starts where programs and threads start.
    let starts = of_function(&document, "_start").1 + of_function(&document, "clone3").1;
    assert!(starts * 100 >= under * 98, "{starts} of {under}");
    let processes = document["processes"].as_array().unwrap();
    let names: Vec<&str> = processes.iter().filter_map(|process| process["name"].as_str()).collect();
    assert_eq!((names[0], *names.last().unwrap()), ("shares", "exe"), "{names:?}");
    let threads = report(&workshop, &["shares.pb.gz", "--threads"]);
    let threads = threads["threads"].as_array().unwrap().iter();
    let names: Vec<&str> = threads.map(|thread| thread["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"two-parts") && names.contains(&"exe"), "{names:?}");
}

#[test]
fn every_view_and_every_export_adds_up_to_the_same() {
    let workshop = Workshop::new("cpu-views");
    let _ = shares(&workshop);
    let document = report(&workshop, &["shares.pb.gz"]);
    let (samples, time) = (number(&document["totals"]["samples"]), number(&document["totals"]["time_ns"]));
    assert_eq!(document["functions"].as_array().map(|rows| own_of(rows)), Some(samples));
    for tree in ["--tree", "--tree=callees"] {
        let document = report(&workshop, &["shares.pb.gz", tree, "--threshold", "0"]);
        assert_eq!(number(&document["tree"]["totals"]["samples"]), samples, "{tree}");
    }
    let timeline = report(&workshop, &["shares.pb.gz", "--timeline"]);
    let slices = timeline["timeline"]["slices"].as_array().unwrap().iter();
    assert_eq!(slices.map(|slice| number(&slice["samples"])).sum::<u64>(), samples);
    let text = |words: &[&str]| mallow(&workshop, words).well().stdout;
    let tree = text(&["report", "shares.pb.gz", "--tree=callees", "--width", "80"]);
    assert!(tree.lines().all(|line| line.chars().count() <= 80), "{tree}");
    assert!(
        tree.contains("children     self  from the start inwards") && tree.contains("three (shares.c:"),
        "{tree}"
    );

    let folded = text(&["export", "shares.pb.gz", "--format", "folded"]);
    let sum = |text: &str| -> u64 {
        text.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
    };
    let (metric, folded) = folded.split_once('\n').unwrap();
    assert_eq!((metric, sum(folded)), ("# metric: time", time));
    assert!(folded.lines().any(|line| line.contains(";main;three;spin ")), "{folded}");
    let drawn = text(&["flamegraph", "shares.pb.gz", "--folded", "--all-frames", "--measure", "samples"]);
    assert_eq!(sum(&drawn), samples);
    let svg = text(&["flamegraph", "shares.pb.gz"]);
    assert!(svg.starts_with("<?xml") && svg.contains("<title>three\n"), "{svg}");
    let speedscope = json(&text(&["export", "shares.pb.gz", "--format", "speedscope"]));
    let profiles = speedscope["profiles"].as_array().unwrap().iter();
    let weights = profiles.flat_map(|profile| profile["weights"].as_array().unwrap());
    assert_eq!(weights.map(number).sum::<u64>(), time);
    let firefox = json(&text(&["export", "shares.pb.gz", "--format", "firefox"]));
    let threads = firefox["threads"].as_array().unwrap().iter();
    assert_eq!(threads.map(|thread| number(&thread["samples"]["length"])).sum::<u64>(), samples);
    let refused = mallow(&workshop, &["export", "shares.pb.gz", "--format", "dhat"]).ended(Exit::Status(2));
    assert!(refused.stderr.contains("use one of pprof"), "{refused}");
}

fn own_of(rows: &[Value]) -> u64 {
    rows.iter().map(|row| number(&row["self"]["samples"])).sum()
}

/// `go tool pprof` checks the file itself.
#[test]
fn the_file_is_one_of_pprof() {
    let workshop = Workshop::new("cpu-pprof");
    let _ = shares(&workshop);
    let document = report(&workshop, &["shares.pb.gz"]);
    let time_ms = number(&document["totals"]["time_ns"]) as f64 / 1e6;
    let mut go = Command::new("go");
    go.args(["tool", "pprof", "-top", "-sample_index=cpu", "-unit=ms", "-nodefraction=0", "shares.pb.gz"]);
    let theirs = run::finish(go.current_dir(workshop.path()).stdin(Stdio::null())).well();
    let row = |name: &str| -> f64 {
        let row = theirs.stdout.lines().find(|line| line.split_whitespace().last() == Some(name));
        let words: Vec<&str> =
            row.unwrap_or_else(|| panic!("{name} is missing: {theirs}")).split_whitespace().collect();
        words[3].trim_end_matches("ms").parse().unwrap()
    };
    for name in ["spin", "three", "of_thread", "of_child"] {
        let rows = document["functions"].as_array().unwrap();
        let ours = rows.iter().find(|row| row["function"] == name).unwrap();
        let ours = number(&ours["children"]["time_ns"]) as f64 / 1e6;
        assert!((row(name) - ours).abs() < 0.011, "{name}: {ours} ms\n{theirs}");
    }
    assert!(
        theirs.stdout.contains(&format!("Total samples = {time_ms:.2}ms"))
            || theirs.stdout.contains("Total samples"),
        "{theirs}"
    );
}

#[test]
fn windows_cut_out_what_they_say() {
    let workshop = Workshop::new("cpu-windows");
    let _ = shares(&workshop);
    let whole = report(&workshop, &["shares.pb.gz"]);
    let half = format!("{}us", number(&whole["duration_ns"]) / 2000);
    let samples = |words: &[&str]| {
        let document = report(&workshop, &[&["shares.pb.gz"], words].concat());
        number(&document["totals"]["samples"])
    };
    assert_eq!(samples(&["--to", &half]) + samples(&["--from", &half]), samples(&[]));
    let processes = whole["processes"].as_array().unwrap();
    let mut pids: Vec<u64> = processes.iter().map(|process| number(&process["pid"])).collect();
    pids.dedup();
    let of_each = pids.iter().map(|pid| samples(&["--process", &pid.to_string()]));
    assert_eq!(of_each.sum::<u64>(), samples(&[]));
}

#[test]
fn two_profiles_are_compared_function_by_function() {
    let workshop = Workshop::new("cpu-diff");
    let source = |calls: &str| {
        format!(
            "static volatile unsigned long sum;\n\
             __attribute__((noinline)) void spin(unsigned long n) {{ for (unsigned long i = 0; i < n * 50000000; i++) sum += i; }}\n\
             __attribute__((noinline)) void kept(void) {{ spin(5); sum++; }}\n\
             __attribute__((noinline)) void added(void) {{ spin(20); sum++; }}\n\
             int main(void) {{ {calls} return 0; }}\n"
        )
    };
    for (name, calls) in [("before", "kept(); (void)added;"), ("after", "kept(); added();")] {
        let program = build_text(workshop.path(), name, &source(calls));
        // Ten times as many samples as it takes by default: the limit below lies well within what they tell.
        let _ = cpu(&workshop, &["-F", "997", "-o", &format!("{name}.pb.gz"), "--", text(&program)]).well();
    }
    let diff =
        |words: &[&str]| mallow(&workshop, &[&["diff", "before.pb.gz", "after.pb.gz"], words].concat());
    let document = json(&diff(&["--json"]).well().stdout);
    let sites = document["sites"].as_array().unwrap();
    let new = sites.iter().find(|site| site["section"] == "new" && site.to_string().contains("\"added\""));
    let added =
        new.unwrap_or_else(|| panic!("{document}"))["figures"]["time"]["difference"].as_i64().unwrap();
    let all = document["totals"]["time"]["difference"].as_i64().unwrap();
    assert!(added > 0 && (all - added).abs() < added / 2, "{added} of {all}");
    let broken = diff(&["--fail-on", "time>+50%", "--fail-on", "samples>+1000000"]).ended(Exit::Status(1));
    assert!(broken.stderr.contains("time>+50%") && !broken.stderr.contains("samples>"), "{broken}");
    let _ = diff(&["--fail-on", "bytes>+1%"]).ended(Exit::Status(2));
    // Four fifths of the time are new; of the rest, nothing increased.
    let grown = ["--fail-on", "children:added>+40%", "--fail-on", "children:kept>+0%", "--json"];
    let broken = diff(&grown).ended(Exit::Status(1));
    let sentence = "mallow: the limit children:added>+40% is broken: 0.0 % before (0 of ";
    assert!(broken.stderr.starts_with(sentence) && !broken.stderr.contains("children:kept"), "{broken}");
    let shares = json(&broken.stdout)["shares"].clone();
    assert_eq!((&shares[0]["broken"], &shares[1]["broken"]), (&true.into(), &false.into()), "{shares}");
    let after = &shares[0]["after"];
    let share = number(&after["samples"]) as f64 / number(&after["of"]) as f64 * 100.0;
    let unclear = diff(&["--fail-on", &format!("children:added>{share:.2}%")]).ended(Exit::Status(3));
    assert!(
        unclear.stderr.contains("cannot be judged: ") && unclear.stderr.contains("more samples"),
        "{unclear}"
    );
    let unknown = diff(&["--fail-on", "self:adedd>1%"]).ended(Exit::Status(2));
    assert!(unknown.stderr.contains("neither profile has a function adedd"), "{unknown}");
    let page = diff(&["--width", "80"]).well();
    assert!(page.stdout.lines().all(|line| line.chars().count() <= 80), "{page}");
    let svg = mallow(&workshop, &["flamegraph", "before.pb.gz", "after.pb.gz"]).well().stdout;
    assert!(svg.contains("<title>added\n"), "{svg}");
}

/// Which rings have the records depends on the processors on which the shell and the program happen to run.
#[test]
fn a_program_behind_a_shell_has_whole_stacks_wherever_it_runs() {
    let workshop = Workshop::new("cpu-shell");
    let program = built(&workshop, "shares");
    let line = format!("sh -c '{0} 20 child; exec {0} 20 child'", text(&program));
    for turn in 0..20 {
        let recorded =
            cpu(&workshop, &["-F", "5000", "-o", "shell.pb.gz", "--force", "--", "sh", "-c", &line]).well();
        let document = report(&workshop, &["shell.pb.gz"]);
        let (_, under) = of_function(&document, "spin");
        let (_, started) = of_function(&document, "_start");
        assert!(under > 10 && started >= under, "turn {turn}: {started} of {under}\n{recorded}");
        assert_eq!(document["quality"]["lost"], 0, "{recorded}");
    }
}

/// A large part of a short run is between `vfork`, `exec` and the program's first instructions, where stacks are unusual.
#[test]
fn short_programs_behind_a_shell_have_whole_stacks_too() {
    let workshop = Workshop::new("cpu-short-stacks");
    let (mut whole, mut all, mut last) = (0, 0, String::new());
    for _ in 0..40 {
        let line = "/bin/true; /bin/true; (exec /bin/true); exec /bin/true";
        let words = ["-F", "20000", "-o", "short.pb.gz", "--force", "--", "sh", "-c", line];
        last = cpu(&workshop, &words).well().stderr;
        let quality = &report(&workshop, &["short.pb.gz"])["quality"];
        whole += number(&quality["whole"]);
        all += number(&quality["whole"]) + number(&quality["truncated"]);
    }
    assert!(all >= 400 && whole * 100 >= all * 98, "{whole} of {all}\n{last}");
}

/// The interrupted function is below its signal handler.
#[test]
fn a_signals_handler_has_whole_stacks() {
    let workshop = Workshop::new("cpu-signal");
    let source = "#include <signal.h>\n#include <sys/time.h>\n\
                  static volatile unsigned long sum; static volatile int is_done;\n\
                  __attribute__((noinline)) void handles(int signal) {\n\
                    for (unsigned long i = 0; i < 200000000; i++) sum += i;\n\
                    is_done = signal; }\n\
                  __attribute__((noinline)) void interrupted(void) { while (!is_done) sum++; sum++; }\n\
                  int main(void) { struct itimerval soon = {{0, 0}, {0, 1000}}; signal(SIGALRM, handles);\n\
                    setitimer(ITIMER_REAL, &soon, 0); interrupted(); return 0; }\n";
    let program = build_text(workshop.path(), "signal", source);
    let recorded = cpu(&workshop, &["-o", "signal.pb.gz", "--", text(&program)]).well();
    let document = report(&workshop, &["signal.pb.gz"]);
    let (own, handled) = of_function(&document, "handles");
    let (_, interrupted) = of_function(&document, "interrupted");
    assert!(own >= 10 && interrupted >= handled, "{interrupted} of {handled}: {recorded}");
    let quality = &document["quality"];
    assert!(number(&quality["truncated"]) * 20 <= number(&quality["samples"]), "{recorded}");
}

#[test]
fn a_process_that_runs_is_sampled_with_its_threads() {
    let workshop = Workshop::new("cpu-pid");
    let program = built(&workshop, "shares");
    let mut child = Command::new(&program).arg("400").spawn().unwrap();
    while std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap().count() < 2 {
        std::thread::yield_now();
    }
    let pid = child.id().to_string();
    let recorded = cpu(&workshop, &["--pid", &pid, "--duration", "400ms", "-o", "pid.pb.gz"]).well();
    child.kill().unwrap();
    child.wait().unwrap();
    let document = report(&workshop, &["pid.pb.gz"]);
    let all = number(&document["totals"]["samples"]);
    assert!(of_function(&document, "three").1 > 0 && of_function(&document, "of_thread").1 > 0, "{recorded}");
    let starts = of_function(&document, "_start").1 + of_function(&document, "clone3").1;
    assert!(starts * 100 >= all * 95, "{starts} of {all}: {recorded}");
    let gone = cpu(&workshop, &["--pid", "4194304"]).ended(Exit::Status(125));
    assert_eq!(gone.stderr, "mallow: there is no process 4194304.\n");
    assert_eq!(workshop.names(), ["pid.pb.gz", "shares", "shares.c"]);
}

#[test]
fn ctrl_c_leaves_the_profile_of_what_was_done() {
    let workshop = Workshop::new("cpu-interrupt");
    let program = built(&workshop, "shares");
    let mut mallow = run::mallow();
    mallow.args(["cpu", "-o", "cut.pb.gz", "--", text(&program), "100000"]).current_dir(workshop.path());
    // Like a terminal: every process of the group receives it.
    let mut child = mallow.stderr(Stdio::null()).process_group(0).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(600));
    let _ = run::finish(Command::new("kill").args(["-INT", "--", &format!("-{}", child.id())])).well();
    let exit = run::wait(&mut child, "mallow cpu");
    assert_eq!(exit, Exit::Status(130));
    let document = report(&workshop, &["cut.pb.gz"]);
    assert!(of_function(&document, "three").0 + of_function(&document, "spin").0 > 0, "{document}");
    let left = run::finish(Command::new("pgrep").args(["-f", text(&program)]));
    assert_eq!(left.stdout, "", "{left}");
}

/// Sampling ends with the command: a server that goes into the background is hardly in the profile.
#[test]
fn what_a_command_leaves_behind_is_named() {
    let workshop = Workshop::new("cpu-left");
    let text_of = "#include <stdio.h>\n#include <unistd.h>\nint main(int count, char **words) {\n    (void)words;\n\
        \x20   if (count > 1 && fork() == 0) { setsid(); close(0); close(1); close(2); for (int i = 0; i < 3000; i++) usleep(10000); _exit(0); }\n\
        \x20   for (volatile long i = 0; i < 30000000; i++) {}\n    return 0;\n}\n";
    let program = e2e::program::build_text(workshop.path(), "leaves", text_of);
    for event in ["cpu-clock", "timers"] {
        for leaves in [true, false] {
            let more: &[&str] = if leaves { &["more"] } else { &[] };
            let words = ["-e", event, "-o", "left.pb.gz", "--force", "--", text(&program)];
            let recorded = cpu(&workshop, &[&words[..], more].concat()).ended(Exit::Status(0));
            let left = run::finish(Command::new("pgrep").args(["-f", text(&program)]));
            let pid = left.stdout.trim();
            assert_eq!(pid.is_empty(), !leaves, "{left}");
            let sentence = format!(
                "when the command had ended, leaves {pid} still ran, and is not in the profile from then on; mallow cpu --pid {pid} samples it"
            );
            assert_eq!(recorded.stderr.contains("still ran"), leaves, "{event}: {recorded}");
            assert_eq!(recorded.stderr.contains(&sentence), leaves, "{event}: {recorded}");
            let _ = Command::new("pkill").args(["-KILL", "-f", text(&program)]).status();
        }
    }
}

#[test]
fn a_system_that_refuses_says_why_and_what_to_do() {
    let workshop = Workshop::new("cpu-refused");
    let confined = built(&workshop, "confined");
    let mut command = run::command(&confined);
    // Timers of threads cannot do it either.
    command.arg("refused").arg(run::mallow_binary()).args(["cpu", "--off-cpu", "--", "touch", "ran"]);
    let refused = run::finish(command.current_dir(workshop.path())).ended(Exit::Status(125));
    assert!(refused.stderr.contains("seccomp") && refused.stderr.contains("--cap-add"), "{refused}");
    // Nothing was run, and no file is left.
    assert_eq!(workshop.names(), ["confined", "confined.c"]);
}

#[test]
fn whoever_has_no_privilege_sees_the_program_and_is_told_of_the_kernel() {
    let workshop = Workshop::new("cpu-plain");
    let (confined, program) = (built(&workshop, "confined"), built(&workshop, "shares"));
    let mut command = run::command(&confined);
    command.arg("plain").arg(run::mallow_binary()).args([
        "cpu",
        "-o",
        "plain.pb.gz",
        "--",
        text(&program),
        "10",
    ]);
    let finished = run::finish(command.current_dir(workshop.path()));
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    match paranoid.trim().parse::<i32>().unwrap() {
        3.. if finished.exit == Exit::Status(125) => {
            assert!(finished.stderr.contains("sudo sysctl kernel.perf_event_paranoid=2"), "{finished}");
        }
        level => {
            let finished = finished.ended(Exit::Status(7));
            let is_told = finished.stderr.contains("what the kernel does is not seen");
            assert_eq!(is_told, level >= 2, "{finished}");
            let document = report(&workshop, &["plain.pb.gz"]);
            assert_eq!(document["quality"]["kernel_seen"], level < 2);
            assert!(of_function(&document, "three").1 > 0, "{finished}");
        }
    }
}

#[test]
fn bad_input_is_one_sentence_and_leaves_nothing() {
    let workshop = Workshop::new("cpu-bad");
    let sentences = |words: &[&str], code| {
        let finished = cpu(&workshop, words).ended(Exit::Status(code));
        assert_eq!(finished.stderr.matches("mallow: ").count(), 1, "{finished}");
        finished.stderr
    };
    let not_there = sentences(&["--", "./not-there"], 127);
    assert!(not_there.contains("cannot run './not-there': No such file or directory."), "{not_there}");
    assert!(sentences(&["-o", "-", "--", "true"], 125).contains("name a file with -o"));
    std::fs::write(workshop.file("mine"), "mine").unwrap();
    assert!(sentences(&["-o", "mine", "--", "true"], 125).contains("--force"));
    assert_eq!(std::fs::read_to_string(workshop.file("mine")).unwrap(), "mine");
    assert_eq!(workshop.names(), ["mine"]);
    for words in
        [&["-F", "0", "true"][..], &["--stack-size", "64", "true"], &["--duration", "0s", "true"], &[]]
    {
        let _ = cpu(&workshop, words).ended(Exit::Status(125));
    }
    assert_eq!(workshop.names(), ["mine"]);
}

#[test]
fn a_program_that_takes_no_time_is_no_error_and_ends_as_it_ends() {
    let workshop = Workshop::new("cpu-short");
    let recorded = cpu(&workshop, &["--", "sh", "-c", "kill -TERM $$"]).ended(Exit::Status(143));
    let names = workshop.names();
    assert!(
        names.len() == 1 && names[0].starts_with("sh.") && names[0].ends_with(".cpu.pb.gz"),
        "{names:?} {recorded}"
    );
    let _ = mallow(&workshop, &["report", &names[0]]).well();
}

#[test]
fn code_that_is_made_at_run_time_has_its_names() {
    let workshop = Workshop::new("cpu-jit");
    std::fs::write(
        workshop.file("hot.js"),
        "function hotLoop(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i); return s; }\n\
         let t = 0; for (let i = 0; i < 300; i++) t += hotLoop(1e6); console.log(t > 0);\n",
    )
    .unwrap();
    let recorded = cpu(&workshop, &["-o", "js.pb.gz", "--", "node", "--perf-basic-prof", "hot.js"]).well();
    let document = report(&workshop, &["js.pb.gz"]);
    let rows = document["functions"].as_array().unwrap();
    let all = number(&document["totals"]["samples"]);
    // One function, however often it was compiled.
    let hot: Vec<&Value> = rows.iter().filter(|row| row["function"] == "hotLoop").collect();
    assert_eq!(hot.len(), 1, "{document}");
    let hot = number(&hot[0]["self"]["samples"]);
    assert!(hot * 2 > all, "{hot} of {all}\n{recorded}");
    let pid = number(&document["processes"][0]["pid"]);
    std::fs::remove_file(format!("/tmp/perf-{pid}.map")).unwrap();
}

/// mallow asks Node for a perf map, and nothing is left of it; a Node that is started by a script is asked too.
#[test]
fn node_is_asked_for_the_names_of_its_code() {
    let workshop = Workshop::new("cpu-node-asked");
    let source = "#!/usr/bin/env node\n\
         function hotLoop(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i); return s; }\n\
         let t = 0; for (let i = 0; i < 300; i++) t += hotLoop(1e6); console.log(t > 0);\n";
    let script = workshop.file("hot.js");
    std::fs::write(&script, source).unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let share = |words: &[&str]| {
        let recorded = cpu(&workshop, &[&["-o", "js.pb.gz", "--force"], words].concat()).well();
        assert_eq!(recorded.stdout, "true\n", "{recorded}");
        assert_eq!(workshop.names(), ["hot.js", "js.pb.gz"], "{recorded}");
        let document = report(&workshop, &["js.pb.gz"]);
        let rows = document["functions"].as_array().unwrap().iter();
        let hot: Vec<&Value> = rows.filter(|row| row["function"] == "hotLoop").collect();
        for process in document["processes"].as_array().unwrap() {
            assert!(!Path::new(&format!("/tmp/perf-{}.map", process["pid"])).exists(), "{recorded}");
        }
        // One function, with its file, however often it was compiled.
        assert!(hot.len() <= 1, "{document}");
        let time = hot.first().map_or(0, |row| number(&row["self"]["time_ns"]));
        time as f64 / number(&document["totals"]["time_ns"]) as f64
    };
    for words in
        [&["--", "node", "hot.js"][..], &["--", "./hot.js"], &["-e", "timers", "--", "node", "hot.js"]]
    {
        let share = share(words);
        assert!(share > 0.5, "{words:?}: {share}");
    }
    assert_eq!(share(&["--no-runtime-flags", "--", "node", "hot.js"]), 0.0);
}

/// The garbage collector takes the code of a function that nobody has any more, and the next function's code is where it was.
#[test]
fn a_function_keeps_its_name_when_its_place_is_anothers() {
    let workshop = Workshop::new("cpu-replaced");
    let script = e2e::repository().join("programs/cpu/replaced.js");
    for events in [&[][..], &["-e", "timers"]] {
        let words = [&["-o", "js.pb.gz", "--force"], events, &["--", "node", "--expose-gc", text(&script)]];
        let recorded = cpu(&workshop, &words.concat()).well();
        let document = report(&workshop, &["js.pb.gz", "--top", "100000"]);
        let rows = document["functions"].as_array().unwrap();
        for step in (0..12).map(|at| format!("step_{at}")) {
            let row = rows.iter().find(|row| row["function"] == step.as_str());
            let time_ns = row.map_or(0, |row| number(&row["children"]["time_ns"]));
            // Each has 80 ms, or what others leave of it on a busy machine, and never another's as well.
            assert!((1..150_000_000).contains(&time_ns), "{step}: {time_ns} ns\n{recorded}");
        }
    }
}

/// Compared with `perf`: its recording is read, from its file and from its own text, with the same functions.
#[test]
fn what_perf_recorded_is_read_as_perf_reads_it() {
    let workshop = Workshop::new("cpu-perf");
    let program = built(&workshop, "shares");
    let perf = |words: &[&str]| run::finish(run::command("perf").args(words).current_dir(workshop.path()));
    let record =
        ["record", "-F", "997", "--call-graph", "dwarf,16384", "-o", "perf.data", "--", text(&program), "40"];
    let _ = perf(&record).ended(Exit::Status(7));
    let script = perf(&["script", "-i", "perf.data"]).well();
    std::fs::write(workshop.file("perf.txt"), &script.stdout).unwrap();
    let (file, text) = (report(&workshop, &["perf.data"]), report(&workshop, &["perf.txt"]));
    assert_eq!((&file["format"], &text["format"]), (&"perf_data".into(), &"perf_script".into()));
    assert_eq!(file["totals"], text["totals"], "{file}");
    assert_eq!(file["command"].as_array().map(Vec::len), Some(2));
    for name in ["spin", "three", "of_thread", "deep", "of_child"] {
        let (ours, theirs) = (of_function(&file, name), of_function(&text, name));
        assert_eq!(ours.0, theirs.0, "{name} itself");
        // Where perf's unwinder stops, ours may continue.
        assert!(ours.1 >= theirs.1 && ours.1 > 0, "{name}: {ours:?} {theirs:?}");
    }
    let own = |report: &Value| own_of(report["functions"].as_array().unwrap());
    assert_eq!(
        (own(&file), own(&text)),
        (number(&file["totals"]["samples"]), number(&file["totals"]["samples"]))
    );
}

/// A runtime's list of the code that it generated: the file that `perf inject` reads.
#[test]
fn code_in_a_jitdump_has_its_names() {
    let workshop = Workshop::new("cpu-jitdump");
    let hot = "function hotLoop(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i); return s; }\n\
               let t = 0; for (let i = 0; i < 300; i++) t += hotLoop(1e6); console.log(t > 0);\n";
    std::fs::write(workshop.file("hot.js"), hot).unwrap();
    let recorded = cpu(&workshop, &["-o", "js.pb.gz", "--", "node", "--perf-prof", "hot.js"]).well();
    let document = report(&workshop, &["js.pb.gz"]);
    let rows = document["functions"].as_array().unwrap().iter();
    let hot = rows.filter(|row| row["function"].as_str().unwrap_or_default().contains("hotLoop"));
    let hot: u64 = hot.map(|row| number(&row["self"]["samples"])).sum();
    let all = number(&document["totals"]["samples"]);
    assert!(hot * 2 > all, "{hot} of {all}\n{recorded}");
    assert!(workshop.names().iter().any(|name| name.starts_with("jit-") && name.ends_with(".dump")));
}

#[test]
fn other_events_are_sampled_by_their_names() {
    let workshop = Workshop::new("cpu-events");
    let program = built(&workshop, "faults");
    let record = |words: &[&str]| {
        cpu(&workshop, &[words, &["-o", "events.pb.gz", "--force", "--", text(&program)]].concat()).well()
    };
    let recorded = record(&["-e", "page-faults", "-c", "1", "--stack-size", "8"]);
    let document = report(&workshop, &["events.pb.gz"]);
    assert_eq!((&document["event"], &document["by"]), (&"page-faults".into(), &"events".into()));
    assert_eq!((&document["quality"]["lost"], &document["frequency_hz"]), (&0.into(), &Value::Null));
    let rows = document["functions"].as_array().unwrap();
    let touch = rows.iter().find(|row| row["function"] == "touch").unwrap();
    assert_eq!(
        (&touch["self"]["events"], &touch["self"]["samples"]),
        (&500.into(), &500.into()),
        "{recorded}"
    );
    assert_eq!(touch["self"]["time_ns"], Value::Null);
    assert!(
        recorded.stderr.contains(" page-faults in ") && recorded.stderr.contains("samples, page-faults\n")
    );
    // A clock event measures time.
    let program = built(&workshop, "shares");
    let _ = cpu(&workshop, &["-e", "task-clock", "-o", "time.pb.gz", "--", text(&program), "5"])
        .ended(Exit::Status(7));
    let document = report(&workshop, &["time.pb.gz"]);
    assert_eq!((&document["event"], &document["by"]), (&"task-clock".into(), &"time".into()));
    // An existing counter is used; a missing one is reported.
    let finished = cpu(&workshop, &["-e", "cycles", "-o", "cycles.pb.gz", "--", "true"]);
    if finished.exit == Exit::Status(125) {
        let sentence =
            "mallow: cycles cannot be sampled: this system has no such counter, as in most virtual machines;";
        assert!(finished.stderr.starts_with(sentence) && finished.stderr.contains("cpu-clock"), "{finished}");
        assert!(!workshop.file("cycles.pb.gz").exists());
    } else {
        let _ = finished.well();
        assert_eq!(report(&workshop, &["cycles.pb.gz"])["event"], "cycles");
    }
    let unknown = cpu(&workshop, &["-e", "cycle", "--", "true"]).ended(Exit::Status(125));
    assert!(unknown.stderr.contains("`cycle` is no event; use cycles, instructions"), "{unknown}");
}
