//! `-` is stdin for files that are read and stdout for files that are written, and the format and destination of a
//! result have the same flags in every command.

use e2e::program::Program;
use e2e::run::{self, Exit, Finished};
use e2e::session::json;
use e2e::{Session, Workshop, repository};
use serde_json::Value;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

/// Creates a folder with a trace, and the same bytes compressed.
fn traced(name: &str) -> Workshop {
    let workshop = Workshop::new(name);
    let program = Program::load("family").build(workshop.path(), &Value::Null);
    let session = Session::new(workshop.path(), &[&program.to_string_lossy()]);
    let _ = session.record().well();
    std::fs::rename(session.trace(), workshop.file("a.mallow")).unwrap();
    std::fs::copy(workshop.file("a.mallow"), workshop.file("b.mallow")).unwrap();
    let line = "$MALLOW export a.mallow -f pprof -o a.pb.gz && $MALLOW export a.mallow -f folded -o a.folded && \
                gzip -k a.folded";
    let _ = shell(&workshop, line).well();
    workshop
}

/// Runs a shell command in which `$MALLOW` is mallow.
fn shell(workshop: &Workshop, line: &str) -> Finished {
    let mut shell = run::command("sh");
    shell.args(["-c", line]).env("MALLOW", run::mallow_binary()).env("TMPDIR", workshop.path());
    run::finish(shell.current_dir(workshop.path()))
}

/// Runs a command with bytes in a pipe, which can be read once, from its beginning to its end.
fn piped(workshop: &Workshop, words: &[&str], bytes: &[u8]) -> Finished {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let bytes = bytes.to_vec();
    let feeder = std::thread::spawn(move || writer.write_all(&bytes));
    let mut mallow = run::mallow();
    mallow.args(words).current_dir(workshop.path()).stdin(Stdio::from(reader));
    let finished = run::finish(&mut mallow);
    // A command that refuses its input closes the pipe.
    let _ = feeder.join();
    finished
}

/// Returns the output of a command for a named file, with the name removed.
fn of_file(workshop: &Workshop, words: &[&str], file: &str) -> String {
    let words: Vec<&str> = words.iter().map(|word| if *word == "-" { file } else { word }).collect();
    let finished = run::finish(run::mallow().args(words).current_dir(workshop.path())).well();
    finished.stdout.replace(file, "-")
}

#[test]
fn a_pipe_is_read_as_the_file_is() {
    let workshop = traced("stdin");
    for (words, file) in [
        (&["report", "-"][..], "a.mallow"),
        (&["report", "-", "--json"], "a.mallow"),
        // Events are read after sums.
        (&["report", "-", "--histogram", "--chains"], "a.mallow"),
        (&["report", "-", "--tree", "--from", "10%"], "a.mallow"),
        (&["report", "-"], "a.pb.gz"),
        (&["report", "-"], "a.folded.gz"),
        (&["diff", "-", "b.mallow"], "a.mallow"),
        (&["flamegraph", "-"], "a.mallow"),
        (&["flamegraph", "b.mallow", "-", "-f", "folded"], "a.folded"),
        (&["export", "-", "--format", "folded"], "a.mallow"),
    ] {
        let bytes = std::fs::read(workshop.file(file)).unwrap();
        let of_pipe = piped(&workshop, words, &bytes).well();
        // A file may stand for a program without a name; a pipe has none either.
        let named = of_file(&workshop, words, file);
        let expected = match named.strip_prefix("-: ") {
            Some(rest) => format!("a program that is not named: {rest}"),
            None => named,
        };
        assert_eq!(of_pipe.stdout, expected, "{words:?} {file}");
        // A file that the shell has opened is read in place.
        let mut mallow = run::mallow();
        mallow.args(words).current_dir(workshop.path()).stdin(File::open(workshop.file(file)).unwrap());
        assert_eq!(run::finish(&mut mallow).well().stdout, of_pipe.stdout, "{words:?} {file}");
    }
    assert_eq!(workshop.names().iter().filter(|name| name.starts_with(".tmp")).count(), 0);
}

#[test]
fn snapshots_logs_and_other_tools_files_come_by_stdin_too() {
    let workshop = Workshop::new("stdin-others");
    for (fixture, name) in FIXTURES.into_iter().zip(["in.hprof", "in.tsv", "in.dhat"]) {
        std::fs::copy(repository().join(fixture), workshop.file(name)).unwrap();
    }
    for (words, file) in [
        (&["heap", "-"][..], "in.hprof"),
        (&["heap", "-", "--histogram", "-f", "json"], "in.hprof"),
        (&["gc-log", "-"], "in.tsv"),
        (&["gc-log", "-", "--json"], "in.tsv"),
    ] {
        let of_pipe = piped(&workshop, words, &std::fs::read(workshop.file(file)).unwrap());
        let named: Vec<&str> = words.iter().map(|word| if *word == "-" { file } else { word }).collect();
        let of_name = run::finish(run::mallow().args(named).current_dir(workshop.path()));
        assert_eq!(of_pipe.exit, of_name.exit, "{of_pipe}");
        assert_eq!(of_pipe.stdout, of_name.stdout.replace(file, "-"), "{words:?}");
    }
    // What has no name gets none.
    let bytes = std::fs::read(workshop.file("in.dhat")).unwrap();
    let refused = piped(&workshop, &["import", "-"], &bytes).ended(Exit::Status(2));
    let told = "mallow: what comes by stdin has no name, so name the trace with -o.\n";
    assert!(refused.stderr.ends_with(told), "{refused}");
    let imported = piped(&workshop, &["import", "-", "-o", "in.mallow"], &bytes).well();
    assert!(imported.stderr.ends_with("\nnext: mallow report in.mallow\n"), "{imported}");
    let refused = piped(&workshop, &["report", "-"], b"\x7fELF nothing").ended(Exit::Status(2));
    assert!(refused.stderr.starts_with("mallow: cannot read stdin: "), "{refused}");
}

