//! Traces from elsewhere, and files that are given away: what is opened, and what they contain.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn run(folder: &Path, program: &str, words: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(words).current_dir(folder).stdin(Stdio::null()).env("MALLOW_SYMBOL_CACHE", "");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{program} {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn mallow(folder: &Path, words: &[&str]) -> Output {
    run(folder, env!("CARGO_BIN_EXE_mallow"), words)
}

const SOURCE: &str = "#include <stdlib.h>\n\
    const char *__lsan_default_suppressions(void) { return \"leak:keep_for_ever\\n\"; }\n\
    void *volatile kept;\n\
    __attribute__((noinline)) void keep_for_ever(void) { kept = malloc(77); }\n\
    int main(void) { keep_for_ever(); return 0; }\n";

/// Records a program in a folder with a revealing name, with a revealing argument.
fn recorded(folder: &Path) -> String {
    let place = folder.join("folder-of-eve");
    fs::create_dir(&place).unwrap();
    fs::write(place.join("app.c"), SOURCE).unwrap();
    let program = place.join("app").to_str().unwrap().to_owned();
    let source = place.join("app.c").to_str().unwrap().to_owned();
    run(folder, "gcc", &["-g", "-O1", "-fno-optimize-sibling-calls", "-o", &program, &source]);
    mallow(folder, &["record", "-o", "trace", "--", &program, "--password", "secret-of-eve"]);
    program
}

/// Whether the report of a trace, asked for in another folder, opens or looks at anything in the folder of the program that it names; and the report.
fn opened(folder: &Path, trace: &str, more: &[&str]) -> (bool, String) {
    let elsewhere = folder.join("elsewhere");
    fs::create_dir_all(&elsewhere).unwrap();
    let trace = folder.join(trace).to_str().unwrap().to_owned();
    let strace = ["-f", "-o", "calls", "-e", "trace=%file", env!("CARGO_BIN_EXE_mallow"), "report", &trace];
    let report = run(&elsewhere, "strace", &[&strace[..], more].concat());
    let calls = fs::read_to_string(elsewhere.join("calls")).unwrap();
    assert!(calls.contains(&format!("\"{trace}\"")), "{calls}");
    (calls.contains("folder-of-eve"), String::from_utf8(report.stdout).unwrap())
}

#[test]
fn a_trace_from_elsewhere_opens_nothing_of_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    recorded(folder.path());
    // What arrives is the content.
    fs::write(folder.path().join("stranger"), fs::read(folder.path().join("trace")).unwrap()).unwrap();
    let is_suppressed = |report: &str| {
        report.contains("\"pattern\":\"keep_for_ever\"") || report.contains("\"pattern\": \"keep_for_ever\"")
    };
    let own = opened(folder.path(), "trace", &["--json"]);
    assert!(own.0 && is_suppressed(&own.1), "{own:?}");
    let strangers = opened(folder.path(), "stranger", &["--json"]);
    assert!(!strangers.0 && !is_suppressed(&strangers.1), "{strangers:?}");
    let page = opened(folder.path(), "stranger", &[]);
    assert!(!page.0 && page.1.contains("keep_for_ever (app.c:4)"), "{page:?}");
    let asked = opened(folder.path(), "stranger", &["--json", "--open-files"]);
    assert!(asked.0 && is_suppressed(&asked.1), "{asked:?}");
}

#[test]
fn a_trace_from_elsewhere_that_was_cut_short_is_named_by_nothing_of_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    recorded(folder.path());
    let whole = fs::read(folder.path().join("trace")).unwrap();
    fs::write(folder.path().join("stranger"), cut_before_names(&whole)).unwrap();
    let (is_opened, report) = opened(folder.path(), "stranger", &["--json"]);
    assert!(!is_opened && report.contains("was not recorded here"), "{report}");
    let (is_opened, report) = opened(folder.path(), "stranger", &["--json", "--open-files"]);
    assert!(
        is_opened && report.contains("keep_for_ever") && !report.contains("was not recorded here"),
        "{report}"
    );
}

