//! Code of files that has no unwind tables: stacks that end there are counted and named, and no others.

use e2e::program::{build_text, build_text_with};
use e2e::run::{self, Finished};
use e2e::session::{json, report_of};
use e2e::{Exit, Workshop};
use serde_json::{Value, json};
use std::path::Path;

const WITHOUT: &str = "-fno-asynchronous-unwind-tables";

/// A thousand allocations three calls below `main`, and 24 more in a child.
const CALLS: &str = r#"#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void *volatile kept;
__attribute__((noinline)) static void leaf(void) { kept = malloc(64); __asm__ volatile(""); }
__attribute__((noinline)) static void middle(void) { leaf(); __asm__ volatile(""); }
int main(void) {
    for (int i = 0; i < 1000; i++) middle();
    if (fork() == 0) {
        for (int i = 0; i < 24; i++) middle();
        _exit(0);
    }
    wait(NULL);
    return 0;
}
"#;

/// Records a program, and returns what mallow said and its report's document.
fn recorded(workshop: &Workshop, program: &Path) -> (Finished, Value) {
    let mut record = run::mallow();
    record.args(["record", "--force", "-o", "a.mallow", "--"]).arg(program);
    let recorded = run::finish(record.current_dir(workshop.path())).ended(Exit::Status(0));
    let report = json(&report_of(&workshop.file("a.mallow"), &[]).well().stdout);
    (recorded, report)
}

#[test]
fn stacks_that_end_in_code_without_unwind_tables_are_counted() {
    let workshop = Workshop::new("without-tables");
    let program = build_text_with(workshop.path(), "app", CALLS, &["-O2", WITHOUT]);
    let (recorded, report) = recorded(&workshop, &program);
    let ends = json!([{"module": program, "allocations": 1024, "or_more": false}]);
    assert_eq!((&report["early_ends"], &report["complete"]), (&ends, &true.into()), "{recorded}");
    let said = format!(
        "the stacks of 1,024 allocations (100.0%) end in code of {} that has no unwind tables",
        program.display()
    );
    assert!(recorded.stderr.contains(&said), "{recorded}");
    assert!(report["warnings"][0].as_str().unwrap().starts_with(&said), "{report}");
    // What is made of the trace says it, too.
    let export = ["export", "--format", "mallow", "-o", "b.mallow", "a.mallow"];
    let _ = run::finish(run::mallow().args(export).current_dir(workshop.path())).well();
    assert_eq!(json(&report_of(&workshop.file("b.mallow"), &[]).well().stdout)["early_ends"], ends);
}

#[test]
fn stacks_that_are_unwound_by_tables_or_frame_pointers_are_not() {
    let workshop = Workshop::new("with-tables");
    for flags in [&["-O2"][..], &["-O2", "-fno-omit-frame-pointer", WITHOUT]] {
        let program = build_text_with(workshop.path(), "app", CALLS, flags);
        let (recorded, report) = recorded(&workshop, &program);
        assert_eq!(report["early_ends"], Value::Null, "{flags:?}\n{recorded}");
        assert!(!recorded.stderr.contains("unwind tables"), "{flags:?}\n{recorded}");
        let main = json(&report_of(&workshop.file("a.mallow"), &["--filter", "function=main"]).well().stdout);
        assert_eq!(main["totals"]["allocations"], 1024, "{flags:?}\n{recorded}");
    }
}

/// Where rbp leads to a word that is no address of code, that is the stack's outermost frame.
#[test]
fn a_stack_that_leads_to_no_code_ends_in_what_led_there() {
    let workshop = Workshop::new("no-code");
    let text = "#include <stdlib.h>\nvoid *astray(void);\n\
                __asm__(\".text\\nastray: push %rbp\\npush $0x1234567\\npush $0\\nmov %rsp, %rbp\\n\"\n\
                \"mov $48, %edi\\ncall malloc@plt\\nadd $16, %rsp\\npop %rbp\\nret\\n\");\n\
                int main(void) { for (int i = 0; i < 10; i++) free(astray()); free(malloc(7)); return 0; }\n";
    let program = build_text(workshop.path(), "app", text);
    let (recorded, report) = recorded(&workshop, &program);
    let ends = json!([{"module": program, "allocations": 10, "or_more": false}]);
    assert_eq!(report["early_ends"], ends, "{recorded}");
}

