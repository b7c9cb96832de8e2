//! The document: its arrays become columns, its strings become names.
//!
//! A row never takes more memory than a small multiple of its bytes in the file: a node has at least ten bytes and takes 29 here.

use super::edges::{EDGE_BYTES_MIN, Edges};
use super::edges_ahead::EdgesAhead;
use super::json::{Json, Next, Stop};
use super::meta::{FIELDS_MAX, META_BYTES_MAX, Meta, TraceMeta, UNDESCRIBED};
use super::strings::{STRING, Strings, Uses};
use super::traces::Traces;
use crate::source::{PlainFile, Source};
use crate::{Format, ImportError};
use mallow_heapsnap::GraphParts;
use std::io::Read;

/// The contents of a file.
pub(super) struct Document {
    pub(super) meta: Meta,
    /// The root node.
    pub(super) root: u32,
    pub(super) extra_native_bytes: u64,
    pub(super) nodes: Nodes,
    pub(super) edges: Edges,
    pub(super) strings: Strings,
    pub(super) traces: Traces,
    /// Whether the file is truncated.
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
    /// Nodes that are known to be attached to a page (1) or detached from it (2), ascending.
    pub(super) detachedness: Vec<(u32, u8)>,
    /// The calls that allocated them, as far as that was tracked, ascending.
    pub(super) calls: Vec<(u32, u32)>,
}

/// The stream: of a file from the beginning, later from the position up to which another thread has read.
type Stream<'a> = Json<Box<dyn Read + 'a>>;

/// What has been read so far.
#[derive(Default)]
struct Parts {
    file: Option<PlainFile>,
    meta: Option<Meta>,
    root_offset: u64,
    extra_native_bytes: u64,
    /// The number of nodes according to the header.
    node_count: u64,
    edge_count: u64,
    edges_ahead: Option<EdgesAhead>,
    nodes: Option<Nodes>,
    edges: Option<Edges>,
    strings: Option<Strings>,
    traces: Traces,
}

/// Parses a document. A truncated one is returned as far as it was parsed.
pub(super) fn read(mut source: Source<'_>) -> Result<Document, ImportError> {
    let mut parts = Parts { file: source.plain_file(), ..Parts::default() };
    let mut json: Stream<'_> = Json::new(Box::new(source.reader()));
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
    fn read(&mut self, json: &mut Stream<'_>) -> Result<(), Stop> {
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

    fn read_header(&mut self, json: &mut Stream<'_>) -> Result<(), Stop> {
        let mut next = json.open(b'{', b'}', "an object")?;
        while next == Next::Another {
            match &json.key()?[..] {
                b"meta" => {
                    let mut text = Vec::new();
                    json.value(META_BYTES_MAX, &mut text)?;
                    self.meta = Some(Meta::parse(&text).map_err(|what| json.expected(what))?);
                }
                b"node_count" => self.node_count = json.lone_number()?.unwrap_or(0),
                b"edge_count" => self.edge_count = json.lone_number()?.unwrap_or(0),
                b"root_index" => self.root_offset = json.lone_number()?.unwrap_or(0),
                b"extra_native_bytes" => self.extra_native_bytes = json.lone_number()?.unwrap_or(0),
                _ => json.value(0, &mut Vec::new())?,
            }
            next = json.next(b'}')?;
        }
        Ok(())
    }

    fn meta(&self, json: &Stream<'_>) -> Result<&Meta, Stop> {
        self.meta.as_ref().ok_or_else(|| json.expected("a description of the fields (`meta`) before them"))
    }

    fn read_nodes(&mut self, json: &mut Stream<'_>) -> Result<(), Stop> {
        let meta = self.meta(json)?;
        let room = self.rows(self.node_count, NODE_BYTES_MIN);
        let file = self.file.as_ref();
        self.edges_ahead = file.and_then(|file| {
            EdgesAhead::start(file, json.position(), self.rows(self.edge_count, EDGE_BYTES_MIN), meta)
        });
        let meta = self.meta(json)?;
        let mut nodes = Nodes::with_room(room);
        let result = json.records(meta.node_fields, |record| nodes.push(record, meta));
        nodes.shrink_to_fit();
        self.nodes = Some(nodes);
        result
    }

    /// Returns how many rows there may be: as many as the header says, if a file of this size can contain them.
    fn rows(&self, said: u64, bytes_min: u64) -> usize {
        let rows_max = self.file.as_ref().map_or(0, |file| file.bytes() / bytes_min);
        said.min(rows_max) as usize
    }

    fn read_edges(&mut self, json: &mut Stream<'_>) -> Result<(), Stop> {
        if let Some(read) = self.edges_ahead.take().and_then(|ahead| ahead.read_from(json.position())) {
            let file = self.file.as_ref().ok_or_else(|| json.expected("a file"))?;
            json.go_on(read.end, Box::new(file.reader_at(read.end)?));
            self.edges = Some(read.edges);
            return Ok(());
        }
        let mut edges = Edges::with_room(self.rows(self.edge_count, EDGE_BYTES_MIN));
        let meta = self.meta(json)?;
        let result = json.records(meta.edge_fields, |record| edges.push(record, meta));
        edges.shrink_to_fit();
        self.edges = Some(edges);
        result
    }

    /// Parses a part of what was tracked. If a runtime describes it in an unknown way, it is skipped.
    fn read_traces<'a>(
        &mut self,
        json: &mut Stream<'a>,
        read: impl FnOnce(&mut Traces, &mut Stream<'a>, TraceMeta) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        match self.meta(json)?.traces {
            Some(meta) => read(&mut self.traces, json, meta),
            None => json.value(0, &mut Vec::new()),
        }
    }

    /// Returns which strings are used for what, as far as the file has said before them.
    fn uses(&self) -> Uses {
        let (Some(meta), Some(nodes), Some(edges)) = (&self.meta, &self.nodes, &self.edges) else {
            return Uses::new(0);
        };
        // V8 numbers strings in the order in which it sees them, so there are no more than this.
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

    fn read_strings(&mut self, json: &mut Stream<'_>) -> Result<(), Stop> {
        let uses = self.uses();
        let mut strings = Strings::default();
        let result = strings.read(json, &uses);
        self.strings = Some(strings);
        result
    }
}

/// The minimum size of a node's record in a file: five numbers and their separators.
const NODE_BYTES_MIN: u64 = 10;

impl Nodes {
    fn with_room(rows: usize) -> Nodes {
        Nodes {
            types: Vec::with_capacity(rows),
            names: Vec::with_capacity(rows),
            ids: Vec::with_capacity(rows),
            sizes: Vec::with_capacity(rows),
            edge_counts: Vec::with_capacity(rows),
            ..Nodes::default()
        }
    }

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
