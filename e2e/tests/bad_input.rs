//! What mallow prints for input that it cannot use: one sentence, exit code 2, no file left behind; exit code 125,
//! 126 or 127 if a program's status would be passed on. A truncated trace still has a report, with a warning.

use e2e::program::{Program, build_text};
use e2e::run::{self, Exit, Finished};
use e2e::session::{json, metric, report_of};
use e2e::{Session, Workshop};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

/// Length of a trace's file header: magic, version u32, crc32 u32.
const FILE_HEADER_BYTES: usize = 16;

/// Returns a trace of the program `family`, and its report.
fn trace() -> &'static (Vec<u8>, Value) {
    static TRACE: OnceLock<(Vec<u8>, Value)> = OnceLock::new();
    TRACE.get_or_init(|| {
        let workshop = Workshop::new("trace");
        let program = Program::load("family").build(workshop.path(), &Value::Null);
        let session = Session::new(workshop.path(), &[&program.to_string_lossy()]);
        let _ = session.record().well();
        (std::fs::read(session.trace()).unwrap(), session.report(&[]))
    })
}

/// Asserts one sentence on stderr that begins with `mallow: `, exit code 2, and nothing on stdout.
#[track_caller]
fn refused(finished: Finished, reason: &str) -> String {
    refused_with(finished, 2, reason)
}

/// Asserts the same with the exit code of a command that passes on a program's status.
#[track_caller]
fn refused_with(finished: Finished, code: i32, reason: &str) -> String {
    let finished = finished.ended(Exit::Status(code));
    let text = &finished.stderr;
    let is_sentence = text.starts_with("mallow: ") && text.ends_with(".\n") && text.lines().count() == 1;
    assert!(is_sentence && !text.contains("panicked") && !text.contains("os error"), "{finished}");
    assert!(
        text.to_lowercase().contains(&reason.to_lowercase()),
        "the sentence does not name `{reason}`\n{finished}"
    );
    assert_eq!(finished.stdout, "", "{finished}");
    finished.stderr
}

/// Asserts a report with warnings: exit code 0, every line of stderr a warning, JSON that says it is incomplete, and
/// no metric above the truth. Either all metrics are known, or none is: a file that ends before its first events
/// contains none.
#[track_caller]
fn warned(finished: Finished) {
    let finished = finished.well();
    let are_warnings = finished.stderr.lines().all(|line| line.starts_with("mallow: warning: "));
    assert!(are_warnings && !finished.stderr.is_empty(), "{finished}");
    let report = json(&finished.stdout);
    assert_eq!(report["complete"], false, "{finished}");
    assert!(!report["warnings"].as_array().unwrap().is_empty(), "{finished}");
    let truth = &trace().1["totals"];
    let lacks_metrics =
        ["no metrics of process", "processes and"].iter().any(|text| finished.stderr.contains(text));
    for metric_name in ["allocations", "bytes", "frees", "reallocations", "temporary", "failed", "peak_bytes"]
    {
        if lacks_metrics {
            assert_eq!(report["totals"][metric_name], Value::Null, "{finished}");
            continue;
        }
        let (found, most) = (metric(&report["totals"], metric_name), metric(truth, metric_name));
        assert!(found <= most, "{metric_name}: {found}, but the program made only {most}\n{finished}");
    }
}

/// `-` is stdout, wherever something is written; no file of that name is created.
#[test]
fn a_dash_is_stdout() {
    let workshop = Workshop::new("dash");
    std::fs::write(workshop.file("trace.mallow"), &trace().0).unwrap();
    let run = |words: &[&str]| run::finish(run::mallow().args(words).current_dir(workshop.path()));
    for (words, start) in [
        (&["flamegraph", "trace.mallow", "-o", "-"][..], "<?xml"),
        (&["export", "trace.mallow", "--format", "dhat", "-o", "-"], "{"),
        (&["stat", "--json", "-o", "-", "--", "true"], "{\"schema\""),
        (&["stat", "-o", "-", "--", "true"], "true: exit status 0"),
        (&["stat", "-o", "-", "true"], "true: exit status 0"),
    ] {
        let finished = run(words).well();
        assert!(finished.stdout.starts_with(start), "{finished}");
    }
    refused_with(run(&["record", "-o", "-", "--", "true"]), 125, "cannot go to stdout");
    assert!(!workshop.file("-").exists());
}

/// Words that are no program's name are command lines; those that are none are the program's arguments.
#[test]
fn a_command_line_of_a_program_that_is_not_there_is_refused() {
    for words in [&["./a --x 1", "./b --x 1"][..], &["./a", "--x 1"]] {
        let told = run::finish(run::mallow().arg("stat").args(words)).ended(Exit::Status(127)).stderr;
        assert!(told.starts_with("mallow: cannot run './a'"), "{told}");
    }
}

