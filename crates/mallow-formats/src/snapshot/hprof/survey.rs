//! The first pass over a dump: its objects and classes. References can be resolved only when all addresses are known.

use super::classes::{Classes, Number, PRIMITIVES, primitive_array, readable};
use super::layout::{Layout, Occupied};
use super::records::{Array, ArrayKind, ClassDump, Frame, Header, Instance, LoadClass, Visitor, type_bytes};
use super::texts::Texts;
use mallow_heapsnap::{GraphParts, ObjectId};
use rustc_hash::{FxHashMap, FxHashSet};

/// In [`Survey::class_of`]: the object is an array of references.
pub(super) const OBJECTS: Number = 1 << 31;
/// In [`Survey::class_of`]: the object represents a class. No type has this code.
pub(super) const MIRROR: Number = 0;
/// The maximum number of neighbours that are examined to find the layout.
const NEIGHBOURS_MAX: usize = 1 << 20;
/// With fewer neighbours, the most frequent layout is assumed.
const NEIGHBOURS_MIN: usize = 64;
/// The maximum distance of neighbours.
const NEIGHBOUR_BYTES_MAX: u64 = 1 << 16;

/// The results of the first pass.
#[derive(Debug)]
pub(super) struct Survey {
    pub(super) header: Header,
    pub(super) texts: Texts,
    pub(super) classes: Classes,
    pub(super) ids: Vec<u64>,
    /// The number of each object's class.
    pub(super) class_of: Vec<Number>,
    /// The lengths of arrays; for other objects, the size of their fields in the file, in bytes.
    pub(super) lens: Vec<u32>,
    pub(super) traces: Traces,
    /// Tag and object.
    pub(super) roots: FxHashSet<(u8, u64)>,
    /// The number of the class `java.lang.Class`, if it was seen.
    pub(super) mirrors: Option<Number>,
    /// The classes and the objects that represent them, ascending by object.
    pub(super) mirror_classes: Vec<(ObjectId, Number)>,
    /// Objects beyond the capacity of a graph.
    pub(super) left_out: u64,
}

/// The stack traces at which objects were allocated.
#[derive(Debug, Default)]
pub(super) struct Traces {
    frames: FxHashMap<u64, Frame>,
    /// The topmost frame of each trace.
    tops: FxHashMap<u32, u64>,
    /// The trace of each object; empty as long as all have the same.
    of_objects: Vec<u32>,
    first: u32,
}

/// The layout, and how it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) layout: Layout,
    /// The number of objects that end where the next one begins, and of all that were examined; `None` if there were too few.
    pub(super) neighbours: Option<(usize, usize)>,
}

impl Survey {
    pub(super) fn new(header: Header) -> Survey {
        Survey {
            header,
            texts: Texts::default(),
            classes: Classes::default(),
            ids: Vec::new(),
            class_of: Vec::new(),
            lens: Vec::new(),
            traces: Traces::default(),
            roots: FxHashSet::default(),
            mirrors: None,
            mirror_classes: Vec::new(),
            left_out: 0,
        }
    }

    #[inline]
    fn push(&mut self, id: u64, class: Number, len: u32, trace: u32) -> ObjectId {
        let object = ObjectId(self.ids.len() as u32);
        if self.ids.len() == GraphParts::OBJECTS_MAX {
            self.left_out += 1;
            return ObjectId(object.0 - 1);
        }
        self.traces.push(trace, self.ids.len());
        self.ids.push(id);
        self.class_of.push(class);
        self.lens.push(len);
        object
    }

    /// Returns the size of each class's objects; `None` for arrays and unknown classes.
    fn instance_bytes(&self, layout: &Layout) -> Vec<Option<u64>> {
        let occupied = self.classes.occupied(layout, &self.texts);
        let of = |(number, occupied): (usize, &Option<Occupied>)| {
            if self.header.is_android {
                return self
                    .classes
                    .dumped(number as u32)
                    .map(|dumped| layout.aligned(dumped.instance_bytes.into()));
            }
            occupied.as_ref().map(|occupied| layout.instance_bytes(occupied))
        };
        occupied.iter().enumerate().map(of).collect()
    }

    /// Finds the layout by adjacent objects.
    pub(super) fn layout(&self) -> Chosen {
        let known = || self.ids.iter().copied().filter(|id| *id != 0);
        let alignment = match known().fold(0, |bits, id| bits | id) {
            // So few may happen to be at multiples of a larger alignment.
            _ if self.ids.len() < NEIGHBOURS_MIN => 8,
            bits => 1 << bits.trailing_zeros().clamp(3, 8),
        };
        let (first, last) = (known().min().unwrap_or(0), known().max().unwrap_or(0));
        let layouts = Layout::all(self.header.id_bytes, first, last, alignment);
        let sample: Vec<usize> = (1..self.ids.len())
            .filter(|next| self.ids[*next].wrapping_sub(self.ids[next - 1]) <= NEIGHBOUR_BYTES_MAX)
            .map(|next| next - 1)
            .filter(|object| self.class_of[*object] != MIRROR)
            .take(NEIGHBOURS_MAX)
            .collect();
        if sample.len() < NEIGHBOURS_MIN {
            return Chosen { layout: layouts[0], neighbours: None };
        }
        let score = |layout: &Layout| {
            let sizes = self.instance_bytes(layout);
            let touches = |object: &&usize| {
                self.object_bytes(**object, layout, &sizes) == self.ids[**object + 1] - self.ids[**object]
            };
            sample.iter().filter(touches).count()
        };
        let mut best = (layouts[0], score(&layouts[0]));
        for layout in &layouts[1..] {
            let score = score(layout);
            if score > best.1 {
                best = (*layout, score);
            }
        }
        Chosen { layout: best.0, neighbours: Some((best.1, sample.len())) }
    }

