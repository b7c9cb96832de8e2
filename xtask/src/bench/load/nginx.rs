//! An nginx of our own: this machine only, one worker, one small file, nothing written but into its folder.

use crate::bench::redis::free_port;
use crate::run;
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const READY_WITHIN: Duration = Duration::from_secs(30);

/// A server that ends with this value.
pub(super) struct Nginx {
    port: u16,
    folder: tempfile::TempDir,
    child: Child,
}

impl Nginx {
    pub(super) fn start() -> Result<Nginx, String> {
        let folder = tempfile::tempdir().map_err(|error| format!("no folder for nginx: {error}."))?;
        let port = free_port()?;
        let put = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text)
                .map_err(|error| format!("{name} cannot be written: {error}."))
        };
        put("index.html", "hello from nginx\n")?;
        let is_root = run::captured(Command::new("id").arg("-u"))?.trim() == "0";
        put("nginx.conf", &settings(&folder.path().display().to_string(), port, is_root))?;
        let child = Command::new("/usr/sbin/nginx")
            .args(arguments(folder.path()))
            .stdin(Stdio::null())
            .spawn()
            .map_err(|error| format!("nginx could not be started: {error}."))?;
        let nginx = Nginx { port, folder, child };
        nginx.wait()?;
        Ok(nginx)
    }

    pub(super) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/", self.address())
    }

    fn wait(&self) -> Result<(), String> {
        let started = Instant::now();
        while started.elapsed() < READY_WITHIN {
            if TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok() {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(5));
        }
        Err(format!("nginx did not answer on port {} within {} s.", self.port, READY_WITHIN.as_secs()))
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let mut stop = Command::new("/usr/sbin/nginx");
        let stopped = run::captured(stop.args(arguments(self.folder.path())).args(["-s", "stop"]));
        if let Err(error) = stopped {
            eprintln!("nginx could not be told to stop: {error}");
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// Its own folder and settings, and no error log but that of the settings.
fn arguments(folder: &Path) -> Vec<String> {
    let folder = folder.display().to_string();
    ["-p", &folder, "-c", "nginx.conf", "-e", "error.log"].map(str::to_owned).to_vec()
}

fn settings(folder: &str, port: u16, is_root: bool) -> String {
    // Started by root, its worker would be somebody who may not look into the folder.
    let user = if is_root { "user root;\n" } else { "" };
    let scratch: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|kind| format!("  {kind}_temp_path {folder}/{kind};\n"))
        .collect();
    format!(
        "{user}daemon off;\nworker_processes 1;\npid {folder}/pid;\nerror_log {folder}/error.log;\n\
         events {{ worker_connections 1024; }}\n\
         http {{\n{scratch}  access_log off;\n  keepalive_requests 1000000000;\n  \
         server {{ listen 127.0.0.1:{port}; root {folder}; }}\n}}\n"
    )
}
