//! Real JVMs, one of another user, and programs that only call themselves so.

use super::*;
use std::io::BufRead;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const NOBODY: u32 = 65534;

/// A program that has said its first line.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Running {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        io::BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Running(child)
    }

    fn ask(&self, command: &str) -> io::Result<String> {
        ask(self.0.id(), command, Some(Instant::now() + Duration::from_secs(60)))
    }

    fn is_alive(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A JVM that waits, in a folder of its own that everybody can write.
fn jvm(folder: &Path, options: &[&str]) -> Command {
    let source = folder.join("Waits.java");
    let text = "public class Waits { public static void main(String[] a) throws Exception { System.out.println(\"ready\"); System.in.read(); } }";
    fs::write(&source, text).unwrap();
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
    let mut command = Command::new("java");
    command.args(options).arg(&source).current_dir(folder);
    command
}

#[test]
fn a_jvm_answers_and_nothing_is_left_of_the_question() {
    let folder = tempfile::tempdir().unwrap();
    let mut running = Running::start(&mut jvm(folder.path(), &[]));
    for _ in 0..2 {
        assert!(running.ask("VM.version").unwrap().contains("JDK"));
    }
    let refused = running.ask("No.such_command").unwrap_err();
    assert!(refused.kind() == ErrorKind::InvalidData && !refused.to_string().is_empty(), "{refused}");
    assert!(running.is_alive());
    let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.collect::<Vec<_>>(), ["Waits.java"]);
}

#[test]
fn root_asks_somebody_elses_jvm_with_his_rights() {
    if !rustix::process::geteuid().is_root() {
        // Then there is nobody else whom we could ask.
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(jvm(folder.path(), &[]).uid(NOBODY).gid(NOBODY));
    assert!(running.ask("VM.version").unwrap().contains("JDK"));
    let said = as_its_user(running.0.id(), || fs::read("/etc/shadow")).unwrap_err();
    assert_eq!(said.kind(), ErrorKind::PermissionDenied, "his rights and no more");
    assert!(fs::read("/etc/shadow").is_ok(), "only that thread has given them up");
}

#[test]
fn what_only_calls_itself_java_is_not_signalled_and_nothing_beside_it_is_run() {
    let folder = tempfile::tempdir().unwrap();
    let [java, jcmd] = ["java", "jcmd"].map(|name| folder.path().join(name));
    fs::copy("/bin/sh", &java).unwrap();
    let ran = folder.path().join("ran");
    fs::write(&jcmd, format!("#!/bin/sh\ntouch {}\n", ran.display())).unwrap();
    fs::set_permissions(&jcmd, fs::Permissions::from_mode(0o755)).unwrap();
    let mut running = Running::start(Command::new(&java).args(["-c", "echo ready; read line; exit"]));
    let said = running.ask("GC.run").unwrap_err();
    assert_eq!((said.kind(), said.to_string().as_str()), (ErrorKind::Unsupported, "it is no HotSpot JVM"));
    assert!(running.is_alive() && !ran.exists());
}

#[test]
fn a_jvm_that_the_signal_would_end_is_asked_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut running = Running::start(&mut jvm(folder.path(), &["-Xrs"]));
    assert!(!catches(running.0.id(), SIGQUIT));
    assert!(running.ask("VM.version").unwrap().contains("JDK") && running.is_alive());
}

#[test]
fn a_socket_that_somebody_else_has_put_there_is_not_spoken_to() {
    let mut sleeps = Running::start(Command::new("sh").args(["-c", "echo ready; read line; exit"]));
    let place = temporary(sleeps.0.id(), "java");
    let listener = std::os::unix::net::UnixListener::bind(&place).unwrap();
    let said = sleeps.ask("GC.run").unwrap_err();
    fs::remove_file(&place).unwrap();
    assert!(said.to_string().contains("another process listens"), "{said}");
    listener.set_nonblocking(true).unwrap();
    let (mut stranger, _) = listener.accept().unwrap();
    let mut heard = Vec::new();
    stranger.read_to_end(&mut heard).unwrap();
    assert!(heard.is_empty() && sleeps.is_alive());
}