/// A snapshot of Ruby's heap, a log of its collector, and a DHAT profile.
const FIXTURES: [&str; 3] =
    ["fuzz/corpus/heap_hprof/one_dump", "fixtures/gc-log/objects.tsv", "fixtures/dhat/words.json"];

#[test]
fn one_command_writes_what_the_next_one_reads() {
    let workshop = traced("pipeline");
    let line = "$MALLOW export a.mallow -f pprof -o - | $MALLOW import - -o - | $MALLOW report - --metric bytes -f json";
    let piped = json(&shell(&workshop, line).well().stdout);
    let direct = json(&shell(&workshop, "$MALLOW report a.pb.gz --metric bytes -f json").well().stdout);
    assert_eq!(piped["totals"], direct["totals"]);
    assert_eq!(piped["sites"], direct["sites"]);
    let line = "$MALLOW heap --format svg -o - < /dev/null";
    assert_eq!(shell(&workshop, line).exit, Exit::Status(2), "a snapshot is needed");
}

#[test]
fn a_form_and_a_place_are_spelt_alike_and_as_before() {
    let workshop = traced("forms");
    std::fs::copy(repository().join(FIXTURES[0]), workshop.file("dump.json")).unwrap();
    for (now, before) in [
        ("report a.mallow --format json", "report a.mallow --json"),
        ("report a.mallow --format text", "report a.mallow"),
        ("diff a.mallow a.mallow --format json", "diff a.mallow a.mallow --json"),
        ("diff a.mallow a.mallow --format markdown", "diff a.mallow a.mallow --markdown"),
        ("flamegraph a.mallow --format folded", "flamegraph a.mallow --folded"),
        ("flamegraph a.mallow --format svg", "flamegraph a.mallow"),
        ("heap dump.json --format json", "heap dump.json --json"),
        ("heap dump.json --format folded", "heap dump.json --folded"),
        ("heap dump.json --format svg", "heap dump.json --flamegraph -"),
        ("heap check dump.json --max-objects 1 --format json", "heap check dump.json --max-objects 1 --json"),
        ("version --format json", "version --json"),
    ] {
        let run = |line: &str| shell(&workshop, &format!("$MALLOW {line}"));
        let (new, old) = (run(now), run(before));
        assert_eq!((new.exit, &new.stdout), (old.exit, &old.stdout), "{now}");
        assert!(!new.stdout.is_empty(), "{new}");
        // The same in a file, which is not overwritten without `--force`.
        let to_file = run(&format!("{now} -o out"));
        assert_eq!(to_file.stdout, "", "{to_file}");
        assert_eq!(written(&workshop.file("out")), new.stdout, "{now}");
        let again = run(&format!("{now} -o out"));
        assert!(again.stderr.contains("out exists; use --force to overwrite it."), "{again}");
        assert_eq!(run(&format!("{now} -o out --force")).exit, new.exit);
        std::fs::remove_file(workshop.file("out")).unwrap();
    }
}

fn written(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// A document as lines has the contents of the document, each element of a list in its own line.
#[test]
fn a_report_comes_in_lines() {
    let workshop = traced("lines");
    let mut document = json(&shell(&workshop, "$MALLOW report a.mallow --json").well().stdout);
    let lines = shell(&workshop, "$MALLOW report a.mallow --format ndjson").well().stdout;
    let mut lines = lines.lines().map(json);
    let mut whole = lines.next().unwrap();
    for name in ["sites", "processes"] {
        assert!(whole.get(name).is_none() && !document[name].as_array().unwrap().is_empty());
    }
    for line in lines {
        let [(name, element)] = &line.as_object().unwrap().iter().collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let list =
            whole.as_object_mut().unwrap().entry(name.as_str()).or_insert_with(|| Value::Array(Vec::new()));
        list.as_array_mut().unwrap().push((*element).clone());
    }
    // A list without elements has no line.
    document.as_object_mut().unwrap().retain(|_, value| value.as_array().is_none_or(|list| !list.is_empty()));
    whole.as_object_mut().unwrap().retain(|_, value| value.as_array().is_none_or(|list| !list.is_empty()));
    assert_eq!(whole, document);
}
