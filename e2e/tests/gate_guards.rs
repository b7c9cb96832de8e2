//! What the gate prints when it cannot see, cannot run or must not compare: each of these cases has once let a regression pass.

use e2e::gate::{Suite, sentences, source};
use e2e::session::json;
use e2e::{Exit, run};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

#[test]
fn a_static_programs_marks_are_not_seen_and_it_says_so_and_its_process_is_counted() {
    let suite = Suite::new("static", &source(""));
    let manifest = "[gate]\nsuites = [\".\"]\nc_flags = [\"-static\"]\n";
    suite.write("mallow.toml", manifest);
    let test = suite.only_test(1);
    assert_eq!(test["outcome"], "blind", "{test:#}");
    assert!(sentences(&test).contains("it is static"), "{test:#}");
    suite.write("mallow.toml", &format!("{manifest}[[test]]\nname = \"test_work\"\nmode = \"process\"\n"));
    let report = json(&suite.check(&["--json"]).ended(Exit::Status(3)).stdout);
    let allocations = report["tests"][0]["judgements"][0]["spread"]["min"].as_u64();
    // The test's own, in one run for warming up and ten for counting, and those with which glibc initialises itself.
    assert!(allocations.is_some_and(|count| (11_000..11_020).contains(&count)), "{report:#}");
}

#[test]
fn a_program_of_musl_is_counted_as_any_other_and_has_a_class_of_its_own() {
    let suite = Suite::new("musl", &source(""));
    let check = |arguments: &[&str]| suite.check_in(&[("CC", "musl-gcc")], arguments);
    let report = json(&check(&["--json"]).ended(Exit::Status(3)).stdout);
    let test = &report["tests"][0];
    assert_eq!(test["judgements"][0]["spread"]["min"], 1000, "{test:#}");
    let libc = test["measurement"]["environment"]["libc"].as_str().unwrap();
    assert!(libc.starts_with("musl"), "{test:#}");
}

#[test]
fn an_allocator_that_is_linked_in_is_found_out() {
    let own = "static char pool[1 << 20];\nstatic size_t at;\n\
               void *malloc(size_t bytes) { void *block = pool + at; at = (at + bytes + 15) % (sizeof pool / 2); return block; }\n\
               void free(void *block) { (void)block; }\n";
    let suite = Suite::new("own", &(source("") + own));
    let test = suite.only_test(1);
    assert_eq!(test["outcome"], "blind", "{test:#}");
    assert!(sentences(&test).contains("its executable brings its own malloc"), "{test:#}");
    // The command is a shell, and the program that marks its region is a grandchild.
    let _ = suite.check(&["--update"]).ended(Exit::Status(1));
    let program = suite.workshop.file("wrapped");
    let mut cc = run::command("cc");
    // As the gate builds it: without optimisation its first instructions can be unwound.
    cc.args(["-O2", "-I"])
        .arg(e2e::repository().join("markers/c"))
        .arg("-o")
        .arg(&program)
        .arg(suite.workshop.file("suite/test_work.c"));
    let _ = run::finish(&mut cc).well();
    fs::remove_file(suite.workshop.file("suite/test_work.c")).unwrap();
    let command = format!("cmd = [\"sh\", \"-c\", \"{}; true\"]", program.display());
    suite.write("mallow.toml", &format!("[gate]\nsuites = [\".\"]\n[[test]]\nname = \"work\"\n{command}\n"));
    let test = suite.only_test(1);
    assert_eq!(test["outcome"], "blind", "{test:#}");
    assert!(sentences(&test).contains("its executable brings its own malloc"), "{test:#}");
}

