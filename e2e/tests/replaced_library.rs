//! Names are looked up while a program runs, and still belong to the files that exist when it has exited.

use e2e::run;
use e2e::{Session, Workshop};
use std::fs;
use std::process::Command;

/// Loads a library, allocates in it, and waits until its names have been looked up. Then it replaces it by another
/// build, or removes it if the argument is a name that does not exist, or leaves it unchanged without an argument.
const PROGRAM: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
    void *library = dlopen(argv[1], RTLD_NOW);
    void *(*grow)(int) = (void *(*)(int))dlsym(library, "grow");
    for (int i = 0; i < 10; i++) free(grow(i + 1));
    usleep(400000);
    dlclose(library);
    if (argc > 2 && rename(argv[2], argv[1]) != 0) return unlink(argv[1]);
    return 0;
}
"#;

/// Builds a library in which the function that `grow` calls has the name.
fn library(workshop: &Workshop, file: &str, name: &str) -> String {
    let source = workshop.file(&format!("{name}.c"));
    let text = format!(
        "#include <stdlib.h>\n__attribute__((noinline)) static void *{name}(int n) {{ return malloc(n); }}\n\
         void *grow(int n) {{ char *block = {name}(n); block[0] = 1; return block; }}\n"
    );
    fs::write(&source, text).unwrap();
    let path = workshop.file(file);
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-g", "-shared", "-fPIC", "-Wl,--build-id", "-o"]).arg(&path).arg(&source);
    let _ = run::finish(&mut cc).well();
    path.to_string_lossy().into_owned()
}

#[test]
fn a_library_that_was_replaced_or_removed_while_the_program_ran_has_no_names() {
    let workshop = Workshop::new("replaced");
    let (source, program) = (workshop.file("main.c"), workshop.file("main"));
    fs::write(&source, PROGRAM).unwrap();
    let _ = run::finish(Command::new("cc").args(["-g", "-o"]).arg(&program).arg(&source).arg("-ldl")).well();
    let program = program.to_string_lossy().into_owned();
    for (other, is_named) in [(None, true), (Some("other.so"), false), (Some("gone.so"), false)] {
        let first = library(&workshop, "first.so", "named_before");
        library(&workshop, "other.so", "named_after");
        let other = other.map(|name| workshop.file(name).to_string_lossy().into_owned());
        let words: Vec<&str> = [program.as_str(), &first].into_iter().chain(other.as_deref()).collect();
        // An empty name disables the cache, so that only the early results exist.
        for kept in ["", workshop.file("names").to_str().unwrap()] {
            library(&workshop, "first.so", "named_before");
            library(&workshop, "other.so", "named_after");
            let session = Session::new(workshop.path(), &words).env("MALLOW_SYMBOL_CACHE", kept);
            let _ = session.record().well();
            let report = session.report(&[]).to_string();
            assert_eq!(report.contains("named_before"), is_named, "{words:?} {kept}\n{report}");
            assert!(!report.contains("named_after"), "{words:?} {kept}\n{report}");
            assert!(report.contains("first.so"), "{words:?} {kept}\n{report}");
        }
    }
}
