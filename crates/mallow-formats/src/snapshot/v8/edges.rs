//! The references of a document, as columns.
//!
//! A row never takes more memory than a small multiple of its bytes in the file: an edge has at least six bytes and takes nine here.

use super::meta::{EdgeType, FIELDS_MAX, Meta};
use mallow_heapsnap::{EdgeLabel, GraphParts, NameId};

/// The minimum size of an edge's record in a file: three numbers and their separators.
pub(super) const EDGE_BYTES_MIN: u64 = 6;

/// A row for each reference, in the order of the objects that have them.
#[derive(Default)]
pub(super) struct Edges {
    pub(super) types: Vec<EdgeType>,
    /// In the format of [`GraphParts::packed_label`].
    pub(super) labels: Vec<u32>,
    /// The highest number of a string among them, plus 1.
    pub(super) names_end: u32,
    /// Objects, or [`NOWHERE`].
    pub(super) targets: Vec<u32>,
}

/// The target of a reference to no object.
pub(super) const NOWHERE: u32 = u32::MAX;

impl Edges {
    pub(super) fn with_room(rows: usize) -> Edges {
        Edges {
            types: Vec::with_capacity(rows),
            labels: Vec::with_capacity(rows),
            targets: Vec::with_capacity(rows),
            ..Edges::default()
        }
    }

    pub(super) fn push(&mut self, record: &[u64; FIELDS_MAX], meta: &Meta) -> Result<(), &'static str> {
        if self.targets.len() == u32::MAX as usize {
            return Err("fewer than 2^32 edges");
        }
        let edge_type = meta.edge_types.get(record[meta.edge_type] as usize).copied();
        let edge_type = edge_type.unwrap_or(EdgeType::Named);
        self.types.push(edge_type);
        let label = u32::try_from(record[meta.edge_label]).ok().map(|label| match edge_type {
            EdgeType::Element | EdgeType::Hidden => EdgeLabel::Element(label),
            _ => EdgeLabel::Name(NameId(label)),
        });
        let packed = GraphParts::packed_label(label);
        if matches!(label, Some(EdgeLabel::Name(NameId(name))) if name == packed) {
            self.names_end = self.names_end.max(packed.saturating_add(1));
        }
        self.labels.push(packed);
        let (offset, fields) = (record[meta.edge_target], meta.node_fields as u64);
        let target = if offset % fields == 0 { offset / fields } else { u64::MAX };
        self.targets.push(u32::try_from(target).unwrap_or(NOWHERE));
        Ok(())
    }

    pub(super) fn shrink_to_fit(&mut self) {
        self.types.shrink_to_fit();
        self.labels.shrink_to_fit();
        self.targets.shrink_to_fit();
    }

    /// Assigns edges to objects: returns where each one's edges begin, and a last row. Edges to objects that do not exist are dropped.
    pub(super) fn assign(&mut self, counts: Vec<u32>) -> (Vec<u32>, MismatchedEdges) {
        let mut starts = counts;
        let nodes = starts.len() as u32;
        let (mut at, mut kept, mut missing) = (0, 0, 0);
        for start in &mut starts {
            let count = *start as usize;
            *start = kept as u32;
            let end = (at + count).min(self.targets.len());
            missing += (at + count - end) as u64;
            for edge in at..end {
                if self.targets[edge] < nodes {
                    self.targets[kept] = self.targets[edge];
                    self.labels[kept] = self.labels[edge];
                    self.types[kept] = self.types[edge];
                    kept += 1;
                }
            }
            at = end;
        }
        // A plain push would double the column's capacity.
        starts.reserve_exact(1);
        starts.push(kept as u32);
        let mismatched = MismatchedEdges {
            missing,
            ownerless: (self.targets.len() - at) as u64,
            dangling: (at - kept) as u64,
        };
        self.targets.truncate(kept);
        self.labels.truncate(kept);
        self.types.truncate(kept);
        (starts, mismatched)
    }

    /// Adds more edges to an object, all with one label. The error is a limit, without a full stop.
    pub(super) fn add(
        &mut self,
        starts: &mut [u32],
        from: u32,
        targets: &[u32],
        label: NameId,
    ) -> Result<(), String> {
        let edges = self.targets.len() + targets.len();
        let Some(at) =
            starts.get(from as usize + 1).map(|start| *start as usize).filter(|_| !targets.is_empty())
        else {
            return Ok(());
        };
        if edges > u32::MAX as usize {
            return Err("it has more than 2^32 edges".to_owned());
        }
        self.targets.reserve_exact(targets.len());
        self.targets.splice(at..at, targets.iter().copied());
        self.labels.reserve_exact(targets.len());
        let packed = GraphParts::packed_label(Some(EdgeLabel::Name(label)));
        self.labels.splice(at..at, targets.iter().map(|_| packed));
        starts[from as usize + 1..].iter_mut().for_each(|start| *start += targets.len() as u32);
        Ok(())
    }

    /// Returns the label of an edge, if it is a name that the file can have.
    pub(super) fn name(&self, edge: usize) -> Option<NameId> {
        let is_index = matches!(self.types[edge], EdgeType::Element | EdgeType::Hidden);
        let label = self.labels[edge];
        (!is_index && label != GraphParts::packed_label(None)).then_some(NameId(label))
    }
}

/// The numbers of references that do not match the objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MismatchedEdges {
    /// Declared by objects, but missing in the file.
    pub(super) missing: u64,
    /// In the file, but declared by no object.
    pub(super) ownerless: u64,
    /// With an invalid target.
    pub(super) dangling: u64,
}
