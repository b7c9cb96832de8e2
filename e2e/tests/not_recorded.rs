//! What was not recorded is named: every process that a recorded one starts, and that the library cannot or must not be loaded into.

use e2e::program::{build_text, build_text_with};
use e2e::run::{self, Exit, Finished};
use e2e::{Session, Workshop};
use serde_json::Value;
use std::path::Path;

const CHILD: &str = "#include <stdlib.h>\n#include <stdio.h>\n\
    int main(void) { void *volatile block = malloc(100); free(block); puts(\"ran\"); return 3; }\n";

/// Builds the child with additional flags.
fn child(workshop: &Workshop, name: &str, flags: &[&str]) -> String {
    let source = workshop.file("child.c");
    std::fs::write(&source, CHILD).unwrap();
    let program = workshop.file(name);
    let mut cc = run::command("cc");
    let _ = run::finish(cc.args(["-O1", "-o"]).arg(&program).arg(&source).args(flags)).well();
    program.to_string_lossy().into_owned()
}

fn shell(workshop: &Workshop, script: &str) -> Session {
    Session::new(workshop.path(), &["/bin/sh", "-c", script])
}

/// Runs the command bare, under `record` and under `stat`: it behaves the same, and both print the same about it. Returns what they print.
#[track_caller]
fn told(session: &Session) -> Vec<String> {
    let bare = session.bare();
    let recorded = session.record();
    let report = session.report(&[]);
    let (counted, stat) = session.stat();
    for observed in [&recorded, &counted] {
        assert_eq!((observed.exit, &observed.stdout), (bare.exit, &bare.stdout), "{observed}\n{bare}");
        assert!(
            !observed.stderr.contains("ld.so") && !observed.stderr.contains("ASan runtime"),
            "{observed}"
        );
    }
    let warnings = strings(&report["warnings"]);
    assert_eq!(without_pids(&warnings), without_pids(&strings(&stat["warnings"])), "{stat:#}");
    for (document, finished) in [(&report, &recorded), (&stat, &counted)] {
        assert_eq!(document["complete"], document["warnings"] == Value::from([""; 0]), "{document:#}");
        assert!(warnings.len() == count(finished), "{finished}\n{warnings:#?}");
    }
    warnings
}

fn count(finished: &Finished) -> usize {
    finished.stderr.lines().filter(|line| line.contains("not recorded")).count()
}

fn strings(list: &Value) -> Vec<String> {
    let texts = list.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned());
    // Programs of the system are stripped, which is reported too.
    texts.filter(|text| text.contains("recorded")).collect()
}

fn without_pids(sentences: &[String]) -> Vec<String> {
    sentences.iter().map(|text| text.chars().filter(|c| !c.is_ascii_digit()).collect()).collect()
}

#[track_caller]
fn named(sentences: &[String], program: &str, reason: &str) {
    let is_it = |text: &&String| text.contains(&format!("({program})")) && text.contains(reason);
    assert_eq!(sentences.iter().filter(is_it).count(), 1, "{program}: {reason}: {sentences:#?}");
}

#[test]
fn children_that_the_library_cannot_enter_are_named_each_with_its_reason() {
    let workshop = Workshop::new("children");
    let plain = child(&workshop, "plain", &[]);
    let fixed = child(&workshop, "fixed", &["-static"]);
    let small = child(&workshop, "small", &["-m32"]);
    let address = child(&workshop, "address", &["-fsanitize=address"]);
    let script = format!("{plain}; {fixed}; {small}; {address}; env -i {plain}; exit 0");
    let sentences = told(&shell(&workshop, &script));
    named(&sentences, &fixed, "it is a static program");
    named(&sentences, &small, "it is not a 64-bit x86 program");
    named(&sentences, &address, "it is built with a sanitizer");
    named(&sentences, &plain, "it was started with an environment that does not hold LD_PRELOAD");
    assert_eq!(sentences.len(), 4, "{sentences:#?}");
}

