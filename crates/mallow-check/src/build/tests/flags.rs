//! Compilers are called as the manifest says: flags, shared sources, libraries.

use super::*;

#[test]
fn shared_sources_are_compiled_once_for_all_tests_with_the_same_flags() {
    let main = "#include <stdio.h>\nint shared(void);\nint main(int count, char **words) { (void)words; printf(\"%d %d\\n\", shared(), count); return 0; }\n";
    let bench = Bench::new(&[
        (
            "mallow.toml",
            "[gate]\nsuites = [\".\"]\nsources = [\"shared.c\"]\n[[test]]\nname = \"test_b\"\nflags = \"-DSHARED=7\"\nargs = [\"x\"]\n",
        ),
        ("shared.c", "#ifndef SHARED\n#define SHARED 5\n#endif\nint shared(void) { return SHARED; }\n"),
        ("test_a.c", main),
        ("test_b.c", main),
        ("test_c.c", main),
    ]);
    let printed = |text: &str| (true, text.to_owned());
    assert_eq!(bench.built(), [printed("7 2\n"), printed("5 1\n"), printed("5 1\n")]);
    let suite = Suite::open(Some(&bench.suite_folder()), &[]).unwrap();
    let objects = fs::read_dir(bench.workdir(&suite).root().join("objects")).unwrap();
    let names = objects.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let shared = names.filter(|name| name.starts_with("shared-") && name.ends_with(".o")).count();
    assert_eq!(shared, 2);
}

#[test]
fn c_and_cxx_files_and_libraries_go_into_one_program() {
    let bench = Bench::new(&[
        (
            "mallow.toml",
            "[gate]\nbuild = \"cc -c lib.c -o lib.o && ar rc lib.a lib.o\"\n[[test]]\nname = \"mixed\"\nsource = \"main.c\"\nsources = [\"part.cpp\"]\nlibs = [\"m\", \"./lib.a\"]\nflags = \"-std=c99\"\n",
        ),
        ("lib.c", "int from_lib(void) { return 3; }\n"),
        ("part.cpp", "extern \"C\" int from_cxx() { return [] { return 4; }(); }\n"),
        (
            "main.c",
            "#include <stdio.h>\n#include <math.h>\nint from_lib(void);\nint from_cxx(void);\nint main(int count, char **words) { (void)words; printf(\"%d %d %.0f\\n\", from_lib(), from_cxx(), sqrt(count + 3)); return 0; }\n",
        ),
    ]);
    assert_eq!(bench.built_one(), (true, "3 4 2\n".to_owned()));
    assert_eq!(bench.built_one(), (false, "3 4 2\n".to_owned()));
    bench.write("lib.c", "int from_lib(void) { return 33; }\n");
    assert_eq!(bench.built_one(), (true, "33 4 2\n".to_owned()));
}

#[test]
fn compilers_are_called_in_release_mode_and_a_tests_flags_come_last() {
    let bench = Bench::new(&[
        (
            "mallow.toml",
            "[gate]\nsuites = [\".\"]\nrust_flags = [\"-C\", \"overflow-checks=on\"]\n[[test]]\nname = \"test_r\"\nflags = [\"--edition\", \"2024\"]\n",
        ),
        (
            "test_a.c",
            "#include <stdio.h>\nint main(void) {\n#ifdef __OPTIMIZE__\nputs(\"optimised\");\n#endif\nreturn 0; }\n",
        ),
        ("test_r.rs", "fn main() { let r#gen = 5; println!(\"{} {}\", cfg!(debug_assertions), r#gen); }\n"),
    ]);
    assert_eq!(bench.built(), [(true, "false 5\n".to_owned()), (true, "optimised\n".to_owned())]);
}

/// There is no Swift compiler for every system that tests run on, so this one is ours: it copies a program of shell.
#[test]
fn swift_files_are_handed_to_the_compiler_with_the_bridging_header() {
    let bench = Bench::new(&[
        (
            "mallow.toml",
            "[gate]\nsuites = [\".\"]\n[[test]]\nname = \"test_s\"\nflags = \"-Ounchecked\"\nlibs = [\"z\"]\n",
        ),
        ("test_s.swift", "#!/bin/sh\necho swift\n"),
    ]);
    let swiftc = bench.write_program("bin/swiftc", SWIFTC);
    let results = bench.prepare_with(&Tools::of_environment().with("SWIFTC", &swiftc)).unwrap();
    let prepared = results[0].as_ref().unwrap();
    assert_eq!(output(prepared), "swift\n");
    assert_eq!((prepared.runtime.as_deref(), prepared.was_built), (Some("swift 5.10"), true));
    let arguments = fs::read_to_string(bench.suite_folder().join("bin/swiftc.arguments")).unwrap();
    let program = prepared.command[0].to_str().unwrap();
    let root = program.strip_suffix("/bin/test_s").unwrap();
    let suite = bench.suite_folder().display().to_string();
    assert_eq!(
        arguments,
        format!(
            "-O -g -import-objc-header {root}/include/mallow.h -debug-prefix-map {suite}= -debug-prefix-map {suite}/= \
             -debug-prefix-map {root}=mallow -Ounchecked test_s.swift -lz -o {program}\n"
        )
    );
}

/// In the place of the compiler: it says its version, notes its words, and gives the test's source for the program.
const SWIFTC: &str = r#"#!/bin/sh
if [ "$1" = --version ]; then echo "Swift version 5.10.1 (swift-5.10.1-RELEASE)"; exit 0; fi
echo "$@" > "$0.arguments"
for word; do last=$word; done
cp test_s.swift "$last" && chmod 755 "$last"
"#;

