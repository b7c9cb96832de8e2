//! Command lines of hyperfine's users, with `mallow bench` instead of `hyperfine`.

use super::*;
use crate::args::LowArgs;
use crate::request::Request;
use clap::Parser;
use std::time::Duration;

fn planned(words: &[&str]) -> Result<Plan, String> {
    let words = ["mallow", "bench"].iter().chain(words);
    match LowArgs::try_parse_from(words).map(Request::from).map_err(|error| error.to_string())? {
        Request::Bench(low) => plan(&low).map_err(|failure| failure.sentence().to_owned()),
        other => Err(format!("{other:?}")),
    }
}

#[test]
fn lines_that_hyperfine_takes_are_taken() {
    let lines: [&[&str]; 18] = [
        &["sleep 0.3"],
        &["--runs", "5", "sleep 0.3"],
        &["--warmup", "3", "grep -R TODO *"],
        &["--prepare", "sync; echo 3 | sudo tee /proc/sys/vm/drop_caches", "grep -R TODO *"],
        &["hexdump file", "xxd file"],
        &["--prepare", "make clean", "--parameter-scan", "num_threads", "1", "12", "make -j {num_threads}"],
        &["--parameter-scan", "delay", "0.3", "0.7", "-D", "0.2", "sleep {delay}"],
        &["-L", "compiler", "gcc,clang", "{compiler} -O2 main.cpp"],
        &["--shell=none", "grep TODO /home/user"],
        &["-N", "grep TODO /home/user"],
        &["-S", "bash --norc", "for i in {1..1000}; do echo test; done"],
        &["--export-markdown", "out.md", "--export-json=out.json", "--export-csv", "-", "a", "b"],
        &["-i", "-w", "2", "-m", "3", "-M", "20", "false", "true"],
        &["--ignore-failure=1,2", "grep x y"],
        &["-n", "one", "-n", "two", "a 1", "b 2", "-u", "second", "--sort", "command"],
        &["--reference", "git status", "--reference-name", "git", "gst", "--style", "basic"],
        &["--setup", "make {a}", "--cleanup", "make clean", "-L", "a", "x,y", "./{a}", "--output", "pipe"],
        &["--input", "data.txt", "--show-output", "-C", "killall server", "-c", "rm -f out", "cat"],
    ];
    for line in lines {
        assert!(planned(line).is_ok(), "{line:?}: {:?}", planned(line).err());
    }
}

#[test]
fn each_flag_has_hyperfines_meaning() {
    let plan = planned(&[
        "-w",
        "3",
        "-m",
        "5",
        "-M",
        "9",
        "-N",
        "-i=2",
        "-p",
        "a {x}",
        "-p",
        "b",
        "-C",
        "c",
        "-L",
        "x",
        "1,2",
        "-n",
        "one",
        "-n",
        "two",
        "--input",
        "in",
        "first {x}",
        "second",
    ])
    .unwrap();
    assert_eq!(plan.runs, Runs::Adaptive { min: Some(5), max: Some(9), time_max: Duration::from_secs(60) });
    assert_eq!((plan.warmup, &plan.shell), (3, &Shell::Never));
    assert_eq!(plan.failures, Failures::IgnoredCodes(vec![2]));
    assert_eq!(plan.input, Input::File("in".into()));
    let shown: Vec<String> = plan
        .commands
        .iter()
        .map(|it| {
            format!(
                "{}|{}|{}|{}",
                it.name,
                it.line,
                it.prepare.as_deref().unwrap_or(""),
                it.conclude.as_deref().unwrap_or("")
            )
        })
        .collect();
    assert_eq!(shown, ["one|first 1|a 1|c", "two|second|b|c", "one|first 2|a 2|c", "two|second|b|c"]);
}

#[test]
fn a_reference_is_the_first_command() {
    let plan = planned(&["--reference", "old", "--reference-name", "before", "new"]).unwrap();
    assert_eq!((plan.commands[0].name.as_str(), plan.commands[0].line.as_str()), ("before", "old"));
    assert_eq!(plan.commands[1].line, "new");
}

#[test]
fn a_setup_of_its_own_keeps_the_runs_of_a_command_together() {
    let order = |words: &[&str]| planned(words).unwrap().order;
    assert_eq!(order(&["-s", "make {a}", "-L", "a", "x,y", "./{a}"]), Order::Sequential);
    assert_eq!(order(&["-s", "make", "-L", "a", "x,y", "./{a}"]), Order::Interleaved);
    assert_eq!(
        order(&["-s", "make {a}", "-L", "a", "x,y", "./{a}", "--order", "interleaved"]),
        Order::Interleaved
    );
}

#[test]
fn what_makes_no_sense_is_refused() {
    for line in [
        &["-m", "9", "-M", "3", "a"][..],
        &["-r", "3", "-m", "3", "a"],
        &["-r", "0", "a"],
        &[],
        &["-p", "a", "-p", "b", "-p", "c", "one", "two"],
        &["-n", "a", "-n", "b", "one"],
        &["-e", "cycle", "a"],
        &["--metric", "(", "a"],
        &["--fail-on", "wall>3%", "a"],
        &["--threshold", "x", "a"],
        &["-D", "1", "a"],
        &["--explain", "a"],
    ] {
        assert!(planned(line).is_err(), "{line:?}");
    }
}