/// Only root gives a file capabilities, and root itself needs none: the loader ignores the library for another user.
#[test]
fn a_program_with_capabilities_is_named_as_one() {
    let workshop = Workshop::new("capabilities");
    let plain = child(&workshop, "plain", &[]);
    std::fs::set_permissions(workshop.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    // Of revision 2, effective: CAP_NET_RAW.
    let capabilities = [0x0200_0001_u32, 1 << 13, 0, 0, 0].map(u32::to_le_bytes).concat();
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(plain.as_str(), "security.capability", &capabilities, flags).unwrap();
    let script = format!("setpriv --reuid=65534 --regid=65534 --clear-groups {plain}; exit 0");
    let sentences = told(&shell(&workshop, &script));
    named(&sentences, &plain, "it is setuid, setgid or has file capabilities");
    assert_eq!(sentences.len(), 1, "{sentences:#?}");
}

/// `system` and `popen` start a shell inside of libc, with an environment that the program has changed.
#[test]
fn shells_that_libc_starts_without_the_library_are_named() {
    let workshop = Workshop::new("shells");
    let text = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int count, char **words) {
    if (count < 3) return 8;
    if (!strcmp(words[1], "cleared")) clearenv();
    if (!strcmp(words[1], "replaced")) setenv("LD_PRELOAD", "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2", 1);
    for (int i = 0; i < 3; i++) {
        if (strcmp(words[2], "popen")) { if (system("exit 3") >> 8 != 3) return 9; }
        else { FILE *shell = popen("exit 3", "r"); if (!shell || pclose(shell) >> 8 != 3) return 9; }
    }
    return 3;
}
"#;
    let program = build_text(workshop.path(), "shells", text);
    for (environment, is_named) in [("cleared", true), ("replaced", true), ("kept", false)] {
        for way in ["system", "popen"] {
            let session = Session::new(workshop.path(), &[&program.to_string_lossy(), environment, way]);
            let said = told(&session);
            let sentence = "3 processes (/bin/sh) were not recorded: it was started with an environment that does not hold LD_PRELOAD and \
                            MALLOW_SESSION as mallow set them";
            assert_eq!(said, vec![sentence; usize::from(is_named)], "{environment}, {way}");
        }
    }
}

/// A program that the library must not be loaded into has what the user preloads, however long the list.
#[test]
fn what_else_is_preloaded_reaches_a_program_without_the_library() {
    let workshop = Workshop::new("preloads");
    let text = "#include <stdio.h>\n#include <stdlib.h>\nint main(void) { puts(getenv(\"LD_PRELOAD\") ? getenv(\"LD_PRELOAD\") : \"none\"); return 3; }\n";
    let program = build_text_with(workshop.path(), "address", text, &["-fsanitize=address"]);
    let other = build_text_with(workshop.path(), "other.so", "int other = 1;\n", &["-shared", "-fPIC"]);
    for count in [0, 1, 3, 40] {
        let list = vec![&*other.to_string_lossy(); count].join(":");
        let session = shell(&workshop, &format!("{}; exit 0", program.display()));
        let session = session.env("ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0");
        let session = if count > 0 { session.env("LD_PRELOAD", &list) } else { session };
        let bare = session.bare();
        assert!(bare.stdout.trim() == if count > 0 { &list } else { "none" }, "{bare}");
        named(&told(&session), &program.to_string_lossy(), "it is built with a sanitizer");
    }
}