fn report_of_bytes(bytes: &[u8]) -> Finished {
    let workshop = Workshop::new("bytes");
    let file = workshop.file("file.mallow");
    std::fs::write(&file, bytes).unwrap();
    let finished = report_of(&file, &[]);
    assert_eq!(workshop.names(), ["file.mallow"], "something was left behind");
    finished
}

#[test]
fn a_cut_trace_gives_its_report_with_a_warning() {
    let (bytes, truth) = trace();
    let cuts = (0..32).map(|part| bytes.len() * part / 32).chain([1, 15, 16, 17, 39, 40, bytes.len() - 1]);
    let mut reports = 0;
    for cut in cuts {
        let finished = report_of_bytes(&bytes[..cut]);
        if finished.exit == Exit::Status(0) {
            warned(finished);
            reports += 1;
        } else {
            // Only a file without a whole chunk may be refused.
            let first_chunk = FILE_HEADER_BYTES + 24 + le_u32(bytes, FILE_HEADER_BYTES + 8);
            assert!(cut < first_chunk, "cut at {cut} of {}, yet refused\n{finished}", bytes.len());
            refused(finished, "cannot read");
        }
    }
    assert!(reports >= 20, "only {reports} cut traces gave a report");
    let cut_end = json(&report_of_bytes(&bytes[..bytes.len() - 1]).well().stdout);
    assert_eq!(cut_end["totals"], truth["totals"], "all events are there, only the end is not");
}

/// What is missing from a trace may exceed a limit, so only a complete trace can pass.
#[test]
fn a_cut_trace_neither_keeps_nor_breaks_a_limit() {
    let workshop = Workshop::new("cutlimit");
    let bytes = &trace().0;
    for (name, length) in [("whole.mallow", bytes.len()), ("late.mallow", bytes.len() - 1)] {
        std::fs::write(workshop.file(name), &bytes[..length]).unwrap();
    }
    let run = |words: &str| run::finish(run::mallow().args(words.split(' ')).current_dir(workshop.path()));
    let _ = run("diff whole.mallow whole.mallow --fail-on allocations>+1%").well();
    for words in ["late.mallow whole.mallow", "whole.mallow late.mallow"] {
        let undecided = "the limit allocations>0 cannot be judged: a profile is not complete";
        let finished = run(&format!("diff {words} --fail-on allocations>0 --json")).ended(Exit::Status(3));
        assert!(finished.stderr.ends_with(&format!("mallow: {undecided}.\n")), "{finished}");
        assert_eq!(json(&finished.stdout)["limits"][0]["broken"], Value::Null, "{finished}");
        let comment = run(&format!("diff {words} --fail-on allocations>0 --markdown")).ended(Exit::Status(3));
        assert!(comment.stdout.contains(&format!("**T{}.**", &undecided[1..])), "{comment}");
        assert!(!comment.stdout.contains("All limits hold"), "{comment}");
    }
}

/// If not even the first event is left, no metric is known, and none is shown as 0.
#[test]
fn a_trace_that_was_cut_before_its_first_events_tells_nothing() {
    let workshop = Workshop::new("cutearly");
    let bytes = &trace().0;
    let first_chunk = FILE_HEADER_BYTES + 24 + le_u32(bytes, FILE_HEADER_BYTES + 8);
    std::fs::write(workshop.file("whole.mallow"), bytes).unwrap();
    let run = |words: &str| run::finish(run::mallow().args(words.split(' ')).current_dir(workshop.path()));
    let lacks = |cut: usize, sentence: &str| {
        std::fs::write(workshop.file("early.mallow"), &bytes[..cut]).unwrap();
        run("report early.mallow").well().stderr.contains(sentence)
    };
    assert!(lacks(first_chunk + 1, "processes and the recording's end are missing"));
    says_nothing(&run);
    let with_process =
        (first_chunk..bytes.len()).step_by(16).find(|cut| lacks(*cut, "no metrics of process"));
    assert!(with_process.is_some(), "no cut leaves a process without its events");
    says_nothing(&run);
}

/// Asserts that every report of `early.mallow` is without metrics.
fn says_nothing(run: &impl Fn(&str) -> Finished) {
    for words in ["early.mallow whole.mallow", "whole.mallow early.mallow"] {
        let finished = run(&format!("diff {words} --fail-on allocations>0")).ended(Exit::Status(2));
        assert!(finished.stderr.contains("there is no metric that"), "{finished}");
    }
    let text = run("report early.mallow").well();
    assert!(!text.stdout.contains("allocations"), "{text}");
    warned(run("report early.mallow --json"));
    for view in ["--timeline", "--threads", "--histogram", "--at 1ms"] {
        let finished = run(&format!("report early.mallow {view}")).ended(Exit::Status(2));
        assert!(finished.stderr.contains("ends or is damaged before its first events"), "{finished}");
    }
}

