//! A server whose memory the system does not let be read is no server without memory: the soak says that it proves nothing.

use e2e::Workshop;
use e2e::run::{self, Exit};
use e2e::session::json;
use e2e::soak::free_port;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// Keeps 20,000 bytes of each request, and lets nobody look (`PR_SET_DUMPABLE`).
const SERVER: &str = r#"
import ctypes, http.server, sys
kept = []
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        kept.append(bytes(20000))
        self.send_response(204)
        self.end_headers()
    def log_message(self, *words): pass
ctypes.CDLL(None).prctl(4, 0)
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"#;

#[test]
fn a_server_whose_memory_cannot_be_read_has_no_verdict() {
    let workshop = Workshop::new("soak-unread");
    let open_to_all = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    let (binary, server) = (workshop.file("mallow"), workshop.file("server.py"));
    fs::copy(run::mallow_binary(), &binary).unwrap();
    fs::write(&server, SERVER).unwrap();
    [workshop.path(), &binary, &server].into_iter().for_each(open_to_all);
    for more in [&[][..], &["--no-record"]] {
        let port = free_port().to_string();
        let url = format!("http://127.0.0.1:{port}/");
        // Root may read everything.
        let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
        let mut command = run::command(if is_root { "setpriv" } else { "env" });
        if is_root {
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        }
        command.arg(&binary).args(["soak", "--json", "--max-time", "1s", "--iterations", "2"]);
        command.args(["--warm-up", "0", "--no-burst", "--url", &url]).args(more);
        command.args(["--", "python3", "server.py", &port]);
        let finished = run::finish(command.current_dir(workshop.path())).ended(Exit::Status(3));
        let report = json(&finished.stdout);
        assert_eq!(report["verdict"], "invalid", "{finished}");
        let why = report["sentence"].to_string();
        assert!(why.contains("(python3) cannot be read (Permission denied"), "{why}\n{finished}");
        assert!(report["samples"][0]["unread"]["pid"].is_u64(), "{finished}");
    }
}
