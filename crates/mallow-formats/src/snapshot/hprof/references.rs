//! The second pass over a dump: the references, and the contents of strings.
//!
//! One thread reads the file, a second one extracts references from objects, a third one looks up the objects at
//! their addresses. The last is most of the work, since each look-up misses the processor's caches.

use super::classes::Classes;
use super::contents::{Coder, Contents};
use super::plans::{Plan, Planner};
use super::records::{Array, ArrayKind, BYTE, CHAR, ClassDump, Instance, OBJECT, Visitor, number};
use mallow_heapsnap::{AddressIndex, EdgeLabel, GraphParts, ObjectId};
use rustc_hash::FxHashMap;
use std::sync::mpsc::{Receiver, SyncSender};

/// The number of references that are passed on at once.
const BATCH_LEN: usize = 1 << 14;

/// References of objects, one object after the other.
#[derive(Debug, Default)]
pub(super) struct Batch {
    references: Vec<Reference>,
    /// The ends of the references of each object. References after the last end belong to an object that continues in the next batch.
    ends: Vec<u32>,
}

/// A reference to an address.
#[derive(Clone, Copy, Debug)]
struct Reference {
    address: u64,
    label: u32,
    holds: bool,
}

/// Extracts references from objects.
pub(super) struct Extractor<'a> {
    classes: &'a Classes,
    planner: Planner<'a>,
    plans: Vec<Option<Plan>>,
    classes_of_loaders: FxHashMap<u64, Vec<u64>>,
    labels: ClassLabels,
    id_bytes: usize,
    batch: Batch,
    batches: SyncSender<Batch>,
    /// How many objects are complete.
    objects: u32,
    pub(super) contents: Contents,
    /// Of each string, in the order of the file.
    pub(super) coders: Vec<Coder>,
    /// The number of objects whose size is not that of their class's fields.
    pub(super) odd: u64,
}

/// The labels of a class's references in addition to its static fields.
#[derive(Clone, Copy, Debug)]
struct ClassLabels {
    super_class: u32,
    loader: u32,
    signers: u32,
    protection_domain: u32,
    /// From a loader to the classes that it defined.
    defined: u32,
}

/// The columns of references.
#[derive(Debug)]
pub(super) struct Edges {
    pub(super) starts: Vec<u32>,
    pub(super) targets: Vec<u32>,
    pub(super) labels: Vec<u32>,
    /// References to addresses without an object.
    pub(super) dangling: u64,
    /// References beyond the capacity of a graph.
    pub(super) left_out: u64,
}

impl<'a> Extractor<'a> {
    pub(super) fn new(
        classes: &'a Classes,
        mut planner: Planner<'a>,
        id_bytes: usize,
        batches: SyncSender<Batch>,
    ) -> Extractor<'a> {
        let mut label =
            |name: &str| GraphParts::packed_label(Some(EdgeLabel::Name(planner.names.intern(name))));
        let labels = ClassLabels {
            super_class: label("<super class>"),
            loader: label("<class loader>"),
            signers: label("<signers>"),
            protection_domain: label("<protection domain>"),
            defined: label("<class>"),
        };
        Extractor {
            classes,
            classes_of_loaders: planner.by_loader(),
            planner,
            plans: vec![None; classes.len()],
            labels,
            id_bytes,
            batch: Batch::default(),
            batches,
            objects: 0,
            contents: Contents::default(),
            coders: Vec::new(),
            odd: 0,
        }
    }

    /// Passes the rest on, and returns the contents of strings, their encodings, and the names.
    pub(super) fn finish(mut self) -> Extracted {
        self.send();
        Extracted { contents: self.contents, coders: self.coders, names: self.planner.names, odd: self.odd }
    }

    #[inline]
    fn push(&mut self, address: u64, label: u32, holds: bool) {
        if address != 0 {
            self.batch.references.push(Reference { address, label, holds });
        }
    }

    #[inline]
    fn end_object(&mut self) {
        self.objects += 1;
        self.batch.ends.push(self.batch.references.len() as u32);
        if self.batch.references.len() >= BATCH_LEN || self.batch.ends.len() >= BATCH_LEN {
            self.send();
        }
    }

    fn send(&mut self) {
        let next =
            Batch { references: Vec::with_capacity(2 * BATCH_LEN), ends: Vec::with_capacity(BATCH_LEN) };
        // The receiver is gone if the other thread has panicked, which is reported there.
        let _ = self.batches.send(std::mem::replace(&mut self.batch, next));
    }
}

/// The results of the second pass in addition to references.
pub(super) struct Extracted {
    pub(super) contents: Contents,
    pub(super) coders: Vec<Coder>,
    pub(super) names: mallow_heapsnap::Names,
    pub(super) odd: u64,
}

