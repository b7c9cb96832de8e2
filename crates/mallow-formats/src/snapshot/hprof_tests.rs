//! Dumps written by hand: both widths of ids, Android's tags, every kind of damage.

use super::records::{BYTE, CHAR, INT, LONG, OBJECT};
use crate::source::Source;
use crate::{Format, read_snapshot_as};
use mallow_heapsnap::{DominatorTree, EdgeLabel, Graph, Histogram, ObjectId, Snapshot, Sum};

/// Writes a dump.
struct Dump {
    bytes: Vec<u8>,
    id_bytes: usize,
}

/// Ids of names.
const NAMES: [&str; 16] = [
    "java/lang/Object",
    "java/lang/String",
    "value",
    "coder",
    "java/lang/ref/Reference",
    "referent",
    "java/lang/ref/WeakReference",
    "java/lang/ref/SoftReference",
    "com/example/Session",
    "next",
    "[Lcom/example/Session;",
    "[B",
    "java/lang/Class",
    "cache",
    "Session.java",
    "[C",
];
const OBJECT_CLASS: u64 = 0x100;
const STRING: u64 = 0x110;
const REFERENCE: u64 = 0x120;
const WEAK: u64 = 0x130;
const SOFT: u64 = 0x140;
const SESSION: u64 = 0x150;
const SESSIONS: u64 = 0x160;
const BYTES: u64 = 0x170;
const CLASS: u64 = 0x180;

impl Dump {
    fn new(version: &str, id_bytes: usize) -> Dump {
        let mut dump = Dump { bytes: Vec::new(), id_bytes };
        dump.bytes.extend(format!("JAVA PROFILE {version}\0").bytes());
        dump.u4(id_bytes as u32);
        dump.bytes.extend(1_700_000_000_000u64.to_be_bytes());
        dump
    }

    fn u4(&mut self, value: u32) {
        self.bytes.extend(value.to_be_bytes());
    }

    fn u2(&mut self, value: u16) {
        self.bytes.extend(value.to_be_bytes());
    }

    fn id(&mut self, id: u64) {
        self.bytes.extend(&id.to_be_bytes()[8 - self.id_bytes..]);
    }

    fn record(&mut self, tag: u8, body: impl FnOnce(&mut Dump)) {
        let mut inner = Dump { bytes: Vec::new(), id_bytes: self.id_bytes };
        body(&mut inner);
        self.bytes.push(tag);
        self.u4(0);
        self.u4(inner.bytes.len() as u32);
        self.bytes.extend(inner.bytes);
    }

    fn name(text: &str) -> u64 {
        1 + NAMES.iter().position(|name| *name == text).unwrap() as u64
    }

    fn names(&mut self) {
        for name in NAMES {
            self.record(0x01, |dump| {
                dump.id(Dump::name(name));
                dump.bytes.extend(name.bytes());
            });
        }
    }

    fn load(&mut self, serial: u32, class: u64, name: &str) {
        self.record(0x02, |dump| {
            dump.u4(serial);
            dump.id(class);
            dump.u4(0);
            dump.id(Dump::name(name));
        });
    }

    fn loads(&mut self) {
        let classes = [
            (OBJECT_CLASS, "java/lang/Object"),
            (STRING, "java/lang/String"),
            (REFERENCE, "java/lang/ref/Reference"),
            (WEAK, "java/lang/ref/WeakReference"),
            (SOFT, "java/lang/ref/SoftReference"),
            (SESSION, "com/example/Session"),
            (SESSIONS, "[Lcom/example/Session;"),
            (BYTES, "[B"),
            (CLASS, "java/lang/Class"),
        ];
        (1..).zip(classes).for_each(|(serial, (class, name))| self.load(serial, class, name));
    }

    fn class(&mut self, id: u64, above: u64, statics: &[(&str, u64)], fields: &[(&str, u8)]) {
        self.bytes.push(0x20);
        self.id(id);
        self.u4(0);
        self.id(above);
        (0..5).for_each(|_| self.id(0));
        self.u4(24);
        self.u2(0);
        self.u2(statics.len() as u16);
        for (name, value) in statics {
            self.id(Dump::name(name));
            self.bytes.push(OBJECT);
            self.id(*value);
        }
        self.u2(fields.len() as u16);
        for (name, kind) in fields {
            self.id(Dump::name(name));
            self.bytes.push(*kind);
        }
    }

