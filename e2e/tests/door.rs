//! Foreign connections to mallow's sockets: they cost no event, and no time.

use e2e::program::build_text;
use e2e::run;
use e2e::session::metric;
use e2e::{Session, Workshop};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Foreign processes, until they are dropped.
struct Strangers(Vec<Child>);

impl Strangers {
    /// Starts a number of each kind, which connect to the sockets of all running mallows; as nobody, if we are root.
    fn come(kinds: &[(&str, usize)]) -> Strangers {
        let one = |kind: &&str| {
            run::command(knock()).args([*kind, "mallow-"]).stderr(Stdio::null()).spawn().unwrap()
        };
        let kinds = kinds.iter().flat_map(|(kind, count)| std::iter::repeat_n(*kind, *count));
        Strangers(kinds.map(|kind| one(&kind)).collect())
    }
}

impl Drop for Strangers {
    fn drop(&mut self) {
        for stranger in &mut self.0 {
            let _ = stranger.kill();
            let _ = stranger.wait();
        }
    }
}

/// Builds `programs/strangers/knock.c`, in a folder where every user can run it.
fn knock() -> &'static Path {
    static KNOCK: OnceLock<PathBuf> = OnceLock::new();
    KNOCK.get_or_init(|| {
        let folder = Workshop::new("strangers").keep();
        std::fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let source = std::fs::read_to_string(e2e::repository().join("programs/strangers/knock.c")).unwrap();
        build_text(&folder, "knock", &source)
    })
}

/// Builds a program that makes a number of pairs in itself, and as many in a child that has dropped its privileges, if it had any.
fn pairs(workshop: &Workshop, count: u64) -> Session {
    let text = format!(
        "#include <stdlib.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
         static void pairs(void) {{ for (long i = 0; i < {count}; i++) {{ void *p = malloc(30); __asm__ volatile(\"\" : : \"r\"(p) : \"memory\"); free(p); }} }}\n\
         int main(void) {{\n    pairs();\n    if (fork() == 0) {{\n        if (getuid() == 0 && (setgid(65533) != 0 || setuid(65533) != 0)) _exit(3);\n\
         \x20       if (fork() == 0) {{ pairs(); _exit(0); }}\n        wait(NULL);\n        _exit(0);\n    }}\n    wait(NULL);\n    return 0;\n}}\n"
    );
    let program = build_text(workshop.path(), "pairs", &text);
    Session::new(workshop.path(), &[&program.to_string_lossy()])
}

#[test]
fn strangers_cost_no_event() {
    const COUNT: u64 = 100_000;
    let workshop = Workshop::new("door");
    let session = pairs(&workshop, COUNT);
    let counts = || {
        let recorded = session.record().well();
        let report = session.report(&[]);
        assert_eq!((&report["warnings"], &report["complete"]), (&[""; 0].into(), &true.into()), "{recorded}");
        assert_eq!(report["processes"].as_array().unwrap().len(), 2, "{recorded}");
        ["allocations", "frees"].map(|name| metric(&report["totals"], name))
    };
    let _strangers = Strangers::come(&[("silent", 1), ("flood", 2), ("talk", 1)]);
    for _ in 0..3 {
        assert_eq!(counts(), [2 * COUNT; 2]);
    }
}

/// Each recording beside six processes that flood the socket is compared with one beside six that are equally busy elsewhere.
#[test]
#[ignore = "for its times, on a quiet machine: in `cargo xtask long`"]
fn strangers_cost_no_time() {
    const COUNT: u64 = 10_000_000;
    const ROUNDS: usize = 7;
    let workshop = Workshop::new("door-time");
    let session = pairs(&workshop, COUNT);
    let took = |kinds: &[(&str, usize)]| {
        let _strangers = Strangers::come(kinds);
        std::thread::sleep(Duration::from_millis(300));
        let begun = Instant::now();
        let _ = session.record().well();
        let took = begun.elapsed().as_secs_f64();
        assert_eq!(metric(&session.report(&[])["totals"], "allocations"), 2 * COUNT);
        took
    };
    let kinds = [
        ([("flood", 6)], [("nowhere", 6)]),
        ([("talk", 6)], [("nowhere", 6)]),
        ([("silent", 1)], [("silent", 0)]),
    ];
    for (strangers, as_busy) in kinds {
        let mut best = [f64::MAX; 2];
        for _ in 0..ROUNDS {
            best = [best[0].min(took(&strangers)), best[1].min(took(&as_busy))];
        }
        // The shortest of each: other load on the machine only makes them longer.
        let ratio = best[0] / best[1];
        println!("{strangers:?}: {:.3} s, beside {as_busy:?} {:.3} s: {ratio:.3}", best[0], best[1]);
        assert!(ratio <= 1.05, "{strangers:?}: {best:?}");
    }
}

/// `check` kills a test that exceeds its timeout, even if a foreign process is connected.
#[test]
fn a_silent_stranger_keeps_no_deadline_waiting() {
    use e2e::gate::{Suite, source};
    let suite = Suite::new("door-deadline", &source("pause();"));
    suite.write("mallow.toml", "[gate]\nsuites = [\".\"]\ntimeout = \"500ms\"\n");
    let _strangers = Strangers::come(&[("silent", 1), ("flood", 1)]);
    let begun = Instant::now();
    assert_eq!(suite.only_test(1)["outcome"], "error");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

/// The queues are as short here as a system lets them be. Unlimited, a program would stand still for as long as mallow does.
#[test]
fn a_program_goes_on_where_mallow_stands_still_and_whom_it_did_not_meet_is_counted() {
    const CHILDREN: u64 = 12;
    let workshop = Workshop::new("queue");
    let text = format!(
        "#include <signal.h>\n#include <stdlib.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
         static void pair(void) {{ void *volatile p = malloc(30); free(p); }}\n\
         int main(void) {{\n    pid_t mallow = getppid();\n    pair();\n    kill(mallow, SIGSTOP);\n    usleep(100000);\n\
         \x20   for (int i = 0; i < {CHILDREN}; i++) if (fork() == 0) {{ pair(); _exit(0); }}\n\
         \x20   int status, well = 0;\n    while (wait(&status) > 0) well += status == 0;\n    kill(mallow, SIGCONT);\n    return well == {CHILDREN} ? 3 : 4;\n}}\n"
    );
    let program = build_text(workshop.path(), "queue", &text);
    let trace = workshop.file("trace.mallow");
    let mut shell = run::command("unshare");
    shell.args(["-rn", "sh", "-c", "echo 2 > /proc/sys/net/core/somaxconn && exec \"$0\" record -o \"$@\""]);
    let finished = run::finish(shell.arg(run::mallow_binary()).arg(&trace).arg("--").arg(&program))
        .ended(run::Exit::Status(3));
    let report = e2e::session::json(&e2e::session::report_of(&trace, &[]).well().stdout);
    let met = metric(&report["totals"], "allocations") - 1;
    let sentence = format!("was not recorded (processes: {})", CHILDREN - met);
    assert!(met < CHILDREN && finished.stderr.contains(&sentence), "{met}\n{finished}");
    assert_eq!(report["complete"], false);
}
