//! Situations that are difficult for a recorder: small stacks, deep ones, unusual outputs and folders, allocators of the program's own.

use e2e::program::{Program, build_text, build_text_with};
use e2e::run::{self, Exit, Finished};
use e2e::session::metric;
use e2e::{Session, Workshop};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::process::Command;

/// Builds a program of `programs/hazards` that has no file of metrics.
fn built(workshop: &Workshop, name: &str) -> String {
    let source = e2e::repository().join("programs/hazards").join(format!("{name}.c"));
    let program = workshop.file(name);
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-g", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-pthread", "-o"]);
    let _ = run::finish(cc.arg(&program).arg(source)).well();
    program.to_string_lossy().into_owned()
}

/// Parses lines of `NAME VALUE`.
fn metrics(finished: &Finished) -> Vec<(String, u64)> {
    let lines = finished.stdout.lines().filter_map(|line| line.split_once(' '));
    lines.map(|(name, value)| (name.to_owned(), value.parse().unwrap())).collect()
}

#[test]
fn a_call_takes_less_than_a_kibibyte_of_its_callers_stack() {
    let workshop = Workshop::new("painted");
    let session = Session::new(workshop.path(), &[&built(&workshop, "painted_stack")]);
    let bare = metrics(&session.bare().well());
    assert_eq!(bare.len(), 4, "{bare:?}");
    let (counted, _) = session.stat();
    for observed in [session.record().well(), counted.well()] {
        let metrics = metrics(&observed);
        assert_eq!(metrics.len(), bare.len(), "{observed}");
        for ((name, used), (bare_name, bare_used)) in metrics.iter().zip(&bare) {
            assert_eq!(name, bare_name);
            assert!(
                *used <= bare_used + 1024,
                "{name}: {used} bytes, {bare_used} without mallow\n{observed}"
            );
        }
    }
}

/// A plug-in whose addresses all change with each unload has the stacks of the program's own code only once, not 500 times: 99 kB.
#[test]
fn code_that_stays_keeps_its_stacks_while_a_plug_in_comes_and_goes() {
    let workshop = Workshop::new("plugins");
    let path = Program::load("plugin_cycles").build(workshop.path(), &Value::Null);
    let session = Session::new(workshop.path(), &[&path.to_string_lossy()]);
    let _ = session.record().well();
    let trace_bytes = fs::metadata(session.trace()).unwrap().len();
    assert!(trace_bytes < 30_000, "the trace has {trace_bytes} bytes");
}

/// Libraries whose names may be wrong are reported: those that were not in the list because it was full, and all if there are too many unloads.
#[test]
fn names_that_may_be_another_librarys_are_said_to_be() {
    let full = "its list of modules was full";
    let wrapped = "it unloaded libraries more often than can be told apart";
    for (name, argument, told) in [("module_log", "1300", full), ("library_cycles", "33000", wrapped)] {
        let workshop = Workshop::new(name);
        // With its libraries, which the other program uses too.
        let _ = Program::load("library_cycles").build(workshop.path(), &Value::Null);
        let program = if name == "module_log" { built(&workshop, name) } else { format!("./{name}") };
        let session = Session::new(workshop.path(), &[&program, argument]);
        let recorded = session.record().well();
        assert!(recorded.stderr.contains(told), "{recorded}");
        let report = session.report(&[]);
        assert_eq!(report["complete"], false, "{}", report["warnings"]);
        assert!(report["warnings"].to_string().contains(told), "{}", report["warnings"]);
    }
}

#[test]
fn deep_stacks_by_chance_are_whole_and_cost_no_event() {
    let workshop = Workshop::new("deep");
    let session = Session::new(workshop.path(), &[&built(&workshop, "deep_stacks"), "20000", "5"]);
    let recorded = session.record().well();
    assert!(!recorded.stderr.contains("warning"), "{recorded}");
    let report = session.report(&["--limit", "1"]);
    let totals = ["allocations", "frees", "temporary"].map(|name| metric(&report["totals"], name));
    assert_eq!(totals, [100_000, 100_000, 100_000]);
    assert_eq!(report["complete"], true);
}

