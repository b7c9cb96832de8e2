//! A massif file's heap tree: bytes by stack, callers below their callees.
//!
//! A line's depth is the number of blanks before it, which is checked: without them, a tree could describe deep stacks in few bytes.

use super::text::Text;
use crate::ImportError;
use crate::import::valgrind_frames::Frames;
use rustc_hash::FxHashMap;

/// What our export writes for bytes without a stack.
const NO_STACK: &str = "[no stack]";
/// The name of what massif added up over many small places.
const BELOW: &str = "[below massif's threshold]";

/// The texts of frames, each stored once, for all trees of a file.
#[derive(Default)]
pub(super) struct Names {
    texts: Vec<String>,
    numbers: FxHashMap<String, u32>,
}

/// The tree of a snapshot.
pub(super) struct Tree {
    /// The sum of their bytes is that of the snapshot.
    pub(super) leaves: Vec<Leaf>,
    /// The text beside the root, which says what is counted.
    pub(super) title: String,
}

/// Bytes of one stack.
#[derive(Clone)]
pub(super) struct Leaf {
    /// Numbers of frames. Empty if the file names no stack, shorter than the true stack if callers were below massif's threshold.
    pub(super) innermost_first: Vec<u32>,
    pub(super) bytes: u64,
}

/// A node whose children are being read.
struct Open {
    frame: Option<u32>,
    bytes: u64,
    children_left: u64,
    children_bytes: u64,
}

/// One line: `n2: 77 0x12: work (a.c:3)`.
struct Node<'a> {
    depth: usize,
    children: u64,
    bytes: u64,
    text: &'a str,
}

impl Names {
    fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.texts.len() as u32;
        self.texts.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }

    /// Returns the frames by the same numbers.
    pub(super) fn frames(&self, file_bytes: u64) -> Frames {
        Frames::new(&self.texts, file_bytes)
    }
}

/// Parses the tree of a snapshot with this number of bytes.
pub(super) fn read(text: &mut Text<'_>, names: &mut Names, heap_bytes: u64) -> Result<Tree, ImportError> {
    let (mut leaves, mut title) = (Vec::new(), String::new());
    // The first is the snapshot itself, whose only child is the tree's root.
    let mut open = vec![Open { frame: None, bytes: heap_bytes, children_left: 1, children_bytes: 0 }];
    while let Some(parent) = open.last_mut() {
        if parent.children_left == 0 {
            close(&mut open, &mut leaves);
            continue;
        }
        let bytes_left = parent.bytes - parent.children_bytes;
        let Some(line) = text.next()? else { return Err(text.expected("a line of the heap tree")) };
        let Some(node) = node_of(&line) else {
            return Err(text.expected("a line of the heap tree, such as n0: 12 0x34: main (a.c:5)"));
        };
        if node.depth + 1 != open.len() {
            return Err(text.expected(format!("a line of the heap tree behind {} blanks", open.len() - 1)));
        }
        if node.bytes > bytes_left {
            return Err(
                text.expected(format!("no more than the {bytes_left} bytes that are left of the node above"))
            );
        }
        if let Some(parent) = open.last_mut() {
            parent.children_left -= 1;
            parent.children_bytes += node.bytes;
        }
        let frame = match open.len() {
            1 => {
                title = node.text.to_owned();
                None
            }
            // Right below the root nothing else would say what these bytes are.
            2 if is_sum(node.text) && node.text != NO_STACK => Some(names.number(BELOW)),
            _ if is_sum(node.text) => None,
            _ => Some(names.number(node.text)),
        };
        open.push(Open { frame, bytes: node.bytes, children_left: node.children, children_bytes: 0 });
    }
    Ok(Tree { leaves, title })
}

/// Ends the innermost node. The bytes that its children do not have are its own.
fn close(open: &mut Vec<Open>, leaves: &mut Vec<Leaf>) {
    let own = open.last().map_or(0, |node| node.bytes - node.children_bytes);
    if own > 0 {
        let innermost_first = open.iter().filter_map(|node| node.frame).collect();
        leaves.push(Leaf { innermost_first, bytes: own });
    }
    open.pop();
}

fn node_of(line: &str) -> Option<Node<'_>> {
    let rest = line.trim_start_matches(' ');
    let depth = line.len() - rest.len();
    let (children, rest) = rest.strip_prefix('n')?.split_once(": ")?;
    let (bytes, text) = rest.split_once(' ').unwrap_or((rest, ""));
    Some(Node { depth, children: children.parse().ok()?, bytes: bytes.parse().ok()?, text: text.trim() })
}

/// Returns whether the text is `in 3 places, all below massif's threshold (1.00%)`, or what we write for bytes without a stack.
fn is_sum(text: &str) -> bool {
    let count = text.strip_prefix("in ").and_then(|text| text.split_once(" place"));
    text == NO_STACK || count.is_some_and(|(count, _)| count.parse::<u64>().is_ok())
}
