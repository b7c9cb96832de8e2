//! The positions of the references among an object's fields: a plan for each class, made when its first object is read.
//!
//! The fields of a class come first in the file, followed by those of its super classes.

use super::classes::{Classes, Number};
use super::records::{INT, OBJECT, type_bytes};
use super::texts::{Texts, UsedNames};
use mallow_heapsnap::{EdgeLabel, GraphParts, Names};
use rustc_hash::FxHashMap;

/// How to read an object of a class.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// The size of all fields in the file, or of those that the plan was made for.
    pub(super) field_bytes: usize,
    /// Whether the class has more fields than the plan was made for.
    pub(super) is_cut: bool,
    pub(super) references: Vec<Reference>,
    /// Whether the object defines classes.
    pub(super) is_loader: bool,
    /// For strings.
    pub(super) string: Option<StringFields>,
}

/// A field with a reference.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reference {
    /// Its position.
    pub(super) at: usize,
    /// In the format of [`GraphParts::packed_label`].
    pub(super) label: u32,
    pub(super) holds: bool,
}

/// The fields of `java.lang.String` in addition to its characters.
#[derive(Clone, Copy, Debug)]
pub(super) struct StringFields {
    /// The position of the byte that distinguishes bytes from UTF-16, from JDK 9 on.
    pub(super) coder: Option<usize>,
    /// Whether the characters may be a part of an array: in JDK 6.
    pub(super) is_part: bool,
}

/// Makes plans.
#[derive(Debug)]
pub(super) struct Planner<'a> {
    classes: &'a Classes,
    texts: &'a Texts,
    pub(super) used: UsedNames,
    pub(super) names: Names,
    id_bytes: usize,
}

impl<'a> Planner<'a> {
    pub(super) fn new(classes: &'a Classes, texts: &'a Texts, names: Names, id_bytes: usize) -> Planner<'a> {
        Planner { classes, texts, used: UsedNames::default(), names, id_bytes }
    }

    /// Returns the classes that each loader defined.
    pub(super) fn by_loader(&self) -> FxHashMap<u64, Vec<u64>> {
        self.classes.by_loader(self.texts)
    }

    /// Returns the label of a field.
    pub(super) fn label(&mut self, name: u64) -> u32 {
        let name = self.used.name(name, self.texts, &mut self.names);
        GraphParts::packed_label(Some(EdgeLabel::Name(name)))
    }

    /// Returns the plan of a class for objects with this size of fields: the plan must not be larger than the file justifies.
    pub(super) fn plan(&mut self, number: Number, bytes_max: usize) -> Plan {
        let class_name = |number| self.classes.name(number).and_then(|name| self.texts.bytes(name));
        let is_string = class_name(number) == Some(b"java/lang/String");
        let is_loader =
            self.classes.chain(number).any(|(class, _)| class_name(class) == Some(b"java/lang/ClassLoader"));
        let is_soft = self
            .classes
            .chain(number)
            .any(|(class, _)| class_name(class) == Some(b"java/lang/ref/SoftReference"));
        let mut plan = Plan {
            field_bytes: 0,
            is_cut: false,
            is_loader,
            references: Vec::new(),
            string: is_string.then_some(StringFields { coder: None, is_part: false }),
        };
        for (class, dumped) in self.classes.chain(number) {
            let is_reference = class_name(class) == Some(b"java/lang/ref/Reference");
            for (name, kind) in &dumped.fields {
                let at = plan.field_bytes;
                let end = at + type_bytes(*kind, self.id_bytes).unwrap_or(0);
                if end > bytes_max {
                    return Plan { is_cut: true, field_bytes: bytes_max, ..plan };
                }
                plan.field_bytes = end;
                let text = self.texts.bytes(*name);
                if *kind == OBJECT {
                    let holds = is_soft || !is_reference || text != Some(b"referent");
                    let label = self.label(*name);
                    plan.references.push(Reference { at, label, holds });
                } else if let Some(string) = &mut plan.string {
                    match text {
                        Some(b"coder") => string.coder = Some(at),
                        Some(b"offset") if *kind == INT => string.is_part = true,
                        _ => {}
                    }
                }
            }
        }
        plan
    }
}
