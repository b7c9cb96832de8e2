//! The classes of a dump, their names, and the fields of their objects.
//!
//! Instances may come before their classes, so a class gets a number when its id is first seen.

use super::injected::{injected, order, padded};
use super::layout::{Layout, Occupied};
use super::records::{ClassDump, LoadClass, OBJECT, type_bytes};
use super::texts::Texts;
use mallow_heapsnap::ObjectId;
use rustc_hash::FxHashMap;

/// The number of a class, in the order in which ids were first seen. Those below [`PRIMITIVES`] are the arrays of primitive types.
pub(super) type Number = u32;

/// One more than the largest code of a type.
pub(super) const PRIMITIVES: Number = 16;
/// The maximum length of a chain of super classes. A damaged class that is its own super class would never end.
const SUPER_CLASSES_MAX: usize = 256;

/// All classes.
#[derive(Debug)]
pub(super) struct Classes {
    numbers: FxHashMap<u64, Number>,
    rows: Vec<Row>,
    dumped: Vec<Dumped>,
    /// Classes by the serial number that frames use.
    serials: FxHashMap<u32, Number>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Row {
    id: u64,
    /// The id of its name, or 0.
    name: u64,
    /// Its index in `dumped` plus 1, or 0.
    dumped: u32,
}

/// What a class's dump says about its objects.
#[derive(Clone, Debug)]
pub(super) struct Dumped {
    /// The object that represents the class.
    pub(super) object: ObjectId,
    super_class: u64,
    loader: u64,
    /// The size of its objects, according to the file.
    pub(super) instance_bytes: u32,
    /// Name and type of its fields, without those of super classes.
    pub(super) fields: Box<[(u64, u8)]>,
    /// The types of its static fields that are written in Java.
    pub(super) static_types: Box<[u8]>,
}

impl Default for Classes {
    fn default() -> Self {
        Classes {
            numbers: FxHashMap::default(),
            rows: vec![Row::default(); PRIMITIVES as usize],
            dumped: Vec::new(),
            serials: FxHashMap::default(),
        }
    }
}

impl Classes {
    /// Returns the number of an id, a new one if it was not seen before.
    #[inline]
    pub(super) fn number(&mut self, id: u64) -> Number {
        *self.numbers.entry(id).or_insert_with(|| {
            self.rows.push(Row { id, ..Row::default() });
            self.rows.len() as u32 - 1
        })
    }

    /// Returns the number of an id that was seen.
    #[inline]
    pub(super) fn find(&self, id: u64) -> Option<Number> {
        self.numbers.get(&id).copied()
    }

    pub(super) fn load(&mut self, load: LoadClass) {
        let number = self.number(load.class);
        self.rows[number as usize].name = load.name;
        self.serials.insert(load.serial, number);
    }

    /// Adds a class; returns whether it was not dumped before.
    pub(super) fn dump(
        &mut self,
        class: &ClassDump,
        object: ObjectId,
        is_java: impl Fn(u64) -> bool,
    ) -> bool {
        let number = self.number(class.id) as usize;
        if self.rows[number].dumped != 0 {
            return false;
        }
        let statics = class.statics.iter().filter(|(name, ..)| is_java(*name));
        self.dumped.push(Dumped {
            object,
            super_class: class.super_class,
            loader: class.loader,
            instance_bytes: class.instance_bytes,
            fields: class.fields.as_slice().into(),
            static_types: statics.map(|(_, kind, _)| *kind).collect(),
        });
        self.rows[number].dumped = self.dumped.len() as u32;
        true
    }

    /// Returns the number of classes.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn id(&self, number: Number) -> u64 {
        self.rows[number as usize].id
    }

    /// Returns the id of its name.
    pub(super) fn name(&self, number: Number) -> Option<u64> {
        Some(self.rows[number as usize].name).filter(|name| *name != 0)
    }

    pub(super) fn dumped(&self, number: Number) -> Option<&Dumped> {
        self.rows[number as usize].dumped.checked_sub(1).map(|at| &self.dumped[at as usize])
    }

    pub(super) fn of_serial(&self, serial: u32) -> Option<Number> {
        self.serials.get(&serial).copied()
    }

    /// Returns a class and its super classes, as far as they are dumped.
    pub(super) fn chain(&self, number: Number) -> impl Iterator<Item = (Number, &Dumped)> {
        let step =
            |(_, dumped): &(Number, &Dumped)| self.find(dumped.super_class).and_then(|above| self.row(above));
        std::iter::successors(self.row(number), step).take(SUPER_CLASSES_MAX)
    }

    fn row(&self, number: Number) -> Option<(Number, &Dumped)> {
        self.dumped(number).map(|dumped| (number, dumped))
    }

