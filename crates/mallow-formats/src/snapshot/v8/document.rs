//! The document: its arrays become columns, its strings become names.
//!
//! A row costs no more than some of the bytes that wrote it: a node has at least ten bytes and takes 29 here, an edge has six and takes nine.

use super::json::{Json, Next, Stop};
use super::meta::{EdgeType, FIELDS_MAX, META_BYTES_MAX, Meta, TraceMeta, UNDESCRIBED};
use super::strings::{STRING, Strings, Uses};
use super::traces::Traces;
use crate::{Format, ImportError};
use mallow_heapsnap::{EdgeLabel, GraphParts, NameId};
use std::io::Read;

/// What a file holds.
pub(super) struct Document {
    pub(super) meta: Meta,
    /// The node that holds everything.
    pub(super) root: u32,
    pub(super) extra_native_bytes: u64,
    pub(super) nodes: Nodes,
    pub(super) edges: Edges,
    pub(super) strings: Strings,
    pub(super) traces: Traces,
    /// Whether the file ended before the document did.
    pub(super) is_cut: bool,
}

/// A row for each object.
#[derive(Default)]
pub(super) struct Nodes {
    /// Index into [`Meta::node_types`], or [`UNDESCRIBED`].
    pub(super) types: Vec<u8>,
    /// Number of a string.
    pub(super) names: Vec<u32>,
    pub(super) ids: Vec<u64>,
    pub(super) sizes: Vec<u64>,
    pub(super) edge_counts: Vec<u32>,
    /// Those that are known to be attached to a page (1) or detached from it (2), ascending.
    pub(super) detachedness: Vec<(u32, u8)>,
    /// The calls that made them, as far as that was tracked, ascending.
    pub(super) calls: Vec<(u32, u32)>,
}

/// A row for each reference, in the order of the objects that have them.
#[derive(Default)]
pub(super) struct Edges {
    pub(super) types: Vec<EdgeType>,
    /// As [`GraphParts::packed_label`] has them.
    pub(super) labels: Vec<u32>,
    /// The highest number of a string among them, and one.
    pub(super) names_end: u32,
    /// Objects, or [`NOWHERE`].
    pub(super) targets: Vec<u32>,
}

/// The target of a reference that leads to no object.
pub(super) const NOWHERE: u32 = u32::MAX;

/// What has been read up to now.
#[derive(Default)]
struct Parts {
    meta: Option<Meta>,
    root_offset: u64,
    extra_native_bytes: u64,
    nodes: Option<Nodes>,
    edges: Option<Edges>,
    strings: Option<Strings>,
    traces: Traces,
}

/// Reads a document. One that ends too soon is what was there.
pub(super) fn read(reader: impl Read) -> Result<Document, ImportError> {
    let mut json = Json::new(reader);
    let mut parts = Parts::default();
    let is_cut = match parts.read(&mut json) {
        Ok(()) => false,
        Err(Stop::End) => true,
        Err(Stop::Error(error)) => return Err(error),
    };
    let Some(meta) = parts.meta else {
        let reason = "it ends before it says which fields its nodes have".to_owned();
        return Err(ImportError::Unsupported { format: Format::V8Heap, reason });
    };
    let nodes = parts.nodes.unwrap_or_default();
    let root = parts.root_offset / meta.node_fields as u64;
    Ok(Document {
        root: u32::try_from(root).ok().filter(|root| (*root as usize) < nodes.ids.len()).unwrap_or(0),
        extra_native_bytes: parts.extra_native_bytes,
        nodes,
        edges: parts.edges.unwrap_or_default(),
        strings: parts.strings.unwrap_or_default(),
        traces: parts.traces,
        is_cut,
        meta,
    })
}

impl Parts {
    fn read(&mut self, json: &mut Json<impl Read>) -> Result<(), Stop> {
        let mut next = json.open(b'{', b'}', "an object")?;
        while next == Next::Another {
            let key = json.key()?;
            match &key[..] {
                b"snapshot" => self.read_header(json)?,
                b"nodes" => self.read_nodes(json)?,
                b"edges" => self.read_edges(json)?,
                b"strings" => self.read_strings(json)?,
                b"trace_function_infos" => self.read_traces(json, Traces::read_functions)?,
                b"trace_tree" => self.read_traces(json, Traces::read_tree)?,
                _ => json.value(0, &mut Vec::new())?,
            }
            next = json.next(b'}')?;
        }
        Ok(())
    }

    fn read_header(&mut self, json: &mut Json<impl Read>) -> Result<(), Stop> {
        let mut next = json.open(b'{', b'}', "an object")?;
        while next == Next::Another {
            match &json.key()?[..] {
                b"meta" => {
                    let mut text = Vec::new();
                    json.value(META_BYTES_MAX, &mut text)?;
                    self.meta = Some(Meta::parse(&text).map_err(|what| json.expected(what))?);
                }
                b"root_index" => self.root_offset = json.lone_number()?.unwrap_or(0),
                b"extra_native_bytes" => self.extra_native_bytes = json.lone_number()?.unwrap_or(0),
                _ => json.value(0, &mut Vec::new())?,
            }
            next = json.next(b'}')?;
        }
        Ok(())
    }

    fn meta(&self, json: &Json<impl Read>) -> Result<&Meta, Stop> {
        self.meta.as_ref().ok_or_else(|| json.expected("a description of the fields (`meta`) before them"))
    }

