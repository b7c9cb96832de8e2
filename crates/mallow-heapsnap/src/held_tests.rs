//! Heaps of sessions that somebody keeps, with what else goes on in a server.

use super::*;
use crate::{Class, ClassId, DuplicateStrings, Graph, GraphParts, KindId, Names, Root, Runtime, Site};

/// Address, class, bytes, holder, line.
type Row = (u64, &'static str, u64, Option<u64>, Option<u32>);

/// A heap as it grows: class, bytes, who holds the object, and the line that made it.
#[derive(Clone, Default)]
struct Heap {
    objects: Vec<Row>,
}

impl Heap {
    /// An object at an address; held by a root for none.
    fn add(&mut self, id: u64, class: &'static str, bytes: u64, holder: Option<u64>, line: Option<u32>) {
        self.objects.push((id, class, bytes, holder, line));
    }

    /// A session with its name, made at line 12 where that is traced.
    fn session(&mut self, id: u64, holder: u64, line: Option<u32>) {
        self.add(id, "Session", 40, Some(holder), line);
        self.add(id + 1, "String", 100, Some(id), line);
    }

    fn read(&self, runtime: Runtime) -> (Snapshot, DominatorTree) {
        let mut names = Names::default();
        let kind = KindId(names.intern("OBJECT"));
        let file = names.intern("app.rb");
        let mut parts = GraphParts::default();
        let place = |id: u64| self.objects.iter().position(|object| object.0 == id).unwrap() as u32;
        for (id, class, bytes, holder, line) in &self.objects {
            let name = names.intern(class);
            let known = parts.classes.iter().position(|class| class.name == name);
            let class = known.unwrap_or_else(|| {
                parts.classes.push(Class { kind, name, object: None });
                parts.classes.len() - 1
            });
            parts.ids.push(*id);
            parts.class_of.push(ClassId(class as u32));
            parts.sizes.push(*bytes);
            parts.site_of.push(line.map_or(0, |line| {
                let site = Site { file, line };
                let known = parts.sites.iter().position(|known| *known == site);
                known.unwrap_or_else(|| {
                    parts.sites.push(site);
                    parts.sites.len() - 1
                }) as u32
                    + 1
            }));
            if holder.is_none() {
                parts.roots.push(Root { name: kind.0, object: ObjectId(place(*id)) });
            }
            parts.edge_starts.push(parts.edge_targets.len() as u32);
            let held = self.objects.iter().filter(|object| object.3 == Some(*id));
            parts
                .edge_targets
                .extend(held.map(|held| GraphParts::packed_target(ObjectId(place(held.0)), true)));
        }
        parts.edge_starts.push(parts.edge_targets.len() as u32);
        parts.names = names;
        let graph = Graph::new(runtime, parts);
        let tree = DominatorTree::new(&graph);
        let strings = DuplicateStrings::default();
        let snapshot = Snapshot {
            graph,
            strings,
            is_partial: false,
            slot_bytes: None,
            other_lines: 0,
            warnings: Vec::new(),
            notes: Vec::new(),
        };
        (snapshot, tree)
    }
}

fn growth(runtime: Runtime, before: &Heap, after: &Heap) -> Vec<HeldGrowth> {
    let ((old, old_tree), (new, new_tree)) = (before.read(runtime), after.read(runtime));
    held_growth(Dominated { snapshot: &old, tree: &old_tree }, Dominated { snapshot: &new, tree: &new_tree })
}

/// A list with ten sessions, a cache with ten, a buffer.
fn server() -> Heap {
    let mut heap = Heap::default();
    heap.add(8, "Array", 400, None, None);
    heap.add(16, "Cache", 400, None, None);
    heap.add(24, "Buffer", 1000, None, None);
    for n in 0..10 {
        heap.session(1000 + 8 * n, 8, None);
        heap.add(2000 + 8 * n, "Entry", 500, Some(16), None);
    }
    heap
}

#[test]
fn sessions_are_told_with_their_holder_and_line_and_not_their_names() {
    let (before, mut after) = (server(), server());
    // The buffer grew, which is no growth in number; the cache has other entries and as many.
    after.objects.retain(|object| object.1 != "Entry");
    after.objects[2].2 = 90_000;
    for n in 0..10 {
        after.add(3000 + 8 * n, "Entry", 500, Some(16), Some(30));
    }
    for n in 0..5 {
        after.session(4000 + 8 * n, 8, Some(if n == 4 { 99 } else { 12 }));
    }
    for runtime in [Runtime::Ruby, Runtime::V8, Runtime::Jvm] {
        let rows = growth(runtime, &before, &after);
        let [row] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!((&row.class[..], row.holder.as_deref()), ("Session", Some("Array")));
        assert_eq!((row.before.objects, row.after.objects, row.more_objects()), (10, 15, 5));
        assert_eq!((row.before.retained_bytes, row.more_bytes()), (1400, 700));
        assert_eq!(row.site, Some(("app.rb:12".to_owned(), 4)));
        let (snapshot, _) = after.read(runtime);
        assert!((4000..5000).contains(&snapshot.graph.id(row.example)), "a new one is shown");
    }
}

#[test]
fn the_line_is_that_of_the_growth_and_not_of_what_was_there() {
    let mut before = server();
    before.objects.iter_mut().filter(|object| object.1 == "Session").for_each(|object| object.4 = Some(10));
    let mut after = before.clone();
    for n in 0..3 {
        after.session(4000 + 8 * n, 8, Some(12));
    }
    assert_eq!(growth(Runtime::Ruby, &before, &after)[0].site, Some(("app.rb:12".to_owned(), 3)));
    // As many from each line as before, and one that was not traced: no line made more.
    let mut after = before.clone();
    after.session(5000, 8, None);
    assert_eq!(growth(Runtime::Ruby, &before, &after)[0].site, None);
}

#[test]
fn what_falls_or_is_held_by_nobody_is_not_told() {
    let (before, mut after) = (server(), server());
    after.objects.retain(|object| object.1 != "Entry");
    // Garbage that was not collected: nobody holds it.
    after.add(1, "Orphan", 1 << 20, Some(1), None);
    assert_eq!(growth(Runtime::Ruby, &before, &after), []);
    assert_eq!(growth(Runtime::Ruby, &Heap::default(), &Heap::default()), []);
}

#[test]
fn a_list_whose_nodes_hold_each_other_is_counted_once() {
    let list = |len: u64| {
        let mut heap = server();
        for n in 0..len {
            heap.add(10_000 + n, "Node", 10, Some(if n == 0 { 8 } else { 9_999 + n }), None);
        }
        heap
    };
    let rows = growth(Runtime::Ruby, &list(3), &list(1003));
    let [row] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((&row.class[..], row.holder.as_deref()), ("Node", Some("Node")));
    // The first is held by the array, so all but that one.
    assert_eq!((row.more_objects(), row.before.retained_bytes, row.after.retained_bytes), (1000, 20, 10_020));
}

#[test]
fn a_container_that_grew_does_not_stand_for_new_objects_of_its_class() {
    // A list of the day with visits, each of which has a list of its own in the hands of a dictionary, as the day's list has.
    let day = |visits: u64| {
        let mut heap = Heap::default();
        heap.add(8, "dict", 200, None, None);
        heap.add(16, "list", 80, Some(8), None);
        for n in 0..visits {
            heap.add(1000 + 100 * n, "Visit", 50, Some(16), None);
            heap.add(1008 + 100 * n, "dict", 200, Some(1000 + 100 * n), None);
            heap.add(1016 + 100 * n, "list", 80, Some(1008 + 100 * n), None);
        }
        heap
    };
    for runtime in [Runtime::Python, Runtime::Ruby, Runtime::V8, Runtime::Jvm] {
        let rows = growth(runtime, &day(20), &day(50));
        let [row] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!((&row.class[..], row.holder.as_deref()), ("Visit", Some("list")));
        assert_eq!((row.more_objects(), row.more_bytes()), (30, 30 * 330));
    }
}

/// A JVM loads a class while one that was there comes to hold sessions. Objects of a JVM have no identity, so what one more of a group
/// retains is reckoned as half of the group have it.
#[test]
fn where_new_objects_cannot_be_told_one_more_stands_for_as_much_as_others_of_its_group() {
    let mut before = Heap::default();
    for class in 0..9 {
        before.add(8 * (class + 1), "Class", 100, None, None);
    }
    for n in 0..20 {
        before.session(1000 + 8 * n, 8, None);
    }
    let mut after = before.clone();
    after.add(800, "Class", 100, None, None);
    for n in 0..300 {
        after.session(5000 + 8 * n, 8, None);
    }
    let rows = growth(Runtime::Jvm, &before, &after);
    let told: Vec<_> = rows.iter().map(|row| (&row.class[..], row.holder.as_deref())).collect();
    assert_eq!(told, [("Session", Some("Class"))]);
}

#[test]
fn two_leaks_are_two_rows_the_larger_first() {
    let (before, mut after) = (server(), server());
    after.session(5000, 8, None);
    after.add(6000, "Entry", 9000, Some(16), None);
    let rows = growth(Runtime::Ruby, &before, &after);
    let told: Vec<_> = rows.iter().map(|row| (&row.class[..], row.more_bytes())).collect();
    assert_eq!(told, [("Entry", 9000), ("Session", 140)]);
}

#[test]
fn the_example_is_in_the_hands_that_grew() {
    // As a JVM has it: a table of as many names as before, which stands last in the file.
    let with_table = |mut heap: Heap| {
        heap.add(70_000, "Array", 400, None, None);
        (0..100).for_each(|n| heap.session(80_000 + 8 * n, 70_000, None));
        heap
    };
    let mut after = server();
    (0..30).for_each(|n| after.session(4000 + 8 * n, 8, None));
    let (before, after) = (with_table(server()), with_table(after));
    for runtime in [Runtime::Ruby, Runtime::Jvm] {
        let rows = growth(runtime, &before, &after);
        let told: Vec<_> = rows.iter().map(|row| (&row.class[..], row.more_objects())).collect();
        assert_eq!(told, [("Session", 30)], "their names are told with them");
        let (snapshot, tree) = after.read(runtime);
        let holder = tree.dominator(rows[0].example).unwrap();
        assert_eq!(snapshot.graph.id(holder), 8, "not the table");
    }
}