/// A pool with an unknown name, in a program without markers.
#[test]
fn memory_that_does_not_come_by_malloc_is_found_out() {
    let pool = "#include <string.h>\n#include <sys/mman.h>\n#include <unistd.h>\nint main(void) { long bytes = 20 << 20;\n\
                memset(mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1, bytes); return 0; }\n";
    let suite = Suite::new("pool", pool);
    let program = suite.workshop.file("pool");
    let mut cc = run::command("cc");
    let _ = run::finish(cc.arg("-o").arg(&program).arg(suite.workshop.file("suite/test_work.c"))).well();
    fs::remove_file(suite.workshop.file("suite/test_work.c")).unwrap();
    let test = format!("name = \"pool\"\ncmd = [\"{}\"]\nmode = \"process\"\n", program.display());
    let limit = "limit.allocations = { max = 1000 }\n";
    suite.write("mallow.toml", &format!("[gate]\nsuites = [\".\"]\n[[test]]\n{test}{limit}"));
    let test = suite.only_test(1);
    assert_eq!(test["outcome"], "blind", "{test:#}");
    assert!(sentences(&test).contains("of its memory did not come from malloc"), "{test:#}");
}

#[test]
fn a_suite_without_tests_cannot_pass() {
    let suite = Suite::new("none", "");
    fs::remove_file(suite.workshop.file("suite/test_work.c")).unwrap();
    let finished = suite.check(&[]).ended(Exit::Status(2));
    assert!(finished.stderr.contains("test_*.c"), "{finished}");
}

#[test]
fn a_name_with_a_slip_is_asked_about() {
    let suite = Suite::new("slip", &source(""));
    let finished = suite.check(&["--only", "test_wrok"]).ended(Exit::Status(2));
    assert!(finished.stderr.contains("test_wrok") && finished.stderr.contains("test_work"), "{finished}");
    // A test in the manifest without a file.
    suite.write("mallow.toml", "[gate]\nsuites = [\".\"]\n[[test]]\nname = \"test_wrok\"\nops = 1\n");
    let finished = suite.check(&[]).ended(Exit::Status(2));
    assert!(finished.stderr.contains("test_wrok"), "{finished}");
}

#[test]
fn a_baseline_of_another_machine_is_not_compared_silently() {
    let suite = Suite::new("machine", &source(""));
    let _ = suite.check(&["--update"]).well();
    let _ = suite.check(&[]).well();
    let baselines = suite.workshop.file("suite/mallow/baselines");
    let class = fs::read_dir(&baselines).unwrap().next().unwrap().unwrap().path();
    let file = fs::read_dir(&class).unwrap().next().unwrap().unwrap().path();
    let text = fs::read_to_string(&file).unwrap();
    let moved = text.replace("glibc ", "glibc 9.");
    assert_ne!(moved, text);
    let elsewhere = baselines.join(class.file_name().unwrap().to_string_lossy().replace("glibc", "glibc9."));
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join(file.file_name().unwrap()), moved).unwrap();
    fs::remove_dir_all(&class).unwrap();
    let test = suite.only_test(3);
    assert_eq!(test["outcome"], "missing", "{test:#}");
    assert!(sentences(&test).contains("glibc 9."), "{test:#}");
    let _ = suite.check(&["--ignore-environment"]).well();
}

#[test]
fn in_ci_no_baseline_is_made() {
    let suite = Suite::new("ci", &source(""));
    let finished = suite.check_in(&[("CI", "true")], &["--update"]).ended(Exit::Status(1));
    assert!(finished.stderr.contains("CI"), "{finished}");
    assert!(!suite.workshop.file("suite/mallow").exists());
    let test = suite.only_test(3);
    assert_eq!(test["outcome"], "missing", "{test:#}");
}

#[test]
fn a_program_that_crashes_is_an_error_and_the_others_are_judged() {
    let suite = Suite::new("crash", &source("if (i == 1000) { write(1, \"so far\\n\", 7); abort(); }"));
    suite.write("test_other.c", &source(""));
    let report = json(&suite.check(&["--json"]).ended(Exit::Status(1)).stdout);
    let (other, crashed) = (&report["tests"][0], &report["tests"][1]);
    assert_eq!((&other["outcome"], &crashed["outcome"]), (&"missing".into(), &"error".into()), "{report:#}");
    assert_eq!(sentences(crashed), "The program was killed by signal 6; it printed at last:\nso far");
}