/// Names as a user would type them; the recording must not remove these files.
#[test]
fn outputs_that_are_no_files_are_refused_and_left_alone() {
    let workshop = Workshop::new("outputs");
    let fifo = workshop.file("fifo");
    let _ = run::finish(Command::new("mkfifo").arg(&fifo)).well();
    let folder = workshop.file("folder");
    fs::create_dir(&folder).unwrap();
    for place in [&fifo, &folder, Path::new("/dev/null"), Path::new("/dev/full")] {
        let mut mallow = run::mallow();
        mallow.args(["record", "--force", "-o"]).arg(place).args(["--", "/bin/echo", "ran"]);
        let refused = run::finish(&mut mallow).ended(Exit::Status(125));
        assert_eq!(refused.stdout, "", "the program ran\n{refused}");
        assert!(refused.stderr.contains("is no regular file"), "{refused}");
    }
    assert!(fs::metadata(&fifo).unwrap().file_type().is_fifo());
    assert!(fs::metadata("/dev/full").unwrap().file_type().is_char_device());
}

#[test]
fn a_temporary_folder_with_a_blank_or_a_colon_does_no_harm() {
    let workshop = Workshop::new("blank");
    let program =
        build_text(workshop.path(), "one", "#include <stdlib.h>\nint main(void) { return !malloc(4321); }\n");
    for name in ["a b", "a:b"] {
        let folder = workshop.file(name);
        fs::create_dir(&folder).unwrap();
        let session = Session::new(workshop.path(), &[&program.to_string_lossy()])
            .env("TMPDIR", &folder.to_string_lossy());
        let recorded = session.record().well();
        assert!(!recorded.stderr.contains("ERROR"), "{recorded}");
        assert_eq!(metric(&session.report(&[])["totals"], "bytes"), 4321);
    }
}

/// If an assumption of the recorder is violated, it is the recording that ends.
#[test]
fn a_fault_of_the_recorder_ends_the_recording_and_not_the_program() {
    let workshop = Workshop::new("scribbler");
    let session = Session::new(workshop.path(), &[&built(&workshop, "scribbler")]);
    assert_eq!(session.bare().well().stdout, "missed\n");
    let recorded = session.record().well();
    assert_eq!(recorded.stdout, "hit\n", "{recorded}");
    let told = "the recorder found a fault of its own and stopped recording";
    assert!(recorded.stderr.contains(told), "{recorded}");
    let report = session.report(&[]);
    assert_eq!(report["complete"], false);
    assert!(report["warnings"].to_string().contains(told), "{}", report["warnings"]);
    // The call that found it is the last one.
    assert_eq!(["allocations", "frees"].map(|name| metric(&report["totals"], name)), [101, 100]);
}

/// Its calls never reach a preloaded library: nothing was seen, and this is reported, then and whenever the trace is read.
#[test]
fn a_program_with_a_malloc_of_its_own_is_not_said_to_allocate_nothing() {
    let workshop = Workshop::new("own-malloc");
    let text = "#include <stddef.h>\n\
        static char room[1 << 16];\nstatic size_t used;\n\
        void *malloc(size_t bytes) { void *p = room + used; used += (bytes + 15) & ~15ul; return p; }\n\
        void free(void *p) { (void)p; }\n\
        int main(void) { return !malloc(100); }\n";
    let program = build_text(workshop.path(), "own", text);
    let session = Session::new(workshop.path(), &[&program.to_string_lossy()]);
    let recorded = session.record().well();
    let told = "its executable brings its own malloc";
    assert!(recorded.stderr.contains(told), "{recorded}");
    let report = session.report(&[]);
    assert_eq!(report["complete"], false);
    assert!(report["warnings"].to_string().contains(told), "{}", report["warnings"]);
    let (counted, stat) = session.stat();
    assert!(counted.well().stderr.contains(told));
    assert!(stat["warnings"].to_string().contains(told), "{stat}");
}

