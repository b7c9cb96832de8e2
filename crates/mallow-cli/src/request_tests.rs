//! Command lines and their interpretation.

use super::*;
use crate::args::AnySort;
use clap::{CommandFactory, Parser};
use mallow_cpu::CpuMetric;
use mallow_view::Measure;

fn request(line: &str) -> Result<Request, String> {
    let words = std::iter::once("mallow").chain(line.split_whitespace());
    LowArgs::try_parse_from(words).map(Request::from).map_err(|error| error.to_string())
}

#[test]
fn the_parser_is_sound() {
    LowArgs::command().debug_assert();
}

#[test]
fn a_command_keeps_its_own_flags() {
    let expected = Record {
        command: ["ls", "-l", "--json", "--", "x"].map(OsString::from).to_vec(),
        output: None,
        summary_only: false,
        delay: Duration::ZERO,
        python_objects: false,
        mappings: false,
        no_runtime_flags: false,
        command_lines: CommandLines::Whole,
    };
    assert_eq!(request("record -- ls -l --json -- x"), Ok(Request::Record(expected)));
}

#[test]
fn a_delay_is_a_time_or_a_number_of_seconds() {
    for (words, delay) in [("--delay 1.5", 1500), ("--delay 1m30s", 90_000), ("--delay=0", 0), ("", 0)] {
        let Ok(Request::Record(record)) = request(&format!("record {words} ls")) else { panic!("{words}") };
        assert_eq!(record.delay, Duration::from_millis(delay), "{words}");
    }
    let refused = request("record --delay=-1 ls").unwrap_err();
    assert!(refused.contains("--delay"), "{refused}");
}

/// As with perf, heaptrack and strace: everything from the command's name on is the command's.
#[test]
fn a_command_needs_no_dashes_before_it() {
    let of = |line: &str| {
        let parsed =
            LowArgs::try_parse_from(line.split(' ')).unwrap_or_else(|error| panic!("{line}: {error}"));
        match (parsed.width, parsed.command) {
            (width, LowCommand::Record(Later(low))) => (width, low.output.is_some(), low.command),
            (width, LowCommand::Stat(Later(low))) => (width, low.form.output.output.is_some(), low.command),
            #[cfg(feature = "soak")]
            (width, LowCommand::Soak(Later(low))) => (width, low.load.url.is_some(), low.command),
            (_, other) => panic!("{other:?}"),
        }
    };
    let soak = cfg!(feature = "soak").then_some("soak --url http://127.0.0.1:1/");
    for name in ["record -o t", "stat -o t"].into_iter().chain(soak) {
        for command in ["./app", "./app -o out --width 90 --help", "app - -- x", "app --url=y -c 4 -V"] {
            let words: Vec<OsString> = command.split(' ').map(OsString::from).collect();
            for dashes in ["", "-- "] {
                assert_eq!(of(&format!("mallow {name} {dashes}{command}")), (None, true, words.clone()));
            }
        }
        let before = of(&format!("mallow {name} --width 70 app --width 90"));
        assert_eq!(before, (Some(70), true, ["app", "--width", "90"].map(OsString::from).to_vec()));
        for line in [format!("{name} --frobnicate app"), format!("{name} -y -- app"), format!("{name} --")] {
            assert!(request(&line).is_err(), "{line}");
        }
    }
}

/// A flag that does not exist is nearly always a typo, and never a file's name.
#[test]
fn an_unknown_flag_is_not_offered_as_a_value() {
    for line in ["report f --leaks", "record -r 3 -- ls", "stat -n 3 ls", "check --frob"] {
        let words = std::iter::once("mallow").chain(line.split(' '));
        let told =
            LowArgs::parse_typed(&words.map(OsString::from).collect::<Vec<_>>()).unwrap_err().to_string();
        assert!(told.contains("unexpected argument"), "{told}");
        assert!(!told.contains("as a value"), "{told}");
    }
    let told = LowArgs::parse_typed(&["mallow", "report", "--timelin", "f"].map(OsString::from)).unwrap_err();
    assert!(told.to_string().contains("'--timeline'"), "{told}");
}

#[test]
fn a_named_output_may_be_forced() {
    let Ok(Request::Record(record)) = request("record -o a.mallow --force --summary-only -- true") else {
        panic!("not a record")
    };
    assert_eq!(record.output, Some(NewFile { path: "a.mallow".into(), force: true }));
    assert!(record.summary_only);
}

