//! Decodes a pprof file: every message is decoded separately, so that an error can name its position.

use crate::pprof_proto::{Function, Location, Mapping, Sample, ValueType, field};
use crate::{Format, ImportError, Position};
use prost::Message;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

/// The messages of a file, with their positions if an error may need them.
#[derive(Debug, Default)]
pub(super) struct Messages {
    pub(super) sample_types: Vec<ValueType>,
    pub(super) samples: Vec<(u64, Sample)>,
    pub(super) mappings: Vec<Mapping>,
    pub(super) locations: Vec<(u64, Location)>,
    pub(super) functions: Vec<Function>,
    pub(super) strings: Vec<String>,
    pub(super) time_ns: i64,
    pub(super) duration_ns: i64,
    pub(super) period_type: Option<ValueType>,
    pub(super) period: i64,
    pub(super) comments: Vec<i64>,
}

/// Returns an error about a byte.
pub(super) fn expected(byte: u64, expected: &str) -> ImportError {
    let position = Position::Byte(byte);
    ImportError::Damaged { format: Format::Pprof, position, expected: expected.to_owned() }
}

impl Messages {
    /// Decodes a whole file.
    pub(super) fn decode(bytes: &[u8]) -> Result<Messages, ImportError> {
        let mut messages = Messages::default();
        let mut rest = bytes;
        while !rest.is_empty() {
            let at = (bytes.len() - rest.len()) as u64;
            let (tag, wire_type) = decode_key(&mut rest).map_err(|_| expected(at, "a field of a profile"))?;
            match wire_type {
                WireType::LengthDelimited => {
                    let length =
                        decode_varint(&mut rest).map_err(|_| expected(at, "the length of a field"))?;
                    let length = usize::try_from(length).ok().filter(|&length| length <= rest.len());
                    let length =
                        length.ok_or_else(|| expected(at, "a field that ends before the file does"))?;
                    let (payload, behind) = rest.split_at(length);
                    messages.take_bytes(tag, payload, at)?;
                    rest = behind;
                }
                WireType::Varint => {
                    let number = decode_varint(&mut rest).map_err(|_| expected(at, "a number"))?;
                    messages.take_number(tag, number as i64);
                }
                _ => skip_field(wire_type, tag, &mut rest, DecodeContext::default())
                    .map_err(|_| expected(at, "a field of a profile"))?,
            }
        }
        Ok(messages)
    }

    fn take_bytes(&mut self, tag: u32, payload: &[u8], at: u64) -> Result<(), ImportError> {
        fn message<M: Message + Default>(payload: &[u8], at: u64, what: &str) -> Result<M, ImportError> {
            M::decode(payload).map_err(|_| expected(at, what))
        }
        match tag {
            field::SAMPLE_TYPE => self.sample_types.push(message(payload, at, "a type of samples")?),
            field::SAMPLE => self.samples.push((at, message(payload, at, "a sample")?)),
            field::MAPPING => self.mappings.push(message(payload, at, "a mapping")?),
            field::LOCATION => self.locations.push((at, message(payload, at, "a location")?)),
            field::FUNCTION => self.functions.push(message(payload, at, "a function")?),
            // Programs have names that are not UTF-8.
            field::STRING_TABLE => self.strings.push(String::from_utf8_lossy(payload).into_owned()),
            field::PERIOD_TYPE => self.period_type = Some(message(payload, at, "the period's type")?),
            field::COMMENT => {
                let mut packed = payload;
                while !packed.is_empty() {
                    let comment = decode_varint(&mut packed).map_err(|_| expected(at, "a comment"))?;
                    self.comments.push(comment as i64);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn take_number(&mut self, tag: u32, number: i64) {
        match tag {
            field::TIME_NANOS => self.time_ns = number,
            field::DURATION_NANOS => self.duration_ns = number,
            field::PERIOD => self.period = number,
            field::COMMENT => self.comments.push(number),
            _ => {}
        }
    }

    /// Returns a string of the table; the empty one if there is none.
    pub(super) fn text(&self, index: i64) -> &str {
        usize::try_from(index).ok().and_then(|index| self.strings.get(index)).map_or("", String::as_str)
    }
}
