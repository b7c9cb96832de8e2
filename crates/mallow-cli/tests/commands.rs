//! The real binary with real files: exit codes, messages, and which stream they go to.

use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

fn mallow(folder: &Path, args: &[&str]) -> Output {
    command(folder, args).output().unwrap()
}

fn command(folder: &Path, args: &[impl AsRef<OsStr>]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mallow"));
    command.args(args).current_dir(folder).env_remove("NO_COLOR").env("COLUMNS", "80").stdin(Stdio::null());
    command
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Asserts one sentence that begins with `mallow: `, nothing on stdout, and exit code 2.
#[track_caller]
fn refused(output: &Output) -> String {
    refused_with(output, 2)
}

/// Asserts the same with the code of a command that passes on a program's status.
#[track_caller]
fn refused_with(output: &Output, code: i32) -> String {
    let text = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert!(text.starts_with("mallow: ") && text.ends_with(".\n") && text.lines().count() == 1, "{text}");
    assert!(!text.contains("os error") && !text.contains(".."), "{text}");
    assert_eq!(stdout(output), "");
    text
}

#[test]
fn a_file_that_cannot_be_read_is_one_sentence() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("empty"), b"").unwrap();
    fs::write(at("elf"), b"\x7fELF\x02\x01\x01 and so on, and so on, and so on").unwrap();
    fs::write(at("short"), b"mal").unwrap();
    fs::create_dir(at("folder")).unwrap();
    for (name, part) in [
        ("missing", "no such file or directory"),
        ("empty", "an empty file"),
        ("elf", "an ELF program or library"),
        ("short", "not a profile but a text file"),
        ("folder", "directory"),
    ] {
        for form in [&["report", name][..], &["report", "--json", name][..]] {
            let sentence = refused(&mallow(folder.path(), form));
            assert!(sentence.contains(part) && sentence.contains(name), "{sentence}");
        }
    }
}

#[test]
fn a_command_line_that_means_nothing_is_refused() {
    let folder = folder();
    for (args, code) in [
        (&[][..], 2),
        (&["record"], 125),
        (&["report"], 2),
        (&["stat", "-r", "0", "--", "true"], 125),
        (&["report", "--sort", "sizes", "f"], 2),
        (&["gather"], 2),
    ] {
        let output = mallow(folder.path(), args);
        assert_eq!(output.status.code(), Some(code), "{args:?}");
        assert_eq!(stdout(&output), "");
        assert!(!output.stderr.is_empty());
    }
    assert_eq!(mallow(folder.path(), &["--help"]).status.code(), Some(0));
    assert_eq!(mallow(folder.path(), &["record", "--help"]).status.code(), Some(0));
}

#[test]
fn a_command_that_does_not_exist_leaves_nothing() {
    let folder = folder();
    for args in [
        &["record", "--", "./no-such-program"][..],
        &["record", "-o", "trace", "--", "./no-such-program"],
        &["stat", "--", "./no-such-program"],
        &["stat", "--json", "-o", "counts", "--", "./no-such-program"],
    ] {
        let sentence = refused_with(&mallow(folder.path(), args), 127);
        assert!(sentence.contains("no-such-program"), "{sentence}");
        assert_eq!(files(folder.path()), [""; 0]);
    }
}

#[test]
fn a_place_that_cannot_be_written_is_refused_before_the_program_runs() {
    let folder = folder();
    let output = mallow(folder.path(), &["record", "-o", "none/trace", "--", "touch", "ran"]);
    let sentence = refused_with(&output, 125);
    assert!(sentence.contains("none/trace"), "{sentence}");
    refused_with(&mallow(folder.path(), &["stat", "-o", "none/counts", "--", "touch", "ran"]), 125);
    assert_eq!(files(folder.path()), [""; 0]);
}