    fn read_nodes(&mut self, json: &mut Json<impl Read>) -> Result<(), Stop> {
        let mut nodes = Nodes::default();
        let meta = self.meta(json)?;
        let result = json.records(meta.node_fields, |record| nodes.push(record, meta));
        nodes.shrink_to_fit();
        self.nodes = Some(nodes);
        result
    }

    fn read_edges(&mut self, json: &mut Json<impl Read>) -> Result<(), Stop> {
        let mut edges = Edges::default();
        let meta = self.meta(json)?;
        let result = json.records(meta.edge_fields, |record| edges.push(record, meta));
        edges.shrink_to_fit();
        self.edges = Some(edges);
        result
    }

    /// Reads a part of what was tracked. How a runtime describes that otherwise than is known is passed over.
    fn read_traces<R: Read>(
        &mut self,
        json: &mut Json<R>,
        read: impl FnOnce(&mut Traces, &mut Json<R>, TraceMeta) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        match self.meta(json)?.traces {
            Some(meta) => read(&mut self.traces, json, meta),
            None => json.value(0, &mut Vec::new()),
        }
    }

    /// What strings are used for, as far as the file has said before them.
    fn uses(&self) -> Uses {
        let (Some(meta), Some(nodes), Some(edges)) = (&self.meta, &self.nodes, &self.edges) else {
            return Uses::new(0);
        };
        // V8 numbers strings as it meets them, so there are no more than this.
        let mut uses = Uses::new(nodes.names.len() + edges.labels.len());
        let string = meta.node_type_named(STRING);
        for (name, node_type) in nodes.names.iter().zip(&nodes.types) {
            if Some(*node_type) == string {
                uses.is_value(*name);
            } else {
                uses.is_name(*name);
            }
        }
        self.traces.scripts().for_each(|script| uses.is_name(script));
        (0..edges.labels.len()).filter_map(|edge| edges.name(edge)).for_each(|name| uses.is_name(name.0));
        uses
    }

    fn read_strings(&mut self, json: &mut Json<impl Read>) -> Result<(), Stop> {
        let uses = self.uses();
        let mut strings = Strings::default();
        let result = strings.read(json, &uses);
        self.strings = Some(strings);
        result
    }
}

impl Nodes {
    fn push(&mut self, record: &[u64; FIELDS_MAX], meta: &Meta) -> Result<(), &'static str> {
        if self.ids.len() == GraphParts::OBJECTS_MAX {
            return Err("fewer than 2^31 nodes");
        }
        let node = self.ids.len() as u32;
        let node_type = record[meta.node_type];
        let is_described = node_type < meta.node_types.len() as u64;
        self.types.push(if is_described { node_type as u8 } else { UNDESCRIBED });
        let name = u32::try_from(record[meta.node_name]);
        self.names.push(name.map_err(|_| "a node whose name has a number below 2^32")?);
        self.ids.push(record[meta.node_id]);
        self.sizes.push(record[meta.node_size]);
        let edges = u32::try_from(record[meta.node_edges]);
        self.edge_counts.push(edges.map_err(|_| "a node with fewer than 2^32 edges")?);
        if let Some(state @ (1 | 2)) = meta.node_detachedness.map(|place| record[place] & 3) {
            self.detachedness.push((node, state as u8));
        }
        if let Some(call @ 1..) = meta.node_call.and_then(|place| u32::try_from(record[place]).ok()) {
            self.calls.push((node, call));
        }
        Ok(())
    }

    fn shrink_to_fit(&mut self) {
        self.types.shrink_to_fit();
        self.calls.shrink_to_fit();
        self.names.shrink_to_fit();
        self.ids.shrink_to_fit();
        self.sizes.shrink_to_fit();
        self.edge_counts.shrink_to_fit();
    }
}

impl Edges {
    fn push(&mut self, record: &[u64; FIELDS_MAX], meta: &Meta) -> Result<(), &'static str> {
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

    fn shrink_to_fit(&mut self) {
        self.types.shrink_to_fit();
        self.labels.shrink_to_fit();
        self.targets.shrink_to_fit();
    }

    /// Gives each object its edges: where each one's begin, and a last row. Edges to objects that are not there are dropped.
    pub(super) fn assign(&mut self, counts: Vec<u32>) -> (Vec<u32>, Misfits) {
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
        // To push alone would double the column.
        starts.reserve_exact(1);
        starts.push(kept as u32);
        let misfits =
            Misfits { missing, ownerless: (self.targets.len() - at) as u64, dangling: (at - kept) as u64 };
        self.targets.truncate(kept);
        self.labels.truncate(kept);
        self.types.truncate(kept);
        (starts, misfits)
    }

    /// Gives an object more edges, all with one label. The error is a limit, without a full stop.
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

    /// The label of an edge that has a name.
    pub(super) fn name(&self, edge: usize) -> Option<NameId> {
        let is_index = matches!(self.types[edge], EdgeType::Element | EdgeType::Hidden);
        (!is_index).then_some(NameId(self.labels[edge]))
    }
}

/// References that do not fit to the objects: how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Misfits {
    /// That objects should have and the file does not.
    pub(super) missing: u64,
    /// That the file has and no object.
    pub(super) ownerless: u64,
    /// That lead nowhere.
    pub(super) dangling: u64,
}
