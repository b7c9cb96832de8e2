//! CPython's heap as mallow's own hook writes it: one JSON line for each object. The guide's page on Python describes the lines.

use crate::source::Source;
use crate::{Format, ImportError};
use mallow_base::grouped;
use mallow_heapsnap::{
    AddressIndex, Class, ClassId, DuplicateString, DuplicateStrings, EdgeLabel, Graph, GraphParts, KindId,
    ObjectId, Root, Runtime, Site, Snapshot,
};
use rustc_hash::FxHashMap;
use serde::Deserialize;
use std::borrow::Cow;
use std::io::{BufRead, BufReader};

/// The supported version.
const VERSION: &str = "python-heap/1";

/// Larger blocks are not allocated by Python's own allocator.
const OWN_BYTES_MAX: u64 = 512;

/// A line; its first key says of which kind.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    mallow: Option<Cow<'a, str>>,
    /// A type: its number, with `name` and `kind`.
    #[serde(rename = "type")]
    type_number: Option<u32>,
    #[serde(borrow)]
    kind: Option<Cow<'a, str>>,
    /// A line of the program: its number, with `file` and `line`.
    site: Option<u32>,
    #[serde(borrow)]
    file: Option<Cow<'a, str>>,
    line: Option<u32>,
    /// A root, which holds the objects of `r` from outside.
    #[serde(borrow)]
    root: Option<Cow<'a, str>>,
    /// An object: its address, followed by the rest.
    at: Option<u64>,
    #[serde(rename = "t")]
    class: Option<u32>,
    /// `None` if the interpreter could not be asked.
    #[serde(rename = "s")]
    bytes: Option<u64>,
    #[serde(rename = "r", default)]
    references: Vec<u64>,
    #[serde(rename = "l", borrow, default)]
    labels: Vec<Option<Label<'a>>>,
    #[serde(rename = "i", default)]
    is_indexed: bool,
    #[serde(rename = "m")]
    made_at: Option<u32>,
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    /// A string's hash, its length and its beginning.
    #[serde(rename = "h")]
    hash: Option<u64>,
    #[serde(rename = "n", default)]
    length: u64,
    #[serde(rename = "v", borrow)]
    text: Option<Cow<'a, str>>,
    /// The last line: the number of objects.
    end: Option<u64>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Label<'a> {
    Element(u32),
    #[serde(borrow)]
    Name(Cow<'a, str>),
}

/// Parses a snapshot. A truncated file is parsed up to its end.
pub(crate) fn read(source: Source<'_>) -> Result<Snapshot, ImportError> {
    let mut lines = BufReader::with_capacity(1 << 20, source.reader());
    let mut reader = Reader::default();
    let (mut line, mut at) = (Vec::new(), 0u64);
    loop {
        line.clear();
        match lines.read_until(b'\n', &mut line) {
            Ok(0) => break,
            Ok(read) => {
                reader.take(line.trim_ascii(), at)?;
                at += read as u64;
            }
            // A truncated archive is parsed up to its end.
            Err(error) => {
                reader.failure = Some(format!("it cannot be read behind byte {at}: {error}"));
                break;
            }
        }
    }
    Ok(reader.finish())
}

#[derive(Default)]
struct Reader {
    parts: GraphParts,
    /// The class of each type's number, in order of appearance.
    classes: FxHashMap<u32, ClassId>,
    sites: FxHashMap<u32, u32>,
    references: Vec<u64>,
    roots: Vec<(mallow_heapsnap::NameId, u64)>,
    strings: Strings,
    own_bytes: u64,
    root_lines: u64,
    lines: u64,
    damaged: u64,
    first_damage: Option<u64>,
    failure: Option<String>,
    end: Option<u64>,
    unknown_sizes: u64,
}