/// The chunks up to the first of names.
fn cut_before_names(trace: &[u8]) -> &[u8] {
    use mallow_trace::{CHUNK_HEADER_BYTES, ChunkHeader, ChunkKind, FILE_HEADER_BYTES};
    let mut at = FILE_HEADER_BYTES;
    while let Some(header) = trace.get(at..).and_then(|rest| rest.first_chunk::<CHUNK_HEADER_BYTES>()) {
        let header = ChunkHeader::from_bytes(header);
        if header.kind == ChunkKind::SYMBOLS {
            break;
        }
        at += CHUNK_HEADER_BYTES + header.payload_bytes as usize;
    }
    &trace[..at]
}

/// Returns all bytes of a trace, decompressed.
fn unpacked(trace: &[u8]) -> Vec<u8> {
    use mallow_trace::{CHUNK_HEADER_BYTES, ChunkHeader, FILE_HEADER_BYTES, FLAG_ZSTD};
    let mut at = FILE_HEADER_BYTES;
    let mut all = trace.to_vec();
    while let Some(header) = trace.get(at..).and_then(|rest| rest.first_chunk::<CHUNK_HEADER_BYTES>()) {
        let header = ChunkHeader::from_bytes(header);
        at += CHUNK_HEADER_BYTES;
        let stored = &trace[at..at + header.payload_bytes as usize];
        at += stored.len();
        match header.flags & FLAG_ZSTD {
            0 => all.extend(stored),
            _ => all.extend(zstd::bulk::decompress(stored, header.raw_bytes as usize).unwrap()),
        }
    }
    all
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn a_redacted_file_has_no_arguments_folders_or_machine() {
    let folder = tempfile::tempdir().unwrap();
    recorded(folder.path());
    let path = folder.path().to_str().unwrap();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let telling =
        [path, "folder-of-eve", "--password", "secret-of-eve", "/usr/", "/lib/", "/tmp", kernel.trim()];
    let whole = unpacked(&fs::read(folder.path().join("trace")).unwrap());
    let told = telling.iter().filter(|text| holds(&whole, text)).count();
    assert!(told >= 6, "the trace itself has most of them: {told}");
    for format in
        ["mallow", "dhat", "massif", "heaptrack", "folded", "speedscope", "firefox", "pprof", "jemalloc-heap"]
    {
        mallow(
            folder.path(),
            &["export", "trace", "--format", format, "--redact", "-o", "public", "--force"],
        );
        let bytes = fs::read(folder.path().join("public")).unwrap();
        let bytes = match format {
            "mallow" => unpacked(&bytes),
            "pprof" => run(folder.path(), "zcat", &["-f", "public"]).stdout,
            _ => bytes,
        };
        assert!(holds(&bytes, "app"), "{format}");
        for text in telling {
            assert!(!holds(&bytes, text), "{format} contains {text}");
        }
        if format == "mallow" {
            let report = String::from_utf8(mallow(folder.path(), &["report", "public"]).stdout).unwrap();
            assert!(report.contains("keep_for_ever (app.c:4)"), "{report}");
        }
    }
}

#[test]
fn a_redacted_cpu_profile_has_none_either() {
    let folder = tempfile::tempdir().unwrap();
    let program = recorded(folder.path());
    mallow(
        folder.path(),
        &[
            "cpu",
            "-o",
            "time",
            "--",
            "/bin/sh",
            "-c",
            &format!("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; {program} secret-of-eve"),
        ],
    );
    mallow(folder.path(), &["export", "time", "--format", "pprof", "--redact", "-o", "public"]);
    let bytes = run(folder.path(), "zcat", &["-f", "public"]).stdout;
    assert!(holds(&bytes, "sh"));
    for text in ["secret-of-eve", "folder-of-eve", "/usr/", "/bin/", folder.path().to_str().unwrap()] {
        assert!(!holds(&bytes, text), "{text}");
    }
}
