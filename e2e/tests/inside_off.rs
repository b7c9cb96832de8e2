//! The cost of `mallow-alloc` while nothing is recorded, in machine code: one compare, and nothing at all without the feature.

use e2e::run;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds `off` of `programs/inside` with these arguments, in a folder of that name.
fn built(folder: &str, words: &[&str]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--locked", "--quiet", "--bin", "off", "--target-dir"]).arg(&folder).args(words);
    let _ = run::finish(cargo.current_dir(e2e::repository().join("programs/inside"))).well();
    folder.join("debug/off")
}

/// Returns a function's instructions up to where it leaves, without addresses.
fn way(program: &Path, function: &str) -> Vec<String> {
    let mut objdump = run::command("objdump");
    objdump.args(["--no-show-raw-insn", "-M", "intel", &format!("--disassemble={function}")]).arg(program);
    let text = run::finish(&mut objdump).well().stdout;
    let start = text.find(&format!("<{function}>:")).unwrap();
    let lines = text[start..].lines().skip(1).filter_map(|line| line.split_once('\t'));
    let mut way = Vec::new();
    for (_, instruction) in lines {
        let words: Vec<&str> = instruction.split_whitespace().take_while(|word| *word != "#").collect();
        way.push(words.join(" "));
        if words[0] == "jmp" || words[0] == "ret" {
            break;
        }
    }
    way
}

const CALLS: [&str; 4] = ["alloc", "alloc_zeroed", "dealloc", "realloc"];

fn operations(way: &[String]) -> Vec<&str> {
    way.iter().map(|instruction| instruction.split(' ').next().unwrap()).collect()
}

#[test]
fn an_allocator_that_nobody_watches_loads_a_word_tests_it_and_goes_straight_on() {
    let program = built("inside", &[]);
    for call in CALLS {
        let straight = way(&program, &format!("straight_{call}"));
        let through = way(&program, &format!("mallow_{call}"));
        let branches = operations(&through).iter().filter(|it| it.starts_with('j') && **it != "jmp").count();
        assert_eq!((branches, operations(&straight).contains(&"jne")), (1, false), "{call}: {through:#?}");
        // Two loads, since the word is in another crate, and at most one argument that is saved meanwhile.
        assert!((4..=5).contains(&(through.len() - straight.len())), "{call}: {through:#?}");
        assert_eq!(operations(&through).last(), Some(&"jmp"), "{call}: {through:#?}");
    }
    // Its own allocations go through mallow's allocator as well.
    let _ = run::finish(&mut run::command(&program)).well();
}

#[test]
fn without_its_feature_the_code_is_that_of_the_allocator_below() {
    let program = built("inside-off", &["--no-default-features"]);
    let symbols = run::finish(run::command("nm").arg(&program)).well().stdout;
    let address = |name: &str| {
        let line = symbols.lines().find(|line| line.ends_with(&format!(" {name}"))).unwrap();
        line.split(' ').next().unwrap().to_owned()
    };
    for call in CALLS {
        // The compiler merges the two, since they are the same function.
        assert_eq!(address(&format!("mallow_{call}")), address(&format!("straight_{call}")), "{call}");
    }
    assert!(!symbols.contains("mallow_recorder"), "{symbols}");
}