/// As PHP loads its extensions. Such a library finds libc's `malloc` before the one that was preloaded, whether it is bound at once, with slots that cannot be
/// written to any more, or call by call. What its constructors allocate is missed, and said to be when the program frees it.
#[test]
fn a_library_that_is_bound_past_what_is_preloaded_is_recorded_and_its_constructors_are_spoken_of() {
    let workshop = Workshop::new("deepbind");
    let text = "#include <stdlib.h>\nvoid *kept;\nvoid *give(void) { void *volatile block = malloc(100); return block; }\n\
                void take(void *block) { free(block); }\n\
                #ifdef EARLY\n__attribute__((constructor)) static void begin(void) { kept = malloc(5000); }\n#endif\n";
    let build = |name: &str, flags: &[&str]| {
        let library = build_text_with(workshop.path(), name, text, &[&["-shared", "-fPIC"], flags].concat());
        library.to_string_lossy().into_owned()
    };
    let text = "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stdlib.h>\nint main(int count, char **words) {\n\
         \x20   if (count != 3) return 8;\n    int flags = (words[2][0] == 'l' ? RTLD_LAZY : RTLD_NOW) | (words[2][1] == 'd' ? RTLD_DEEPBIND : 0);\n\
         \x20   void *bound = dlopen(words[1], flags);\n    if (!bound) return 9;\n\
         \x20   void *(*give)(void) = (void *(*)(void))dlsym(bound, \"give\");\n    void (*take)(void *) = (void (*)(void *))dlsym(bound, \"take\");\n\
         \x20   for (int i = 0; i < 10; i++) free(give());\n    for (int i = 0; i < 10; i++) { void *volatile block = malloc(1000); take(block); }\n\
         \x20   free(*(void **)dlsym(bound, \"kept\"));\n    return 0;\n}\n";
    let program = build_text(workshop.path(), "binds", text);
    let program = program.to_string_lossy();
    let of = |library: &str, way: &str| {
        let session = Session::new(workshop.path(), &[&program, library, way]);
        let _ = session.record().ended(Exit::Status(0));
        let report = session.report(&[]);
        let frees = metric(&report["totals"], "frees");
        let given = report["sites"].as_array().unwrap().iter();
        let given = given.filter(|site| site["frames"][0]["function"] == "give");
        let given: u64 = given.map(|site| metric(site, "allocations")).sum();
        (given, frees, [report, session.stat().1].map(|document| document["warnings"].to_string()))
    };
    let nothing = || ["[]", "[]"].map(str::to_owned);
    for (name, flags) in
        [("lazy.so", &["-Wl,-z,lazy"][..]), ("now.so", &["-Wl,-z,now,-z,relro"]), ("noplt.so", &["-fno-plt"])]
    {
        let library = build(name, flags);
        let expected = of(&library, "n-");
        assert_eq!((expected.0, &expected.2), (10, &nothing()), "{name}");
        for way in ["ld", "nd"] {
            assert_eq!(of(&library, way), expected, "{name} {way}");
        }
    }
    // The calls of a library that came with the one that is opened.
    let _ = build("libinner.so", &[]);
    let path = workshop.path().to_string_lossy().into_owned();
    let outer = build_text_with(
        workshop.path(),
        "outer.so",
        "#include <stdlib.h>\nextern void *give(void);\nvoid *outer_gives(void) { return give(); }\n",
        &[
            "-shared",
            "-fPIC",
            "-Wl,-z,now",
            "-Wl,--no-as-needed",
            &format!("-L{path}"),
            "-linner",
            &format!("-Wl,-rpath,{path}"),
        ],
    );
    let outer = outer.to_string_lossy().into_owned();
    for way in ["n-", "nd", "ld"] {
        let (given, frees, warnings) = of(&outer, way);
        assert_eq!((given, frees, warnings), (10, of(&outer, "n-").1, nothing()), "{way}");
    }
    let (given, _, warnings) = of(&build("early.so", &["-DEARLY"]), "nd");
    assert_eq!(given, 10);
    for said in warnings {
        assert!(said.contains("it freed blocks whose allocation was not seen (1)"), "{said}");
    }
}

/// As programs that bring a C library of their own are started. The process's executable is the loader then.
#[test]
fn a_program_that_its_loader_is_told_to_run_is_recorded_as_if_it_were_started_itself() {
    let workshop = Workshop::new("loader");
    let text = "#include <stdlib.h>\nint main(void) { for (int i = 0; i < 10; i++) { void *volatile block = malloc(100); (void)block; } return 3; }\n";
    let program = build_text(workshop.path(), "app", text);
    let program = program.to_string_lossy();
    let headers = run::finish(run::command("readelf").args(["-lW", &program])).well().stdout;
    let loader = headers.split("interpreter: ").nth(1).and_then(|rest| rest.split(']').next()).unwrap();
    let by_shell = format!("{loader} {program}; exit $?");
    for words in [&[loader, &program][..], &["/bin/sh", "-c", &by_shell]] {
        let session = Session::new(workshop.path(), words);
        let recorded = session.record().ended(Exit::Status(3));
        assert!(!recorded.stderr.contains("not recorded"), "{recorded}");
        let report = session.report(&[]);
        let sites = report["sites"].as_array().unwrap();
        let of_main = sites.iter().find(|site| site["frames"][0]["function"] == "main").unwrap();
        assert_eq!(metric(of_main, "allocations"), 10, "{of_main:#}");
        assert!(of_main["frames"][0]["file"].as_str().unwrap().ends_with("app.c"), "{of_main:#}");
        let stat = session.stat().1;
        for warnings in [&report["warnings"], &stat["warnings"]] {
            assert!(!warnings.to_string().contains("ld-linux"), "{warnings:#}");
        }
    }
}