#[test]
fn who_starts_programs_in_other_ways_is_noticed_too() {
    let workshop = Workshop::new("ways");
    let fixed = child(&workshop, "fixed", &["-static"]);
    // Each way fails first where there is nothing to start.
    let text = format!(
        "#define _GNU_SOURCE\n#include <fcntl.h>\n#include <spawn.h>\n#include <sys/syscall.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
         extern char **environ;\nstatic void go(int way, const char *path, char **words) {{\n\
         \x20   if (way == 0) execv(path, words);\n    if (way == 1) execvp(path, words);\n\
         \x20   if (way == 2) execvpe(path, words, environ);\n    if (way == 3 || way == 4) execve(path, words, environ);\n\
         \x20   if (way == 7) execl(path, \"1\", (char *)0);\n    if (way == 8) execl(path, \"1\", \"2\", \"3\", \"4\", \"5\", \"6\", \"7\", (char *)0);\n\
         \x20   if (way == 9) execlp(path, \"1\", (char *)0);\n    if (way == 10) execle(path, \"1\", (char *)0, environ);\n\
         \x20   if (way == 11) fexecve(open(path, O_RDONLY | O_CLOEXEC), words, environ);\n\
         \x20   if (way == 12) execveat(AT_FDCWD, path, words, environ, 0);\n\
         \x20   if (way == 13) execveat(open(path, O_PATH), \"\", words, environ, AT_EMPTY_PATH);\n\
         \x20   if (way == 14) syscall(SYS_execve, path, words, environ);\n\
         \x20   if (way == 15) syscall(SYS_execveat, AT_FDCWD, path, words, environ, 0);\n    if (way == 16) execl(path, \"1\", (char *)0);\n\
         }}\nint main(void) {{\n    char *words[] = {{\"{fixed}\", NULL}};\n    for (volatile int way = 0; way < 17; way++) {{\n        pid_t pid = 0;\n\
         \x20       if (way == 5) posix_spawn(&pid, words[0], NULL, NULL, words, environ);\n\
         \x20       else if (way == 6) posix_spawnp(NULL, words[0], NULL, NULL, words, environ);\n\
         \x20       else if ((pid = way == 4 || way == 16 ? vfork() : fork()) == 0) {{\n\
         \x20           go(way, \"/no/such/program\", words);\n            go(way, words[0], words);\n            _exit(9);\n\
         \x20       }}\n        wait(NULL);\n    }}\n    return 0;\n}}\n"
    );
    let program = build_text(workshop.path(), "ways", &text);
    let sentences = told(&Session::new(workshop.path(), &[&program.to_string_lossy()]));
    assert_eq!(sentences.len(), 1, "{sentences:#?}");
    assert!(sentences[0].starts_with(&format!("17 processes ({fixed}, the first was ")), "{sentences:#?}");
}

/// A program that takes its own place, each time with one word more: they lie in registers, and from the sixth on the stack.
#[test]
fn words_and_environments_arrive_however_a_program_is_started() {
    let workshop = Workshop::new("words");
    let calls: String = (0..10)
        .map(|count| {
            let words: String = (0..count).map(|word| format!("\"w{word}\", ")).collect();
            format!(
                "    if (count == {count} + 1) {{ execle(\"/no/such/program\", \"x\", {words}(char *)0, own);\n        if (errno != ENOENT) return 4;\n\
                 \x20       if (round == 1) execl(path, \"2\", {words}(char *)0);\n        if (round == 2) execlp(path, \"3\", {words}(char *)0);\n\
                 \x20       if (round == 3) execle(path, \"1\", {words}\"more\", (char *)0, own); }}\n"
            )
        })
        .collect();
    let text = format!(
        "#define _GNU_SOURCE\n#include <errno.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\nextern char **environ;\n\
         int main(int count, char **words) {{\n    static char path[4096], *own[1000];\n    path[readlink(\"/proc/self/exe\", path, 4095)] = 0;\n\
         \x20   int round = atoi(words[0]), at = 0;\n    if (!round) {{ round = 1; setenv(\"TURN\", \"0\", 1); }}\n    for (; environ[at]; at++) own[at] = environ[at];\n\
         \x20   own[at] = count == 1 ? \"NEW=1\" : count == 2 ? \"NEW=2\" : \"NEW=3\";\n\
         \x20   printf(\"%d %s\", count, getenv(\"NEW\") ? getenv(\"NEW\") : \"-\");\n    for (int i = 0; i < count; i++) printf(\" %s\", words[i]);\n\
         \x20   puts(\"\");\n    fflush(stdout);\n{calls}    return count == 11 ? 3 : 5;\n}}\n"
    );
    for flags in [&[][..], &["-static"]] {
        let name = format!("words{}", flags.len());
        let program = build_text_with(workshop.path(), &name, &text, flags);
        let session = Session::new(workshop.path(), &[&program.to_string_lossy()]);
        let bare = session.bare();
        assert_eq!((bare.exit, bare.stdout.lines().count()), (Exit::Status(3), 31), "{bare}");
        // A static program is recorded where mallow starts it itself.
        let sentences = told(&session);
        assert_eq!(sentences.len(), flags.len(), "{sentences:#?}");
    }
}

/// Bare programs run there, so their stderr must not mention a library that cannot be loaded.
#[test]
fn limits_and_namespaces_are_named() {
    let workshop = Workshop::new("limits");
    let plain = child(&workshop, "plain", &[]);
    let sentences =
        told(&shell(&workshop, &format!("(ulimit -v 30000; {plain}); (ulimit -f 10; {plain}); exit 0")));
    assert!(sentences.iter().all(|text| text.contains("a limit on memory")), "{sentences:#?}");
    assert!(!sentences.is_empty(), "{sentences:#?}");
    // The socket is a file, which is the same in another network namespace.
    assert_eq!(told(&shell(&workshop, &format!("unshare -rn {plain}; exit 0"))), [""; 0]);

    let text = "#define _GNU_SOURCE\n#include <sched.h>\n#include <stdlib.h>\n#include <sys/mount.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
                int main(void) {\n    if (fork() == 0) { if (unshare(CLONE_NEWNET | CLONE_NEWNS) || mount(\"none\", \"/tmp\", \"tmpfs\", 0, 0)) _exit(1); void *volatile block = malloc(10); free(block); _exit(0); }\n\
                \x20   wait(NULL);\n    return 0;\n}\n";
    let program = build_text(workshop.path(), "forks", text);
    // The user namespace grants the right to users other than root.
    let sentences = told(&Session::new(workshop.path(), &["unshare", "-r", &program.to_string_lossy()]));
    assert!(sentences.len() == 1 && sentences[0].contains("could not reach mallow"), "{sentences:#?}");

    let hidden = "unshare -rm sh -c 'mount -t tmpfs none /tmp; cd /; /bin/echo ran'; exit 0";
    let sentences = told(&shell(&workshop, hidden));
    named(&sentences, "/bin/echo", "mallow's library is not to be found or not to be opened");
}

/// A library in a namespace of its own has a C library of its own, in front of which nothing was loaded. What it calls in the program is recorded.
#[test]
fn libraries_in_namespaces_of_their_own_are_spoken_of() {
    let workshop = Workshop::new("dlmopen");
    let text = "#include <stdlib.h>\nunsigned la_version(unsigned version) { return version; }\n\
                void both(void *(*outside)(int)) { void *volatile in = malloc(33); void *volatile out = outside(77); free(in), free(out); }\n";
    let library = build_text_with(workshop.path(), "inner.so", text, &["-shared", "-fPIC"]);
    let library = library.to_string_lossy();
    let text = format!(
        "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stdlib.h>\nstatic void *outside(int bytes) {{ void *volatile block = malloc(bytes); return block; }}\n\
         int main(int count, char **words) {{\n    (void)words;\n    if (count > 1) return 0;\n    void *inner = dlmopen(LM_ID_NEWLM, \"{library}\", RTLD_NOW);\n    if (!inner) return 9;\n\
         \x20   void (*both)(void *(*)(int)) = (void (*)(void *(*)(int)))dlsym(inner, \"both\");\n\
         \x20   for (int i = 0; i < 10; i++) both(outside);\n    return 0;\n}}\n"
    );
    let program = build_text(workshop.path(), "outer", &text);
    let program = program.to_string_lossy();
    let sentence = "it has libraries in a namespace of their own (dlmopen, LD_AUDIT)";
    let session = Session::new(workshop.path(), &[&program]);
    assert_eq!(session.bare().exit, Exit::Status(0));
    let sentences = |session: &Session| {
        let document = session.report(&[]);
        let stat = session.stat().1;
        [document, stat].map(|document| document["warnings"].to_string().matches(sentence).count())
    };
    let _ = session.record();
    let sites = session.report(&[])["sites"].to_string();
    assert!(sites.contains("\"function\":\"outside\""), "no stack goes through the namespace");
    assert_eq!(sentences(&session), [1, 1]);
    let audit = format!("LD_AUDIT={library}");
    for (words, count) in [(&["env", &audit, &program, "1"][..], 1), (&[&program, "1"], 0)] {
        let session = Session::new(workshop.path(), words);
        let _ = session.record();
        assert_eq!(sentences(&session), [count; 2]);
    }
}

/// Landlock forbids to open the library, and `/proc` too, which `access` does not know of.
#[test]
fn behind_landlock_children_are_named_and_nothing_complains() {
    let workshop = Workshop::new("landlock");
    let plain = child(&workshop, "plain", &[]);
    let text = format!(
        "#define _GNU_SOURCE\n#include <fcntl.h>\n#include <linux/landlock.h>\n#include <stdlib.h>\n#include <sys/prctl.h>\n#include <sys/syscall.h>\n\
         #include <sys/wait.h>\n#include <unistd.h>\nstatic int rules;\nstatic void allow(const char *folder) {{\n    struct landlock_path_beneath_attr it = {{0}};\n\
         \x20   it.allowed_access = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;\n\
         \x20   if ((it.parent_fd = open(folder, O_PATH)) >= 0 && syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &it, 0)) _exit(5);\n}}\n\
         int main(void) {{\n    struct landlock_ruleset_attr all = {{.handled_access_fs = (1 << 13) - 1}};\n\
         \x20   rules = syscall(SYS_landlock_create_ruleset, &all, sizeof all.handled_access_fs, 0);\n    if (rules < 0) return 4;\n\
         \x20   allow(\"/usr\"), allow(\"/lib\"), allow(\"/lib64\"), allow(\"{}\");\n\
         \x20   if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_landlock_restrict_self, rules, 0)) return 6;\n\
         \x20   for (int i = 0; i < 10; i++) free(malloc(100 + i));\n\
         \x20   if (fork() == 0) {{ void *volatile block = malloc(10); free(block); _exit(0); }}\n    wait(NULL);\n\
         \x20   if (fork() == 0) {{ execl(\"{plain}\", \"plain\", (char *)0); _exit(7); }}\n    wait(NULL);\n    return 0;\n}}\n",
        workshop.path().display()
    );
    let program = build_text_with(workshop.path(), "sandboxed", &text, &["-fno-builtin"]);
    let session = Session::new(workshop.path(), &[&program.to_string_lossy()]);
    let sentences = told(&session);
    named(&sentences, &plain, "mallow's library is not to be found or not to be opened");
    assert_eq!(sentences.len(), 1, "{sentences:#?}");
    let document = session.report(&[]);
    let processes = document["processes"].as_array().unwrap();
    let command = program.to_string_lossy().into_owned();
    // Stat says so too.
    let (_, stat) = session.stat();
    assert!(!stat["runs"][0]["processes"].to_string().contains("\"command\":\"\""), "{stat:#}");
    let counts: Vec<(&Value, &Value)> =
        processes.iter().map(|process| (&process["command"], &process["totals"]["allocations"])).collect();
    assert_eq!(
        counts,
        [(&Value::from(&*command), &Value::from(10)), (&Value::from(&*command), &Value::from(1))]
    );
}

#[test]
fn what_runs_recorded_is_not_spoken_of() {
    let workshop = Workshop::new("recorded");
    let plain = child(&workshop, "plain", &[]);
    let script = format!(
        "{plain}; {plain} | cat; exec env sh -c 'no-such-program; {plain}; python3 -c \"import subprocess; subprocess.run([\\\"{plain}\\\"])\"; exit 0'"
    );
    assert_eq!(told(&shell(&workshop, &script)), [""; 0]);
    assert!(Path::new(&plain).exists());
}