impl Visitor for Extractor<'_> {
    const CONTENTS: bool = true;

    fn class(&mut self, class: &ClassDump) {
        let here = ObjectId(self.objects);
        let is_first = self.classes.find(class.id).and_then(|number| self.classes.dumped(number));
        if is_first.is_none_or(|dumped| dumped.object != here) {
            return;
        }
        let labels = self.labels;
        self.push(class.super_class, labels.super_class, true);
        self.push(class.loader, labels.loader, true);
        self.push(class.signers, labels.signers, true);
        self.push(class.protection_domain, labels.protection_domain, true);
        for (name, kind, value) in &class.statics {
            if *kind == OBJECT && *value != 0 {
                let label = self.planner.label(*name);
                self.push(*value, label, true);
            }
        }
        self.end_object();
    }

    #[inline]
    fn instance(&mut self, instance: Instance, fields: &[u8]) {
        let Some(class) = self.classes.find(instance.class) else { return self.end_object() };
        let plan = match &mut self.plans[class as usize] {
            Some(plan) if !plan.is_cut || fields.len() <= plan.field_bytes => plan,
            none => none.insert(self.planner.plan(class, fields.len())),
        };
        if plan.is_cut || plan.field_bytes != fields.len() {
            self.odd += u64::from(self.classes.dumped(class).is_some());
        }
        for reference in &plan.references {
            let Some(bytes) = fields.get(reference.at..reference.at + self.id_bytes) else { break };
            let address = number(bytes);
            if address != 0 {
                let (label, holds) = (reference.label, reference.holds);
                self.batch.references.push(Reference { address, label, holds });
            }
        }
        if plan.is_loader {
            let label = self.labels.defined;
            // Once: a malicious file may contain a loader many times.
            for class in self.classes_of_loaders.remove(&instance.id).into_iter().flatten() {
                self.batch.references.push(Reference { address: class, label, holds: true });
            }
        }
        if let Some(string) = plan.string {
            let coder = match string.coder.and_then(|at| fields.get(at)) {
                _ if string.is_part => Coder::Part,
                Some(0) => Coder::Latin1,
                Some(_) => Coder::Utf16,
                None => Coder::ByArray,
            };
            self.coders.push(coder);
        }
        self.end_object();
    }

    fn elements(&mut self, kind: ArrayKind, first: u32, bytes: &[u8]) {
        match kind {
            ArrayKind::Objects(_) => {
                for (index, address) in (first..).zip(bytes.chunks_exact(self.id_bytes)) {
                    let label = GraphParts::packed_label(Some(EdgeLabel::Element(index)));
                    self.push(number(address), label, true);
                }
                if self.batch.references.len() >= BATCH_LEN {
                    self.send();
                }
            }
            ArrayKind::Primitive(CHAR | BYTE) => self.contents.elements(first, bytes),
            ArrayKind::Primitive(_) | ArrayKind::Unknown(_) => {}
        }
    }

    #[inline]
    fn array(&mut self, array: Array) {
        let object = ObjectId(self.objects);
        match array.kind {
            ArrayKind::Primitive(kind @ (CHAR | BYTE)) => self.contents.array(object, kind, array.len),
            ArrayKind::Unknown(_) => self.contents.push_unknown(object),
            _ => {}
        }
        self.end_object();
    }
}

impl Edges {
    /// Looks up the references of this number of objects.
    pub(super) fn collect(batches: &Receiver<Batch>, index: &AddressIndex, objects: usize) -> Edges {
        let mut edges = Edges {
            starts: Vec::with_capacity(objects + 1),
            targets: Vec::new(),
            labels: Vec::new(),
            dangling: 0,
            left_out: 0,
        };
        edges.starts.push(0);
        while let Ok(batch) = batches.recv() {
            let mut from = 0;
            for end in batch.ends {
                edges.add(&batch.references[from..end as usize], index);
                edges.starts.push(edges.targets.len() as u32);
                from = end as usize;
            }
            edges.add(&batch.references[from..], index);
        }
        // The file may have grown or shrunk since the first pass, and it may end inside an object.
        edges.starts.truncate(objects + 1);
        let end = *edges.starts.last().expect("it begins with 0");
        edges.starts.resize(objects + 1, end);
        edges.targets.truncate(end as usize);
        edges.labels.truncate(end as usize);
        edges.targets.shrink_to_fit();
        edges.labels.shrink_to_fit();
        edges
    }

    fn add(&mut self, references: &[Reference], index: &AddressIndex) {
        for reference in references {
            let Some(target) = index.get(reference.address) else {
                self.dangling += 1;
                continue;
            };
            if self.targets.len() == EDGES_MAX {
                self.left_out += 1;
                continue;
            }
            self.targets.push(GraphParts::packed_target(target, reference.holds));
            self.labels.push(reference.label);
        }
    }
}

/// Rows are counted with 32 bits.
const EDGES_MAX: usize = u32::MAX as usize;