    fn object_bytes(&self, object: usize, layout: &Layout, instance_bytes: &[Option<u64>]) -> u64 {
        let (class, len) = (self.class_of[object], self.lens[object]);
        if class & OBJECTS != 0 {
            return layout.array_bytes(layout.reference_bytes, len);
        }
        if class < PRIMITIVES {
            let element = type_bytes(class as u8, self.header.id_bytes).unwrap_or(1);
            return layout.array_bytes(element as u32, len);
        }
        let guessed = || layout.aligned(u64::from(layout.header_bytes) + u64::from(len));
        instance_bytes[class as usize].unwrap_or_else(guessed)
    }

    /// Computes the sizes of all objects, in their order.
    pub(super) fn sizes(&self, layout: &Layout, parts: &mut GraphParts) {
        let instance_bytes = self.instance_bytes(layout);
        parts.sizes.reserve_exact(self.ids.len());
        (0..self.ids.len())
            .for_each(|object| parts.sizes.push(self.object_bytes(object, layout, &instance_bytes)));
        // The static fields of a class are in the object that represents it.
        let mirror_bytes = self.mirrors.and_then(|mirrors| instance_bytes[mirrors as usize]).unwrap_or(0);
        for (object, class) in &self.mirror_classes {
            let statics =
                self.classes.dumped(*class).map_or(0, |dumped| self.classes.static_bytes(dumped, layout));
            let bytes = mirror_bytes + statics;
            parts.sizes.set(object.0 as usize, bytes);
        }
    }

    /// Returns the name of a class, in the spelling of its objects.
    pub(super) fn class_name(&self, number: Number) -> String {
        if number < PRIMITIVES {
            return primitive_array(number as u8).to_owned();
        }
        match self.classes.name(number).and_then(|name| self.texts.text(name)) {
            Some(name) => readable(&name),
            None => format!("(unknown class {:#x})", self.classes.id(number)),
        }
    }
}

impl Visitor for Survey {
    const CONTENTS: bool = false;

    fn text(&mut self, id: u64, text: &[u8]) {
        self.texts.add(id, text);
    }

    fn load_class(&mut self, load: LoadClass) {
        self.classes.load(load);
        if self.texts.bytes(load.name) == Some(b"java/lang/Class") {
            self.mirrors = self.classes.find(load.class);
        }
    }

    fn frame(&mut self, id: u64, frame: Frame) {
        self.traces.frames.insert(id, frame);
    }

    fn trace(&mut self, serial: u32, top_frame: u64) {
        self.traces.tops.insert(serial, top_frame);
    }

    fn root(&mut self, tag: u8, object: u64) {
        self.roots.insert((tag, object));
    }

    fn class(&mut self, class: &ClassDump) {
        let number = self.classes.number(class.id);
        if self.classes.dumped(number).is_some() {
            return;
        }
        let object = self.push(class.id, MIRROR, 0, class.trace);
        let is_java = |name| !self.texts.bytes(name).is_some_and(|name| name.starts_with(b"<"));
        self.classes.dump(class, object, is_java);
        self.mirror_classes.push((object, number));
    }

    #[inline]
    fn instance(&mut self, instance: Instance, _fields: &[u8]) {
        let class = self.classes.number(instance.class);
        self.push(instance.id, class, instance.field_bytes, instance.trace);
    }

    #[inline]
    fn array(&mut self, array: Array) {
        let class = match array.kind {
            ArrayKind::Objects(class) => self.classes.number(class) | OBJECTS,
            ArrayKind::Primitive(kind) | ArrayKind::Unknown(kind) => Number::from(kind),
        };
        self.push(array.id, class, array.len, array.trace);
    }
}

impl Traces {
    #[inline]
    fn push(&mut self, trace: u32, objects: usize) {
        if objects == 0 {
            self.first = trace;
        }
        if self.of_objects.is_empty() {
            if trace == self.first {
                return;
            }
            self.of_objects.resize(objects, self.first);
        }
        self.of_objects.push(trace);
    }

    /// Returns the topmost frame of the stack that allocated an object.
    pub(super) fn top_frame(&self, object: usize) -> Option<Frame> {
        let trace = self.of_objects.get(object).unwrap_or(&self.first);
        self.frames.get(self.tops.get(trace)?).copied()
    }

    /// Returns whether any object has one.
    pub(super) fn any(&self) -> bool {
        !self.frames.is_empty() && (!self.of_objects.is_empty() || self.tops.contains_key(&self.first))
    }
}
