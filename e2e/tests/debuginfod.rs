//! Names of a stripped program come from a debuginfod server, if the environment names one; otherwise a message says where names would come from.

use e2e::{Workshop, run};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const SOURCE: &str = "#include <stdlib.h>\n\
    static void *kept[100];\n\
    static __attribute__((noinline)) void keep(int at) {\n\
      kept[at] = malloc(64);\n\
    }\n\
    int main(void) {\n\
      for (int at = 0; at < 100; at++) keep(at);\n\
      return kept[99] == 0;\n\
    }\n";

/// The server, which is killed on drop.
struct Server {
    child: Child,
    url: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// Serves the debug files of a folder.
    fn start(workshop: &Workshop, folder: &Path) -> Server {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let mut command = Command::new("debuginfod");
        command
            .args(["-p", &port.to_string(), "-d"])
            .arg(workshop.file("index.sqlite"))
            .arg("-F")
            .arg(folder);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Server { child, url: format!("http://127.0.0.1:{port}") }
    }

    /// Waits until it has scanned its folder.
    fn wait_for(&self, workshop: &Workshop, build_id: &str) {
        for turn in 0..240 {
            let mut client = Command::new("debuginfod-find");
            // The client also caches that a file is missing.
            client.args(["debuginfo", build_id]).env("DEBUGINFOD_URLS", &self.url);
            client.env("DEBUGINFOD_CACHE_PATH", workshop.file(&format!("turn-{turn}")));
            if client.output().unwrap().status.success() {
                return;
            }
            std::thread::sleep(Duration::from_millis(250));
        }
        panic!("debuginfod does not serve {build_id}");
    }
}

/// Builds the program without its debug information, which is put into a folder of its own; returns the build id.
fn build(workshop: &Workshop) -> String {
    std::fs::write(workshop.file("hidden.c"), SOURCE).unwrap();
    std::fs::create_dir(workshop.file("served")).unwrap();
    let line = "cc -g -O1 -Wl,--build-id hidden.c -o hidden && objcopy --only-keep-debug hidden served/hidden.debug && strip hidden && \
                readelf -n hidden";
    let notes = run::finish(run::command("sh").args(["-c", line]).current_dir(workshop.path())).well().stdout;
    let (_, build_id) = notes.split_once("Build ID: ").unwrap();
    build_id.split_whitespace().next().unwrap().to_owned()
}

fn recorded(workshop: &Workshop, variables: &[(&str, &str)]) -> String {
    let mut record = run::mallow();
    record.args(["record", "-o", "hidden.mallow", "--force", "--", "./hidden"]).current_dir(workshop.path());
    record.env("MALLOW_SYMBOL_CACHE", "").env("DEBUGINFOD_CACHE_PATH", workshop.file("cache"));
    run::finish(record.envs(variables.iter().copied())).well().stderr
}

#[test]
fn names_come_from_the_server_that_the_environment_names() {
    const HINT: &str = "names: hidden is stripped; its debug package, or DEBUGINFOD_URLS, brings them";
    let workshop = Workshop::new("debuginfod");
    let build_id = build(&workshop);
    let without = recorded(&workshop, &[]);
    assert!(without.contains(HINT) && without.contains("100.0%  0x"), "{without}");

    let server = Server::start(&workshop, &workshop.file("served"));
    server.wait_for(&workshop, &build_id);
    let named = recorded(&workshop, &[("DEBUGINFOD_URLS", &server.url)]);
    assert!(named.contains("100.0%  keep (hidden.c:4)") && !named.contains("names:"), "{named}");

    // A file that does not exist, and a server that cannot be reached: the recording is as before, and says why.
    drop(server);
    let gone = [("DEBUGINFOD_URLS", "http://127.0.0.1:1"), ("DEBUGINFOD_CACHE_PATH", "other")];
    let of_gone = recorded(&workshop, &gone);
    assert!(of_gone.contains(HINT), "{of_gone}");
    let unasked = recorded(&workshop, &[("DEBUGINFOD_URLS", "http://127.0.0.1:1"), ("PATH", "")]);
    let why = "DEBUGINFOD_URLS is set, but debuginfod-find is not there to ask them";
    assert!(unasked.contains(why) && unasked.contains(HINT), "{unasked}");
}
