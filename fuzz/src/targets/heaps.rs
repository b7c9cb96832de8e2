//! Any bytes given to a reader of heaps end in a heap whose figures agree with each other, or in one named error: never a panic, never an endless
//! loop, never more than the input justifies.

use super::said::said;
use mallow_formats::{Format, read_snapshot_as};
use mallow_heapsnap::{DominatorTree, Paths, Totals};

/// A snapshot, who retains what in it, and its sums.
pub(super) fn snapshot(data: &[u8], format: Format) {
    let snapshot = match read_snapshot_as(data, format) {
        Ok(snapshot) => snapshot,
        Err(error) => return said(Some(error)),
    };
    let graph = &snapshot.graph;
    // A file may be packed, at most so densely.
    assert!(graph.len() + graph.edges_len() <= data.len().saturating_mul(1100));
    assert!(
        snapshot.strings.values.iter().all(|value| value.strings > 1 && value.wasted_bytes <= value.bytes)
    );
    let tree = DominatorTree::new(graph);
    let totals = Totals::new(graph, &tree);
    assert_eq!(totals.all.objects, graph.len() as u64);
    assert_eq!(totals.unreachable.objects, (graph.len() - tree.reachable_len()) as u64);
    let paths = Paths::new(graph);
    for object in graph.objects() {
        assert_eq!(paths.to(object).is_empty(), !tree.is_reachable(object));
        assert!(tree.retained_bytes(object).is_none_or(|bytes| bytes >= graph.size_bytes(object)));
        let labels = graph.edges(object).filter_map(|edge| edge.label);
        labels.for_each(|label| {
            if let mallow_heapsnap::EdgeLabel::Name(name) = label {
                graph.name(name);
            }
        });
        graph.name_of(object);
    }
}