impl Reader {
    fn take(&mut self, text: &[u8], at: u64) -> Result<(), ImportError> {
        if text.is_empty() {
            return Ok(());
        }
        self.lines += 1;
        let line = serde_json::from_slice::<Line<'_>>(text).ok().filter(|line| self.is_understood(line));
        let Some(line) = line else {
            self.damaged += 1;
            self.first_damage.get_or_insert(at);
            return Ok(());
        };
        if let Some(version) = line.mallow.as_deref().filter(|version| *version != VERSION) {
            let reason =
                format!("it is of the kind {version}, and this mallow reads {VERSION}; use a newer mallow");
            return Err(ImportError::Unsupported { format: Format::PythonHeap, reason });
        }
        if line.at.is_some() {
            self.take_object(line)?;
        } else {
            self.take_other(line);
        }
        Ok(())
    }

    /// Returns whether a line has all required keys.
    fn is_understood(&self, line: &Line<'_>) -> bool {
        let is_object = line.class.is_some_and(|class| self.classes.contains_key(&class));
        match line.at {
            Some(_) => is_object && (line.labels.is_empty() || line.labels.len() == line.references.len()),
            None if line.type_number.is_some() => line.name.is_some() && line.kind.is_some(),
            None if line.site.is_some() => line.file.is_some() && line.line.is_some(),
            None => line.mallow.is_some() || line.root.is_some() || line.end.is_some(),
        }
    }

    fn take_other(&mut self, line: Line<'_>) {
        let parts = &mut self.parts;
        if let (Some(number), Some(name), Some(kind)) = (line.type_number, &line.name, &line.kind) {
            let kind = KindId(parts.names.intern(kind));
            parts.classes.push(Class { kind, name: parts.names.intern(name), object: None });
            self.classes.insert(number, ClassId(parts.classes.len() as u32 - 1));
        } else if let (Some(number), Some(file), Some(line)) = (line.site, &line.file, line.line) {
            parts.sites.push(Site { file: parts.names.intern(file), line });
            self.sites.insert(number, parts.sites.len() as u32);
        } else if let Some(root) = &line.root {
            self.root_lines += 1;
            let name = parts.names.intern(root);
            self.roots.extend(line.references.iter().map(|address| (name, *address)));
        } else if let Some(end) = line.end {
            self.end = Some(end);
        }
    }

    fn take_object(&mut self, line: Line<'_>) -> Result<(), ImportError> {
        let parts = &mut self.parts;
        if parts.ids.len() >= GraphParts::OBJECTS_MAX
            || self.references.len() + line.references.len() > u32::MAX as usize
        {
            let reason = "it has more objects or references than fit".to_owned();
            return Err(ImportError::Unsupported { format: Format::PythonHeap, reason });
        }
        let object = ObjectId(parts.ids.len() as u32);
        parts.ids.push(line.at.unwrap_or_default());
        parts.class_of.push(self.classes[&line.class.unwrap_or_default()]);
        self.unknown_sizes += u64::from(line.bytes.is_none());
        let bytes = line.bytes.unwrap_or(0);
        parts.sizes.push(bytes);
        parts.site_of.push(line.made_at.and_then(|site| self.sites.get(&site)).copied().unwrap_or(0));
        parts.edge_starts.push(self.references.len() as u32);
        self.references.extend(&line.references);
        for place in 0..line.references.len() {
            let label = match line.labels.get(place) {
                Some(Some(Label::Name(name))) => Some(EdgeLabel::Name(parts.names.intern(name))),
                Some(Some(Label::Element(index))) => Some(EdgeLabel::Element(*index)),
                _ => line.is_indexed.then_some(EdgeLabel::Element(place as u32)),
            };
            parts.edge_labels.push(GraphParts::packed_label(label));
        }
        if let Some(name) = &line.name {
            let name = parts.names.intern(name);
            parts.object_names.push((object, name));
        }
        if bytes <= OWN_BYTES_MAX {
            self.own_bytes = self.own_bytes.saturating_add(bytes);
        }
        if let Some(hash) = line.hash {
            self.strings.add((hash, line.length, line.class), bytes, line.text.as_deref());
        }
        Ok(())
    }

