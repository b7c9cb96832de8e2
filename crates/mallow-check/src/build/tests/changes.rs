//! A program is built again when something in it has changed, and only then.

use super::*;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

const MAIN: &str = r#"
#include <stdio.h>
#include "outer.h"
int shared(void);
int main(void) { printf("%d %d %d %d %d\n", OWN, OUTER, INNER, shared(), FLAG); return 0; }
"#;

/// The files of the suite, with their numbers, and how the number stands in each.
const FILES: [(&str, &str); 5] = [
    ("test_a.c", "OWN"),
    ("outer.h", "OUTER"),
    ("inner.h", "INNER"),
    ("shared.c", "SHARED"),
    ("unused.h", "UNUSED"),
];

/// What somebody does between two checks.
#[derive(Clone, Copy, Debug)]
enum Act {
    Nothing,
    Touch(usize),
    Change(usize),
    ChangeFlag,
    LoseProgram,
    DamageStamp,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        Just(Act::Nothing),
        (0..FILES.len()).prop_map(Act::Touch),
        (0..FILES.len()).prop_map(Act::Change),
        Just(Act::ChangeFlag),
        Just(Act::LoseProgram),
        Just(Act::DamageStamp),
    ];
    prop::collection::vec(act, 1..5)
}

/// The suite and what its program should print.
struct Model {
    bench: Bench,
    numbers: [u32; 6],
}

impl Model {
    fn new() -> Model {
        let model = Model { bench: Bench::new(&[]), numbers: [0; 6] };
        (0..FILES.len()).for_each(|file| model.write(file));
        model.write_manifest();
        model
    }

    fn write(&self, file: usize) {
        let (name, word) = FILES[file];
        let define = format!("#define {word} {}\n", self.numbers[file]);
        let text = match name {
            "test_a.c" => define + MAIN,
            "outer.h" => define + "#include \"inner.h\"\n",
            "shared.c" => define + "int shared(void) { return SHARED; }\n",
            _ => define,
        };
        self.bench.write(name, &text);
    }

    fn write_manifest(&self) {
        let flag = self.numbers[5];
        let text =
            format!("[gate]\nsuites = [\".\"]\nsources = [\"shared.c\"]\nc_flags = \"-DFLAG={flag}\"\n");
        self.bench.write("mallow.toml", &text);
    }

    fn program(&self, ending: &str) -> PathBuf {
        let suite = Suite::open(Some(&self.bench.suite_folder()), &[]).unwrap();
        self.bench.workdir(&suite).root().join(format!("bin/test_a{ending}"))
    }

    /// Does it, and says whether the program has to be built again.
    fn act(&mut self, act: Act) -> bool {
        match act {
            Act::Nothing => false,
            Act::Touch(file) => {
                self.bench.touch(FILES[file].0);
                false
            }
            Act::Change(file) => {
                self.numbers[file] += 1;
                self.write(file);
                FILES[file].0 != "unused.h"
            }
            Act::ChangeFlag => {
                self.numbers[5] += 1;
                self.write_manifest();
                true
            }
            Act::LoseProgram => {
                fs::remove_file(self.program("")).unwrap();
                true
            }
            Act::DamageStamp => {
                fs::write(self.program(".stamp"), "{\"key\":").unwrap();
                true
            }
        }
    }

    fn printed(&self) -> String {
        let [own, outer, inner, shared, _, flag] = self.numbers;
        format!("{own} {outer} {inner} {shared} {flag}\n")
    }
}

