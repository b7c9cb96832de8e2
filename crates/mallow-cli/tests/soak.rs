//! `mallow soak` with arguments that it refuses: one sentence, exit code 2, no process left running.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

fn soak(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mallow"));
    command.arg("soak").args(args).current_dir(folder).stdin(Stdio::null());
    for name in ["HOST", "PORT", "DURATION", "WORKERS", "TRIES"] {
        command.env_remove(name);
    }
    command.output().unwrap()
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Returns the message if nothing can be judged.
#[track_caller]
fn refused(output: &Output) -> String {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(output.stdout.is_empty(), "{text}");
    let sentence = text.lines().find(|line| line.starts_with("mallow: ")).unwrap_or_default().to_owned();
    assert!(!sentence.is_empty() && !text.contains("os error") && !text.contains("panicked"), "{text}");
    text
}

/// Returns a port that is not in use.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn a_port_that_is_taken_is_left_to_its_owner() {
    let folder = folder();
    let owner = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", owner.local_addr().unwrap());
    let text = refused(&soak(folder.path(), &["--url", &url, "--", "touch", "ran"]));
    assert!(text.contains("is taken"), "{text}");
    assert!(!folder.path().join("ran").exists());
}

#[test]
fn a_server_that_is_never_ready_is_ended() {
    let folder = folder();
    let url = format!("http://127.0.0.1:{}/", free_port());
    fs::write(folder.path().join("server"), "echo starting up; echo $$ > pid; exec sleep 600\n").unwrap();
    let args = ["--url", &url, "--ready-timeout", "700ms", "--", "sh", "server"];
    let text = refused(&soak(folder.path(), &args));
    assert!(text.contains("not ready after") && text.contains("starting up"), "{text}");
    let pid = fs::read_to_string(folder.path().join("pid")).unwrap();
    assert!(!Path::new("/proc").join(pid.trim()).exists(), "{pid} still runs");
}

#[test]
fn a_server_that_ends_at_once_is_told_with_its_last_words() {
    let folder = folder();
    let url = format!("http://127.0.0.1:{}/", free_port());
    fs::write(folder.path().join("server"), "echo no such database >&2; exit 4\n").unwrap();
    let text = refused(&soak(folder.path(), &["--url", &url, "--", "sh", "server"]));
    assert!(text.contains("ended before it was ready") && text.contains("no such database"), "{text}");
}

#[test]
fn files_that_make_no_sense_are_refused_before_anything_runs() {
    let folder = folder();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("urls.txt", "http://127.0.0.1:3030/a\nftp://127.0.0.1/b\n");
    write("empty.txt", "# nothing\n");
    write("bad.env", "PORT=1\nnothing here\n");
    write("bad.json", "{}");
    write("run.before.mallow", "");
    for (args, part) in [
        (&["--urls", "urls.txt"][..], "line 2"),
        (&["--urls", "empty.txt"], "empty.txt"),
        (&["--urls", "missing.txt"], "missing.txt"),
        (&["--access-log", "empty.txt"], "empty.txt"),
        (&["--env-file", "bad.env"], "line 2"),
        (&["--baseline", "bad.json"], "bad.json"),
        (&["-o", "run"], "--force"),
        (&["--svg", "none/a.svg"], "none"),
        (&["--url", "ftp://127.0.0.1/"], "'ftp' is no scheme"),
        (&["--url", "https://127.0.0.1/", "--cacert", "missing.pem"], "missing.pem"),
        (&["--url", "https://127.0.0.1/", "--cacert", "empty.txt"], "it holds no certificate in PEM form"),
        (&["--url", "https://127.0.0.1/", "--sni", "a b"], "'a b' is no name"),
        (&["--url", "http://127.0.0.1/", "--insecure"], "--insecure is for a server with TLS"),
        (&["--url", "http://192.0.2.1/"], "--allow-remote"),
    ] {
        let args = [args, &["--", "touch", "ran"]].concat();
        let text = refused(&soak(folder.path(), &args));
        assert!(text.contains(part), "{args:?}: {text}");
        assert!(!folder.path().join("ran").exists(), "{args:?}");
    }
    let text = refused(&soak(folder.path(), &["--read", "empty.txt"]));
    assert!(text.contains("empty.txt"), "{text}");
}
