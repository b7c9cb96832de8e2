//! Programs in network, mount, pid and user namespaces of their own are recorded to the call, with names, by root and by other users.

use e2e::Workshop;
use e2e::program::build_text;
use e2e::run::{self, Exit, Finished};
use e2e::session::{json, metric};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

/// An unprivileged user, if the tests run as root.
const NOBODY: u32 = 65_533;

const CALLS: u64 = 1_000;

/// Returns a program that makes a number of allocations in one line, in itself and in a child. It stays alive for a
/// moment, in which mallow opens its root: if no other process has that root, it is gone when the program exits.
fn source() -> String {
    format!(
        "#include <stdlib.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
         static void *volatile kept[{CALLS}];\n\
         static __attribute__((noinline)) void keep(int at) {{\n    kept[at] = malloc(64);\n}}\n\
         static void work(void) {{\n    for (int at = 0; at < {CALLS}; at++) keep(at);\n}}\n\
         int main(void) {{\n    work();\n    if (fork() == 0) {{\n        work();\n        _exit(0);\n    }}\n    wait(NULL);\n    usleep(500000);\n    return 0;\n}}\n"
    )
}

/// A folder of the user who records, with the program in it.
struct Place {
    workshop: Workshop,
    user: Option<u32>,
}

impl Place {
    fn new(name: &str, user: Option<u32>) -> Place {
        let workshop = Workshop::new(name);
        let _ = build_text(workshop.path(), "app", &source());
        let _ = build_text(workshop.path(), "busy", BUSY);
        std::fs::copy(run::mallow_binary(), workshop.file("mallow")).unwrap();
        std::fs::create_dir(workshop.file("root")).unwrap();
        if let Some(user) = user {
            for file in [workshop.path().to_owned(), workshop.file("root")] {
                chown(file, Some(user), Some(user)).unwrap();
            }
        }
        std::fs::set_permissions(workshop.path(), PermissionsExt::from_mode(0o755)).unwrap();
        Place { workshop, user }
    }

    fn mallow(&self, words: &[&str]) -> Finished {
        let mallow = self.workshop.file("mallow");
        let mut command = match self.user {
            None => run::command(mallow),
            Some(user) => {
                let mut as_user = run::command("setpriv");
                let ids = [format!("--reuid={user}"), format!("--regid={user}")];
                as_user.args(ids).arg("--clear-groups").arg(mallow);
                as_user
            }
        };
        command.args(words).current_dir(self.workshop.path()).env("MALLOW_SYMBOL_CACHE", "");
        run::finish(&mut command).well()
    }

    /// Records a shell script in namespaces, and finds the line of every call of the program.
    #[track_caller]
    fn holds(&self, namespaces: &str, script: &str) {
        let inside = ["unshare", namespaces, "sh", "-c", script];
        let inside: Vec<&str> = inside.into_iter().filter(|word| !word.is_empty()).collect();
        let recorded = self.mallow(&[&["record", "-o", "a.mallow", "--force", "--"][..], &inside].concat());
        let report = self.mallow(&["report", "a.mallow", "--json", "--function", "keep"]);
        let document = json(&report.stdout);
        assert_eq!(
            metric(&document["selected"], "allocations"),
            2 * CALLS,
            "{namespaces}: {recorded}{report}"
        );
        assert_eq!(document["complete"], true, "{namespaces}: {recorded}{report}");
        for site in document["sites"].as_array().unwrap() {
            let frames = site["frames"].as_array().unwrap();
            let names: Vec<&str> = frames.iter().map(|frame| frame["function"].as_str().unwrap()).collect();
            assert!(names.windows(3).any(|part| part == ["keep", "work", "main"]), "{namespaces}: {names:?}");
            let keep = frames.iter().find(|frame| frame["function"] == "keep").unwrap();
            assert_eq!(keep["line"], 6, "{keep}");
        }
    }
}

/// A program that works on a processor, in one line, in itself and in a child, each for longer than mallow needs to see whose files it has.
const BUSY: &str = "#include <sys/wait.h>\n#include <unistd.h>\nstatic volatile long sum;\n\
                    static __attribute__((noinline)) void spin(long turns) {\n    for (; turns; turns--) sum += turns;\n}\n\
                    static __attribute__((noinline)) void work(void) {\n    spin(600000000);\n    sum++;\n}\n\
                    int main(void) {\n    work();\n    if (fork() == 0) {\n        work();\n        _exit(0);\n    }\n    wait(NULL);\n    return 0;\n}\n";