/// In the place of a program each test of these has a script, in which the declaration is a comment of the shell.
const FORM: &str = "#!/bin/sh\n# The declaration: func run(identifier: String)\necho form\n";

/// A file of the form that SwiftNIO's framework runs has no start of its own, and calls `measure(identifier:)`.
#[test]
fn a_swift_file_that_has_only_run_gets_its_start_and_measure() {
    let bench = Bench::new(&[
        ("mallow.toml", "[gate]\nsuites = [\".\"]\n[swift]\nsources = [\"shared.swift\"]\n"),
        ("test_s.swift", FORM),
        ("shared.swift", ""),
    ]);
    let swiftc = bench.write_program("bin/swiftc", SWIFTC);
    let results = bench.prepare_with(&Tools::of_environment().with("SWIFTC", &swiftc)).unwrap();
    let program = results[0].as_ref().unwrap().command[0].to_str().unwrap();
    let root = program.strip_suffix("/bin/test_s").unwrap();
    let arguments = fs::read_to_string(bench.suite_folder().join("bin/swiftc.arguments")).unwrap();
    let files = format!(
        " test_s.swift shared.swift {root}/swift/measure.swift {root}/swift/main.swift -o {program}\n"
    );
    assert!(arguments.ends_with(&files), "{arguments}");
    let given = fs::read_to_string(format!("{root}/swift/measure.swift")).unwrap();
    assert!(given.contains("func measure(identifier: String, trackFDs: Bool = false, _ work: () -> Int)"));
}

/// The package manager is ours too: it wants what the real one wants, and copies a program of shell.
#[test]
fn swift_files_that_import_modules_of_a_package_are_built_with_it() {
    let bench = Bench::new(&[
        (
            "tests/mallow.toml",
            "[gate]\nsuites = [\".\"]\n[swift]\npackage = \"..\"\nmodules = [\"Core\", \"Http\"]\n\
             dependencies = ['.package(url: \"https://example.org/more\", from: \"1.0.0\")']\nsources = [\"shared.swift\"]\n",
        ),
        ("tests/test_one.swift", FORM),
        ("tests/test_two.swift", FORM),
        ("tests/shared.swift", ""),
        ("Package.swift", ""),
    ]);
    let script = r#"#!/bin/sh
if [ "$1" = --version ]; then echo "Swift version 6.0.3 (swift-6.0.3-RELEASE)"; exit 0; fi
[ "$*" = "build -c release -Xswiftc -g --package-path $7 --product $9" ] || { echo "not so: $*"; exit 1; }
sources="$7/Sources/$9"
for file in main.swift mallow_measure.swift shared.swift ../CMallow/include/mallow.h ../CMallow/include/module.modulemap ../CMallow/module.c; do
  [ -f "$sources/$file" ] || { echo "$file is missing"; exit 1; }
done
mkdir -p "$7/.build/release"
cp "$sources/$9.swift" "$7/.build/release/$9" && chmod 755 "$7/.build/release/$9"
"#;
    let swift = bench.write_program("bin/swift", script);
    let suite = Suite::open(Some(&bench.suite_folder().join("tests")), &[]).unwrap();
    let workdir = bench.workdir(&suite);
    let tools = Tools::of_environment().with("SWIFT", &swift);
    let results = prepare(&suite, &workdir, &tools).unwrap();
    let prepared: Vec<&Prepared> = results.iter().map(|result| result.as_ref().unwrap()).collect();
    assert_eq!(prepared.iter().map(|one| output(one)).collect::<Vec<_>>(), ["form\n", "form\n"]);
    assert_eq!(prepared[0].runtime.as_deref(), Some("swift 6.0"));
    let manifest = fs::read_to_string(workdir.root().join("swift-package/Package.swift")).unwrap();
    let package = bench.suite_folder();
    let needs =
        r#"["CMallow", .product(name: "Core", package: "suite"), .product(name: "Http", package: "suite")]"#;
    let expected = format!(
        "// swift-tools-version:5.7\n// Written by `mallow check`: a program for each test in Swift.\nimport PackageDescription\n\n\
         let package = Package(\n    name: \"allocations\",\n    dependencies: [\n        .package(path: {package:?}),\n        \
         .package(url: \"https://example.org/more\", from: \"1.0.0\"),\n    ],\n    targets: [\n        .target(name: \"CMallow\"),\n        \
         .executableTarget(name: \"test_one\", dependencies: {needs}),\n        .executableTarget(name: \"test_two\", dependencies: {needs}),\n    ]\n)\n"
    );
    assert_eq!(manifest, expected);
    // What changed in the package is known to the package manager alone, so it is asked again.
    let again = prepare(&suite, &workdir, &tools).unwrap();
    assert!(again.iter().all(|result| result.as_ref().unwrap().was_built));
}

#[test]
fn a_package_that_is_not_there_is_named() {
    let bench = Bench::new(&[
        ("mallow.toml", "[gate]\nsuites = [\".\"]\n[swift]\npackage = \"..\"\n"),
        ("test_one.swift", FORM),
    ]);
    let results = bench.prepare_with(&Tools::of_environment()).unwrap();
    let sentence = &results[0].as_ref().unwrap_err().sentence;
    assert!(
        sentence.contains("where no Package.swift is; `package` in [swift] of mallow.toml names it"),
        "{sentence}"
    );
}