    /// Returns what the fields of each class occupy; `None` if its chain is incomplete.
    pub(super) fn occupied(&self, layout: &Layout, texts: &Texts) -> Vec<Option<Occupied>> {
        let mut known: Vec<Option<Occupied>> = vec![None; self.len()];
        for number in PRIMITIVES..self.len() as Number {
            // Down from the nearest super class that is known.
            let unknown: Vec<(Number, &Dumped)> =
                self.chain(number).take_while(|(class, _)| known[*class as usize].is_none()).collect();
            let Some((_, topmost)) = unknown.last() else { continue };
            let mut occupied = match self.find(topmost.super_class) {
                _ if topmost.super_class == 0 => layout.empty(),
                Some(above) => match known[above as usize].clone() {
                    Some(occupied) => occupied,
                    None => continue,
                },
                None => continue,
            };
            for (class, dumped) in unknown.into_iter().rev() {
                let name = self.name(class).and_then(|name| texts.bytes(name));
                let types = dumped.fields.iter().map(|(_, kind)| *kind);
                let has_field =
                    |text: &[u8]| dumped.fields.iter().any(|(name, _)| texts.bytes(*name) == Some(text));
                let types = types.chain(injected(name, has_field));
                occupied = layout.with_fields(occupied, types, order(name));
                occupied = padded(name, has_field, layout, occupied);
                known[class as usize] = Some(occupied.clone());
            }
        }
        known
    }

    /// Returns how many bytes the static fields of a class occupy within its object: references first, then the others by size. No gap is filled.
    pub(super) fn static_bytes(&self, dumped: &Dumped, layout: &Layout) -> u64 {
        let mut sizes: Vec<u64> = Vec::new();
        let mut end = 0;
        for kind in &dumped.static_types {
            match type_bytes(*kind, layout.reference_bytes as usize) {
                Some(bytes) if *kind == OBJECT => end += bytes as u64,
                bytes => sizes.extend(bytes.map(|bytes| bytes as u64)),
            }
        }
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        layout.aligned(sizes.into_iter().fold(end, |end, bytes| end.next_multiple_of(bytes) + bytes))
    }

    /// Returns the ids of the classes that each loader defined; 0 is the JVM's own loader. They live as long as the loader; hidden classes do not.
    pub(super) fn by_loader(&self, texts: &Texts) -> FxHashMap<u64, Vec<u64>> {
        let mut classes: FxHashMap<u64, Vec<u64>> = FxHashMap::default();
        for number in PRIMITIVES..self.len() as Number {
            let name = self.name(number).and_then(|name| texts.bytes(name));
            let is_hidden = name.is_some_and(|name| hidden(&String::from_utf8_lossy(name)).is_some());
            if let Some(dumped) = self.dumped(number).filter(|_| !is_hidden) {
                classes.entry(dumped.loader).or_default().push(self.id(number));
            }
        }
        classes
    }
}

/// Converts `java/lang/String` to `java.lang.String`, `[[I` to `int[][]`, `Main$$Lambda$1+0x08` to
/// `Main$$Lambda$1/0x08`: the spelling of `jcmd` and of Java's source.
pub(super) fn readable(name: &str) -> String {
    let element = name.trim_start_matches('[');
    let dimensions = name.len() - element.len();
    let element = match (dimensions, element) {
        (0, _) => class(element),
        (_, "Z") => "boolean".to_owned(),
        (_, "C") => "char".to_owned(),
        (_, "F") => "float".to_owned(),
        (_, "D") => "double".to_owned(),
        (_, "B") => "byte".to_owned(),
        (_, "S") => "short".to_owned(),
        (_, "I") => "int".to_owned(),
        (_, "J") => "long".to_owned(),
        _ => class(element.strip_prefix('L').and_then(|name| name.strip_suffix(';')).unwrap_or(element)),
    };
    element + &"[]".repeat(dimensions)
}

fn class(name: &str) -> String {
    match hidden(name) {
        Some((name, address)) => format!("{}/{address}", name.replace('/', ".")),
        None => name.replace('/', "."),
    }
}

/// Splits the name of a hidden class from the address after it, which older JVMs write after a slash.
fn hidden(name: &str) -> Option<(&str, &str)> {
    let is_address = |text: &str| {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        text.starts_with(|first: char| first.is_ascii_digit())
            && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    name.rsplit_once('+').or_else(|| name.rsplit_once('/')).filter(|(_, address)| is_address(address))
}

/// Returns the name of arrays of a primitive type.
pub(super) fn primitive_array(kind: u8) -> &'static str {
    match kind {
        4 => "boolean[]",
        5 => "char[]",
        6 => "float[]",
        7 => "double[]",
        8 => "byte[]",
        9 => "short[]",
        10 => "int[]",
        11 => "long[]",
        _ => "[]",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_people_write_them() {
        let cases = [
            ("java/lang/String", "java.lang.String"),
            ("[[I", "int[][]"),
            ("[Ljava/util/Map$Entry;", "java.util.Map$Entry[]"),
            ("Main$$Lambda$1+0x0000000800c03000", "Main$$Lambda$1/0x0000000800c03000"),
            ("[La/Main$$Lambda+0x08;", "a.Main$$Lambda/0x08[]"),
            ("a/Main$$Lambda$1/792791759", "a.Main$$Lambda$1/792791759"),
            ("a/b/c", "a.b.c"),
            ("", ""),
            ("[", "[]"),
        ];
        for (written, expected) in cases {
            assert_eq!(readable(written), expected);
        }
    }
}
