//! How many objects each class has, which is told by a part of what a snapshot holds.

use crate::{Graph, Snapshot, Sum};
use rustc_hash::FxHashMap;

/// The classes of a heap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// By kind and name; classes of one name, of several loaders say, are one.
    classes: FxHashMap<(String, String), Sum>,
    /// Whether the file holds the whole heap.
    pub is_whole: bool,
    /// What was wrong with the file, a sentence each.
    pub warnings: Vec<String>,
    /// What the figures rest on.
    pub notes: Vec<String>,
}

impl Histogram {
    /// Counts a snapshot's objects.
    pub fn of(snapshot: &Snapshot) -> Histogram {
        Histogram {
            classes: class_sums(&snapshot.graph),
            is_whole: snapshot.is_whole(),
            warnings: snapshot.warnings.clone(),
            notes: Vec::new(),
        }
    }

    /// Adds objects of a class.
    pub fn add(&mut self, kind: &str, name: &str, sum: Sum) {
        add(&mut self.classes, (kind.to_owned(), name.to_owned()), sum);
    }

    /// Kind, name and what the objects come to, in no order; classes without objects are among them.
    pub fn classes(&self) -> impl Iterator<Item = (&str, &str, Sum)> {
        self.classes.iter().map(|((kind, name), sum)| (&kind[..], &name[..], *sum))
    }
}

fn add(classes: &mut FxHashMap<(String, String), Sum>, key: (String, String), sum: Sum) {
    let all = classes.entry(key).or_default();
    all.objects += sum.objects;
    all.bytes = all.bytes.saturating_add(sum.bytes);
}

fn class_sums(graph: &Graph) -> FxHashMap<(String, String), Sum> {
    let mut by_class = vec![Sum::default(); graph.classes().len()];
    graph
        .objects()
        .for_each(|object| by_class[graph.class_of(object).0 as usize].add(graph.size_bytes(object)));
    let mut sums = FxHashMap::default();
    for (class, sum) in graph.classes().iter().zip(by_class) {
        add(&mut sums, (graph.name(class.kind.0).to_owned(), graph.name(class.name).to_owned()), sum);
    }
    sums
}