impl Place {
    /// Samples a shell script in namespaces, and finds the functions of the program in nearly all of its samples, with their file.
    #[track_caller]
    fn is_sampled(&self, namespaces: &str, script: &str) {
        let inside = ["unshare", namespaces, "sh", "-c", script];
        let sampled = self.mallow(&[&["cpu", "-o", "a.pb.gz", "--force", "--"][..], &inside].concat());
        let report = self.mallow(&["report", "a.pb.gz", "--json"]);
        let document = json(&report.stdout);
        let samples = |name: &str, column: &str| {
            let functions = document["functions"].as_array().unwrap();
            let of = functions.iter().find(|function| {
                function["function"] == name
                    && function["file"].as_str().is_some_and(|file| file.ends_with("/busy.c"))
            });
            of.map_or(0, |function| metric(&function[column], "samples"))
        };
        let (spin, main) = (samples("spin", "self"), samples("main", "children"));
        assert!(spin > 50, "{namespaces}: {spin} of spin\n{sampled}{report}");
        assert!(
            main >= spin && samples("work", "children") >= spin,
            "{namespaces}: {main} of main\n{sampled}{report}"
        );
    }
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

/// The same of the program that works.
fn of_busy(script: &str) -> String {
    script.replace("cp app", "cp busy")
}

/// Files that only the program sees: a file system of its own at `root`, or below another root, which is gone when the program exits.
const OTHER_FILES: [&str; 2] = [
    "mount -t tmpfs none root && cp app root/own && root/own",
    "mount --rbind / root && mount -t tmpfs none root/mnt && cp app root/mnt/own && /usr/sbin/chroot root /mnt/own",
];

#[test]
fn root_records_programs_in_namespaces_of_their_own() {
    // A user other than root has root's rights only within a user namespace, which is then always tested.
    let also = if is_root() { "" } else { "r" };
    let place = Place::new("namespaces-root", None);
    for namespaces in ["n", "m", "pf", "i", "u", "C", "U", "Ur", "nmpf", "Urnmpf"] {
        place.holds(&format!("-{namespaces}{also}"), "./app");
    }
    for script in OTHER_FILES {
        place.holds(&format!("-mpfn{also}"), script);
    }
}

#[test]
fn an_ordinary_user_records_programs_in_namespaces_of_his_own() {
    let place = Place::new("namespaces-user", is_root().then_some(NOBODY));
    for namespaces in ["U", "Ur", "Urn", "Urm", "Urpf", "Urnmpf"] {
        place.holds(&format!("-{namespaces}"), "./app");
    }
    for script in OTHER_FILES {
        place.holds("-Urmpfn", script);
    }
}

#[test]
fn programs_in_namespaces_of_their_own_are_sampled_with_names() {
    let users = if is_root() { &[None, Some(NOBODY)][..] } else { &[None] };
    for user in users {
        let name = format!("namespaces-cpu-{}", user.unwrap_or_default());
        let place = Place::new(&name, *user);
        let (namespaces, also) = match user {
            None if is_root() => (&["n", "m", "pf", "U", "Urnmpf"][..], ""),
            _ => (&["U", "Urn", "Urm", "Urpf", "Urnmpf"][..], "Ur"),
        };
        for namespaces in namespaces {
            place.is_sampled(&format!("-{namespaces}"), "./busy");
        }
        for script in OTHER_FILES {
            place.is_sampled(&format!("-{also}mpfn"), &of_busy(script));
        }
    }
}

/// A script's lines are read where its process can open mallow's memory, whatever numbers it has for itself.
#[test]
fn lines_of_a_script_in_namespaces_are_sampled() {
    if !is_root() {
        return;
    }
    let place = Place::new("namespaces-script", None);
    let script = "def spin():\n    total = 0\n    for turn in range(9000000): total += turn\n\nspin()\n";
    std::fs::write(place.workshop.file("spin.py"), script).unwrap();
    for namespaces in ["-n", "-m", "-pf", "-nmpf"] {
        let words =
            ["cpu", "-o", "a.pb.gz", "--force", "--", "unshare", namespaces, "/usr/bin/python3", "spin.py"];
        let sampled = place.mallow(&words);
        let report = place.mallow(&["report", "a.pb.gz", "--json"]);
        let document = json(&report.stdout);
        let functions = document["functions"].as_array().unwrap();
        let spin = functions.iter().find(|function| function["function"] == "spin");
        let samples = spin.map_or(0, |spin| metric(&spin["children"], "samples"));
        assert!(samples > 50, "{namespaces}: {samples} of spin\n{sampled}{report}");
    }
}

/// A program of the same name in another root is another program: its names are its own, or none.
#[test]
fn the_file_outside_is_not_taken_for_the_one_inside() {
    let place = Place::new("namespaces-other", None);
    let other = source().replace("keep", "other").replace("kept[at]", "kept[at] ");
    let _ = build_text(place.workshop.path(), "own", &other);
    let also = if is_root() { "-m" } else { "-rm" };
    // Inside, another program is at the path of the one outside.
    place.holds(also, "mount --bind app own && ./own");
    assert!(Path::new(&place.workshop.file("own")).exists());
}

/// What `/proc` says of process 7 is of another one than our process 7 there, and so is the memory that a static program's recorder would be written to.
#[test]
fn where_proc_is_of_other_processes_none_is_watched() {
    let place = Place::new("other-proc", None);
    let mallow = place.workshop.file("mallow");
    let mallow = mallow.to_string_lossy();
    let url = "http://127.0.0.1:9/";
    let refused: [(&[&str], i32); 8] = [
        (&["record", "./app"], 125),
        (&["stat", "./app"], 125),
        (&["cpu", "./app"], 125),
        (&["cpu", "--pid", "7"], 125),
        (&["check", "."], 2),
        (&["bench", "./app"], 2),
        (&["soak", "--url", url, "--pid", "7"], 2),
        (&["heap", "capture", "7"], 2),
    ];
    let within = |own_proc: bool, words: &[&str]| {
        let mut command = run::command("unshare");
        command.args(["-r", "--pid", "--fork"]).args(own_proc.then_some("--mount-proc"));
        run::finish(command.arg(&*mallow).args(words).current_dir(place.workshop.path()))
    };
    for (words, code) in refused {
        let finished = within(false, words).ended(Exit::Status(code));
        assert!(finished.stderr.contains("mount the own one: unshare"), "{finished}");
    }
    let recorded = within(true, &["record", "-o", "a.mallow", "./app"]).ended(Exit::Status(0));
    assert!(!recorded.stderr.contains("warning"), "{recorded}");
    // What reads files alone goes on.
    assert_eq!(within(false, &["report", "--json", "a.mallow"]).exit, Exit::Status(0));
}