    fn classes(&mut self) {
        self.class(OBJECT_CLASS, 0, &[], &[]);
        self.class(STRING, OBJECT_CLASS, &[], &[("value", OBJECT), ("coder", BYTE)]);
        self.class(REFERENCE, OBJECT_CLASS, &[], &[("referent", OBJECT), ("next", OBJECT)]);
        self.class(WEAK, REFERENCE, &[], &[]);
        self.class(SOFT, REFERENCE, &[], &[]);
        self.class(
            SESSION,
            OBJECT_CLASS,
            &[("cache", 0x1000)],
            &[("next", OBJECT), ("coder", INT), ("value", LONG)],
        );
        self.class(SESSIONS, OBJECT_CLASS, &[], &[]);
    }

    fn instance(&mut self, id: u64, class: u64, fields: impl FnOnce(&mut Dump)) {
        self.instance_of_trace(id, class, 0, fields);
    }

    fn instance_of_trace(&mut self, id: u64, class: u64, trace: u32, fields: impl FnOnce(&mut Dump)) {
        let mut inner = Dump { bytes: Vec::new(), id_bytes: self.id_bytes };
        fields(&mut inner);
        self.bytes.push(0x21);
        self.id(id);
        self.u4(trace);
        self.id(class);
        self.u4(inner.bytes.len() as u32);
        self.bytes.extend(inner.bytes);
    }

    fn session(&mut self, id: u64, next: u64) {
        self.instance(id, SESSION, |dump| {
            dump.id(next);
            dump.u4(7);
            dump.bytes.extend(9u64.to_be_bytes());
        });
    }

    fn reference(&mut self, id: u64, class: u64, referent: u64) {
        self.instance(id, class, |dump| {
            dump.id(referent);
            dump.id(0);
        });
    }

    fn objects(&mut self, id: u64, elements: &[u64]) {
        self.bytes.push(0x22);
        self.id(id);
        self.u4(0);
        self.u4(elements.len() as u32);
        self.id(SESSIONS);
        elements.iter().for_each(|element| self.id(*element));
    }

    fn values(&mut self, id: u64, kind: u8, len: u32, bytes: &[u8]) {
        self.bytes.push(0x23);
        self.id(id);
        self.u4(0);
        self.u4(len);
        self.bytes.push(kind);
        self.bytes.extend(bytes);
    }

    fn string(&mut self, id: u64, value: u64, coder: u8) {
        self.instance(id, STRING, |dump| {
            dump.id(value);
            dump.bytes.push(coder);
        });
    }

    fn root(&mut self, tag: u8, object: u64, rest: usize) {
        self.bytes.push(tag);
        self.id(object);
        self.bytes.extend(std::iter::repeat_n(0, rest));
    }

    fn read(&self) -> Snapshot {
        read_snapshot_as(&self.bytes, Format::Hprof).unwrap()
    }
}

/// Returns a dump with everything that the tests below check.
fn whole(id_bytes: usize) -> Dump {
    let mut dump = Dump::new("1.0.2", id_bytes);
    dump.names();
    dump.loads();
    dump.record(0x1c, |dump| {
        // Instances before their classes.
        dump.session(0x1000, 0x1020);
        dump.session(0x1020, 0x1040);
        dump.session(0x1040, 0);
        dump.reference(0x2000, WEAK, 0x1040);
        dump.reference(0x2020, SOFT, 0x2040);
        dump.session(0x2040, 0xdead0);
    });
    dump.record(0x1c, |dump| {
        dump.classes();
        dump.class(SESSION, OBJECT_CLASS, &[], &[]);
        dump.objects(0x3000, &[0x1000, 0, 0x2000, 0x2020]);
        dump.string(0x4000, 0x4100, 0);
        dump.string(0x4020, 0x4120, 0);
        dump.string(0x4040, 0x4140, 1);
        dump.string(0x4060, 0x4160, 1);
        dump.values(0x4100, BYTE, 3, b"abc");
        dump.values(0x4120, BYTE, 3, b"abc");
        dump.values(0x4140, BYTE, 4, &[0x3d, 0xd8, 0x00, 0xde]);
        dump.values(0x4160, BYTE, 4, &[0x3d, 0xd8, 0x00, 0xde]);
        dump.root(0x03, 0x3000, 8);
        dump.root(0x03, 0x3000, 8);
        dump.root(0x05, SESSION, 0);
        dump.root(0x01, 0x4000, dump.id_bytes);
        dump.root(0x08, 0xdead8, 8);
    });
    dump.record(0x2c, |_| {});
    dump
}