#[test]
fn a_program_that_takes_too_long_is_killed_with_its_children() {
    let suite = Suite::new("slow", &source("fork(); sleep(100);"));
    suite.write("mallow.toml", "[gate]\nsuites = [\".\"]\ntimeout = \"500ms\"\n");
    let test = suite.only_test(1);
    assert_eq!(test["outcome"], "error", "{test:#}");
    assert!(sentences(&test).starts_with("The program was killed after 0.5 seconds"), "{test:#}");
}

/// A process that leaves the group and has lost its parent cannot delay the check.
#[test]
fn a_process_that_detached_itself_is_killed_at_the_deadline() {
    let suite =
        Suite::new("detached", &source("if (fork() == 0) { setsid(); mallow_keep(malloc(8)); sleep(100); }"));
    suite.write("mallow.toml", "[gate]\nsuites = [\".\"]\ntimeout = \"3s\"\n");
    let since = Instant::now();
    let test = suite.only_test(1);
    assert_eq!(test["outcome"], "error", "{test:#}");
    let said =
        "The program ended with status 0, and what it left in the background was killed after 3 seconds";
    assert!(sentences(&test).starts_with(said), "{test:#}");
    assert!(since.elapsed() < Duration::from_secs(50), "the check waited: {:?}", since.elapsed());
    let left = run::finish(run::command("pgrep").args(["-f"]).arg(suite.workshop.path()));
    assert_eq!(left.stdout, "", "a process goes on");
}

/// A thread that dies while it waits at its mark leaves a channel with unanswered marks. The next thread of that
/// channel waits only for its own.
#[test]
fn a_thread_that_dies_at_its_mark_holds_nobody_up() {
    let text = "#include \"mallow.h\"\n#include <pthread.h>\n#include <signal.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n\
                static void die(int number) { (void)number; syscall(SYS_exit, 0); }\n\
                static void *idle(void *context) { pause(); return context; }\n\
                static void *lost(void *context) {\n    mallow_region_begin(\"lost\"); mallow_keep(malloc(16)); mallow_region_end(\"lost\");\n    return context;\n}\n\
                static void *work(void *context) {\n    void *block;\n    mallow_region_begin(\"work\");\n    \
                block = malloc(24); mallow_keep(block); free(block);\n    mallow_region_end(\"work\");\n    return context;\n}\n\
                int main(void) {\n    pthread_t thread;\n    signal(SIGUSR1, die);\n    \
                pthread_create(&thread, NULL, idle, NULL); pthread_create(&thread, NULL, lost, NULL);\n    \
                usleep(100000); pthread_kill(thread, SIGUSR1); pthread_join(thread, NULL);\n    \
                usleep(100000);\n    pthread_create(&thread, NULL, work, NULL); pthread_join(thread, NULL); sleep(1);\n    return 0;\n}\n";
    let suite = Suite::new("dies", text);
    // Lost events are counted after the next thread has started, and before the program exits.
    let settings = "c_flags = [\"-pthread\"]\nquiesce_ms = 300\ntimeout = \"10s\"\n";
    suite.write("mallow.toml", &format!("[gate]\nsuites = [\".\"]\n{settings}"));
    let report = json(&suite.check(&["--json", "--runs", "2"]).ended(Exit::Status(3)).stdout);
    let work = report["tests"].as_array().unwrap().iter().find(|test| test["name"] == "test_work");
    let work = work.unwrap_or_else(|| panic!("{report:#}"));
    assert_eq!(work["judgements"][1]["spread"]["min"], 24, "{work:#}");
}

#[test]
fn a_program_that_marks_nothing_is_told_how() {
    let suite = Suite::new("nothing", "int main(void) { return 0; }");
    let test = suite.only_test(1);
    assert_eq!(test["outcome"], "error", "{test:#}");
    assert!(sentences(&test).contains("mallow_measure"), "{test:#}");
}

#[test]
fn a_program_that_cannot_be_built_shows_its_compilers_words() {
    let suite = Suite::new("build", "int main(void) { return oops; }");
    let test = suite.only_test(1);
    assert!(sentences(&test).contains("oops"), "{test:#}");
}

