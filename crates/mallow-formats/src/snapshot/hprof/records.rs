//! Parses the records of a dump and passes them one by one to a [`Visitor`]: top-level records and, in heap dump segments, sub-records.
//!
//! Format: OpenJDK's `heapDumper.cpp` and the "HPROF binary format" of its header comment; Android's tags in ART's
//! `hprof.cc`. Everything is big-endian.
//!
//! Damaged records are skipped as far as lengths allow, and counted as a [`Fault`].

use super::blocks::{Bytes, PIECE_BYTES_MAX};
use super::faults::{Fault, Faults};
use crate::{Format, ImportError, Position};

/// Receives the records. Ids are as wide as in the file.
pub(super) trait Visitor {
    /// Whether it needs the contents of instances and arrays.
    const CONTENTS: bool;

    fn text(&mut self, _id: u64, _text: &[u8]) {}
    fn load_class(&mut self, _load: LoadClass) {}
    fn frame(&mut self, _id: u64, _frame: Frame) {}
    fn trace(&mut self, _serial: u32, _top_frame: u64) {}
    fn root(&mut self, _tag: u8, _object: u64) {}
    fn class(&mut self, _class: &ClassDump) {}
    fn instance(&mut self, _instance: Instance, _fields: &[u8]) {}
    /// Elements of an array; the array itself follows when all of them are known: `bytes` begin with element `first`.
    fn elements(&mut self, _kind: ArrayKind, _first: u32, _bytes: &[u8]) {}
    fn array(&mut self, _array: Array) {}
}

/// The header of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// 4 or 8.
    pub(super) id_bytes: usize,
    /// Version 1.0.3, which only Android writes.
    pub(super) is_android: bool,
}

/// A class was loaded; it may be passed twice.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoadClass {
    pub(super) serial: u32,
    pub(super) class: u64,
    pub(super) name: u64,
}

/// A frame of a stack trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) source_file: u64,
    pub(super) class_serial: u32,
    pub(super) line: i32,
}

/// A class with its static fields and the fields of its instances.
#[derive(Clone, Debug, Default)]
pub(super) struct ClassDump {
    pub(super) id: u64,
    pub(super) trace: u32,
    pub(super) super_class: u64,
    pub(super) loader: u64,
    pub(super) signers: u64,
    pub(super) protection_domain: u64,
    pub(super) instance_bytes: u32,
    /// Name, type and value.
    pub(super) statics: Vec<(u64, u8, u64)>,
    /// Name and type, without those of super classes.
    pub(super) fields: Vec<(u64, u8)>,
}

/// An object that is not an array.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instance {
    pub(super) id: u64,
    pub(super) trace: u32,
    pub(super) class: u64,
    /// The size of its fields in the file.
    pub(super) field_bytes: u32,
}

/// An array.
#[derive(Clone, Copy, Debug)]
pub(super) struct Array {
    pub(super) id: u64,
    pub(super) trace: u32,
    pub(super) kind: ArrayKind,
    pub(super) len: u32,
}

/// The contents of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArrayKind {
    /// References; the id of the array's class.
    Objects(u64),
    /// Values of a type.
    Primitive(u8),
    /// Values of a type, which the file leaves out.
    Unknown(u8),
}

/// The type of a reference.
pub(super) const OBJECT: u8 = 2;
/// Some primitive types.
pub(super) const CHAR: u8 = 5;
pub(super) const BYTE: u8 = 8;
pub(super) const INT: u8 = 10;
pub(super) const LONG: u8 = 11;

/// Returns the size of a value of a type.
pub(super) fn type_bytes(kind: u8, id_bytes: usize) -> Option<usize> {
    Some(match kind {
        OBJECT => id_bytes,
        4 | BYTE => 1,
        CHAR | 9 => 2,
        6 | INT => 4,
        7 | LONG => 8,
        _ => return None,
    })
}

/// Why a segment cannot be read further.
enum Stop {
    /// The file ends.
    Truncated,
    /// A sub-record is longer than the rest of its segment.
    Overrun,
    /// The length of such a sub-record is unknown.
    Unknown(u8),
}

/// A parser of records.
struct Parser<'b, V> {
    bytes: &'b mut Bytes,
    visitor: &'b mut V,
    faults: &'b mut Faults,
    id_bytes: usize,
    /// The start of the present segment.
    segment_start: u64,
    /// Its end: the file's end if its length is unknown.
    segment_end: u64,
    /// Whether its length may have lost its upper bits.
    is_one_dump: bool,
    class: ClassDump,
}