#[test]
fn of_more_frames_than_can_be_noted_so_many_are_counted_at_least() {
    const CALLS: u64 = 20_000;
    let workshop = Workshop::new("many-untabled");
    let text = format!(
        "#include <stdlib.h>\nvoid many(void);\n\
         __asm__(\".text\\nmany: push %rbp\\n.rept {CALLS}\\nmov $8, %edi\\ncall malloc@plt\\n.endr\\npop %rbp\\nret\\n\");\n\
         int main(void) {{ many(); return 0; }}\n"
    );
    let program = build_text(workshop.path(), "app", &text);
    let (recorded, report) = recorded(&workshop, &program);
    let ends = &report["early_ends"][0];
    // As many as there are places, but for those whose few places are taken.
    let allocations = ends["allocations"].as_u64().unwrap();
    assert!((12_000..=16_384).contains(&allocations), "{recorded}");
    assert_eq!(ends["or_more"], true, "{recorded}");
    assert!(recorded.stderr.contains("the stacks of at least 1"), "{recorded}");
    assert_eq!(report["totals"]["allocations"], CALLS, "{recorded}");
}

/// Programs and threads of musl begin in code of its own, which has no tables.
#[test]
fn what_calls_main_in_musl_is_where_stacks_end() {
    let workshop = Workshop::new("musl-tables");
    let text = "#include <pthread.h>\n#include <stdlib.h>\n#include <threads.h>\nstatic void *volatile kept;\n\
                static void *thread(void *it) { kept = malloc(64); return it; }\n\
                static int other(void *it) { kept = malloc(it ? 1 : 64); return 0; }\n\
                int main(void) {\n    pthread_t a;\n    thrd_t b;\n    pthread_create(&a, NULL, thread, NULL);\n    pthread_join(a, NULL);\n\
                \x20   thrd_create(&b, other, NULL);\n    thrd_join(b, NULL);\n    kept = malloc(64);\n    free(kept);\n    return 0;\n}\n";
    std::fs::write(workshop.file("app.c"), text).unwrap();
    for (flags, early) in [(&["-static"][..], false), (&["-Wl,--eh-frame-hdr"], false), (&[], true)] {
        let program = workshop.file("app");
        let mut compile = std::process::Command::new("musl-gcc");
        compile.args(["-O1", "-g", "-o"]).arg(&program).arg(workshop.file("app.c")).args(flags);
        assert!(compile.status().unwrap().success());
        let (recorded, report) = recorded(&workshop, &program);
        assert_eq!(report["totals"]["allocations"], 3, "{flags:?}\n{recorded}");
        let ends = json!([{"module": program, "allocations": 3, "or_more": false}]);
        assert_eq!(report["early_ends"], if early { ends } else { Value::Null }, "{flags:?}\n{recorded}");
    }
}

/// Go has no unwind tables, and runs C code on a stack of its own, with names or without.
#[test]
#[ignore = "builds Go's own library with cgo: in `cargo xtask long`"]
fn c_code_that_go_calls_is_where_stacks_end() {
    let workshop = Workshop::new("go-tables");
    let text = "package main\n\n/*\n#include <stdlib.h>\n*/\nimport \"C\"\n\nfunc main() {\n\tfor i := 0; i < 1000; i++ {\n\t\tC.free(C.malloc(100))\n\t}\n}\n";
    std::fs::write(workshop.file("app.go"), text).unwrap();
    for flags in ["", "-s -w"] {
        let mut go = std::process::Command::new("go");
        go.args(["build", "-ldflags", flags, "-o", "app", "app.go"]).env("CGO_ENABLED", "1");
        assert!(go.current_dir(workshop.path()).status().unwrap().success());
        let (recorded, report) = recorded(&workshop, &workshop.file("app"));
        assert!(report["totals"]["allocations"].as_u64().unwrap() >= 1000, "{recorded}");
        assert_eq!(report["early_ends"], Value::Null, "{flags:?}\n{recorded}");
    }
}