#[test]
fn counts_that_halve_everywhere_are_not_a_win() {
    let suite = Suite::new("blind", &source(""));
    suite.write("test_other.c", &source(""));
    let _ = suite.check(&["--update"]).well();
    let halved = source("").replace("i < 1000", "i < 400");
    suite.write("test_work.c", &halved);
    suite.write("test_other.c", &halved);
    let report = json(&suite.check(&["--json"]).ended(Exit::Status(1)).stdout);
    assert_eq!(report["tests"][0]["outcome"], "blind", "{report:#}");
    let refused = suite.check(&["--update"]).ended(Exit::Status(1));
    assert!(refused.stderr.contains("--allow-missing-counts"), "{refused}");
    let _ = suite.check(&["--update", "--allow-missing-counts"]).well();
    let _ = suite.check(&[]).well();
}

#[test]
fn runs_that_differ_are_called_flaky_with_the_site() {
    let more = "struct timespec now; clock_gettime(CLOCK_MONOTONIC, &now);\n    \
                for (i = 0; i < (int)(now.tv_nsec / 7 % 900); i++) { void *block = malloc(16); mallow_keep(block); free(block); } /* varies */";
    let suite = Suite::new("flaky", &source(more));
    let _ = suite.check(&["--update"]).well();
    let report = json(&suite.check(&["--json"]).ended(Exit::Status(3)).stdout);
    let test = &report["tests"][0];
    assert_eq!(test["outcome"], "flaky", "{test:#}");
    assert_eq!(test["judgements"][0]["spread"]["runs"], 20, "the runs were to be extended: {test:#}");
    let line = source(more).lines().position(|line| line.contains("varies")).unwrap() as u64 + 1;
    let frames = report["frames"].as_array().unwrap();
    let stack = test["varying"][0]["stack"].as_array().unwrap();
    let lines: Vec<&Value> = stack.iter().map(|at| &frames[at.as_u64().unwrap() as usize]["line"]).collect();
    assert!(lines.contains(&&Value::from(line)), "{lines:?}");
}

/// A user without the right to trace, with a read-only source tree, without a home and a repository.
fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

#[test]
fn it_works_as_nobody_without_ptrace_and_home_in_a_tree_that_is_read_only() {
    let suite = Suite::new("nobody", &source("if (open_one() < 0) abort();"));
    let opening = "#include <fcntl.h>\nstatic int open_one(void) { return open(\"/dev/null\", O_RDONLY); }\n";
    suite.write("test_work.c", &(opening.to_owned() + &source("if (open_one() < 0) abort();")));
    let open_to_all = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    let binary = suite.workshop.file("mallow");
    fs::copy(run::mallow_binary(), &binary).unwrap();
    open_to_all(suite.workshop.path());
    open_to_all(&binary);
    // Only root can become nobody; another user has as few rights already, except for files of its own.
    let mut nobody = run::command(if is_root() { "setpriv" } else { "env" });
    if is_root() {
        nobody.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        nobody.args(["--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"]);
    }
    let folder = suite.workshop.file("suite");
    let mode = |mode: u32| fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
    mode(0o555);
    nobody.arg(&binary).arg("check").arg(&folder).args(["--runs", "3", "--json"]);
    let finished = run::finish(&mut nobody);
    mode(0o755);
    let report = json(&finished.ended(Exit::Status(3)).stdout);
    let conclusions = &report["tests"][0]["judgements"];
    assert_eq!(conclusions[0]["spread"]["min"], 1000, "{report:#}");
    assert_eq!(conclusions[5]["spread"]["min"], 1, "{report:#}");
    assert!(sentences(&report["tests"][0]).contains("descriptor"), "{report:#}");
}

