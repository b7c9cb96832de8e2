//! A small library is mapped into small static programs.

use super::*;
use crate::be_traced;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Says in which order things happen, by itself: writes a letter from its data, whose address a relocation makes, and counts in its
/// thread-local storage.
const LIBRARY: &str = r#"
static const char letter[] = "L";
static const char *volatile at = letter;
static __thread long count;
long mallow_weight(void) { return 1; }
extern long weight(void);
extern long nobody(void) __attribute__((weak));
static long call(long n, long a, long b, long c) {
    long r; __asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory"); return r;
}
__attribute__((used, visibility("hidden"))) void begin(void) {
    count += weight();
    if (count == 1 && !nobody) call(1, 1, (long)at, 1);
}
__asm__(".globl mallow_start_static\n.type mallow_start_static,@function\nmallow_start_static:\n"
        "mov %rdi, %rbx\nand $-16, %rsp\ncall begin\nmov 8(%rbx), %rsp\nmov (%rbx), %r11\nxor %edx, %edx\njmp *%r11\n");
"#;

const PROGRAM: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
static __thread char text[] = "P";
static void *other(void *p) { return text[0] == 'P' ? p : 0; }
int main(int n, char **words) {
    pthread_t thread; void *back;
    sigset_t blocked;
    sigprocmask(SIG_BLOCK, 0, &blocked);
    if (!sigisemptyset(&blocked)) return 5;
    pthread_create(&thread, 0, other, words);
    pthread_join(thread, &back);
    if (back != words) return 4;
    write(1, text, 1);
    return 0;
}
"#;

struct Files {
    folder: tempfile::TempDir,
    library: PathBuf,
}

fn compile(compiler: &str, text: &str, flags: &[&str], output: &Path) {
    let source = output.with_extension("c");
    std::fs::write(&source, text).unwrap();
    let status =
        Command::new(compiler).args(["-w", "-O1"]).args(flags).arg("-o").arg(output).arg(&source).status();
    assert!(status.unwrap().success());
}

impl Files {
    fn new() -> Files {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("library.so");
        let flags =
            ["-shared", "-fPIC", "-nostdlib", "-ftls-model=initial-exec", "-D_GNU_SOURCE", "-fno-builtin"];
        compile("gcc", LIBRARY, &flags, &library);
        Files { folder, library }
    }

    fn program(&self, compiler: &str, flags: &[&str]) -> PathBuf {
        let program = self.folder.path().join("program");
        compile(compiler, PROGRAM, flags, &program);
        program
    }

    fn start(&self, program: &Path) -> Child {
        let mut command = Command::new(program);
        command.stdout(Stdio::piped());
        // SAFETY: it makes two system calls.
        unsafe { command.pre_exec(be_traced) };
        command.spawn().unwrap()
    }

    fn load(&self, child: &Child) -> Result<(), InjectError> {
        load(child.id(), &self.library, &Library::parse(&std::fs::read(&self.library).unwrap()).unwrap())
    }
}

fn said(child: &mut Child) -> (String, Option<i32>, Option<i32>) {
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    let status = child.wait().unwrap();
    (text, status.code(), status.signal())
}

#[test]
fn the_library_begins_before_the_program_and_both_have_their_thread_local_storage() {
    let files = Files::new();
    for (compiler, flags) in
        [("gcc", &["-static"][..]), ("gcc", &["-static-pie", "-fPIE"]), ("musl-gcc", &["-static"])]
    {
        let program = files.program(compiler, flags);
        let mut child = files.start(&program);
        files.load(&child).unwrap();
        assert_eq!(said(&mut child), ("LP".to_owned(), Some(0), None), "{compiler} {flags:?}");
    }
}

#[test]
fn a_signal_that_comes_meanwhile_is_the_programs() {
    let files = Files::new();
    let program = files.program("gcc", &["-static"]);
    let mut child = files.start(&program);
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
    files.load(&child).unwrap();
    let (_, code, signal) = said(&mut child);
    assert_eq!((code, signal), (None, Some(Signal::SIGTERM as i32)));
}

#[test]
fn a_process_that_is_killed_meanwhile_has_ended() {
    let files = Files::new();
    let program = files.program("gcc", &["-static"]);
    let mut child = files.start(&program);
    kill(Pid::from_raw(child.id() as i32), Signal::SIGKILL).unwrap();
    assert!(matches!(files.load(&child), Err(InjectError::Ended)));
    assert_eq!(said(&mut child), (String::new(), None, Some(Signal::SIGKILL as i32)));
}

#[test]
fn a_program_that_a_loader_starts_is_refused_and_ends_without_having_begun() {
    let files = Files::new();
    let program = files.program("gcc", &[]);
    let mut child = files.start(&program);
    assert!(matches!(files.load(&child), Err(InjectError::Damaged)));
    assert_eq!(said(&mut child), (String::new(), None, Some(Signal::SIGKILL as i32)));
}

#[test]
fn a_library_that_asks_for_what_nobody_has_is_refused() {
    let files = Files::new();
    let lacking = files.folder.path().join("lacking.so");
    let text = LIBRARY.replace("long mallow_weight", "long mallow_other");
    compile("gcc", &text, &["-shared", "-fPIC", "-nostdlib", "-ftls-model=initial-exec"], &lacking);
    let parsed = Library::parse(&std::fs::read(&lacking).unwrap());
    assert!(
        matches!(parsed, Err(InjectError::Library(why)) if why.contains("function that it does not bring"))
    );
    assert!(Library::parse(b"no library").is_err());
}
