//! A process's address space: its modules, and the stack nodes that point into them.

use crate::varint::{DecodeError, Reader, put, put_bytes, put_str, zigzag};
use crate::{ChunkKind, Payload};

/// A module as it was mapped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MappedModule {
    /// Its path as the loader knew it.
    pub path: String,
    /// Its build id; empty when it has none.
    pub build_id: Vec<u8>,
    /// Where its first byte is mapped.
    pub start_avma: u64,
    /// Behind its last byte.
    pub end_avma: u64,
    /// Load bias: the mapped address minus the address in the file.
    pub bias: u64,
    /// The module generation in which it was seen.
    pub generation: u64,
}

/// Modules that a process mapped. Layout: list of string (path) · bytes (build id) · start_avma · end_avma − start_avma · bias ·
/// generation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Modules {
    /// In the order in which they were seen.
    pub modules: Vec<MappedModule>,
}

impl Payload for Modules {
    const KIND: ChunkKind = ChunkKind::MODULES;

    fn encode(&self, out: &mut Vec<u8>) {
        put(out, self.modules.len() as u64);
        for module in &self.modules {
            put_str(out, &module.path);
            put_bytes(out, &module.build_id);
            put(out, module.start_avma);
            put(out, module.end_avma.wrapping_sub(module.start_avma));
            put(out, module.bias);
            put(out, module.generation);
        }
    }

    fn decode(payload: &[u8]) -> Result<Modules, DecodeError> {
        let modules = Reader::new(payload).list(6, "the modules", |reader| {
            let path = reader.string("a module's path")?;
            let build_id = reader.bytes("a build id")?.to_vec();
            let start_avma = reader.varint("a module's start")?;
            let end_avma = start_avma.wrapping_add(reader.varint("a module's length")?);
            let bias = reader.varint("a module's bias")?;
            let generation = reader.varint("a module's generation")?;
            Ok(MappedModule { path, build_id, start_avma, end_avma, bias, generation })
        })?;
        Ok(Modules { modules })
    }
}

/// A frame of a stack, and its caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackNode {
    /// The caller's id, below this node's own; none for an outermost frame.
    pub parent: Option<u32>,
    /// The address as mapped.
    pub avma: u64,
    /// True when the address is a program counter, false when it is a return address.
    pub exact: bool,
    /// The module generation in which the address was seen.
    pub generation: u64,
}

/// Stack nodes of a process whose ids follow on those of the chunk before.
///
/// Layout: first · list of nodes. A node is a varint `distance << 1 | changed`, where distance is its id less its parent's,
/// or 0 without a parent; if changed, a varint `generation << 1 | exact`, else both are as in the node before (in a
/// chunk's first node: generation 0, not exact); and the signed difference of its address to that of the node before (0).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stacks {
    /// The id of the first node.
    pub first: u32,
    /// In the order of ids; a parent comes before its children.
    pub nodes: Vec<StackNode>,
}

impl Stacks {
    /// Encodes nodes that are not in a list of their own, as [`Payload::encode`] does. A node whose parent does not precede it is written as an
    /// outermost one.
    pub fn encode_nodes(first: u32, nodes: impl ExactSizeIterator<Item = StackNode>, out: &mut Vec<u8>) {
        put(out, u64::from(first));
        put(out, nodes.len() as u64);
        let (mut avma, mut marks) = (0, 0);
        for (id, node) in (u64::from(first)..).zip(nodes) {
            let distance = node.parent.and_then(|parent| id.checked_sub(u64::from(parent))).unwrap_or(0);
            let node_marks = node.generation << 1 | u64::from(node.exact);
            put(out, distance << 1 | u64::from(node_marks != marks));
            if node_marks != marks {
                put(out, node_marks);
                marks = node_marks;
            }
            put(out, zigzag(node.avma.wrapping_sub(avma)));
            avma = node.avma;
        }
    }
}

impl Payload for Stacks {
    const KIND: ChunkKind = ChunkKind::STACKS;

    fn encode(&self, out: &mut Vec<u8>) {
        Stacks::encode_nodes(self.first, self.nodes.iter().copied(), out);
    }

    /// Every parent is below its child.
    fn decode(payload: &[u8]) -> Result<Stacks, DecodeError> {
        let mut reader = Reader::new(payload);
        let first = reader.varint32("the first node's id")?;
        let (mut avma, mut marks, mut id) = (0u64, 0, u64::from(first));
        let nodes = reader.list(2, "the stack nodes", |reader| {
            let start = *reader;
            let head = reader.varint("a node's parent")?;
            let parent = match head >> 1 {
                0 => None,
                distance => {
                    let parent = id.checked_sub(distance).and_then(|parent| u32::try_from(parent).ok());
                    Some(parent.ok_or(start.expected("a parent that comes before its child"))?)
                }
            };
            if head & 1 == 1 {
                marks = reader.varint("a node's generation")?;
            }
            avma = avma.wrapping_add(reader.signed("a node's address")?);
            id += 1;
            Ok(StackNode { parent, avma, exact: marks & 1 == 1, generation: marks >> 1 })
        })?;
        Ok(Stacks { first, nodes })
    }
}