fn le_u32(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

#[test]
fn a_flipped_byte_is_found_wherever_it_is() {
    flipped_bytes_are_found(41);
}

#[test]
#[ignore = "every third byte: in `cargo xtask long`"]
fn each_flipped_byte_is_found() {
    flipped_bytes_are_found(3);
}

fn flipped_bytes_are_found(stride: usize) {
    let (bytes, _) = trace();
    for at in (0..bytes.len()).step_by(stride).chain([bytes.len() - 1]) {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x10;
        let finished = report_of_bytes(&bytes);
        match finished.exit {
            Exit::Status(0) => warned(finished),
            _ => _ = refused(finished, "cannot read"),
        }
    }
}

#[test]
fn another_version_is_named() {
    let (bytes, _) = trace();
    let version = le_u32(bytes, 8) as u32;
    for (other, cure) in [(0, "record again"), (version + 1, "newer mallow"), (u32::MAX, "newer mallow")] {
        let mut bytes = bytes.clone();
        bytes[8..12].copy_from_slice(&other.to_le_bytes());
        let crc = crc32(&bytes[..12]);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        let sentence = refused(report_of_bytes(&bytes), &format!("version {other}"));
        assert!(sentence.contains(cure), "{sentence}");
    }
}

/// Returns the CRC-32 of gzip, computed bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
    !bytes.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

#[test]
fn files_of_other_tools_are_named() {
    let workshop = Workshop::new("others");
    let text = workshop.file("text");
    std::fs::write(&text, "heap\n".repeat(100)).unwrap();
    let _ = run::finish(run::command("gzip").arg("-k").arg(&text)).well();
    for (bytes, kind) in [
        (Vec::new(), "an empty file"),
        (std::fs::read("/bin/true").unwrap(), "ELF"),
        (std::fs::read(workshop.file("text.gz")).unwrap(), "text"),
        (b"{\"version\": 2}\n".to_vec(), "JSON"),
        (b"plain words\n".to_vec(), "text"),
        (b"{ lines[NR] = $0 } END { print NR }\n".to_vec(), "text"),
        (b"[package]\nname = \"app\"\n".to_vec(), "text"),
        (b"[ 1, 2 ]\n".to_vec(), "JSON"),
    ] {
        let sentence = refused(report_of_bytes(&bytes), kind);
        assert!(sentence.contains("not a profile"), "{sentence}");
    }
    // A known format, and a file that violates its rules.
    for (bytes, part) in [
        (&b"{\"dhatFileVersion\": 2}\n"[..], "this DHAT file makes no sense at byte 21"),
        (b"v 10500 9\n", "this heaptrack file cannot be read: its format has version 9"),
        (b"desc: x\ncmd: y\ntime_unit: hours\n", "this massif file makes no sense at line 3"),
    ] {
        refused(report_of_bytes(bytes), part);
    }
}

#[test]
fn what_is_no_file_is_named() {
    let workshop = Workshop::new("nofile");
    refused(report_of(&workshop.file("missing.mallow"), &[]), "missing.mallow");
    refused(report_of(workshop.path(), &[]), "directory");
}

#[test]
fn a_command_that_does_not_exist_leaves_nothing_behind() {
    let workshop = Workshop::new("nocommand");
    std::fs::write(workshop.file("plain"), "no program\n").unwrap();
    std::fs::write(workshop.file("empty-script"), "#!./none\n").unwrap();
    let _ = run::finish(run::command("chmod").arg("+x").arg(workshop.file("empty-script"))).well();
    for (command, code) in [
        ("no-such-command-anywhere", 127),
        ("./no-such-file", 127),
        // The script's interpreter does not exist: the same code as `env`'s.
        ("./empty-script", 127),
        ("./plain", 126),
        ("./", 126),
        ("./plain/below", 126),
    ] {
        for job in [
            &["record", "-o", "out.mallow", "--", command][..],
            &["stat", "--", command],
            &["record", "--summary-only", "--", command],
            &["cpu", "--", command],
            &["heap", "capture", "--", command],
        ] {
            let finished = run::finish(run::mallow().args(job).current_dir(workshop.path()));
            refused_with(finished, code, command);
            assert_eq!(workshop.names(), ["empty-script", "plain"], "{job:?}");
        }
        let by_env = run::finish(Command::new("env").arg(command).current_dir(workshop.path()));
        assert_eq!(by_env.exit, Exit::Status(code), "what is said to be as with env is not");
    }
}

/// Exit code 2 is that of the program.
#[test]
fn a_programs_status_is_told_from_mallows_own() {
    let workshop = Workshop::new("status");
    for command in ["record", "stat", "cpu", "heap capture"] {
        for status in [1, 2, 125, 127] {
            let exit = format!("exit {status}");
            let words = command.split(' ').chain(["--", "sh", "-c", &exit]);
            let _ = run::finish(run::mallow().args(words).current_dir(workshop.path()))
                .ended(Exit::Status(status));
        }
    }
}

#[test]
fn an_existing_file_is_refused_before_the_program_runs() {
    let workshop = Workshop::new("existing");
    std::fs::write(workshop.file("out"), "precious\n").unwrap();
    for job in [
        &["record", "-o", "out", "--", "/bin/echo", "ran"][..],
        &["stat", "-o", "out", "--", "/bin/echo", "ran"],
    ] {
        let finished = run::finish(run::mallow().args(job).current_dir(workshop.path()));
        let sentence = refused_with(finished, 125, "out");
        assert!(sentence.contains("--force"), "the cure is not named: {sentence}");
        assert_eq!(std::fs::read(workshop.file("out")).unwrap(), b"precious\n");
        assert_eq!(workshop.names(), ["out"]);
    }
}

/// Runs `mallow` with its output in a small file system of its own, and then lists that; `options` are those of tmpfs.
fn in_file_system(workshop: &Workshop, options: &str, job: &[&str]) -> Finished {
    let folder = workshop.file("mounted");
    std::fs::create_dir_all(&folder).unwrap();
    let script = "mount -t tmpfs -o \"$1\" none \"$2\" && shift && cd \"$1\" && shift && \"$@\"; \
                  status=$?; ls -A >../left; exit $status";
    // The user namespace grants users other than root the right to mount.
    let mut command = run::command("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", script, "sh", options]).arg(&folder);
    command.arg(run::mallow_binary()).args(job);
    run::finish(&mut command)
}

