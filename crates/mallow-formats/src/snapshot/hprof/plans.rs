//! Where in an object's fields the references stand: a plan for each class, made when its first object is read.
//!
//! The fields of a class come first in the file, those of its super classes behind them.

use super::classes::{Classes, Number};
use super::records::{INT, OBJECT, type_bytes};
use super::texts::{Texts, UsedNames};
use mallow_heapsnap::{EdgeLabel, GraphParts, Names};
use rustc_hash::FxHashMap;

/// How to read an object of a class.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// What all fields have together in the file, or those that the plan was made for.
    pub(super) field_bytes: usize,
    /// Whether the class has more fields than the plan was made for.
    pub(super) is_cut: bool,
    pub(super) references: Vec<Reference>,
    /// Whether the object defines classes.
    pub(super) is_loader: bool,
    /// For strings.
    pub(super) string: Option<StringFields>,
}

/// A field that refers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reference {
    /// Where it stands.
    pub(super) at: usize,
    /// As [`GraphParts::packed_label`] has it.
    pub(super) label: u32,
    pub(super) holds: bool,
}

/// What `java.lang.String` has beside its characters.
#[derive(Clone, Copy, Debug)]
pub(super) struct StringFields {
    /// Where the byte stands that tells bytes from UTF-16, from JDK 9 on.
    pub(super) coder: Option<usize>,
    /// The characters may be a part of an array: in JDK 6.
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

    /// The classes that each loader defined.
    pub(super) fn by_loader(&self) -> FxHashMap<u64, Vec<u64>> {
        self.classes.by_loader(self.texts)
    }

    /// The label of a field.
    pub(super) fn label(&mut self, name: u64) -> u32 {
        let name = self.used.name(name, self.texts, &mut self.names);
        GraphParts::packed_label(Some(EdgeLabel::Name(name)))
    }

    /// The plan of a class whose objects have so many bytes of fields: what a class names beyond is not paid for by the file.
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
