//! Names of stripped programs: from named folders, from another root, from the mini debug information in the executable, and after the recording.

use e2e::Workshop;
use e2e::run::{self, Finished};
use e2e::session::json;
use std::path::Path;

const SOURCE: &str = "#include <stdlib.h>\n\
    static void *kept[100];\n\
    static __attribute__((noinline)) void keep(int at) {\n\
      kept[at] = malloc(64);\n\
    }\n\
    int main(void) {\n\
      for (int at = 0; at < 100; at++) keep(at);\n\
      return kept[99] == 0;\n\
    }\n";

/// Builds a stripped program, and `debug/.build-id/xx/yyyy.debug`; returns that file's path relative to the workshop.
fn build(workshop: &Workshop) -> String {
    std::fs::write(workshop.file("hidden.c"), SOURCE).unwrap();
    let line = "cc -g -O1 -fno-optimize-sibling-calls -Wl,--build-id hidden.c -o hidden && cp hidden whole && objcopy --only-keep-debug hidden hidden.debug && \
                strip hidden && readelf -n hidden";
    let notes = shell(workshop, line).stdout;
    let (_, build_id) = notes.split_once("Build ID: ").unwrap();
    let build_id = build_id.split_whitespace().next().unwrap();
    let place = format!("debug/.build-id/{}/{}.debug", &build_id[..2], &build_id[2..]);
    std::fs::create_dir_all(workshop.file(&place).parent().unwrap()).unwrap();
    std::fs::rename(workshop.file("hidden.debug"), workshop.file(&place)).unwrap();
    place
}

fn shell(workshop: &Workshop, line: &str) -> Finished {
    run::finish(run::command("sh").args(["-c", line]).current_dir(workshop.path())).well()
}

fn mallow(workshop: &Workshop, words: &[&str]) -> Finished {
    let mut mallow = run::mallow();
    mallow.args(words).current_dir(workshop.path()).env("MALLOW_SYMBOL_CACHE", "");
    run::finish(&mut mallow).well()
}

/// Returns the innermost call of the heaviest site.
fn innermost(workshop: &Workshop, trace: &str) -> (String, Option<String>) {
    let report = json(&mallow(workshop, &["report", trace, "--metric", "bytes", "--json"]).stdout);
    let frames = report["sites"][0]["frames"].as_array().unwrap();
    let of_program = |frame: &&serde_json::Value| {
        frame["module"].as_str().is_some_and(|module| module.ends_with("/hidden"))
    };
    let frame = frames.iter().find(of_program).unwrap();
    (frame["function"].as_str().unwrap().to_owned(), frame["file"].as_str().map(str::to_owned))
}

fn is_address(name: &str) -> bool {
    name.starts_with("0x")
}

#[test]
fn names_come_from_a_folder_that_is_named_and_what_was_tried_is_told() {
    let workshop = Workshop::new("debug-path");
    let place = build(&workshop);
    let plain = mallow(&workshop, &["record", "-o", "plain.mallow", "./hidden"]);
    assert!(
        is_address(&innermost(&workshop, "plain.mallow").0) && !plain.stderr.contains("tried"),
        "{plain}"
    );
    let words =
        ["record", "-v", "--debug-path", "empty", "--debug-path", "debug", "-o", "named.mallow", "./hidden"];
    let named = mallow(&workshop, &words).stderr;
    let (function, file) = innermost(&workshop, "named.mallow");
    assert_eq!((function.as_str(), file.is_some_and(|file| file.ends_with("/hidden.c"))), ("keep", true));
    let own = workshop.file("hidden").canonicalize().unwrap();
    let not_there = place.replacen("debug/", "empty/", 1);
    for line in [
        format!("mallow: tried {}: it ran, and has no debug information\n", own.display()),
        format!("mallow: tried {not_there}: it is not there\n"),
        format!("mallow: tried {place}: taken\n"),
    ] {
        assert!(named.contains(&line), "{line}{named}");
    }
    // A file of another build is reported as such, and not used.
    std::fs::copy("/bin/true", workshop.file(&place)).unwrap();
    let words = ["record", "--verbose", "--debug-path", "debug", "-o", "other.mallow", "./hidden"];
    let other = mallow(&workshop, &words).stderr;
    let line = format!("mallow: tried {place}: it is another build: its build id is ");
    assert!(other.contains(&line) && is_address(&innermost(&workshop, "other.mallow").0), "{other}");
}