#[test]
fn the_same_test_runs_without_mallow_and_in_a_shell() {
    let suite = Suite::new("asides", &source("write(1, \"ran\\n\", 4);"));
    let listed = suite.check(&["--list"]).well();
    assert_eq!(listed.stdout, "test_work\n");
    let bare = suite.check(&["--no-hooks"]).well();
    assert_eq!(bare.stdout, "ran\n");
    let shell = suite.check_in(&[("SHELL", "/bin/sh")], &["--shell", "test_work"]).well();
    assert!(shell.stderr.contains("To run it: "), "{shell}");
    let nio = suite.check(&["--format", "nio"]).ended(Exit::Status(3));
    let lines: Vec<&str> = nio.stdout.lines().collect();
    assert!(lines[0].starts_with("- ") && lines[0].ends_with("test_work.c"), "{nio}");
    assert_eq!(lines[1], "test_work.total_allocations: 1000");
    assert_eq!(lines[2], "test_work.remaining_allocations: 0");
    assert_eq!(lines[3], "test_work.total_allocated_bytes: 16000");
    assert_eq!(lines[4], "test_work.leaked_fds: 0");
    assert!(lines[5].starts_with("DEBUG: [Test_test_work.Measurement(totalAllocations: 1000, "), "{nio}");
}

#[test]
fn whole_processes_and_slopes_need_no_marks() {
    let suite = Suite::new("modes", &source(""));
    fs::remove_file(suite.workshop.file("suite/test_work.c")).unwrap();
    suite.write(
        "plain.c",
        "#include <stdlib.h>\n#include <string.h>\nchar *volatile kept;\nint main(int count, char **words) {\n    \
         long i, n = strtol(words[count - 1], NULL, 10);\n    for (i = 0; i < 70; i++) free(kept = malloc(8));\n    \
         for (i = 0; i < n * 3; i++) free(kept = malloc(16));\n    return 0;\n}\n",
    );
    suite.write(
        "mallow.toml",
        "[gate]\nruns = 3\n\
         [[test]]\nname = \"whole\"\nsource = \"plain.c\"\nargs = [\"10\"]\nmode = \"process\"\nlimit.allocations = { min = 100, max = 100 }\n\
         [[test]]\nname = \"from_main\"\nsource = \"plain.c\"\nargs = [\"10\"]\nmode = \"repeat\"\nlimit.allocations = { min = 100, max = 100 }\n\
         [[test]]\nname = \"each\"\nsource = \"plain.c\"\nargs = [\"{ops}\"]\nmode = \"slope\"\nops = 50\nlimit.allocations = { min = 150, max = 150 }\n",
    );
    let finished = suite.check(&[]).well();
    assert!(finished.stdout.contains("3 OK"), "{finished}");
    // A shell forks children that never run a `main` of their own.
    suite.write(
        "mallow.toml",
        "[[test]]\nname = \"pipe\"\ncmd = [\"sh\", \"-c\", \"(true; true) | cat\"]\nmode = \"repeat\"\nlimit.allocations = { max = 1000 }\n",
    );
    let finished = suite.check(&[]).well();
    assert!(finished.stdout.contains("1 OK"), "{finished}");
}

/// CI measures and uploads its report; a developer turns it into baselines, in the repository.
#[test]
fn metrics_of_a_report_become_baselines() {
    let suite = Suite::new("report", &source(""));
    let report = suite.workshop.file("report.json");
    let path = report.to_str().unwrap();
    let _ = suite.check_in(&[("CI", "true")], &["--json", "-o", path]).ended(Exit::Status(3));
    let updated = suite.check(&["--update", "--from", path]).well();
    assert!(
        updated.stdout.contains("test_work\n") && updated.stdout.contains("1 baseline written"),
        "{updated}"
    );
    let _ = suite.check(&[]).well();
    suite.write("test_work.c", &source("").replace("i < 1000", "i < 1200"));
    let changed = suite.check(&["--update"]).well();
    assert!(changed.stdout.contains("1,000 -> 1,200 (+0.200 per operation)"), "{changed}");
    let damaged = suite.workshop.file("damaged.json");
    fs::write(&damaged, "{\"schema\": \"mallow.check/2\",").unwrap();
    let refused = suite.check(&["--update", "--from", damaged.to_str().unwrap()]).ended(Exit::Status(2));
    assert!(refused.stderr.contains("line 1"), "{refused}");
}

