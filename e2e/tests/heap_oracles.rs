//! Comparison with other readers of the same dumps, which `cargo xtask long` builds: hprof-slurp counts a JVM's
//! objects, reap computes what Ruby's retain.

use crate::heap_speed::{cost, mallow};
use e2e::session::{json, metric};
use e2e::{Workshop, run};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// Returns the path of such a program.
fn judge(name: &str) -> String {
    let judges = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).with_file_name("judges");
    let program = judges.join("programs/bin").join(name);
    assert!(
        program.is_file(),
        "{} is not there; `cargo xtask long --only tests` builds it",
        program.display()
    );
    program.to_string_lossy().into_owned()
}

const MILLIONS: &str = r#"
import java.util.*;
public class Millions {
    record Node(Node next, Object value, long number) {}
    static Map<Integer, String> map = new HashMap<>();
    static List<Node> nodes = new ArrayList<>();
    public static void main(String[] words) throws Exception {
        Random random = new Random(1);
        Node last = null;
        for (int i = 0; i < 2_000_000; i++) {
            map.put(i, "value number " + i);
            last = new Node(random.nextInt(10) == 0 ? null : last, i % 3 == 0 ? new int[random.nextInt(20)] : "text " + i, i);
            nodes.add(last);
        }
        java.lang.management.ManagementFactory.getPlatformMXBean(com.sun.management.HotSpotDiagnosticMXBean.class)
            .dumpHeap(words[0], true);
    }
}
"#;

#[test]
#[ignore = "for its times and its judge: in `cargo xtask long`"]
fn a_jvms_objects_are_counted_as_hprof_slurp_counts_them() {
    let workshop = Workshop::new("heap-slurp");
    let folder = workshop.path();
    fs::write(workshop.file("Millions.java"), MILLIONS).unwrap();
    let _ =
        run::finish(run::command("java").args(["-Xmx4g", "Millions.java", "m.hprof"]).current_dir(folder))
            .well();
    let megabytes = fs::metadata(workshop.file("m.hprof")).unwrap().len() as f64 / 1e6;
    let slurp = judge("hprof-slurp");
    let mut ratios = Vec::new();
    for _ in 0..3 {
        let theirs = cost(
            "hprof-slurp",
            run::command(&slurp).args(["m.hprof", "--json", "-o", "s.json", "-t", "9999"]),
            folder,
        );
        let ours = cost("mallow heap --histogram", &mut mallow(&["m.hprof", "--histogram"]), folder);
        eprintln!("{:.0} MB/s", megabytes / ours.seconds);
        ratios.push(theirs.seconds / ours.seconds);
    }
    eprintln!("{ratios:.2?} times as fast");
    let whole = cost("mallow heap, with what is retained", &mut mallow(&["m.hprof", "--json"]), folder);
    // A class without a name of its own is spelt differently.
    let counts = |rows: &Value, [name, count]: [&str; 2]| {
        let mut counts = BTreeMap::<String, u64>::new();
        for row in rows.as_array().unwrap() {
            let name = row[name].as_str().unwrap().split("$$Lambda").next().unwrap();
            *counts.entry(name.to_owned()).or_default() += metric(row, count);
        }
        counts
    };
    let theirs = json(&fs::read_to_string(workshop.file("s.json")).unwrap());
    let mut theirs = counts(&theirs["heap"]["top_allocated_classes"], ["class_name", "instance_count"]);
    let mut ours = counts(&json(&whole.stdout)["classes"], ["name", "objects"]);
    // Of the classes it counts only those of int and the other primitive types, which a dump has among the instances.
    assert!(ours.remove("java.lang.Class") > theirs.remove("java.lang.Class"));
    assert!(ours["Millions$Node"] == 2_000_000 && ours.len() > 200);
    let differ: Vec<_> = ours.iter().filter(|(name, count)| theirs.get(*name) != Some(count)).collect();
    assert!(
        differ.is_empty() && theirs.len() == ours.len(),
        "{differ:?}, {} and {}",
        theirs.len(),
        ours.len()
    );
}

#[test]
#[ignore = "for its judge: in `cargo xtask long`"]
fn a_ruby_hash_retains_what_reap_says() {
    let workshop = Workshop::new("heap-reap");
    let script = "require 'objspace'\nclass Session; def initialize(i); @data = \"data #{i}\" * 10; @list = [i, \"x#{i}\"]; end; end\n\
        KEPT = {}\n20_000.times { |i| KEPT[i] = Session.new(i) }\nGC.start\n\
        File.open('heap.json', 'w') { |file| ObjectSpace.dump_all(output: file) }\nputs ObjectSpace.dump(KEPT)\n";
    fs::write(workshop.file("dump.rb"), script).unwrap();
    let kept = run::finish(run::command("/usr/bin/ruby").arg("dump.rb").current_dir(workshop.path())).well();
    let address = json(&kept.stdout)["address"].as_str().unwrap().to_owned();
    let reap =
        run::finish(run::command(judge("reap")).args(["heap.json", "-c", "20"]).current_dir(workshop.path()));
    let reap = reap.well().stdout;
    let page =
        run::finish(mallow(&["heap.json", "--object", &address, "--json"]).current_dir(workshop.path()));
    let page = json(&page.well().stdout);
    let objects: u64 = page["retained"].as_array().unwrap().iter().map(|row| metric(row, "objects")).sum();
    let megabytes = metric(&page["object"], "retained_bytes") as f64 / 1e6;
    let line = format!("Hash[{address}][size=20000]: {megabytes:.1} MB ({objects} objects)");
    assert_eq!(objects, 80_001);
    assert!(reap.contains(&line), "{line}\n{reap}");
}