#[test]
fn a_quiet_recording_says_nothing() {
    let workshop = Workshop::new("quiet");
    build(&workshop);
    let quiet = mallow(&workshop, &["record", "-q", "-o", "a.mallow", "./hidden"]);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("", ""), "{quiet}");
    let report = mallow(&workshop, &["--quiet", "report"]);
    assert!(report.stdout.contains("allocations") && report.stderr.is_empty(), "{report}");
}

#[test]
fn the_small_table_in_the_program_names_its_functions() {
    let workshop = Workshop::new("debugdata");
    build(&workshop);
    // As Fedora's find-debuginfo.sh creates it: the functions that are missing from the dynamic table.
    let line = "nm -D whole --format=posix --defined-only | awk '{ print $1 }' | sort > exported; \
                nm whole --format=posix --defined-only | awk '{ if ($2 == \"T\" || $2 == \"t\") print $1 }' | sort > functions; \
                comm -13 exported functions > kept; \
                objcopy --only-keep-debug whole whole.debug; \
                objcopy -S --remove-section .gdb_index --remove-section .comment --keep-symbols=kept whole.debug mini; \
                xz mini; objcopy --add-section .gnu_debugdata=mini.xz hidden with-table; mv with-table hidden";
    let _ = shell(&workshop, line);
    let recorded = mallow(&workshop, &["record", "-v", "-o", "a.mallow", "./hidden"]).stderr;
    assert_eq!(innermost(&workshop, "a.mallow"), ("keep".to_owned(), None));
    assert!(recorded.contains("/hidden: its .gnu_debugdata has names of functions: taken\n"), "{recorded}");
    // Damaged data costs names, and nothing else.
    let line = "head -c 100 mini.xz > cut; objcopy --update-section .gnu_debugdata=cut hidden";
    let _ = shell(&workshop, line);
    let recorded = mallow(&workshop, &["record", "-v", "-o", "b.mallow", "./hidden"]).stderr;
    assert!(is_address(&innermost(&workshop, "b.mallow").0), "{recorded}");
    assert!(recorded.contains("/hidden: its .gnu_debugdata cannot be unpacked: "), "{recorded}");
}

#[test]
fn names_can_be_found_afterwards_below_another_root() {
    let workshop = Workshop::new("symbolize");
    let place = build(&workshop);
    let _ = mallow(&workshop, &["record", "-o", "a.mallow", "./hidden"]);
    let before = json(&mallow(&workshop, &["report", "a.mallow", "--json"]).stdout);
    // The program is gone from here, and is in an image with its debug file.
    let own = workshop.file("hidden").canonicalize().unwrap();
    let inside = Path::new("image").join(own.strip_prefix("/").unwrap());
    std::fs::create_dir_all(workshop.path().join(inside.parent().unwrap())).unwrap();
    std::fs::rename(&own, workshop.path().join(&inside)).unwrap();
    std::fs::create_dir_all(workshop.file("image/usr/lib")).unwrap();
    std::fs::rename(workshop.file("debug"), workshop.file("image/usr/lib/debug")).unwrap();
    let kept = std::fs::read(workshop.file("a.mallow")).unwrap();
    let apart = mallow(&workshop, &["symbolize", "a.mallow", "--sysroot", "image", "-o", "named.mallow"]);
    assert!(apart.stderr.ends_with("found names for 3 addresses\n"), "{apart}");
    assert_eq!(std::fs::read(workshop.file("a.mallow")).unwrap(), kept, "the file itself stays");
    assert_eq!(innermost(&workshop, "named.mallow").0, "keep");
    let line = format!("image/usr/lib/{place}");
    let in_place = mallow(&workshop, &["symbolize", "-v", "a.mallow", "--sysroot", "image"]);
    assert!(in_place.stderr.contains(&format!("mallow: tried {line}: taken\n")), "{in_place}");
    assert_eq!(innermost(&workshop, "a.mallow").0, "keep");
    // Everything else is unchanged, including events.
    let after = json(&mallow(&workshop, &["report", "a.mallow", "--json"]).stdout);
    assert_eq!((&after["totals"], &after["processes"]), (&before["totals"], &before["processes"]));
    let histogram = |trace| mallow(&workshop, &["report", trace, "--histogram"]).stdout;
    assert_eq!(histogram("a.mallow"), histogram("named.mallow"));
    let again = mallow(&workshop, &["symbolize", "a.mallow", "--sysroot", "image"]);
    assert!(again.stderr.ends_with("found names for 0 addresses\n"), "{again}");
}