#[test]
fn runs_are_counted_from_one() {
    let Ok(Request::Stat(stat)) = request("stat --json -r 5 -- true") else { panic!("not a stat") };
    assert_eq!((stat.runs, stat.json, stat.output), (5, true, None));
    assert!(request("stat -r 0 -- true").is_err());
    assert!(request("stat -r many -- true").is_err());
}

#[test]
fn the_words_behind_metric_are_those_of_the_measures() {
    let of_heap = Measure::ALL.into_iter().map(AnyMeasure::Heap);
    for measure in of_heap.chain(CpuMetric::ALL.into_iter().map(AnyMeasure::Cpu)) {
        let Ok(Request::Flamegraph(drawn)) = request(&format!("flamegraph f --metric {}", measure.word()))
        else {
            panic!("{measure:?}")
        };
        assert_eq!(drawn.measure, Some(measure));
    }
}

#[test]
fn what_is_missing_is_refused() {
    for line in [
        "",
        "record",
        "record --",
        "stat",
        "diff a",
        "export",
        "report f --sort sizes",
        "frobnicate",
        "record --force -- ls",
    ] {
        assert!(request(line).is_err(), "{line}");
    }
}

/// Old words mean the same as the new ones, so that scripts with the old ones still work.
#[test]
fn words_from_before_mean_what_the_one_word_means() {
    for (old, new) in [
        ("export f --format collapsed", "export f --format folded"),
        ("report f --sort leaked --limit 3", "report f --metric leaked --top 3"),
        ("report f --sort children", "report f --metric children"),
        ("report f --tree --sort blocked", "report f --tree --metric blocked"),
        ("diff a b --by bytes --limit 1", "diff a b --metric bytes --top 1"),
        ("flamegraph f --measure peak", "flamegraph f --metric peak"),
        ("export f -f folded --measure peak", "export f -f folded --metric peak"),
        ("check --limit 3", "check --top 3"),
        ("heap d --sort bytes --limit 3", "heap d --metric bytes --top 3"),
        ("heap diff a b --limit 3", "heap diff a b --top 3"),
        ("heap growth a b --limit 3", "heap growth a b --top 3"),
        ("heap explain d --limit 3", "heap explain d --top 3"),
        ("diff a b --markdown", "diff a b --format markdown"),
        ("flamegraph f --folded", "flamegraph f --format folded"),
        ("report f --json", "report f --format json"),
        ("stat --json ls", "stat -f json ls"),
        #[cfg(feature = "soak")]
        ("soak --limit 3 ./server", "soak --top 3 ./server"),
        #[cfg(feature = "soak")]
        ("soak --fail-on retention,threads ./server", "soak --deny retention,threads ./server"),
    ] {
        assert_eq!(request(old), request(new));
        assert!(request(new).is_ok(), "{new}");
    }
    // For CPU time, it selected the metric of functions if no other view was selected.
    for view in ["--functions", "--tree", "--threads", "--timeline"] {
        let typed = |flag: &str| match request(&format!("report f {view} {flag} blocked")) {
            Ok(Request::Report(report)) => {
                (report.cpu.measure.map(AnyMeasure::Cpu), report.cpu.sort, report.cpu.layout)
            }
            other => panic!("{other:?}"),
        };
        let (old, new) = (typed("--measure"), typed("--metric"));
        assert_eq!((old.0, old.1), (Some(AnyMeasure::Cpu(CpuMetric::Blocked)), None));
        assert_eq!((new.0, new.1), (None, Some(AnySort::Cpu(CpuMetric::Blocked))));
        assert_eq!(old.2, new.2, "{view}");
    }
}

/// Old words are for scripts, and are not in the help.
#[test]
fn help_has_one_word_for_one_idea() {
    fn of_each(command: &mut clap::Command) {
        let help = command.render_long_help().to_string();
        let is_hyperfines = command.get_name() == "bench";
        for old in
            ["--sort", "--by ", "--measure", "--limit ", "--folded", "--markdown\n", "--flamegraph FILE"]
        {
            assert!(is_hyperfines || !help.contains(old), "{}: {old}", command.get_name());
        }
        // A limit on a metric; what soak denies are verdicts.
        let has_limits = ["diff", "bench"].contains(&command.get_name());
        assert!(has_limits || !help.contains("--fail-on"), "{}", command.get_name());
        command.get_subcommands_mut().for_each(of_each);
    }
    of_each(&mut LowArgs::command());
}

