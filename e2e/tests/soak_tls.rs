//! `mallow soak` of servers with TLS: nginx, Python and Node, whose TLS is OpenSSL's.

use e2e::soak::{Mode, certify, expected, free_port};
use e2e::{Exit, Finished, Workshop, run};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// A folder with a certificate.
fn with_certificate(name: &str) -> Workshop {
    let workshop = Workshop::new(name);
    certify(workshop.path());
    workshop
}

/// Returns the command of an nginx that offers both protocols.
fn nginx(workshop: &Workshop, port: u16) -> Vec<String> {
    let folder = workshop.path().display().to_string();
    let user = if is_root() { "user root;\n" } else { "" };
    let scratch: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|kind| format!("{kind}_temp_path {folder}/{kind};\n"))
        .collect();
    let settings = format!(
        "{user}daemon off;\nworker_processes 1;\npid {folder}/pid;\nerror_log {folder}/error.log;\nevents {{}}\n\
         http {{\n{scratch}access_log off;\n\
         server {{ listen 127.0.0.1:{port} ssl http2; root {folder};\n\
         ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem; }}\n}}\n"
    );
    fs::write(workshop.file("nginx.conf"), settings).unwrap();
    fs::write(workshop.file("index.html"), "hello\n").unwrap();
    ["/usr/sbin/nginx", "-p", &folder, "-c", "nginx.conf", "-e", "error.log"].map(str::to_owned).to_vec()
}

/// If it is started by root, its worker is another user, who must not read the folder.
fn is_root() -> bool {
    run::finish(run::command("id").arg("-u")).well().stdout.trim() == "0"
}

fn soak(port: u16, more: &[&str], server: &[String]) -> Finished {
    let url = format!("https://localhost:{port}/");
    run::finish(run::mallow().args(["soak", "--json", "--url", &url]).args(more).arg("--").args(server))
}

fn of_programs(server: &str, name: &str) -> Mode {
    let modes = expected(Path::new(env!("CARGO_TARGET_TMPDIR")));
    modes.into_iter().find(|mode| mode.server == server && mode.name == name).unwrap()
}

/// Returns the command of a server of `programs/soak` with TLS.
fn command(mode: &Mode, both: PathBuf, port: u16) -> Vec<String> {
    let mut command = mode.command.clone();
    command.extend(["--tls".to_owned(), both.display().to_string(), "--port".to_owned(), port.to_string()]);
    command
}

/// Asserts that every request was answered.
#[track_caller]
fn all_answered(report: &Value, finished: &Finished) {
    let loads = report["samples"].as_array().unwrap().iter().filter_map(|sample| sample["load"].as_object());
    let failed: Vec<&Value> = loads
        .map(|load| &load["failures"])
        .filter(|failures| **failures != Value::Object(serde_json::Map::new()))
        .collect();
    assert!(failed.is_empty(), "{failed:?}\n{finished}");
}

#[test]
fn nginx_is_loaded_over_the_protocol_that_it_chooses() {
    let workshop = with_certificate("soak-tls-nginx");
    let (cert, port) = (workshop.file("cert.pem").display().to_string(), free_port());
    let server = nginx(&workshop, port);
    let short = ["--iterations", "3", "--requests", "300", "--no-extend", "--idle", "0s"];
    for (flags, protocol) in [(&[][..], "HTTP/2"), (&["--http1"][..], "HTTP/1.1")] {
        let finished = soak(port, &[&short[..], &["--cacert", &cert], flags].concat(), &server);
        let report = e2e::session::json(&finished.stdout);
        let work = format!("https://localhost:{port}/ (50 connections, {protocol}, closed loop)");
        assert_eq!(report["work"], work.as_str(), "{finished}");
        all_answered(&report, &finished);
        assert_eq!(finished.exit, Exit::Status(3), "three iterations decide nothing\n{finished}");
    }
    let finished = soak(port, &short, &server).ended(Exit::Status(2));
    let sentence = "its certificate is that of an authority";
    assert!(finished.stderr.contains(sentence) && finished.stderr.contains("--cacert FILE"), "{finished}");
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err(), "nobody is left\n{finished}");
}

#[test]
#[ignore = "nine seconds of CPU: in `cargo xtask long`, as each of its soaks"]
fn a_leak_behind_tls_is_named_with_its_line() {
    let workshop = with_certificate("soak-tls-python");
    let (mode, port) = (of_programs("python", "buffers"), free_port());
    let server = command(&mode, workshop.file("both.pem"), port);
    let finished = soak(port, &["--iterations", "20", "--requests", "500", "--insecure"], &server);
    let said = mode.judge(&finished);
    assert!(said.faults.is_empty() && said.verdict == "LEAKING", "{said:#?}\n{finished}");
    let report = e2e::session::json(&finished.stdout);
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("--insecure: nobody looked"), "{finished}");
}

#[test]
fn node_is_loaded_over_tls() {
    let workshop = with_certificate("soak-tls-node");
    let (mode, port) = (of_programs("node", "clean"), free_port());
    let server = command(&mode, workshop.file("both.pem"), port);
    let cert = workshop.file("cert.pem").display().to_string();
    let ready = format!("https://localhost:{port}/up");
    let flags = [
        "--iterations",
        "3",
        "--requests",
        "100",
        "--no-extend",
        "--idle",
        "0s",
        "--cacert",
        &cert,
        "--ready",
        &ready,
    ];
    let finished = soak(port, &[&flags[..], &["--no-keep-alive"]].concat(), &server);
    let report = e2e::session::json(&finished.stdout);
    let work = format!("https://localhost:{port}/ (50 connections, HTTP/1.1, closed loop, no keep-alive)");
    assert_eq!(report["work"], work.as_str(), "{finished}");
    all_answered(&report, &finished);
}
