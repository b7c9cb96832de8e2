//! Sections of a file as parsers read them, and parsers run over bytes that nobody has checked.

use object::{Object, ObjectSection};
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use typed_arena::Arena;

/// Bytes of a section as gimli reads them.
pub(crate) type Slice<'a> = gimli::EndianSlice<'a, gimli::RunTimeEndian>;

/// A section's bytes, unpacked if need be; empty if the file has no such section.
pub(crate) fn section_bytes<'a>(
    name: &str,
    file: &object::File<'a>,
    store: &'a Arena<Vec<u8>>,
) -> Result<&'a [u8], object::Error> {
    Ok(match section_data(name, file)? {
        Cow::Borrowed(bytes) => bytes,
        Cow::Owned(bytes) => store.alloc(bytes),
    })
}

pub(crate) fn section_data<'a>(name: &str, file: &object::File<'a>) -> Result<Cow<'a, [u8]>, object::Error> {
    match file.section_by_name(name) {
        Some(section) => section.uncompressed_data(),
        None => Ok(Cow::Borrowed(&[])),
    }
}

/// Bytes with the byte order of the file that they are from.
pub(crate) fn slice<'a>(bytes: &'a [u8], file: &object::File<'_>) -> Slice<'a> {
    let order =
        if file.is_little_endian() { gimli::RunTimeEndian::Little } else { gimli::RunTimeEndian::Big };
    gimli::EndianSlice::new(bytes, order)
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

/// Runs a parser over bytes that nobody has checked.
pub(crate) fn caught<T, E: std::fmt::Display>(parse: impl FnOnce() -> Result<T, E>) -> Result<T, Failure> {
    match catch_unwind(AssertUnwindSafe(parse)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(Failure::Error(error.to_string())),
        Err(_) => Err(Failure::Panic("its contents contradict each other".to_owned())),
    }
}