/// The guide names every command and every long flag.
#[test]
fn the_guide_is_complete() {
    let guide = [
        include_str!("../../../docs/guide/record.md"),
        include_str!("../../../docs/guide/stat.md"),
        include_str!("../../../docs/guide/cpu.md"),
        include_str!("../../../docs/guide/bench.md"),
        include_str!("../../../docs/guide/report.md"),
        include_str!("../../../docs/guide/filters.md"),
        include_str!("../../../docs/guide/analyses.md"),
        include_str!("../../../docs/guide/diff.md"),
        include_str!("../../../docs/guide/flamegraph.md"),
        include_str!("../../../docs/guide/formats.md"),
        include_str!("../../../docs/guide/check.md"),
        include_str!("../../../docs/guide/soak.md"),
        include_str!("../../../docs/guide/gc-log.md"),
        include_str!("../../../docs/guide/heap.md"),
        include_str!("../../../docs/guide/install.md"),
        include_str!("../../../docs/guide/config.md"),
        include_str!("../../../docs/guide/open.md"),
    ]
    .concat();
    let mut command = LowArgs::command();
    command.build();
    assert!(command.find_subcommand("report").unwrap().get_arguments().count() > 30, "options are not there");
    assert_guide_names(&command, "mallow", &guide);
}

fn assert_guide_names(command: &clap::Command, above: &str, guide: &str) {
    // `help` has a copy of every command.
    for command in command.get_subcommands().filter(|below| below.get_name() != "help") {
        let name = format!("{above} {}", command.get_name());
        assert!(guide.contains(&name), "{name}");
        let shown = command.get_arguments().filter(|argument| !argument.is_hide_set());
        for flag in shown.filter_map(|argument| argument.get_long()) {
            assert!(guide.contains(&format!("--{flag}")), "{name}: --{flag}");
        }
        assert_guide_names(command, &name, guide);
    }
}

#[test]
fn a_flame_graph_takes_one_or_two_files() {
    let Ok(Request::Flamegraph(plain)) = request("flamegraph f") else { panic!("not a flame graph") };
    let expected = Flamegraph {
        process: None,
        file: "f".into(),
        other: None,
        measure: None,
        form: FlamegraphForm::Svg { icicle: false, title: None, unfold: false },
        output: Destination::default(),
        shown: FrameVisibility::WithoutPlumbing,
        scripts: ScriptFrames::Folded,
        filter: Filter::default(),
        part: PartRequest::default(),
    };
    assert_eq!(plain, expected);
    let line = "flamegraph a b --measure leaked --icicle --unfold --title T -o o.svg --force --all-frames --function f --module m";
    let Ok(Request::Flamegraph(full)) = request(line) else { panic!("not a flame graph") };
    let expected = Flamegraph {
        process: None,
        file: "a".into(),
        other: Some("b".into()),
        measure: Some(AnyMeasure::Heap(Measure::Leaked)),
        form: FlamegraphForm::Svg { icicle: true, title: Some("T".into()), unfold: true },
        output: Destination::of(Some("o.svg".into()), true),
        shown: FrameVisibility::All,
        scripts: ScriptFrames::All,
        filter: Filter { function: Some("f".into()), module: Some("m".into()), ..Filter::default() },
        part: PartRequest::default(),
    };
    assert_eq!(full, expected);
    let Ok(Request::Flamegraph(folded)) = request("flamegraph f --folded") else {
        panic!("not a flame graph")
    };
    assert_eq!(folded.form, FlamegraphForm::Folded);
    assert!(request("flamegraph f --folded --title T").is_err());
    assert!(request("flamegraph f --force").is_err());
}

/// Command lines from earlier versions of README, which people's scripts may contain.
#[test]
fn command_lines_of_old_go_on_to_work() {
    for line in [
        "record -- ls",
        "report python3.9085.mallow --sort leaked",
        "report python3.9085.mallow --sort temporary",
        "record -o sessions.mallow -- ./sessions",
        "report sessions.mallow --sort leaked",
        "record -o map.mallow -- target/release/csv-map-per-row test.csv",
        "report map.mallow --sort peak",
        "report map.mallow --sort allocations --limit 3",
        "stat -r 3 -- target/release/csv-reused-record test.csv",
        "diff map.mallow reused.mallow --limit 1",
        "flamegraph map.mallow --measure allocations -o map.svg",
        "export map.mallow --format pprof -o map.pb.gz",
        "check programs/gate/walk/after --against programs/gate/walk/before",
        "check programs/gate/walk/after --update",
        "check --update --accept-blind",
        "check --compare-anyway",
        "check --markers include",
        #[cfg(feature = "soak")]
        "soak --url http://127.0.0.1:3030/hello/you -- ./hello-leaking",
        #[cfg(feature = "soak")]
        "soak -- ./server",
    ] {
        assert!(request(line).is_ok(), "{line}: {:?}", request(line));
    }
}