#[test]
fn nothing_is_overwritten_unless_forced() {
    let folder = folder();
    fs::write(folder.path().join("kept"), b"precious").unwrap();
    for command in ["record", "stat"] {
        let output = mallow(folder.path(), &[command, "-o", "kept", "--", "touch", "ran"]);
        let sentence = refused_with(&output, 125);
        assert!(sentence.contains("kept") && sentence.contains("--force"), "{sentence}");
        assert_eq!(fs::read(folder.path().join("kept")).unwrap(), b"precious");
    }
    assert_eq!(files(folder.path()), ["kept"]);
    let output = mallow(folder.path(), &["record", "-o", "kept", "--force", "--", "true"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(mallow(folder.path(), &["report", "kept"]).status.code(), Some(0));
}

#[test]
fn a_recording_keeps_the_programs_streams_and_status() {
    let folder = folder();
    let output = mallow(folder.path(), &["record", "--", "sh", "-c", "echo out; echo err >&2; exit 3"]);
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(stdout(&output), "out\n");
    let text = stderr(&output);
    assert!(text.starts_with("err\n") && text.contains("exit status 3"), "{text}");
    let [name] = &files(folder.path())[..] else { panic!("{:?}", files(folder.path())) };
    assert!(name.starts_with("sh.") && name.ends_with(".mallow"), "{name}");
    assert!(text.contains(&format!("mallow report {name}")), "{text}");
    assert_eq!(fs::metadata(folder.path().join(name)).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn a_signal_is_passed_on_as_a_shell_does() {
    let folder = folder();
    for command in ["record", "stat"] {
        let output = mallow(folder.path(), &[command, "--", "sh", "-c", "kill -KILL $$"]);
        assert_eq!(output.status.code(), Some(137), "{}", stderr(&output));
        assert!(stderr(&output).contains("killed by SIGKILL"), "{}", stderr(&output));
    }
}

#[test]
fn a_report_of_a_real_program_in_both_forms() {
    let folder = folder();
    assert_eq!(
        mallow(folder.path(), &["record", "-o", "t", "--", "sort", "/etc/passwd"]).status.code(),
        Some(0)
    );
    let text = stdout(&mallow(folder.path(), &["report", "t"]));
    assert!(text.starts_with("sort /etc/passwd: exit status 0"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(!text.contains('\x1b'));

    // What libc keeps of the locale would be no leak of a site.
    let output = mallow(folder.path(), &["report", "t", "--json", "--no-default-suppressions"]);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["schema"], "mallow.report/2");
    assert_eq!(report["processes"][0]["exit"], 0);
    assert!(report["totals"]["allocations"].as_u64() > Some(0));
    for metric in
        ["allocations", "bytes", "temporary", "peak_bytes", "peak_blocks", "leaked_bytes", "leaked_blocks"]
    {
        let sites = report["sites"].as_array().unwrap();
        let sum: u64 = sites.iter().map(|site| site[metric].as_u64().unwrap()).sum();
        assert_eq!(report["totals"][metric].as_u64(), Some(sum), "{metric}");
    }
    let bytes: Vec<u64> =
        report["sites"].as_array().unwrap().iter().map(|s| s["bytes"].as_u64().unwrap()).collect();
    assert!(bytes.is_sorted_by(|a, b| a >= b));

    let output = mallow(folder.path(), &["report", "t", "--json"]);
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    let sites = shown["sites"].as_array().unwrap();
    let left: u64 = sites.iter().map(|site| site["leaked_bytes"].as_u64().unwrap()).sum();
    let suppressed = &shown["suppressed"];
    let taken = suppressed["leaked_bytes"].as_u64().unwrap();
    assert!(taken > 0, "{suppressed}");
    assert_eq!(Some(left + taken), shown["totals"]["leaked_bytes"].as_u64());
    let patterns = suppressed["patterns"].as_array().unwrap();
    assert!(patterns.iter().all(|one| one["built_in"] == true && one["file"] == "built in"), "{suppressed}");
    // With libc's debug information the innermost function that fits is one of its own.
    let of_locale = |one: &Value| one["pattern"].as_str().is_some_and(|text| text.contains("locale"));
    assert!(patterns.iter().any(of_locale), "{suppressed}");
}

#[test]
fn suppressions_that_are_built_in_are_listed_without_a_profile() {
    let folder = folder();
    let output = mallow(folder.path(), &["report", "--list-default-suppressions"]);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    assert!(stdout(&output).contains("\nthe locale\n  patterns    ^setlocale$"), "{}", stdout(&output));
}

#[test]
fn stat_writes_where_it_says() {
    let folder = folder();
    let text = mallow(folder.path(), &["stat", "-r", "2", "--", "echo", "hello"]);
    assert_eq!(stdout(&text), "hello\nhello\n");
    assert!(stderr(&text).contains("Counts were equal in all 2 runs."), "{}", stderr(&text));

    let json = mallow(folder.path(), &["stat", "-r", "2", "--json", "--", "true"]);
    let document: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(document["schema"], "mallow.stat/1");
    assert_eq!(document["runs"].as_array().map(Vec::len), Some(2));
    assert_eq!(document["runs"][0]["totals"], document["runs"][1]["totals"]);
    assert_eq!(document["equal_counts"], true);

    let file = mallow(folder.path(), &["stat", "--json", "-o", "counts.json", "--", "echo", "hello"]);
    assert_eq!((stdout(&file).as_str(), stderr(&file).as_str()), ("hello\n", ""));
    let document: Value =
        serde_json::from_slice(&fs::read(folder.path().join("counts.json")).unwrap()).unwrap();
    assert_eq!(document["runs"][0]["exit"], 0);
}

#[test]
fn stat_and_record_count_the_same() {
    let folder = folder();
    let program = ["sort", "/etc/passwd"];
    mallow(folder.path(), &[&["record", "-o", "t", "--"][..], &program].concat());
    let report: Value =
        serde_json::from_slice(&mallow(folder.path(), &["report", "t", "--json"]).stdout).unwrap();
    let output = mallow(folder.path(), &[&["stat", "--json", "-o", "s", "--"][..], &program].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let stat: Value = serde_json::from_slice(&fs::read(folder.path().join("s")).unwrap()).unwrap();
    assert_eq!(report["totals"], stat["runs"][0]["totals"]);
}

#[test]
fn a_reader_that_stops_early_is_no_error() {
    let folder = folder();
    mallow(folder.path(), &["record", "-o", "t", "--", "sort", "/etc/passwd"]);
    let script = "\"$0\" report t --json | head -c 10; exit ${PIPESTATUS[0]}";
    let output = Command::new("bash")
        .args(["-c", script, env!("CARGO_BIN_EXE_mallow")])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    assert_eq!(stdout(&output), "{\"schema\":");
}

#[test]
fn a_full_disk_is_one_sentence() {
    let folder = folder();
    mallow(folder.path(), &["record", "-o", "t", "--", "true"]);
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = command(folder.path(), &["report", "t"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(stderr(&output), "mallow: cannot write to stdout: no space left on device.\n");
}

#[test]
fn a_trace_that_was_cut_short_gives_its_report_and_a_warning() {
    let folder = folder();
    mallow(folder.path(), &["record", "-o", "t", "--", "sort", "/etc/passwd"]);
    let whole = fs::read(folder.path().join("t")).unwrap();
    fs::write(folder.path().join("cut"), &whole[..whole.len() - 40]).unwrap();
    let output = mallow(folder.path(), &["report", "cut"]);
    let (text, warning) = (stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(0), "{warning}");
    assert!(
        warning.lines().all(|line| line.starts_with("mallow: warning: ")) && !warning.is_empty(),
        "{warning}"
    );
    assert!(text.contains("allocations"), "{text}");
    let json: Value =
        serde_json::from_slice(&mallow(folder.path(), &["report", "cut", "--json"]).stdout).unwrap();
    assert_eq!(json["complete"], false);
    assert!(!json["warnings"].as_array().unwrap().is_empty());
}

#[test]
fn a_folder_that_takes_no_files_is_refused() {
    let folder = folder();
    fs::write(folder.path().join("file"), b"").unwrap();
    // Even root cannot create a file there.
    for place in ["/proc/trace", "file/trace"] {
        for command in ["record", "stat"] {
            let output = mallow(folder.path(), &[command, "-o", place, "--", "touch", "ran"]);
            let sentence = refused_with(&output, 125);
            assert!(sentence.contains(place), "{sentence}");
        }
    }
    assert_eq!(files(folder.path()), ["file"]);
}

#[test]
fn an_interrupt_ends_the_program_and_the_result_follows() {
    let folder = folder();
    // The program interrupts the whole group, as a terminal does, including mallow.
    let program = "trap 'exit 7' INT; kill -INT 0; sleep 5";
    for (command, expected) in [("record", "exit status 7"), ("stat", "exit status 7, 1 of 9 runs")] {
        let mut args = vec![command];
        if command == "stat" {
            args.extend(["-r", "9"]);
        }
        args.extend(["--", "sh", "-c", program]);
        // A script that runs the tests in the background makes them ignore interrupts, and their children, too.
        let plain = self::command(folder.path(), &args);
        let mut command = Command::new("/usr/bin/env");
        command.arg("--default-signal").arg(plain.get_program()).args(plain.get_args());
        let output = command.current_dir(folder.path()).process_group(0).output().unwrap();
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(7), "{text}");
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn a_version_is_one_line_and_has_its_details_elsewhere() {
    let folder = folder();
    let line = stdout(&mallow(folder.path(), &["--version"]));
    let rows = stdout(&mallow(folder.path(), &["version"]));
    let document: Value =
        serde_json::from_slice(&mallow(folder.path(), &["version", "--json"]).stdout).unwrap();
    // The commit according to git. A package that is tested elsewhere has none.
    let git =
        Command::new("git").args(["rev-parse", "HEAD"]).current_dir(env!("CARGO_MANIFEST_DIR")).output();
    let commit = git.ok().filter(|git| git.status.success()).map(|git| stdout(&git).trim().to_owned());
    let version = env!("CARGO_PKG_VERSION");
    let expected = match &commit {
        Some(commit) => format!("mallow {version} ({})\n", &commit[..12]),
        None => format!("mallow {version}\n"),
    };
    assert_eq!(line, expected);
    assert_eq!(document["commit"], commit.as_deref().map_or(Value::Null, Value::from));
    let features = [("open", cfg!(feature = "open")), ("soak", cfg!(feature = "soak"))];
    let features: Vec<&str> =
        features.into_iter().filter(|(_, is_in)| *is_in).map(|(name, _)| name).collect();
    let features = if features.is_empty() { "none".to_owned() } else { features.join(", ") };
    let target = document["target"].as_str().unwrap();
    assert!(target.starts_with("x86_64-") && target.contains("-linux-"), "{target}");
    let commit = commit.as_deref().unwrap_or("unknown");
    let rows_expected = format!(
        "mallow {version}\ncommit          {commit}\ntarget          {target}\ntrace format    1\ncounting rules  2\nfeatures        {features}\n"
    );
    assert_eq!(rows, rows_expected);
}

#[test]
fn help_is_a_command_too() {
    let folder = folder();
    for (words, same) in [
        (&["help"][..], &["--help"][..]),
        (&["help", "record"], &["record", "--help"]),
        (&["help", "heap", "diff"], &["heap", "diff", "--help"]),
    ] {
        let (help, flag) = (mallow(folder.path(), words), mallow(folder.path(), same));
        assert_eq!((help.status.code(), stderr(&help).as_str()), (Some(0), ""));
        assert_eq!(stdout(&help), stdout(&flag), "{words:?}");
    }
    let unknown = mallow(folder.path(), &["help", "gather"]);
    assert_eq!((unknown.status.code(), stdout(&unknown).as_str()), (Some(2), ""));
}

#[test]
fn the_newest_profile_is_taken_where_none_is_named() {
    let folder = folder();
    for command in ["report", "flamegraph", "diff", "export --format dhat"] {
        let output = mallow(folder.path(), &command.split(' ').collect::<Vec<_>>());
        let sentence = refused(&output);
        assert!(
            sentence.starts_with("mallow: there is no profile in this folder, neither *.mallow "),
            "{sentence}"
        );
    }
    for (name, program) in [("z.mallow", "true"), ("a.mallow", "ls")] {
        assert_eq!(mallow(folder.path(), &["record", "-o", name, program]).status.code(), Some(0));
    }
    let told = "mallow: note: this is a.mallow, the newest profile in this folder.\n";
    for (command, named) in [
        ("report", "report a.mallow"),
        ("report --sort bytes --json", "report a.mallow --sort bytes --json"),
        ("flamegraph --folded", "flamegraph a.mallow --folded"),
        ("export --format dhat", "export a.mallow --format dhat"),
    ] {
        let run = |line: &str| mallow(folder.path(), &line.split(' ').collect::<Vec<_>>());
        let (newest, named) = (run(command), run(named));
        let told = format!("{told}{}", stderr(&named));
        assert_eq!((newest.status.code(), stderr(&newest)), (Some(0), told), "{command}");
        assert_eq!(newest.stdout, named.stdout, "{command}");
    }
    let (newest, named) =
        (mallow(folder.path(), &["diff"]), mallow(folder.path(), &["diff", "z.mallow", "a.mallow"]));
    let told = "mallow: note: this is z.mallow against a.mallow, the two newest profiles in this folder.\n";
    assert_eq!((newest.status.code(), stderr(&newest).as_str()), (Some(0), told));
    assert_eq!(newest.stdout, named.stdout);
    // One file alone is not a pair, and the other is not added.
    assert_eq!(mallow(folder.path(), &["diff", "a.mallow"]).status.code(), Some(2));
}

/// Runs a shell command with a terminal as its stdin, stdout and stderr.
fn on_a_terminal(folder: &Path, line: &str) -> String {
    let mut script = Command::new("script");
    script
        .args(["--quiet", "--return", "--command", line, "/dev/null"])
        .current_dir(folder)
        .env("TERM", "xterm");
    // No person can press a key.
    script.env_remove("NO_COLOR").env("MALLOW_PAGER", "").env_remove("PAGER");
    let output = script.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    stdout(&output).replace('\r', "")
}

/// The wait is the input's: it comes after a second, and the line after half of one.
#[test]
fn long_reading_is_told_on_a_terminal_and_to_nobody_else() {
    let folder = folder();
    let told = |flags: &str, behind: &str| {
        let mallow = env!("CARGO_BIN_EXE_mallow");
        on_a_terminal(folder.path(), &format!("(sleep 1; echo 'main;work 3') | {mallow} {flags} {behind}"))
    };
    let line = "\x1b[Kreading - … 0 s";
    let shown = told("report -", "");
    assert!(shown.contains(line) && shown.contains("0 s\x1b[K"), "{shown:?}");
    for (flags, behind) in
        [("report - --json", ""), ("report - -f ndjson", ""), ("-q report -", ""), ("report -", "2>said")]
    {
        let shown = told(flags, behind);
        assert!(!shown.contains("reading") && shown.contains("work"), "{flags} {behind}: {shown:?}");
    }
    assert!(!fs::read_to_string(folder.path().join("said")).unwrap().contains("reading"));
}

#[test]
fn a_recording_says_on_a_terminal_where_its_trace_will_be() {
    let folder = folder();
    let line = format!("{} record sh -c 'exec sleep 0.2'", env!("CARGO_BIN_EXE_mallow"));
    let text = on_a_terminal(folder.path(), &line);
    let names = files(folder.path());
    let [name] = names.as_slice() else { panic!("{names:?}") };
    let pid = name.split('.').nth(1).unwrap();
    assert_eq!(text.lines().next().unwrap(), format!("recording {pid} → {name}"), "{text}");
    // With a named file, too; and not if stderr is not a terminal.
    let line = format!("{} record -o t true", env!("CARGO_BIN_EXE_mallow"));
    assert!(on_a_terminal(folder.path(), &line).lines().next().unwrap().ends_with(" → t"));
    assert!(
        !on_a_terminal(folder.path(), &format!("{} 2>said", line.replace("-o t", "-o s")))
            .contains("recording")
    );
    let said = stderr(&mallow(folder.path(), &["record", "-o", "u", "true"]));
    assert!(!said.contains("recording"), "{said}");
}

#[test]
fn colours_are_where_they_are_wanted() {
    let folder = folder();
    mallow(folder.path(), &["record", "-o", "t", "sort", "/etc/passwd"]);
    let is_coloured = |flags: &[&str], variables: &[(&str, &str)]| {
        let mut report = command(folder.path(), &[&["report", "t"], flags].concat());
        let output = report.envs(variables.iter().copied()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output).contains('\x1b')
    };
    for (flags, variables, expected) in [
        (&[][..], &[][..], false),
        (&["--color", "always"], &[], true),
        (&["--color=always"], &[("NO_COLOR", "1")], true),
        (&[], &[("CLICOLOR_FORCE", "1")], true),
        (&[], &[("CLICOLOR_FORCE", "0")], false),
        (&[], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false),
        (&["--color", "never"], &[("CLICOLOR_FORCE", "1")], false),
        (&["--color", "auto"], &[("NO_COLOR", "")], false),
    ] {
        assert_eq!(is_coloured(flags, variables), expected, "{flags:?} {variables:?}");
    }
    let on_terminal = |before: &str, after: &str| {
        let line = format!("{before} {} report t {after}", env!("CARGO_BIN_EXE_mallow"));
        on_a_terminal(folder.path(), &line).contains('\x1b')
    };
    assert!(on_terminal("", "") && on_terminal("NO_COLOR=1", "--color always"));
    assert!(
        !on_terminal("NO_COLOR=1", "") && !on_terminal("TERM=dumb", "") && !on_terminal("", "--color never")
    );
    assert_eq!(mallow(folder.path(), &["report", "t", "--color", "blue"]).status.code(), Some(2));
}

#[test]
fn a_page_on_a_terminal_is_shown_by_a_pager() {
    let folder = folder();
    mallow(folder.path(), &["record", "-o", "t", "sort", "/etc/passwd"]);
    let marked = |before: &str, line: &str| {
        let line = format!("{before} {} {line}", env!("CARGO_BIN_EXE_mallow"));
        let text = on_a_terminal(folder.path(), &line);
        assert!(text.lines().count() > 3, "{text}");
        text.lines().all(|line| line.starts_with("| "))
    };
    let pager = "\"sed 's/^/| /'\"";
    assert!(marked(&format!("MALLOW_PAGER={pager} PAGER=false"), "report t"));
    assert!(marked(&format!("MALLOW_PAGER={pager}"), "report t --metric bytes --color never"));
    assert!(marked(&format!("MALLOW_PAGER={pager}"), "diff t t"));
    assert!(marked(&format!("unset MALLOW_PAGER; PAGER={pager}"), "report t"));
    // No pager, one that does not exist, and output that needs none.
    for (before, line) in [
        ("MALLOW_PAGER= PAGER=false".to_owned(), "report t"),
        ("MALLOW_PAGER=./not-there".to_owned(), "report t"),
        (format!("MALLOW_PAGER={pager}"), "--no-pager report t"),
        (format!("MALLOW_PAGER={pager}"), "diff t t --no-pager"),
        (format!("TERM=dumb MALLOW_PAGER={pager}"), "report t"),
        (format!("MALLOW_PAGER={pager}"), "report t | cat"),
    ] {
        assert!(!marked(&before, line), "{before} {line}");
    }
    // The exit code for a limit is that of the command, whatever the pager's was.
    let broken = format!(
        "MALLOW_PAGER=true {} diff t t --fail-on 'allocations>0'; echo code $?",
        env!("CARGO_BIN_EXE_mallow")
    );
    assert!(on_a_terminal(folder.path(), &broken).ends_with("code 1\n"));
}
