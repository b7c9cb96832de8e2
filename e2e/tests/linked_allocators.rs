//! What patched functions must not change: exceptions and jumps out of them, threads that libraries and constructors
//! start, the program's code, and systems that forbid modified code.

use e2e::run::{self, Exit};
use e2e::session::metric;
use e2e::{Session, Workshop, stacks};
use serde_json::json;
use std::path::PathBuf;

/// Builds a C++ program with jemalloc linked in.
fn built(workshop: &Workshop, name: &str, text: &str) -> PathBuf {
    let (source, program) = (workshop.file(&format!("{name}.cpp")), workshop.file(name));
    std::fs::write(&source, text).unwrap();
    let mut compiler = run::command("c++");
    compiler.args(["-std=c++17", "-O1", "-g", "-fno-builtin", "-pthread", "-o"]).arg(&program).arg(&source);
    let _ = run::finish(compiler.args(["-l:libjemalloc.a", "-lm", "-ldl"])).well();
    program
}

const THROWS: &str = r#"#include <csetjmp>
#include <cstdio>
#include <new>
static jmp_buf back;
static void jump() { std::set_new_handler(nullptr); longjmp(back, 1); }
__attribute__((noinline)) char *give(size_t n) { char *p = new char[n]; asm volatile("" : : "r"(p) : "memory"); return p; }
__attribute__((noinline)) int deeper(int n) { char *p = give(100); asm volatile("" : : : "memory"); delete[] p; return n; }
int main() {
    volatile size_t huge = (size_t)1 << 47;
    int caught = 0, jumped = 0;
    for (int i = 0; i < 1000; i++) {
        try { delete[] give(huge); } catch (std::bad_alloc &) { caught++; }
        deeper(i);
    }
    for (int i = 0; i < 1000; i++) {
        if (setjmp(back) == 0) { std::set_new_handler(jump); delete[] give(huge); } else jumped++;
        deeper(i);
    }
    printf("caught %d jumped %d\n", caught, jumped);
}
"#;

#[test]
fn behind_an_exception_or_a_jump_out_of_operator_new_every_call_is_seen() {
    let workshop = Workshop::new("linked-throws");
    let program = built(&workshop, "throws", THROWS);
    let session = Session::new(workshop.path(), &[&program.to_string_lossy()]);
    let recorded = session.record().well();
    assert_eq!(recorded.stdout, "caught 1000 jumped 1000\n");
    let report = session.report(&[]);
    let rows = stacks::of_site(
        &report,
        &json!({"function": "give", "passes_through": ["give", "deeper", "main"]}),
        workshop.path(),
    );
    let sum = |name: &str| rows.iter().map(|row| metric(row, name)).sum::<u64>();
    assert_eq!(["allocations", "bytes", "temporary"].map(sum), [2000, 200_000, 2000], "{recorded}");
    let (counted, stat) = session.stat();
    let _ = counted.well();
    let allocations = |document: &serde_json::Value| metric(&document["totals"], "allocations");
    assert_eq!(allocations(&stat["runs"][0]), allocations(&report));
}

const EARLY: &str = r#"#include <cstdlib>
#include <thread>
#include <vector>
static void work() { for (int i = 0; i < 5000; i++) free(malloc(40 + i % 100)); }
struct Early {
    Early() {
        std::vector<std::thread> all;
        for (int t = 0; t < 4; t++) all.emplace_back(work);
        for (auto &t : all) t.join();
    }
};
static Early early;
int main() { return 0; }
"#;

#[test]
fn threads_that_constructors_start_are_seen_from_their_first_call() {
    are_seen_from_their_first_call(25);
}

#[test]
#[ignore = "a thousand starts: in `cargo xtask long`"]
fn threads_that_constructors_start_are_seen_at_every_start() {
    are_seen_from_their_first_call(1000);
}

fn are_seen_from_their_first_call(starts: usize) {
    let workshop = Workshop::new("linked-early");
    let program = built(&workshop, "early", EARLY);
    let session = Session::new(workshop.path(), &[&program.to_string_lossy()]);
    let mut first = None;
    for _ in 0..starts {
        let (counted, stat) = session.stat();
        let counted = counted.well();
        let found = ["allocations", "frees"].map(|name| metric(&stat["runs"][0]["totals"], name));
        assert!(found[0] >= 20_000, "{counted}");
        assert_eq!(found, *first.get_or_insert(found), "{counted}");
    }
}

/// Compares the executable's code with its file, and prints the number of differing pieces, the length of the
/// longest, and the protection of the code.
const OWN_CODE: &str = r#"#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include <sys/mman.h>
int main() {
    free(malloc(10));
    static char maps[1 << 16];
    int fd = open("/proc/self/maps", O_RDONLY);
    for (ssize_t used = 0, got; (got = read(fd, maps + used, sizeof maps - 1 - used)) > 0;) used += got;
    char own[4096] = {};
    if (readlink("/proc/self/exe", own, sizeof own - 1) <= 0) return 2;
    char *file = (char *)mmap(nullptr, 64 << 20, PROT_READ, MAP_PRIVATE, open(own, O_RDONLY), 0);
    int pieces = 0, longest = 0;
    for (char *line = maps; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : nullptr) {
        unsigned long start, end, offset;
        char access[8], path[4096] = "";
        if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %4095[^\n]", &start, &end, access, &offset, path) < 4) return 3;
        if (strcmp(path, own) || !strchr(access, 'x')) continue;
        if (strcmp(access, "r-xp")) return 4;
        for (unsigned long at = 0, run = 0; at < end - start; at++) {
            run = ((char *)start)[at] == file[offset + at] ? 0 : run + 1;
            pieces += run == 1;
            if ((int)run > longest) longest = (int)run;
        }
    }
    printf("%d %d\n", pieces, longest);
}
"#;

#[test]
fn nothing_of_the_code_is_changed_but_the_jumps() {
    let workshop = Workshop::new("linked-code");
    let program = built(&workshop, "own_code", OWN_CODE);
    let session = Session::new(workshop.path(), &[&program.to_string_lossy()]);
    assert_eq!(session.bare().well().stdout, "0 0\n");
    let recorded = session.record().well();
    let [pieces, longest] = *recorded.stdout.split_whitespace().collect::<Vec<_>>() else {
        panic!("{recorded}");
    };
    // A patched byte may equal the original one, which splits one jump into two pieces.
    let (pieces, longest) = (pieces.parse::<u32>().unwrap(), longest.parse::<u32>().unwrap());
    assert!((10..=80).contains(&pieces) && longest <= 5, "{recorded}");
}

#[test]
fn a_policy_that_forbids_to_make_memory_executable_does_not_matter() {
    let workshop = Workshop::new("linked-policy");
    // PR_SET_MDWE, which applies to executable mappings.
    let text = "#include <sys/prctl.h>\n#include <unistd.h>\n\
                int main(int, char **words) { prctl(65, 1, 0, 0, 0); execv(words[1], words + 1); return 9; }\n";
    let under = built(&workshop, "policy", text);
    let program = built(&workshop, "early", EARLY);
    let words = [under, program].map(|path| path.to_string_lossy().into_owned());
    let session = Session::new(workshop.path(), &[&words[0], &words[1]]);
    let (counted, stat) = session.stat();
    let counted = counted.ended(Exit::Status(0));
    let processes = stat["runs"][0]["processes"].as_array().unwrap();
    assert!(processes.iter().any(|it| metric(&it["totals"], "allocations") >= 20_000), "{counted}");
}