/// A project that used SwiftNIO's framework can keep its limits: a total may be up to 999 below its limit.
#[test]
fn limits_of_swiftnio_are_kept_as_its_gate_keeps_them() {
    let suite = Suite::new("nio", &source(""));
    let limits = suite.workshop.file("6.2.json");
    for (limit, outcome, status) in
        [(1050, "ok", 0), (999, "regressed", 1), (2000, "improved", 1), (1999, "ok", 0)]
    {
        fs::write(&limits, format!("{{\n    \"work\" : {limit}\n}}\n")).unwrap();
        let finished = suite.check(&["--json", "--thresholds", limits.to_str().unwrap()]);
        let report = json(&finished.ended(Exit::Status(status)).stdout);
        assert_eq!(report["tests"][0]["outcome"], outcome, "{limit}: {report:#}");
    }
    let log = suite.workshop.file("ci.log");
    fs::write(&log, "noise\ntest_work.total_allocations: 1001\n").unwrap();
    let _ = suite.check(&["--thresholds-from-log", log.to_str().unwrap()]).well();
    fs::write(&log, "noise alone\n").unwrap();
    let refused = suite.check(&["--thresholds-from-log", log.to_str().unwrap()]).ended(Exit::Status(2));
    assert!(refused.stderr.contains("total_allocations"), "{refused}");
}

/// Limits of package-benchmark, which SwiftNIO partly uses now: a folder of files, one for each benchmark, or one such file.
#[test]
fn limits_of_package_benchmark_are_read_from_their_folder() {
    let suite = Suite::new("p90", &source(""));
    let folder = suite.workshop.file("6.2");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("Other.Unknown.p90.json"), "{ \"mallocCountTotal\" : 7, \"syscalls\": 3 }\n")
        .unwrap();
    let file = folder.join("Benchmarks.work.p90.json");
    let check = |limit: &str, path: &Path| {
        fs::write(&file, format!("{{\n  \"mallocCountTotal\" : {limit}\n}}\n")).unwrap();
        suite.check(&["--json", "--thresholds", path.to_str().unwrap()])
    };
    for (limit, outcome, status) in [
        ("1000", "ok", 0),
        ("999", "regressed", 1),
        ("1001", "improved", 1),
        ("{ \"min\": 900, \"max\": 1000 }", "ok", 0),
        ("{ \"base\": 950, \"tolerancePercentage\": 5 }", "regressed", 1),
        ("{ \"base\": 950, \"tolerancePercentage\": 5.5 }", "ok", 0),
    ] {
        for path in [&folder, &file] {
            let finished = check(limit, path).ended(Exit::Status(status));
            assert_eq!(json(&finished.stdout)["tests"][0]["outcome"], outcome, "{limit}: {finished}");
            let is_told = finished.stderr.contains("syscalls");
            assert_eq!(is_told, *path == folder, "what is not judged is told: {finished}");
        }
    }
    let refused = check("\"many\"", &folder).ended(Exit::Status(2));
    assert!(
        refused.stderr.contains("work.p90.json") && refused.stderr.contains("mallocCountTotal"),
        "{refused}"
    );
}

/// Every kind of descriptor is counted, each with the line that opened it; one that was opened without libc has a count only.
#[test]
fn descriptors_of_every_kind_are_counted_with_their_lines() {
    let text = fs::read_to_string(e2e::repository().join("programs/gate/descriptors.c")).unwrap();
    let suite = Suite::new("descriptors", &text);
    let report = json(&suite.check(&["--json", "--runs", "2"]).ended(Exit::Status(3)).stdout);
    let test = &report["tests"][0];
    let expected: Vec<(u64, u64)> = text
        .lines()
        .zip(1..)
        .filter_map(|(line, number)| Some((number, line.split_once("/* opens ")?.1[..1].parse().ok()?)))
        .collect();
    let total: u64 = expected.iter().map(|(_, opens)| opens).sum();
    assert!(total > 30);
    assert_eq!(test["judgements"][5]["spread"]["min"], total + 1, "{test:#}");
    let frames = report["frames"].as_array().unwrap();
    let mut unnamed = 0;
    let mut named: Vec<(u64, u64)> = Vec::new();
    for site in test["left"].as_array().unwrap() {
        let count = site["figures"]["descriptors"].as_u64().unwrap();
        let stack = site["stack"].as_array().unwrap().iter().map(|at| &frames[at.as_u64().unwrap() as usize]);
        let line = stack
            .into_iter()
            .find(|frame| frame["function"] == "run")
            .and_then(|frame| frame["line"].as_u64());
        match line {
            _ if count == 0 => {}
            Some(line) => named.push((line, count)),
            None => unnamed += count,
        }
    }
    named.sort_unstable();
    assert_eq!(named, expected);
    assert_eq!(unnamed, 1);
}