fn object(graph: &Graph, id: u64) -> ObjectId {
    graph.find(id).unwrap()
}

/// Returns the roots in the file.
fn roots(graph: &Graph) -> Vec<(&str, u64)> {
    let roots = graph.roots().iter().map(|root| (graph.name(root.name), graph.id(root.object)));
    roots.filter(|(name, _)| *name != "boot loader's class").collect()
}

/// Returns the targets and labels of an object's references, with `~` for those that do not retain.
fn edges(graph: &Graph, id: u64) -> Vec<String> {
    let edge = |edge: mallow_heapsnap::Edge| {
        let label = match edge.label {
            Some(EdgeLabel::Name(name)) => graph.name(name).to_owned(),
            Some(EdgeLabel::Element(index)) => format!("[{index}]"),
            None => String::new(),
        };
        format!("{}{label} {:x}", if edge.holds { "" } else { "~" }, graph.id(edge.target))
    };
    graph.edges(object(graph, id)).map(edge).collect()
}

#[test]
fn objects_have_classes_references_and_roots() {
    for id_bytes in [4, 8] {
        let Snapshot { graph, warnings, notes, .. } = whole(id_bytes).read();
        let class = |id| graph.class(graph.class_of(object(&graph, id)));
        let class_name = |id| (graph.name(class(id).kind.0), graph.name(class(id).name));
        assert_eq!(class_name(0x1000), ("instance", "com.example.Session"));
        assert_eq!(class_name(0x3000), ("object array", "com.example.Session[]"));
        assert_eq!(class_name(0x4100), ("primitive array", "byte[]"));
        assert_eq!(class_name(SESSION), ("class", "java.lang.Class"));
        assert_eq!(graph.name_of(object(&graph, SESSION)), Some("com.example.Session"));
        assert_eq!(graph.class_object_of(object(&graph, 0x1000)), graph.find(SESSION));

        assert_eq!(edges(&graph, 0x1000), ["next 1020"]);
        assert_eq!(edges(&graph, 0x1040), [""; 0]);
        assert_eq!(edges(&graph, 0x2000), ["~referent 1040"]);
        assert_eq!(edges(&graph, 0x2020), ["referent 2040"]);
        assert_eq!(edges(&graph, 0x3000), ["[0] 1000", "[2] 2000", "[3] 2020"]);
        assert_eq!(edges(&graph, SESSION), ["<super class> 100", "cache 1000"]);

        let roots = roots(&graph);
        assert_eq!(roots, [("JNI global", 0x4000), ("Java frame", 0x3000), ("sticky class", SESSION)]);
        assert_eq!(warnings, ["1 root names an address at which the file has no object."]);
        assert!(notes.iter().any(|note| note.starts_with("1 reference leads to objects")), "{notes:?}");

        // Header, reference, int, long: 12 + 4 + 4 + 8, or 8 + 4 + 4 + 8.
        let size = |id| graph.size_bytes(object(&graph, id));
        let (session, array, bytes) = if id_bytes == 4 { (24, 32, 16) } else { (32, 32, 24) };
        assert_eq!((size(0x1000), size(0x3000), size(0x4100)), (session, array, bytes));
        let tree = DominatorTree::new(&graph);
        // The first session is held by a class, too; the softly referenced one only by its reference.
        assert_eq!(tree.retained_bytes(object(&graph, 0x1000)), Some(3 * session));
        assert_eq!(tree.retained_bytes(object(&graph, 0x2020)), Some(size(0x2020) + session));
        assert!(!tree.is_reachable(object(&graph, 0x4020)));
    }
}

#[test]
fn equal_strings_are_told() {
    let strings = whole(8).read().strings;
    let told: Vec<_> =
        strings.values.iter().map(|it| (it.text.as_str(), it.strings, it.bytes, it.wasted_bytes)).collect();
    assert_eq!(told, [("abc", 2, 96, 48), ("\u{1f600}", 2, 96, 48)]);
    assert_eq!(strings.uncompared, 0);

    // Before JDK 9: characters, and no coder.
    let mut dump = Dump::new("1.0.1", 4);
    dump.names();
    dump.loads();
    dump.record(0x0c, |dump| {
        dump.class(OBJECT_CLASS, 0, &[], &[]);
        dump.class(STRING, OBJECT_CLASS, &[], &[("value", OBJECT)]);
        let long = [0u8, b'x'].repeat(81);
        for at in 0..2 {
            dump.instance(0x1000 + 16 * at, STRING, |dump| dump.id(0x2000 + 16 * at));
            dump.values(0x2000 + 16 * at, CHAR, 81, &long);
        }
        dump.instance(0x1020, STRING, |dump| dump.id(0x9990));
    });
    let strings = dump.read().strings;
    let value = &strings.values[0];
    assert_eq!((value.text.as_str(), value.is_whole, value.strings), ("x".repeat(80).as_str(), false, 2));
    assert_eq!(strings.uncompared, 1);
}