/// The runtime has functions of libc's of its own, which cannot be called before it has begun: some of them are wanted as the program starts.
#[test]
fn a_program_with_the_runtime_of_a_sanitizer_in_it_ends_as_without_mallow() {
    let workshop = Workshop::new("sanitized");
    let text = "#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
        static void *work(void *unused) { for (int i = 0; i < 1000; i++) { void *volatile block = malloc(100); free(block); } return unused; }\n\
        int main(void) {\n    pthread_t thread;\n    pthread_create(&thread, NULL, work, NULL);\n    pthread_join(thread, NULL);\n\
        \x20   if (fork() == 0) { work(NULL); execl(\"/bin/echo\", \"echo\", \"child\", (char *)NULL); }\n    wait(NULL);\n    puts(\"done\");\n    return 3;\n}\n";
    for flags in [["-fsanitize=thread", "-static-libtsan"], ["-fsanitize=address", "-static-libasan"]] {
        let program = build_text_with(workshop.path(), "sanitized", text, &flags);
        let session = Session::new(workshop.path(), &[&program.to_string_lossy()]);
        let bare = session.bare();
        assert_eq!((bare.exit, bare.stdout.as_str()), (Exit::Status(3), "child\ndone\n"), "{bare}");
        let told = "its executable is linked with a sanitizer's allocator, which watches every block itself";
        for observed in [session.record(), session.stat().0] {
            assert_eq!((observed.exit, &observed.stdout), (bare.exit, &bare.stdout), "{observed}");
            assert!(observed.stderr.contains(told), "{observed}");
        }
        assert_eq!(session.report(&[])["complete"], false);
    }
}

/// One process after another: mallow keeps only the metrics of those that have exited.
#[test]
fn hundreds_of_short_processes_cost_mallow_little_memory() {
    const PROCESSES: u64 = 400;
    const MEGABYTES_MAX: u64 = 160;
    let workshop = Workshop::new("many-processes");
    let text = format!(
        "#include <stdlib.h>\n#include <sys/wait.h>\n#include <unistd.h>\nint main(void) {{\n\
         \x20   for (int i = 0; i < {PROCESSES}; i++) {{\n        pid_t child = fork();\n        if (child == 0) {{\n\
         \x20           for (int j = 0; j < 1000; j++) {{ void *volatile block = malloc(10); if (j % 2) free(block); }}\n\
         \x20           _exit(0);\n        }}\n        waitpid(child, NULL, 0);\n    }}\n    return 0;\n}}\n"
    );
    let program = build_text(workshop.path(), "forks", &text);
    let session = Session::new(workshop.path(), &[&program.to_string_lossy()]);
    // The largest of all that it waited for, which is mallow: its own memory, and what it shares with the program.
    let measure = "import resource, subprocess, sys\nended = subprocess.run(sys.argv[1:])\n\
                   print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1000)\nsys.exit(ended.returncode)\n";
    let mut python = run::command("python3");
    python.args(["-c", measure]).arg(run::mallow_binary()).args(["record", "-o"]);
    python.arg(session.trace()).arg("--").arg(&program);
    let recorded = run::finish(&mut python).well();
    let megabytes: u64 = recorded.stdout.trim().parse().unwrap();
    assert!(megabytes <= MEGABYTES_MAX, "mallow took {megabytes} MB\n{recorded}");
    let report = session.report(&[]);
    assert_eq!(report["processes"].as_array().unwrap().len() as u64, PROCESSES + 1);
    let totals = ["allocations", "frees"].map(|name| metric(&report["totals"], name));
    assert_eq!(totals, [PROCESSES * 1_000, PROCESSES * 500]);
}

/// Times are those of the program's own clock, from its first allocation on, and while it does little each event has
/// its own. Time in which the program was not running between two allocations may be before the first or after the
/// last one.
#[test]
fn times_are_the_programs_own() {
    const ERROR_US: u64 = 500;
    let workshop = Workshop::new("times");
    let text = "#include <stdio.h>\n#include <stdlib.h>\n#include <time.h>\n#include <unistd.h>\n\
                static long now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000L + t.tv_nsec; }\n\
                __attribute__((noinline)) static long spins(void) {\n    long kept_ns = 0, last = now();\n    for (int i = 0; i < 3000; i++) {\n\
                \x20       void *volatile block = malloc(10); long until = now() + 1000; (void)block; while (now() < until);\n\
                \x20       long at = now(); if (at - last > 20000) kept_ns += at - last; last = at;\n    }\n    return kept_ns;\n}\n\
                __attribute__((noinline)) static void sleeps(void) {\n\
                \x20   for (int i = 0; i < 5; i++) { void *volatile block = malloc(20); usleep(2000); free(block); }\n}\n\
                int main(int count, char **words) {\n    (void)words; if (count > 1) { sleeps(); return 0; }\n\
                \x20   long began = now(), kept = spins(), took = now() - began;\n\
                \x20   char line[64]; int n = snprintf(line, sizeof line, \"took_us %ld\\nkept_us %ld\\n\", took / 1000, kept / 1000); write(1, line, n); return 0;\n}\n";
    let program = build_text(workshop.path(), "times", text);
    for round in 0..5 {
        let session = Session::new(&workshop.file(&format!("{round}")), &[&program.to_string_lossy()]);
        fs::create_dir(workshop.file(&format!("{round}"))).unwrap();
        let said = metrics(&session.record().well());
        let (took_us, kept_us) = (said[0].1, said[1].1);
        let spins = site_of(&session.report(&[]), "spins");
        let seen_us = metric(&spins, "last") - metric(&spins, "first");
        assert!(
            seen_us.abs_diff(took_us) <= ERROR_US + kept_us,
            "{seen_us} µs, by the program's clock {took_us}, of which it was kept waiting {kept_us}: {spins:#}"
        );
        let calm = workshop.file(&format!("calm-{round}"));
        fs::create_dir(&calm).unwrap();
        let session = Session::new(&calm, &[&program.to_string_lossy(), "sleep"]);
        let _ = session.record().well();
        let sleeps = site_of(&session.report(&[]), "sleeps");
        assert!(sleeps["lifetime_average"].as_f64().unwrap() >= 1_999.0, "{sleeps:#}");
    }
}

/// Returns the site of a function that allocates.
fn site_of(report: &Value, function: &str) -> Value {
    let mut rows = report["sites"].as_array().unwrap().iter();
    rows.find(|row| row["frames"][0]["function"] == function).unwrap().clone()
}

/// Beside 10 allocations "15 freed" would say nothing that anybody could believe.
#[test]
fn what_a_child_frees_of_its_parents_blocks_is_told_apart() {
    let workshop = Workshop::new("inherited");
    let text = r#"
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    void *volatile blocks[10];
    for (int i = 0; i < 10; i++) blocks[i] = malloc(100);
    if (fork() == 0) {
        for (int i = 0; i < 10; i++) free(blocks[i]);
        _exit(0);
    }
    wait(NULL);
    for (int i = 0; i < 5; i++) free(blocks[i]);
    return 0;
}
"#;
    let program = build_text(workshop.path(), "inherited", text);
    let session = Session::new(workshop.path(), &[&program.to_string_lossy()]);
    let recorded = session.record().well();
    let line = recorded.stderr.lines().find(|line| line.starts_with("allocations ")).unwrap();
    assert!(line.contains(" 10  ") && line.ends_with(", 5 freed"), "{recorded}");
    let shown = run::finish(run::mallow().arg("report").arg(session.trace())).well();
    let line = shown.stdout.lines().find(|line| line.starts_with("frees ")).unwrap();
    assert_eq!(line, "frees               15  10 of a parent's blocks, or of blocks from before", "{shown}");
    assert_eq!(session.report(&[])["totals"]["frees"], 15);
}