    fn finish(self) -> Snapshot {
        let objects = self.parts.ids.len() as u64;
        let warnings = self.warnings(objects);
        let Reader { mut parts, references, roots, strings, own_bytes, root_lines, lines, .. } = self;
        let (index, _) = AddressIndex::new(&parts.ids);
        parts.edge_starts.push(references.len() as u32);
        let dangling = resolve(&mut parts, &references, &index);
        let found = |(name, address)| index.get(address).map(|object| Root { name, object });
        parts.roots = roots.into_iter().filter_map(found).collect();
        let mut notes = vec![
            "Sizes are those of sys.getsizeof. Arrays that attributes lie in before an object has a dictionary (Python 3.11 and 3.12), and \
             what extensions take from malloc, are in none."
                .to_owned(),
        ];
        if dangling > 0 {
            notes.push(format!("references that lead to no object of the snapshot: {}", grouped(dangling)));
        }
        if root_lines == 0 {
            notes.push("the file has no roots, so it does not show which objects hold which".to_owned());
        }
        Snapshot {
            graph: Graph::new(Runtime::Python, parts),
            strings: strings.duplicates(),
            is_partial: root_lines == 0,
            slot_bytes: Some(own_bytes),
            other_lines: lines - objects.min(lines),
            warnings,
            notes,
        }
    }

    fn warnings(&self, objects: u64) -> Vec<String> {
        let mut warnings: Vec<String> = self.failure.iter().cloned().collect();
        if let Some(first) = self.first_damage {
            warnings.push(format!(
                "{} of {} lines are damaged and left out, the first at byte {first}",
                grouped(self.damaged),
                grouped(self.lines)
            ));
        }
        if self.unknown_sizes > 0 {
            let count = grouped(self.unknown_sizes);
            warnings.push(format!("{count} objects have no size and count as 0 bytes"));
        }
        match self.end {
            None => warnings.push(format!("it ends before its end: {} objects were read", grouped(objects))),
            Some(end) if end != objects && self.damaged == 0 => {
                warnings.push(format!("{} of {} objects are there", grouped(objects), grouped(end)));
            }
            Some(_) => {}
        }
        warnings
    }
}

/// Resolves references, and removes those to unknown addresses; returns how many these are.
fn resolve(parts: &mut GraphParts, references: &[u64], index: &AddressIndex) -> u64 {
    let mut kept = 0;
    let mut start = 0;
    for object in 0..parts.ids.len() {
        let end = parts.edge_starts[object + 1] as usize;
        parts.edge_starts[object] = kept as u32;
        for (at, reference) in references.iter().enumerate().take(end).skip(start) {
            if let Some(target) = index.get(*reference) {
                parts.edge_targets.push(GraphParts::packed_target(target, true));
                parts.edge_labels[kept] = parts.edge_labels[at];
                kept += 1;
            }
        }
        start = end;
    }
    if let Some(last) = parts.edge_starts.last_mut() {
        *last = kept as u32;
    }
    parts.edge_labels.truncate(kept);
    (references.len() - kept) as u64
}

/// How often each content occurs. Contents are equal if their 64-bit hashes, their lengths and their types are.
#[derive(Default)]
struct Strings(FxHashMap<(u64, u64, Option<u32>), DuplicateString>);

impl Strings {
    fn add(&mut self, key: (u64, u64, Option<u32>), bytes: u64, text: Option<&str>) {
        // While strings are counted, `wasted_bytes` is the size of the smallest.
        let content = self.0.entry(key).or_insert_with(|| DuplicateString {
            text: text.map_or_else(|| format!("{:016x}", key.0), str::to_owned),
            is_whole: text.is_some_and(|text| text.chars().count() as u64 >= key.1),
            strings: 0,
            bytes: 0,
            wasted_bytes: bytes,
        });
        content.strings += 1;
        content.bytes = content.bytes.saturating_add(bytes);
        content.wasted_bytes = content.wasted_bytes.min(bytes);
    }

    fn duplicates(self) -> DuplicateStrings {
        let mut repeated: Vec<DuplicateString> =
            self.0.into_values().filter(|content| content.strings > 1).collect();
        for content in &mut repeated {
            content.wasted_bytes = content.bytes - content.wasted_bytes;
        }
        DuplicateStrings::new(repeated, 0)
    }
}

#[cfg(test)]
#[path = "python_tests.rs"]
mod tests;