/// Each change runs a compiler, so fewer are looked at than `proptest!` would.
#[test]
fn a_program_is_built_again_if_and_only_if_something_in_it_changed() {
    let few =
        ProptestConfig { cases: (ProptestConfig::default().cases / 8).max(1), ..ProptestConfig::default() };
    let outcome = TestRunner::new(few).run(&acts(), |acts| {
        let mut model = Model::new();
        prop_assert_eq!(model.bench.built_one(), (true, model.printed()));
        for act in acts {
            let has_changed = model.act(act);
            prop_assert_eq!(model.bench.built_one(), (has_changed, model.printed()), "{:?}", act);
        }
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn a_change_back_is_a_change() {
    let text = |number: u32| {
        format!("#include <stdio.h>\nint main(void) {{ return printf(\"{number}\\n\") < 0; }}\n")
    };
    let bench = Bench::new(&[("test_a.c", &text(1))]);
    assert_eq!(bench.built_one(), (true, "1\n".to_owned()));
    bench.write("test_a.c", &text(2));
    assert_eq!(bench.built_one(), (true, "2\n".to_owned()));
    bench.write("test_a.c", &text(1));
    assert_eq!(bench.built_one(), (true, "1\n".to_owned()));
}

#[test]
fn another_version_of_the_compiler_builds_again() {
    let bench = Bench::new(&[("test_a.c", "int main(void) { return 0; }\n")]);
    let script = |version: &str| {
        format!("#!/bin/sh\nif [ \"$1\" = --version ]; then echo {version}; else exec cc \"$@\"; fi\n")
    };
    let cc = bench.write_program("my-cc", &script("1.0"));
    let built = || {
        let results = bench.prepare_with(&Tools::of_environment().with("CC", &cc)).unwrap();
        results[0].as_ref().unwrap().was_built
    };
    assert!(built());
    assert!(!built());
    bench.write_program("my-cc", &script("1.1"));
    assert!(built());
    assert!(!built());
}

#[test]
fn modules_and_included_texts_of_rust_files_count_as_much_as_the_file() {
    let bench = Bench::new(&[
        (
            "test_r.rs",
            "mod part;\nfn main() { println!(\"{} {}\", part::NUMBER, include_str!(\"text\")); }\n",
        ),
        ("part.rs", "pub const NUMBER: u32 = 1;\n"),
        ("text", "a"),
    ]);
    assert_eq!(bench.built_one(), (true, "1 a\n".to_owned()));
    bench.touch("part.rs");
    assert_eq!(bench.built_one(), (false, "1 a\n".to_owned()));
    bench.write("part.rs", "pub const NUMBER: u32 = 2;\n");
    assert_eq!(bench.built_one(), (true, "2 a\n".to_owned()));
    bench.write("text", "b");
    assert_eq!(bench.built_one(), (true, "2 b\n".to_owned()));
    assert_eq!(bench.built_one(), (false, "2 b\n".to_owned()));
}

#[test]
fn a_linker_without_lists_of_files_is_used_without() {
    let bench = Bench::new(&[("test_a.c", "int main(void) { return 0; }\n")]);
    let script = "#!/bin/sh\nfor word; do case \"$word\" in *--dependency-file=*) echo \"unknown option $word\"; exit 1;; esac; done\nexec cc \"$@\"\n";
    let cc = bench.write_program("my-cc", script);
    let built = || {
        let results = bench.prepare_with(&Tools::of_environment().with("CC", &cc)).unwrap();
        results[0].as_ref().unwrap().was_built
    };
    assert!(built());
    assert!(!built());
    bench.write("test_a.c", "int main(void) { return 1; }\n");
    assert!(built());
}

#[test]
fn a_library_that_the_linker_found_by_itself_is_watched_too() {
    let bench = Bench::new(&[
        (
            "mallow.toml",
            "[gate]\nbuild = \"mkdir -p out && cc -c lib.c -o lib.o && ar rc out/libfive.a lib.o\"\nsuites = [\".\"]\n[[test]]\nname = \"test_a\"\nflags = \"-Lout\"\nlibs = [\"five\"]\n",
        ),
        ("lib.c", "int five(void) { return 5; }\n"),
        (
            "test_a.c",
            "#include <stdio.h>\nint five(void);\nint main(void) { return printf(\"%d\\n\", five()) < 0; }\n",
        ),
    ]);
    assert_eq!(bench.built_one(), (true, "5\n".to_owned()));
    assert_eq!(bench.built_one(), (false, "5\n".to_owned()));
    bench.write("lib.c", "int five(void) { return 55; }\n");
    assert_eq!(bench.built_one(), (true, "55\n".to_owned()));
}

#[test]
fn other_flags_and_variables_build_a_rust_program_again() {
    let manifest = |flags: &str| format!("[gate]\nsuites = [\".\"]\nrust_flags = {flags}\n");
    let bench = Bench::new(&[
        ("mallow.toml", &manifest("[]")),
        (
            "test_r.rs",
            "fn main() { println!(\"{} {}\", cfg!(fast), option_env!(\"MALLOW_NOT_SET\").is_none()); }\n",
        ),
    ]);
    assert_eq!(bench.built_one(), (true, "false true\n".to_owned()));
    assert_eq!(bench.built_one(), (false, "false true\n".to_owned()));
    bench.write("mallow.toml", &manifest("[\"--cfg\", \"fast\"]"));
    assert_eq!(bench.built_one(), (true, "true true\n".to_owned()));
    assert_eq!(bench.built_one(), (false, "true true\n".to_owned()));
    // As if the variable had been set when it was built.
    let suite = Suite::open(Some(&bench.suite_folder()), &[]).unwrap();
    let stamp = bench.workdir(&suite).root().join("bin/test_r.stamp");
    let text = fs::read_to_string(&stamp).unwrap();
    let changed = text.replace("\"MALLOW_NOT_SET\":null", "\"MALLOW_NOT_SET\":\"1\"");
    assert_ne!(changed, text);
    fs::write(&stamp, changed).unwrap();
    assert_eq!(bench.built_one(), (true, "true true\n".to_owned()));
}

#[test]
fn another_version_of_a_compiler_whose_output_has_one_name_builds_again() {
    let bench = Bench::new(&[("test_s.swift", "#!/bin/sh\n")]);
    let script = |version: &str| {
        format!(
            "#!/bin/sh\nif [ \"$1\" = --version ]; then echo {version}; exit; fi\n\
             for word; do last=$word; done\ncp test_s.swift \"$last\"\n"
        )
    };
    let swiftc = bench.write_program("my-swiftc", &script("1.0"));
    let built = || {
        let results = bench.prepare_with(&Tools::of_environment().with("SWIFTC", &swiftc)).unwrap();
        results[0].as_ref().unwrap().was_built
    };
    assert!(built());
    assert!(!built());
    bench.write_program("my-swiftc", &script("1.1"));
    assert!(built());
}