#[test]
fn android_has_records_of_its_own() {
    let mut dump = Dump::new("1.0.3", 4);
    dump.names();
    dump.loads();
    dump.record(0x1c, |dump| {
        dump.bytes.push(0xfe);
        dump.u4(65);
        dump.id(Dump::name("cache"));
        dump.classes();
        dump.string(0x4000, 0x4100, 0);
        dump.session(0x1000, 0);
        dump.bytes.push(0xc3);
        dump.id(0x4100);
        dump.u4(0);
        dump.u4(10);
        dump.bytes.push(BYTE);
        for tag in [0x89, 0x8a, 0x8b, 0x8c, 0x8d] {
            dump.root(tag, 0x4000, 0);
        }
        dump.root(0x90, 0x1000, 0);
        dump.root(0x8e, 0x1000, 8);
    });
    let Snapshot { graph, strings, warnings, .. } = dump.read();
    assert_eq!(warnings, [""; 0]);
    let roots: Vec<_> = roots(&graph).into_iter().map(|(name, _)| name).collect();
    let expected =
        ["interned string", "finalizing", "debugger", "reference cleanup", "VM internal", "JNI monitor"];
    assert_eq!(roots, expected);
    // The size according to the class; 12 and ten bytes.
    assert_eq!(graph.size_bytes(object(&graph, 0x1000)), 24);
    assert_eq!(graph.size_bytes(object(&graph, 0x4100)), 24);
    assert_eq!(strings.uncompared, 1);
}

#[test]
fn sites_are_those_of_traces_with_frames() {
    let mut dump = Dump::new("1.0.2", 8);
    dump.names();
    dump.loads();
    dump.record(0x04, |dump| {
        dump.id(0x77);
        dump.id(Dump::name("next"));
        dump.id(0);
        dump.id(Dump::name("Session.java"));
        dump.u4(6);
        dump.u4(42);
    });
    for (serial, frames) in [(1, 0), (2, 1)] {
        dump.record(0x05, |dump| {
            dump.u4(serial);
            dump.u4(0);
            dump.u4(frames);
            (0..frames).for_each(|_| dump.id(0x77));
        });
    }
    dump.record(0x1c, |dump| {
        dump.classes();
        dump.instance_of_trace(0x1000, OBJECT_CLASS, 1, |_| {});
        dump.instance_of_trace(0x1010, OBJECT_CLASS, 2, |_| {});
    });
    let Snapshot { graph, warnings, .. } = dump.read();
    assert_eq!(warnings, [""; 0]);
    assert_eq!(graph.site_of(object(&graph, 0x1000)), None);
    let site = graph.site(graph.site_of(object(&graph, 0x1010)).unwrap());
    assert_eq!((graph.name(site.file), site.line), ("com/example/Session.java", 42));
}

/// The histogram of one pass equals that of the whole snapshot, and has no additional warnings.
fn is_counted_alike(bytes: &[u8], snapshot: &Snapshot) {
    let counted = super::histogram(|| Source::of_bytes(bytes)).unwrap();
    let of = |histogram: &Histogram| {
        let owned =
            |(kind, name, sum): (&str, &str, Sum)| (kind.to_owned(), name.to_owned(), sum.objects, sum.bytes);
        let mut classes: Vec<_> = histogram.classes().map(owned).collect();
        classes.sort();
        classes
    };
    assert_eq!(of(&counted), of(&Histogram::of(snapshot)));
    assert!(
        counted.warnings.iter().all(|warning| snapshot.warnings.contains(warning)),
        "{:?}",
        counted.warnings
    );
    assert!(counted.is_whole || !snapshot.is_whole());
    assert!(snapshot.notes.starts_with(&counted.notes), "{:?}", counted.notes);
}