/// Parses the header.
///
/// # Errors
/// If it is truncated, or the file's ids have a width that no JVM writes.
pub(super) fn header(bytes: &mut Bytes) -> Result<Header, ImportError> {
    const MAGIC_BYTES: usize = "JAVA PROFILE 1.0.2\0".len();
    let cut = |expected: &str| ImportError::Damaged {
        format: Format::Hprof,
        position: Position::Byte(0),
        expected: expected.to_owned(),
    };
    let magic = bytes.take(MAGIC_BYTES).ok_or_else(|| cut("a version"))?;
    let is_android = match magic {
        b"JAVA PROFILE 1.0.1\0" | b"JAVA PROFILE 1.0.2\0" => false,
        b"JAVA PROFILE 1.0.3\0" => true,
        _ => return Err(cut("one of the versions 1.0.1, 1.0.2 and 1.0.3")),
    };
    let rest = bytes.take(12).ok_or_else(|| cut("a header of 31 bytes"))?;
    let id_bytes = number(&rest[..4]);
    if id_bytes != 4 && id_bytes != 8 {
        let reason = format!("its ids have {id_bytes} bytes, and only 4 and 8 are known");
        return Err(ImportError::Unsupported { format: Format::Hprof, reason });
    }
    Ok(Header { id_bytes: id_bytes as usize, is_android })
}

/// Parses all records after the header.
pub(super) fn records<V: Visitor>(bytes: &mut Bytes, header: Header, visitor: &mut V, faults: &mut Faults) {
    let mut parser = Parser {
        bytes,
        visitor,
        faults,
        id_bytes: header.id_bytes,
        segment_start: 0,
        segment_end: u64::MAX,
        is_one_dump: false,
        class: ClassDump::default(),
    };
    loop {
        let start = parser.bytes.position();
        if parser.record() == Some(true) {
            continue;
        }
        if let Some(reason) = parser.bytes.failure() {
            parser.faults.unreadable(parser.bytes.position(), reason);
        } else if parser.bytes.position() != start {
            parser.faults.add(Fault::Truncated, start);
        }
        return;
    }
}

/// Parses a big-endian number.
#[inline]
pub(super) fn number(bytes: &[u8]) -> u64 {
    match *bytes {
        [a, b, c, d, e, f, g, h] => u64::from_be_bytes([a, b, c, d, e, f, g, h]),
        [a, b, c, d] => u32::from_be_bytes([a, b, c, d]).into(),
        _ => bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
    }
}

