//! Any bytes given to the readers of heap snapshots end in a graph, whose dominators can be told, or in one named error: never a panic, never
//! an endless loop, never more memory than the input justifies.

use super::said::said;
use mallow_formats::{Format, read_snapshot_as};
use mallow_heapsnap::{DominatorTree, Totals};

pub(super) fn snapshot(data: &[u8], format: Format) {
    match read_snapshot_as(data, format) {
        Ok(snapshot) => {
            // The smallest object that any format writes has some bytes.
            assert!(snapshot.graph.len() <= data.len());
            let tree = DominatorTree::new(&snapshot.graph);
            let totals = Totals::new(&snapshot.graph, &tree);
            assert_eq!(totals.all.objects, snapshot.graph.len() as u64);
            assert_eq!(tree.reachable_len() as u64 + totals.unreachable.objects, totals.all.objects);
        }
        Err(error) => said(Some(error)),
    }
}
