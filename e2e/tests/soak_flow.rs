//! `mallow soak --flow`: a server that refuses requests without a login.

use e2e::soak::{free_port, loads, sources};
use e2e::{Exit, Finished, Workshop, run};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn login_py() -> String {
    sources().join("python/login.py").display().to_string()
}

fn login_toml() -> String {
    sources().join("python/login.toml").display().to_string()
}

/// Runs `mallow soak` on `login.py` in a mode, with this flow.
fn soak(mode: &str, flow: &str, more: &[&str]) -> Finished {
    let port = free_port().to_string();
    let url = format!("http://127.0.0.1:{port}/");
    let server = ["python3", &login_py(), "--mode", mode, "--port", &port];
    run::finish(run::mallow().args(["soak", "--flow", flow, "--url", &url]).args(more).arg("--").args(server))
}

const SHORT: [&str; 9] = ["-c", "4", "--iterations", "3", "--requests", "300", "--no-extend", "--idle", "0s"];

/// A server of the test's own, so that it can be queried after the soak.
struct Running(Child, u16);

impl Running {
    fn start(mode: &str) -> Running {
        let port = free_port();
        let mut python = Command::new("python3");
        python.args([&login_py(), "--mode", mode, "--port", &port.to_string()]);
        let server = Running(python.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap(), port);
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() && begun.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }

    fn stats(&self) -> Value {
        let mut stream = TcpStream::connect(("127.0.0.1", self.1)).unwrap();
        stream.write_all(b"GET /stats HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        e2e::session::json(answer.split("\r\n\r\n").nth(1).unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn users_log_in_and_out_and_nobody_is_refused() {
    let server = Running::start("clean");
    let (pid, url) = (server.0.id().to_string(), format!("http://127.0.0.1:{}/", server.1));
    let short = [&SHORT[..], &["--pid", &pid, "--json", "--no-burst", "--warm-up", "0"]].concat();
    let finished =
        run::finish(run::mallow().args(["soak", "--flow", &login_toml(), "--url", &url]).args(&short));
    let report = e2e::session::json(&finished.stdout);
    let stats = server.stats();
    // Of 900 requests every third is a login; a user may have been stopped in the middle of a pass.
    let (logins, open) = (stats["logins"].as_u64().unwrap(), stats["open"].as_u64().unwrap());
    assert!((298..=304).contains(&logins) && open <= 4, "{stats}\n{finished}");
    assert_eq!(stats["refused"], 0, "{stats}\n{finished}");
    let work = report["work"].as_str().unwrap();
    assert!(work.contains(" in a flow of 3: login, account, logout (4 connections"), "{finished}");
    assert_eq!(loads(&report), [(300, 300); 3], "{finished}");
}

#[test]
fn a_leak_of_each_login_is_named_with_its_line() {
    let flags =
        ["-c", "4", "--iterations", "20", "--requests", "300", "--no-burst", "--idle", "0s", "--json"];
    let finished = soak("leak", &login_toml(), &flags).ended(Exit::Status(1));
    let report = e2e::session::json(&finished.stdout);
    assert_eq!(report["verdict"], "leaking", "{finished}");
    let source = fs::read_to_string(login_py()).unwrap();
    let line = source.lines().position(|line| line.contains("# LEAK login")).unwrap() as u64 + 1;
    let frames = report["stacks"][0]["frames"].as_array().unwrap();
    let is_it = |frame: &Value| {
        frame["file"].as_str().is_some_and(|file| file.ends_with("python/login.py")) && frame["line"] == line
    };
    assert!(frames.iter().any(is_it), "line {line}: {finished}");
    // 2,000 bytes of every third request.
    let growth = report["growth"]["bytes_per_request"]["value"].as_f64().unwrap();
    assert!((640.0..720.0).contains(&growth), "{growth}: {finished}");
}

#[test]
fn a_value_that_no_answer_has_is_told_and_is_no_test() {
    let finished = soak("mute", &login_toml(), &SHORT).ended(Exit::Status(3));
    assert!(finished.stdout.starts_with("INVALID"), "{finished}");
    let told = "step 1 (login): no `token` in the answer (json data.token)";
    assert!(finished.stdout.replace('\n', " ").contains(told), "{finished}");
    let workshop = Workshop::new("soak-flow");
    let wrong = workshop.file("wrong.toml");
    fs::write(&wrong, fs::read_to_string(login_toml()).unwrap().replace("p&q =ü", "guessed")).unwrap();
    let finished = soak("clean", &wrong.display().to_string(), &SHORT).ended(Exit::Status(3));
    assert!(finished.stdout.starts_with("INVALID") && finished.stdout.contains("status 403"), "{finished}");
}

#[test]
fn a_flow_that_makes_no_sense_is_refused_before_the_server_is_started() {
    let workshop = Workshop::new("soak-flow-bad");
    let bad = workshop.file("bad.toml");
    fs::write(&bad, "[[step]]\nget = \"/\"\n\n[[step]]\nget = \"/{token}\"\n").unwrap();
    let finished = soak("clean", &bad.display().to_string(), &[]).ended(Exit::Status(2));
    assert!(finished.stderr.contains("line 4: `{token}` is taken by no step before this one"), "{finished}");
    let finished = soak("clean", "/nonexistent.toml", &[]).ended(Exit::Status(2));
    assert!(finished.stderr.contains("cannot read '/nonexistent.toml'"), "{finished}");
}