impl<V: Visitor> Parser<'_, V> {
    /// Parses a record. Returns `None` if the file ends within it, false if nothing can be read after it.
    fn record(&mut self) -> Option<bool> {
        let start = self.bytes.position();
        let head = self.bytes.take(9)?;
        let (tag, len) = (head[0], number(&head[5..]));
        let ids = self.id_bytes as u64;
        match tag {
            0x01 if len >= ids => {
                let id = number(self.bytes.take(self.id_bytes)?);
                let told = (len - ids).min(PIECE_BYTES_MAX as u64);
                if told < len - ids {
                    self.faults.add(Fault::LongText, start);
                }
                self.visitor.text(id, self.bytes.take(told as usize)?);
                self.bytes.skip(len - ids - told).then_some(true)
            }
            0x02 if len == 8 + 2 * ids => {
                let body = self.bytes.take(len as usize)?;
                let (class, rest) = body[4..].split_at(self.id_bytes);
                self.visitor.load_class(LoadClass {
                    serial: number(&body[..4]) as u32,
                    class: number(class),
                    name: number(&rest[4..]),
                });
                Some(true)
            }
            0x04 if len == 8 + 4 * ids => {
                let body = self.bytes.take(len as usize)?;
                let (names, rest) = body.split_at(4 * self.id_bytes);
                let frame = Frame {
                    source_file: number(&names[3 * self.id_bytes..]),
                    class_serial: number(&rest[..4]) as u32,
                    line: number(&rest[4..]) as u32 as i32,
                };
                self.visitor.frame(number(&names[..self.id_bytes]), frame);
                Some(true)
            }
            0x05 if len >= 12 => {
                let body = self.bytes.take(12)?;
                let (serial, frames) = (number(&body[..4]) as u32, number(&body[8..]));
                let mut left = len - 12;
                if frames > 0 && left >= ids {
                    let top = number(self.bytes.take(self.id_bytes)?);
                    self.visitor.trace(serial, top);
                    left -= ids;
                }
                self.bytes.skip(left).then_some(true)
            }
            0x0c | 0x1c => {
                self.segment_start = start;
                self.segment_end = self.bytes.position() + len;
                self.is_one_dump = tag == 0x0c;
                self.segment(len == 0)
            }
            0x01..=0x0e | 0x2c => self.bytes.skip(len).then_some(true),
            _ => {
                self.faults.add(Fault::UnknownRecord, start);
                self.bytes.skip(len).then_some(true)
            }
        }
    }

    /// Parses the sub-records of a segment.
    fn segment(&mut self, is_empty: bool) -> Option<bool> {
        if is_empty {
            // The writer died before it filled the length in, or the segment is empty.
            let Some(next) = self.bytes.take(1).map(|next| next[0]) else { return Some(true) };
            self.bytes.untake_one();
            if matches!(next, 0x1c | 0x2c) {
                return Some(true);
            }
            self.end_later();
        }
        while self.bytes.position() < self.segment_end {
            let at = self.bytes.position();
            let fault = match self.sub_record() {
                Ok(()) => continue,
                Err(Stop::Truncated) if self.bytes.position() == at && self.is_endless() => {
                    return Some(true);
                }
                Err(Stop::Truncated) => return None,
                Err(Stop::Unknown(0x1c | 0x2c)) if self.is_endless() => {
                    self.bytes.untake_one();
                    return Some(true);
                }
                Err(Stop::Unknown(_)) => Fault::UnknownSubRecord,
                Err(Stop::Overrun) => Fault::Overrun,
            };
            self.faults.add(fault, at);
            if self.is_endless() {
                return Some(false);
            }
            let left = self.segment_end.saturating_sub(self.bytes.position());
            return self.bytes.skip(left).then_some(true);
        }
        Some(true)
    }

    fn is_endless(&self) -> bool {
        self.segment_end == u64::MAX
    }

    fn end_later(&mut self) {
        self.faults.add(Fault::Endless, self.segment_start);
        self.segment_end = u64::MAX;
    }

    /// Checks that the segment has this number of bytes left.
    #[inline]
    fn room(&mut self, len: u64) -> Result<(), Stop> {
        if self.segment_end - self.bytes.position() >= len {
            return Ok(());
        }
        if self.is_one_dump {
            // Its length has 32 bits, and a dump above 4 GiB in one record is longer.
            self.end_later();
            return Ok(());
        }
        Err(Stop::Overrun)
    }

    #[inline]
    fn take(&mut self, len: usize) -> Result<&[u8], Stop> {
        self.room(len as u64)?;
        self.bytes.take(len).ok_or(Stop::Truncated)
    }

    fn sub_record(&mut self) -> Result<(), Stop> {
        let ids = self.id_bytes;
        let tag = self.take(1)?[0];
        match tag {
            0x21 => self.instance(),
            0x22 | 0x23 | 0xc3 => self.array(tag),
            0x20 => self.class(),
            0xfe => self.take(4 + ids).map(|_| ()),
            _ => {
                let len = root_bytes(tag, ids).ok_or(Stop::Unknown(tag))?;
                let object = number(&self.take(len)?[..ids]);
                // Android writes unreachable objects in the format of a root.
                if tag != 0x90 {
                    self.visitor.root(tag, object);
                }
                Ok(())
            }
        }
    }

    #[inline]
    fn instance(&mut self) -> Result<(), Stop> {
        let ids = self.id_bytes;
        let at = self.bytes.position();
        let head = self.take(2 * ids + 8)?;
        let instance = Instance {
            id: number(&head[..ids]),
            trace: number(&head[ids..ids + 4]) as u32,
            class: number(&head[ids + 4..2 * ids + 4]),
            field_bytes: number(&head[2 * ids + 4..]) as u32,
        };
        let len = instance.field_bytes as usize;
        self.room(len as u64)?;
        let is_told = V::CONTENTS && len <= PIECE_BYTES_MAX;
        if V::CONTENTS && !is_told {
            self.faults.add(Fault::WideInstance, at);
        }
        if is_told {
            let fields = self.bytes.take(len).ok_or(Stop::Truncated)?;
            self.visitor.instance(instance, fields);
        } else {
            self.bytes.skip(len as u64).then_some(()).ok_or(Stop::Truncated)?;
            self.visitor.instance(instance, &[]);
        }
        Ok(())
    }

    #[inline]
    fn array(&mut self, tag: u8) -> Result<(), Stop> {
        let ids = self.id_bytes;
        let class_bytes = if tag == 0x22 { ids } else { 1 };
        let head = self.take(ids + 8 + class_bytes)?;
        let class = number(&head[ids + 8..]);
        let (kind, element) = match tag {
            0x22 => (ArrayKind::Objects(class), OBJECT),
            0x23 => (ArrayKind::Primitive(class as u8), class as u8),
            _ => (ArrayKind::Unknown(class as u8), class as u8),
        };
        let array = Array {
            id: number(&head[..ids]),
            trace: number(&head[ids..ids + 4]) as u32,
            kind,
            len: number(&head[ids + 4..ids + 8]) as u32,
        };
        let element_bytes = match (tag, type_bytes(element, ids)) {
            (0xc3, Some(_)) => 0,
            (_, Some(bytes)) => bytes,
            _ => return Err(Stop::Unknown(tag)),
        };
        let bytes = u64::from(array.len) * element_bytes as u64;
        self.room(bytes)?;
        if V::CONTENTS {
            self.elements(array, element_bytes)?;
        } else {
            self.bytes.skip(bytes).then_some(()).ok_or(Stop::Truncated)?;
        }
        self.visitor.array(array);
        Ok(())
    }

    fn elements(&mut self, array: Array, element_bytes: usize) -> Result<(), Stop> {
        if element_bytes == 0 {
            return Ok(());
        }
        let piece = (PIECE_BYTES_MAX / element_bytes) as u32;
        let mut first = 0;
        while first < array.len {
            let len = piece.min(array.len - first);
            let bytes = self.bytes.take(len as usize * element_bytes).ok_or(Stop::Truncated)?;
            self.visitor.elements(array.kind, first, bytes);
            first += len;
        }
        Ok(())
    }

    fn class(&mut self) -> Result<(), Stop> {
        let ids = self.id_bytes;
        let head = self.take(7 * ids + 8)?;
        let id_at = |at: usize| number(&head[at..at + ids]);
        let mut class = ClassDump {
            id: id_at(0),
            trace: number(&head[ids..ids + 4]) as u32,
            super_class: id_at(ids + 4),
            loader: id_at(2 * ids + 4),
            signers: id_at(3 * ids + 4),
            protection_domain: id_at(4 * ids + 4),
            instance_bytes: number(&head[7 * ids + 4..]) as u32,
            ..std::mem::take(&mut self.class)
        };
        class.statics.clear();
        class.fields.clear();
        // The constant pool: a number and a value; no known JVM writes any.
        for _ in 0..self.count()? {
            let kind = self.take(3)?[2];
            self.value(kind)?;
        }
        for _ in 0..self.count()? {
            let (name, kind) = self.name_and_type()?;
            let value = self.value(kind)?;
            class.statics.push((name, kind, value));
        }
        for _ in 0..self.count()? {
            let field = self.name_and_type()?;
            type_bytes(field.1, ids).ok_or(Stop::Unknown(0x20))?;
            class.fields.push(field);
        }
        self.visitor.class(&class);
        self.class = class;
        Ok(())
    }

    fn count(&mut self) -> Result<u64, Stop> {
        self.take(2).map(number)
    }

    fn name_and_type(&mut self) -> Result<(u64, u8), Stop> {
        let ids = self.id_bytes;
        self.take(ids + 1).map(|field| (number(&field[..ids]), field[ids]))
    }

    fn value(&mut self, kind: u8) -> Result<u64, Stop> {
        let bytes = type_bytes(kind, self.id_bytes).ok_or(Stop::Unknown(0x20))?;
        self.take(bytes).map(number)
    }
}

/// Returns how many bytes follow the tag of a root.
fn root_bytes(tag: u8, ids: usize) -> Option<usize> {
    Some(match tag {
        0x05 | 0x07 | 0x89..=0x8d | 0x90 | 0xff => ids,
        0x01 => 2 * ids,
        0x02 | 0x03 | 0x08 | 0x8e => ids + 8,
        0x04 | 0x06 => ids + 4,
        _ => return None,
    })
}

/// Returns the name of a root.
pub(super) fn root_name(tag: u8) -> &'static str {
    match tag {
        0x01 => "JNI global",
        0x02 => "JNI local",
        0x03 => "Java frame",
        0x04 => "native stack",
        0x05 => "sticky class",
        0x06 => "thread block",
        0x07 => "monitor",
        0x08 => "thread object",
        0x89 => "interned string",
        0x8a => "finalizing",
        0x8b => "debugger",
        0x8c => "reference cleanup",
        0x8d => "VM internal",
        0x8e => "JNI monitor",
        _ => "unknown root",
    }
}
