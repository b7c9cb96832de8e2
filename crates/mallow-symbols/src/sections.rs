//! Sections of a file as parsers read them, and parsers run over bytes that nobody has checked.

use crate::reader::Slice;
use object::{Object, ObjectSection};
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use typed_arena::Arena;

/// Why a section cannot be read.
#[derive(Debug)]
pub(crate) enum SectionError {
    /// It is damaged.
    Damaged(object::Error),
    /// A few bytes of it would unpack to more than memory holds.
    TooLarge { name: String, bytes: u64 },
}

impl From<object::Error> for SectionError {
    fn from(error: object::Error) -> SectionError {
        SectionError::Damaged(error)
    }
}

impl std::fmt::Display for SectionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SectionError::Damaged(error) => error.fmt(f),
            SectionError::TooLarge { name, bytes } => {
                write!(f, "its section {name} unpacks to {bytes} bytes, far more than its size allows")
            }
        }
    }
}

/// A section's bytes, unpacked if need be; empty if the file has no such section.
pub(crate) fn section_bytes<'a>(
    name: &str,
    file: &object::File<'a>,
    store: &'a Arena<Vec<u8>>,
) -> Result<&'a [u8], SectionError> {
    Ok(match section_data(name, file)? {
        Cow::Borrowed(bytes) => bytes,
        Cow::Owned(bytes) => store.alloc(bytes),
    })
}

pub(crate) fn section_data<'a>(name: &str, file: &object::File<'a>) -> Result<Cow<'a, [u8]>, SectionError> {
    match file.section_by_name(name) {
        Some(section) => {
            let packed = section.compressed_data()?;
            if !is_credible(&packed) {
                return Err(SectionError::TooLarge {
                    name: name.to_owned(),
                    bytes: packed.uncompressed_size,
                });
            }
            Ok(packed.decompress()?)
        }
        None => Ok(Cow::Borrowed(&[])),
    }
}

/// Whether what a packed section says of its size can be.
pub(crate) fn is_credible(packed: &object::CompressedData<'_>) -> bool {
    let of_packed = (packed.data.len() as u64).saturating_mul(UNPACKED_PER_PACKED_MAX);
    packed.uncompressed_size <= UNPACKED_BYTES_ALLOWED.max(of_packed)
}

/// The maximal ratio of a decompressed section to its size: debug information has three to ten.
const UNPACKED_PER_PACKED_MAX: u64 = 64;
/// The size to which any section may be decompressed.
const UNPACKED_BYTES_ALLOWED: u64 = 64 << 20;

/// Bytes with the byte order of the file that they are from.
pub(crate) fn slice<'a>(bytes: &'a [u8], file: &object::File<'_>) -> Slice<'a> {
    let order =
        if file.is_little_endian() { gimli::RunTimeEndian::Little } else { gimli::RunTimeEndian::Big };
    Slice::new(bytes, order)
}

/// How a parser failed.
pub(crate) enum Failure {
    /// It noticed the damage.
    Error(String),
    /// It did not.
    Panic(String),
}

impl Failure {
    pub(crate) fn into_message(self) -> String {
        match self {
            Self::Error(message) | Self::Panic(message) => message,
        }
    }
}

/// Runs a parser over unchecked bytes.
pub(crate) fn caught<T, E: std::fmt::Display>(parse: impl FnOnce() -> Result<T, E>) -> Result<T, Failure> {
    match catch_unwind(AssertUnwindSafe(parse)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(Failure::Error(error.to_string())),
        Err(_) => Err(Failure::Panic("its contents contradict each other".to_owned())),
    }
}
