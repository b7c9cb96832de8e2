//! `mallow open` serves a profile to a page that knows its address, once, and to no other client.

use e2e::program::Program;
use e2e::run;
use e2e::session::json;
use e2e::{Session, Workshop};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

const PAGE: &str = "https://profiler.firefox.com";

/// A mallow that serves a profile; it is killed on drop.
struct Offered {
    child: Child,
    /// What it printed: the page's address.
    page: String,
    host: String,
    path: String,
}

impl Drop for Offered {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Offered {
    fn start(workshop: &Workshop, words: &[&str], environment: &[(&str, &str)]) -> Offered {
        let mut mallow: Command = run::mallow();
        mallow.arg("open").args(words).current_dir(workshop.path()).envs(environment.iter().copied());
        let mut child = mallow.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut page = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut page).unwrap();
        let address = page.trim().rsplit(['/', '=']).next().unwrap().replace("%3A", ":").replace("%2F", "/");
        let address = address.strip_prefix("http://").unwrap_or_else(|| panic!("{page}"));
        let (host, path) = address.split_once('/').unwrap();
        Offered { host: host.into(), path: format!("/{path}"), page: page.trim().to_owned(), child }
    }

    fn ask(&self, method: &str, path: &str, host: &str, origin: Option<&str>) -> (u16, String, Vec<u8>) {
        let origin = origin.map(|origin| format!("Origin: {origin}\r\n")).unwrap_or_default();
        let mut connection = TcpStream::connect(&self.host).unwrap();
        write!(connection, "{method} {path} HTTP/1.1\r\nHost: {host}\r\n{origin}\r\n").unwrap();
        let mut answer = Vec::new();
        connection.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(answer[..end].to_vec()).unwrap().to_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head, answer[end + 4..].to_vec())
    }
}

fn traced() -> Workshop {
    let workshop = Workshop::new("open");
    let program = Program::load("family").build(workshop.path(), &Value::Null);
    let session = Session::new(workshop.path(), &[&program.to_string_lossy()]);
    let _ = session.record().well();
    workshop
}

#[test]
fn a_profile_goes_to_the_page_that_was_told_of_it_and_then_it_is_over() {
    let workshop = traced();
    let mut offered = Offered::start(&workshop, &["trace.mallow", "--no-browser"], &[]);
    assert!(
        offered.page.starts_with("https://profiler.firefox.com/from-url/http%3A%2F%2F127.0.0.1%3A"),
        "{}",
        offered.page
    );
    assert_eq!(offered.path.len(), "/0123456789abcdef0123456789abcdef/profile.json".len());
    let (host, path) = (offered.host.clone(), offered.path.clone());
    for (path, host, origin) in [
        ("/profile.json", host.as_str(), Some(PAGE)),
        (&path, &host, Some("https://evil.example")),
        (&path, "evil.example", Some(PAGE)),
    ] {
        let (status, head, body) = offered.ask("GET", path, host, origin);
        assert!(status == 404 && body.is_empty() && !head.contains("access-control"), "{head}");
    }
    // The preflight request: a browser first asks whether the page may access a private network.
    let (status, head, _) = offered.ask("OPTIONS", &path, &host, Some(PAGE));
    assert_eq!(status, 204, "{head}");
    assert!(head.contains("access-control-allow-origin: https://profiler.firefox.com"), "{head}");
    assert!(head.contains("access-control-allow-private-network: true"), "{head}");
    assert!(offered.child.try_wait().unwrap().is_none(), "nobody has had it");
    let (status, head, body) = offered.ask("GET", &path, &host, Some(PAGE));
    assert_eq!(status, 200, "{head}");
    let exported = run::finish(
        run::mallow().args(["export", "trace.mallow", "-f", "firefox"]).current_dir(workshop.path()),
    );
    assert_eq!(json(&String::from_utf8(body).unwrap()), json(&exported.well().stdout));
    assert!(offered.child.wait().unwrap().success());
}

#[test]
fn the_desktops_command_is_given_the_page_and_nothing_is_asked_otherwise() {
    use std::os::unix::fs::PermissionsExt;
    let workshop = traced();
    let script = "#!/bin/sh\nprintf '%s\\n' \"$1\" > opened.new && mv opened.new opened\n";
    std::fs::create_dir(workshop.file("bin")).unwrap();
    std::fs::write(workshop.file("bin/xdg-open"), script).unwrap();
    std::fs::set_permissions(workshop.file("bin/xdg-open"), PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", workshop.file("bin").display());
    let environment = [("PATH", path.as_str()), ("DISPLAY", ":99")];
    let offered = Offered::start(&workshop, &["--in", "speedscope"], &environment);
    assert!(
        offered.page.starts_with("https://www.speedscope.app/#profileURL=http%3A%2F%2F127.0.0.1%3A"),
        "{}",
        offered.page
    );
    while !workshop.file("opened").exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!(std::fs::read_to_string(workshop.file("opened")).unwrap().trim(), offered.page);
    let (status, _, body) = offered.ask("GET", &offered.path, &offered.host, None);
    let document = json(&String::from_utf8(body).unwrap());
    assert_eq!(
        (status, &document["$schema"]),
        (200, &Value::from("https://www.speedscope.app/file-format-schema.json"))
    );
    let refused = run::finish(
        run::mallow().args(["open", "trace.mallow", "--in", "perfetto"]).current_dir(workshop.path()),
    );
    let told = "mallow: trace.mallow tells what allocated, and Perfetto shows where time went; open it with --in firefox.\n";
    assert_eq!(refused.ended(run::Exit::Status(2)).stderr, told);
}