/// A program that marks its regions once is started once per run; each of its processes is cold.
#[test]
fn regions_that_are_marked_once_are_run_in_processes_of_their_own() {
    let two = "#include \"mallow.h\"\nint main(void) {\n    void *block;\n    mallow_region_begin(\"first\");\n    \
               block = malloc(10); mallow_keep(block); free(block);\n    mallow_region_end(\"first\");\n    \
               mallow_region_begin(\"second\");\n    block = malloc(20); mallow_keep(block); block = malloc(30); mallow_keep(block);\n    \
               mallow_region_end(\"second\");\n    return 0;\n}\n";
    let suite = Suite::new("once", two);
    let report = json(&suite.check(&["--json", "--runs", "4"]).ended(Exit::Status(3)).stdout);
    let metrics = |at: usize| {
        let test = &report["tests"][at];
        let least = |metric: usize| test["judgements"][metric]["spread"]["min"].as_u64().unwrap();
        let measurement = &test["measurement"];
        (
            test["name"].as_str().unwrap().to_owned(),
            (least(0), least(1), least(3)),
            (measurement["runs"].as_array().unwrap().len(), measurement["warmups"].as_u64().unwrap()),
        )
    };
    assert_eq!(metrics(0), ("test_work.first".to_owned(), (1, 10, 0), (4, 0)));
    assert_eq!(metrics(1), ("test_work.second".to_owned(), (2, 50, 2), (4, 0)));
    // A region that does not end is not a measurement.
    suite.write("test_work.c", &two.replace("mallow_region_end(\"second\");", ""));
    let test = suite.only_test(1);
    assert_eq!(sentences(&test), "The region `second` began and had not ended when the program did");
}

/// Ctrl-C ends the running test and the check; no process continues.
#[test]
fn an_interrupt_ends_the_test_and_the_check() {
    let suite = Suite::new("interrupt", &source("write(1, \"began\\n\", 6); sleep(100);"));
    let cache = suite.workshop.file("cache");
    let mut mallow = run::mallow();
    let mallow = mallow.env("XDG_CACHE_HOME", &cache).arg("check").arg(suite.workshop.file("suite"));
    let line = run::line(mallow);
    let mut child =
        mallow.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
    let has_begun = || {
        let found =
            run::finish(run::command("grep").args(["-rq", "--include=output.txt", "began"]).arg(&cache));
        found.exit == Exit::Status(0)
    };
    while !has_begun() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let _ = run::finish(run::command("kill").args(["-INT", &child.id().to_string()])).well();
    assert_eq!(run::wait(&mut child, &line), Exit::Status(2));
    let left = run::finish(run::command("pgrep").args(["-f"]).arg(suite.workshop.path()));
    assert_eq!(left.stdout, "", "a program goes on");
}

/// The program stops the mallow that counts it while it fills its ring many times over. Then events were lost, so the
/// metric is not known, even if it is the same in every run.
#[test]
fn a_count_with_events_missing_is_an_error() {
    let stop = "static int is_first = 1; long j; if (is_first) { is_first = 0; kill(getppid(), SIGSTOP); \
                for (j = 0; j < 200000; j++) { void *block = malloc(16); mallow_keep(block); free(block); } \
                kill(getppid(), SIGCONT); }";
    let suite = Suite::new("stopped", &format!("#include <signal.h>\n{}", source(stop)));
    suite.write(
        "mallow.toml",
        "[gate]\nsuites = [\".\"]\n[[test]]\nname = \"test_work\"\nlimit = { allocations = 10000000 }\n",
    );
    let test = suite.only_test(1);
    assert_eq!(test["outcome"], "error", "{test:#}");
    assert!(sentences(&test).contains("events were not recorded"), "{test:#}");
}