#[test]
fn a_dump_may_end_anywhere() {
    let all = whole(8).bytes;
    let objects = whole(8).read().graph.len();
    let mut most = 0;
    for len in 0..all.len() {
        match read_snapshot_as(&all[..len], Format::Hprof) {
            Err(error) => assert!(len < 31, "{len}: {error}"),
            Ok(snapshot) => {
                let read = snapshot.graph.len();
                assert!(read >= most && read <= objects, "{len}");
                most = read;
                is_counted_alike(&all[..len], &snapshot);
                let _ = DominatorTree::new(&snapshot.graph);
            }
        }
    }
    let cut = read_snapshot_as(&all[..all.len() - 20], Format::Hprof).unwrap().warnings;
    assert!(cut[0].starts_with("The file ends inside the record at byte "), "{cut:?}");
}

#[test]
fn any_byte_may_be_another() {
    let all = whole(4).bytes;
    for at in 31..all.len() {
        for value in [0, 0xff, all[at] ^ 1] {
            let mut bytes = all.clone();
            bytes[at] = value;
            let snapshot = read_snapshot_as(&bytes, Format::Hprof).unwrap();
            is_counted_alike(&bytes, &snapshot);
            let _ = DominatorTree::new(&snapshot.graph);
        }
    }
}

#[test]
fn damage_is_told_and_passed_over() {
    let segment = |tag: u8, len: u32, body: &dyn Fn(&mut Dump)| {
        let mut dump = Dump::new("1.0.2", 8);
        dump.bytes.push(tag);
        dump.u4(0);
        dump.u4(len);
        body(&mut dump);
        let Snapshot { graph, warnings, .. } = dump.read();
        (graph.len(), warnings)
    };
    let two = |dump: &mut Dump| {
        dump.values(0x10, BYTE, 1, b"a");
        dump.values(0x20, BYTE, 1, b"b");
    };
    // The writer died before it wrote the segment's length.
    let (objects, warnings) = segment(0x1c, 0, &two);
    assert_eq!((objects, warnings.len()), (2, 1), "{warnings:?}");
    assert!(warnings[0].starts_with("1 segment does not say where it ends (byte 31): "), "{warnings:?}");
    // More than 4 GiB in one record: the length has lost its upper bits.
    let (objects, warnings) = segment(0x0c, 20, &two);
    assert_eq!((objects, warnings.len()), (2, 1), "{warnings:?}");
    // In a segment that is an error.
    let (objects, warnings) = segment(0x1c, 25, &two);
    let overrun = "1 sub-record is longer than what is left of its segment (byte 59): ";
    assert_eq!(objects, 1);
    assert!(warnings.iter().any(|warning| warning.starts_with(overrun)), "{warnings:?}");
    // An unknown tag hides the rest of its segment, and no more.
    let (objects, warnings) = segment(0x1c, 39, &|dump| {
        dump.values(0x30, BYTE, 1, b"a");
        dump.bytes.extend([0x77; 20]);
        dump.record(0x1c, two);
    });
    assert_eq!((objects, warnings.len()), (3, 1), "{warnings:?}");
    // An unknown record is skipped.
    let (objects, warnings) = segment(0x66, 4, &|dump| {
        dump.u4(0);
        dump.record(0x1c, two);
    });
    assert_eq!(
        (objects, warnings),
        (2, vec!["1 record has an unknown tag (byte 31): passed over.".to_owned()])
    );
    // A class that is not described, and a second object at the same address.
    let (objects, warnings) = segment(0x1c, 56, &|dump| {
        dump.instance(0x10, 0x5550, |dump| dump.u4(0));
        dump.instance(0x10, 0x5550, |dump| dump.u2(0));
    });
    assert_eq!((objects, warnings.len()), (2, 2), "{warnings:?}");
}

#[test]
fn what_is_no_dump_is_refused() {
    let error = |bytes: &[u8]| read_snapshot_as(bytes, Format::Hprof).unwrap_err().to_string();
    assert!(error(b"JAVA PROFILE 1.0.9\0").contains("one of the versions"));
    let wide = Dump::new("1.0.2", 16).bytes;
    assert_eq!(
        error(&wide),
        "this JVM heap dump cannot be read: its ids have 16 bytes, and only 4 and 8 are known"
    );
}

#[test]
fn a_class_may_be_its_own_super_class() {
    let mut dump = Dump::new("1.0.2", 8);
    dump.names();
    dump.loads();
    dump.record(0x1c, |dump| {
        dump.class(SESSION, SESSION, &[], &[("next", OBJECT)]);
        dump.instance(0x1000, SESSION, |dump| (0..100).for_each(|_| dump.id(0x1000)));
    });
    let graph = dump.read().graph;
    assert_eq!(edges(&graph, 0x1000).len(), 100);
}
