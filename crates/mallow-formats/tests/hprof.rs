//! A JVM's dumps compared with what `jcmd` counts in the same JVM, and with retained sizes that were computed by hand.

use super::oracles::run;
use mallow_formats::{Format, open_snapshot};
use mallow_heapsnap::{DominatorTree, EdgeLabel, Graph, ObjectId, Snapshot, Totals};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Objects and bytes by class.
pub(crate) type Histogram = BTreeMap<String, (u64, u64)>;

/// `programs/heap/Sessions.java`, waiting.
struct Jvm {
    child: Child,
    folder: tempfile::TempDir,
}

impl Jvm {
    fn start(options: &[&str]) -> Jvm {
        let folder = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs/heap/Sessions.java");
        run(Command::new("javac").arg("-d").arg(folder.path()).arg(source));
        let mut java = Command::new("java");
        // A compiler thread comes and goes, with its objects.
        java.args(["-Xmx64m", "-XX:+UseG1GC", "-Xint"]).args(options).arg("-cp").arg(folder.path());
        java.arg("Sessions").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = java.spawn().unwrap_or_else(|error| panic!("java cannot be run: {error}"));
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        let jvm = Jvm { child, folder };
        // What cleaners release is gone after the second one.
        jvm.jcmd(&["GC.run"]);
        jvm.jcmd(&["GC.run"]);
        jvm
    }

    fn jcmd(&self, words: &[&str]) -> String {
        run(Command::new("jcmd").arg(self.child.id().to_string()).args(words))
    }

    fn dump(&self, options: &[&str]) -> Snapshot {
        let path = self.folder.path().join("heap.hprof");
        let words = [&["GC.heap_dump", "-all", "-overwrite"], options, &[path.to_str().unwrap()]].concat();
        self.jcmd(&words);
        let (format, snapshot) = open_snapshot(&path).unwrap();
        assert_eq!(format, Format::Hprof);
        assert_eq!(snapshot.warnings, [""; 0]);
        snapshot
    }

    /// Returns what `jcmd` counts.
    fn histogram(&self) -> Histogram {
        counted_by_jvm(&self.jcmd(&["GC.class_histogram", "-all"]))
    }
}

/// Parses the virtual machine's own histogram.
pub(crate) fn counted_by_jvm(page: &str) -> Histogram {
    let mut histogram = Histogram::new();
    for line in page.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [rank, objects, bytes, name, ..] = words[..] else { continue };
        if rank.strip_suffix(':').is_some_and(|rank| rank.parse::<u32>().is_ok()) {
            let sum = histogram.entry(spelt(name)).or_default();
            sum.0 += objects.parse::<u64>().unwrap();
            sum.1 += bytes.parse::<u64>().unwrap();
        }
    }
    assert!(histogram.len() > 100);
    histogram
}

impl Drop for Jvm {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns `int[][]` for `[[I`.
fn spelt(name: &str) -> String {
    let element = name.trim_start_matches('[');
    let dimensions = name.len() - element.len();
    let primitive =
        [("B", "byte"), ("C", "char"), ("D", "double"), ("F", "float"), ("I", "int"), ("J", "long")];
    let primitive = primitive.into_iter().chain([("S", "short"), ("Z", "boolean")]);
    let element = match dimensions {
        0 => element,
        _ => primitive
            .into_iter()
            .find_map(|(letter, name)| (letter == element).then_some(name))
            .unwrap_or_else(|| element.strip_prefix('L').unwrap().strip_suffix(';').unwrap()),
    };
    element.to_owned() + &"[]".repeat(dimensions)
}

pub(crate) fn counted(snapshot: &Snapshot) -> Histogram {
    let graph = &snapshot.graph;
    let totals = Totals::new(graph, &DominatorTree::new(graph));
    let mut histogram = Histogram::new();
    for group in totals.classes {
        let sum = histogram.entry(graph.name(graph.class(group.key).name).to_owned()).or_default();
        sum.0 += group.sum.objects;
        sum.1 += group.sum.bytes;
    }
    histogram
}

/// Returns the classes for which two histograms differ.
fn differences(a: &Histogram, b: &Histogram) -> Vec<String> {
    let classes: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let differs = |class: &&String| a.get(*class) != b.get(*class);
    let told = |class: &String| format!("{class}: {:?} {:?}", a.get(class), b.get(class));
    classes.into_iter().filter(differs).map(told).collect()
}

#[test]
fn counts_and_bytes_of_every_class_are_those_of_jcmd() {
    let layouts: [(&[&str], &str); 4] = [
        (&[], "references of 4 bytes, headers of 12"),
        (&["-XX:-UseCompressedOops"], "references of 8 bytes, headers of 12"),
        (&["-XX:-UseCompressedClassPointers"], "references of 4 bytes, headers of 16"),
        (
            &["-XX:-UseCompressedOops", "-XX:-UseCompressedClassPointers"],
            "references of 8 bytes, headers of 16",
        ),
    ];
    for (options, layout) in layouts {
        // Without the archive: there are objects of its classes that were not loaded, and the dump leaves them out.
        let jvm = Jvm::start(&[options, &["-Xshare:off"]].concat());
        let snapshot = jvm.dump(&[]);
        assert!(snapshot.notes[0].contains(layout), "{options:?}: {:?}", snapshot.notes);
        assert_eq!(differences(&jvm.histogram(), &counted(&snapshot)), [""; 0], "{options:?}");
    }
}

#[test]
fn with_the_archive_only_the_classes_differ() {
    let jvm = Jvm::start(&[]);
    let (counted, histogram) = (counted(&jvm.dump(&["-gz=1"])), jvm.histogram());
    let differences = differences(&histogram, &counted);
    assert!(differences.len() == 1 && differences[0].starts_with("java.lang.Class: "), "{differences:?}");
    assert!(counted["java.lang.Class"].0 < histogram["java.lang.Class"].0);
}

/// Returns what a static field of the program's class refers to.
fn field(graph: &Graph, name: &str) -> ObjectId {
    let class = graph.objects().find(|object| graph.name_of(*object) == Some("Sessions")).unwrap();
    let is_it = |label| matches!(label, Some(EdgeLabel::Name(label)) if graph.name(label) == name);
    graph.edges(class).find(|edge| is_it(edge.label)).unwrap().target
}

#[test]
fn retained_sizes_are_those_that_were_reckoned() {
    let snapshot = Jvm::start(&[]).dump(&[]);
    let graph = &snapshot.graph;
    let tree = DominatorTree::new(graph);
    let retained = |name: &str| tree.retained_bytes(field(graph, name)).unwrap();
    let array = 32 + 2 * 1096;
    let told = ["first", "array", "list", "map", "soft", "weak"].map(retained);
    assert_eq!(told, [3288, array, 128, 256, 5072, 32]);
    let weak = graph.edges(field(graph, "weak")).find(|edge| !edge.holds).unwrap();
    assert_eq!(tree.retained_bytes(weak.target), Some(5032));
    let twins = snapshot.strings.values.iter().find(|value| value.text == "mallow twins").unwrap();
    assert_eq!((twins.strings, twins.bytes, twins.wasted_bytes, twins.is_whole), (5, 280, 224, true));
    let lambda = graph.class(graph.class_of(field(graph, "lambda")));
    assert!(graph.name(lambda.name).starts_with("Sessions$$Lambda$"));
    assert!(graph.name(lambda.name).contains("/0x"));
}
