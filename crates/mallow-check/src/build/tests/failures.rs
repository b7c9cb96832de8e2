//! What is said when something cannot be built.

use super::*;

fn errors(bench: &Bench, tools: &Tools) -> Vec<String> {
    let results = bench.prepare_with(tools).unwrap();
    results
        .into_iter()
        .map(|result| result.map_or_else(|error| error.sentence, |_| "fine".to_owned()))
        .collect()
}

#[test]
fn a_compile_error_is_that_tests_own_and_whole() {
    let bench = Bench::new(&[
        ("test_a.c", "int main(void) { return nothing; }\nint other(void) { return neither; }\n"),
        ("test_b.c", "int main(void) { return 0; }\n"),
        ("test_c.rs", "fn main() { nothing() }\n"),
        ("test_d.c", "int missing(void); int main(void) { return missing(); }\n"),
    ]);
    let results = bench.prepare_with(&Tools::of_environment()).unwrap();
    let [Err(c), Ok(_), Err(rust), Err(link)] = &results[..] else { panic!("{results:?}") };
    let cc = Tools::of_environment().compiler(tools::CC, "x").unwrap().words.remove(0);
    let cc = cc.to_string_lossy();
    assert_eq!(c.to_string(), format!("cannot compile test_a.c: {cc} ended with exit status: 1"));
    assert!(c.output.contains("test_a.c:1:25: error") && c.output.contains("nothing"), "{}", c.output);
    assert!(c.output.contains("test_a.c:2:26: error") && c.output.contains("neither"), "{}", c.output);
    assert!(rust.sentence.starts_with("cannot compile test_c.rs: "), "{rust}");
    assert!(rust.output.contains("cannot find function `nothing` in this scope"), "{}", rust.output);
    assert_eq!(link.to_string(), format!("cannot link the test \"test_d\": {cc} ended with exit status: 1"));
    assert!(link.output.contains("undefined reference to `missing'"), "{}", link.output);
    // A failure is not remembered as a success, nor an old program taken for a new one.
    assert!(bench.prepare_with(&Tools::of_environment()).unwrap()[0].is_err());
    bench.write("test_a.c", "int main(void) { return 0; }\n");
    assert!(bench.prepare_with(&Tools::of_environment()).unwrap()[0].as_ref().unwrap().was_built);
}

#[test]
fn a_missing_tool_is_named_with_the_test_and_the_variable() {
    let bench = Bench::new(&[
        ("test_a.c", ""),
        ("test_b.cc", ""),
        ("test_c.rs", ""),
        ("test_d.swift", ""),
        ("test_e.py", ""),
        ("test_f.rb", ""),
        ("test_g.js", ""),
    ]);
    let nothing = TempDir::new().unwrap();
    let tools = Tools::of_environment().with("PATH", nothing.path()).with("CC", "no-such-cc -m32");
    let tools = ["CXX", "RUSTC", "SWIFTC", "PYTHON", "RUBY", "NODE"]
        .into_iter()
        .fold(tools, |tools, name| tools.with(name, ""));
    let said = |test: &str, what: &str, name: &str, variable: &str| {
        format!(
            "the test \"{test}\" needs the {what} \"{name}\", which is not there: install it, or name another with {variable}"
        )
    };
    assert_eq!(
        errors(&bench, &tools),
        [
            said("test_a", "C compiler", "no-such-cc", "CC"),
            said("test_b", "C++ compiler", "c++", "CXX"),
            said("test_c", "Rust compiler", "rustc", "RUSTC"),
            said("test_d", "Swift compiler", "swiftc", "SWIFTC"),
            said("test_e", "Python interpreter", "python3", "PYTHON"),
            said("test_f", "Ruby interpreter", "ruby", "RUBY"),
            said("test_g", "Node interpreter", "node", "NODE"),
        ]
    );
}

#[test]
fn a_tool_that_does_not_say_its_version_is_not_used() {
    let bench = Bench::new(&[("test_a.c", "int main(void) { return 0; }\n")]);
    let cc = bench.write_program("cc", "#!/bin/sh\nexit 3\n");
    assert_eq!(
        errors(&bench, &Tools::of_environment().with("CC", &cc)),
        [format!(
            "the test \"test_a\" needs the C compiler {:?}, which does not say its version: it ended with exit status: 3",
            cc.to_str().unwrap()
        )]
    );
}

#[test]
fn what_a_test_needs_and_is_not_there_is_named() {
    let bench = Bench::new(&[
        (
            "mallow.toml",
            r#"
            [[test]]
            name = "command"
            cmd = ["./bench"]
            [[test]]
            name = "folder"
            cmd = ["true"]
            cwd = "data"
            [[test]]
            name = "source"
            source = "gone.c"
            [[test]]
            name = "mixed"
            source = "a.c"
            sources = ["b.py"]
            [[test]]
            name = "rust"
            source = "a.rs"
            sources = ["b.rs"]
            "#,
        ),
        ("a.c", "int main(void) { return 0; }\n"),
        ("a.rs", "fn main() {}\n"),
    ]);
    let folder = bench.suite_folder().display().to_string();
    assert_eq!(
        errors(&bench, &Tools::of_environment()),
        [
            "the test \"command\" runs ./bench, which is not there or cannot be run".to_owned(),
            format!("the test \"folder\" runs in {folder}/data, which is no folder"),
            format!("the source of the test \"source\", {folder}/gone.c, is not there"),
            "the test \"mixed\" cannot be built of b.py: sources of C tests are C, C++, .o and .a files"
                .to_owned(),
            "the test \"rust\" cannot be built of b.rs: a Rust test takes in other files by `mod`".to_owned(),
        ]
    );
}

#[test]
fn the_build_line_runs_first_and_its_failure_ends_everything() {
    let bench = Bench::new(&[
        (
            "mallow.toml",
            "[gate]\nbuild = \"cc -I \\\"$MALLOW_INCLUDE\\\" bench.c -o bench\"\n[[test]]\nname = \"bench\"\ncmd = [\"./bench\"]\n",
        ),
        (
            "bench.c",
            "#include <stdio.h>\n#include \"mallow.h\"\nint main(void) { mallow_quiesce(); return puts(\"built\") < 0; }\n",
        ),
    ]);
    assert_eq!(bench.built_one(), (false, "built\n".to_owned()));
    bench.write("mallow.toml", "[gate]\nbuild = \"echo one; echo two >&2; exit 4\"\n[[test]]\nname = \"bench\"\ncmd = [\"./bench\"]\n");
    let error = bench.prepare_with(&Tools::of_environment()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot build with `echo one; echo two >&2; exit 4`: it ended with exit status: 4"
    );
    assert_eq!(error.output, "one\ntwo\n");
}