fn left_in(workshop: &Workshop) -> String {
    std::fs::read_to_string(workshop.file("left")).unwrap()
}

#[test]
fn a_read_only_folder_is_refused_before_the_program_runs() {
    let workshop = Workshop::new("readonly");
    for job in [
        &["record", "--", "/bin/echo", "ran"][..],
        &["record", "-o", "out.mallow", "--", "/bin/echo", "ran"],
        &["stat", "-o", "out.json", "--", "/bin/echo", "ran"],
    ] {
        refused_with(in_file_system(&workshop, "ro", job), 125, "read-only file system");
        assert_eq!(left_in(&workshop), "", "{job:?}");
    }
    let nowhere = ["record", "-o", "none/out.mallow", "--", "/bin/echo", "ran"];
    refused_with(
        run::finish(run::mallow().args(nowhere).current_dir(workshop.path())),
        125,
        "none/out.mallow",
    );
}

#[test]
fn a_full_disk_leaves_no_half_trace() {
    let workshop = Workshop::new("full");
    let program = Program::load("many_stacks").build(workshop.path(), &Value::Null);
    let job = ["record", "-o", "out.mallow", "--", &program.to_string_lossy()];
    refused_with(in_file_system(&workshop, "size=64k", &job), 125, "no space left on device");
    assert_eq!(left_in(&workshop), "");
    let job = ["stat", "--json", "-o", "out.json", "--", "/bin/true"];
    let full = in_file_system(&workshop, "size=4k,nr_inodes=1", &job);
    refused_with(full, 125, "no space left on device");
    assert_eq!(left_in(&workshop), "");
}

#[test]
fn bad_command_lines_end_with_2_or_125() {
    for (job, code) in [
        (&[][..], 2),
        (&["nonsense"], 2),
        (&["report", "--limit", "many", "x"], 2),
        (&["check", "--runs", "0"], 2),
        (&["bench"], 2),
        (&["heap", "capture"], 2),
        (&["record"], 125),
        (&["record", "--frob", "--", "true"], 125),
        (&["--width", "80", "record", "--json", "ls"], 125),
        (&["stat", "--"], 125),
        (&["stat", "-r", "0", "record"], 125),
        (&["cpu", "--freq", "none", "true"], 125),
    ] {
        let finished = run::finish(run::mallow().args(job)).ended(Exit::Status(code));
        assert!(finished.stdout.is_empty() && !finished.stderr.contains("panicked"), "{finished}");
    }
}

#[test]
fn a_closed_pipe_ends_the_report_quietly() {
    let workshop = Workshop::new("pipe");
    let program =
        build_text(workshop.path(), "one", "#include <stdlib.h>\nint main(void) { return !malloc(7); }\n");
    let session = Session::new(workshop.path(), &[&program.to_string_lossy()]);
    let _ = session.record().well();
    let script = format!("\"$0\" report {} | true", Path::new("trace.mallow").display());
    let mut shell = run::command("sh");
    shell.args(["-c", &script]).arg(run::mallow_binary()).current_dir(workshop.path());
    let finished = run::finish(&mut shell).well();
    assert!(!finished.stderr.contains("panicked"), "{finished}");
}
