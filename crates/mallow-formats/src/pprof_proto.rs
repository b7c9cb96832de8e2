//! The messages of pprof's `profile.proto` (github.com/google/pprof/proto/profile.proto): numbers and types of their fields.
//!
//! Strings are indices into the profile's table, whose first entry is the empty one. Ids of mappings, locations and functions are
//! not 0 and need not be dense.

/// The whole profile, for writing. A reader decodes its fields one by one: see [`field`].
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Profile {
    #[prost(message, repeated, tag = "1")]
    pub(crate) sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) sample: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) mapping: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    pub(crate) string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    pub(crate) time_nanos: i64,
    #[prost(int64, tag = "10")]
    pub(crate) duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    pub(crate) period_type: Option<ValueType>,
    #[prost(int64, tag = "12")]
    pub(crate) period: i64,
    #[prost(int64, repeated, tag = "13")]
    pub(crate) comment: Vec<i64>,
    #[prost(int64, tag = "14")]
    pub(crate) default_sample_type: i64,
}

/// The numbers of the profile's fields that are read.
pub(crate) mod field {
    pub(crate) const SAMPLE_TYPE: u32 = 1;
    pub(crate) const SAMPLE: u32 = 2;
    pub(crate) const MAPPING: u32 = 3;
    pub(crate) const LOCATION: u32 = 4;
    pub(crate) const FUNCTION: u32 = 5;
    pub(crate) const STRING_TABLE: u32 = 6;
    pub(crate) const TIME_NANOS: u32 = 9;
    pub(crate) const DURATION_NANOS: u32 = 10;
    pub(crate) const PERIOD_TYPE: u32 = 11;
    pub(crate) const PERIOD: u32 = 12;
    pub(crate) const COMMENT: u32 = 13;
}

/// The meaning of a sample's value with the same index.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct ValueType {
    /// For example `alloc_space`.
    #[prost(int64, tag = "1")]
    pub(crate) kind: i64,
    /// For example `bytes`.
    #[prost(int64, tag = "2")]
    pub(crate) unit: i64,
}

/// A stack with its values.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Sample {
    /// Innermost first.
    #[prost(uint64, repeated, tag = "1")]
    pub(crate) location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub(crate) value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) label: Vec<Label>,
}

/// Other data of a sample: a string, or a number with a unit.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct Label {
    #[prost(int64, tag = "1")]
    pub(crate) key: i64,
    #[prost(int64, tag = "2")]
    pub(crate) text: i64,
    #[prost(int64, tag = "3")]
    pub(crate) number: i64,
    #[prost(int64, tag = "4")]
    pub(crate) number_unit: i64,
}

/// A mapping of a file.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct Mapping {
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) memory_start: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) memory_limit: u64,
    #[prost(uint64, tag = "4")]
    pub(crate) file_offset: u64,
    #[prost(int64, tag = "5")]
    pub(crate) filename: i64,
    #[prost(int64, tag = "6")]
    pub(crate) build_id: i64,
    #[prost(bool, tag = "7")]
    pub(crate) has_functions: bool,
    #[prost(bool, tag = "8")]
    pub(crate) has_filenames: bool,
    #[prost(bool, tag = "9")]
    pub(crate) has_line_numbers: bool,
    #[prost(bool, tag = "10")]
    pub(crate) has_inline_frames: bool,
}

/// An address within the calling instruction, which is one less than mallow's return addresses.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Location {
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) mapping_id: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) address: u64,
    /// The innermost inlined call first.
    #[prost(message, repeated, tag = "4")]
    pub(crate) line: Vec<Line>,
}

/// A place in a function.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct Line {
    #[prost(uint64, tag = "1")]
    pub(crate) function_id: u64,
    #[prost(int64, tag = "2")]
    pub(crate) line: i64,
}

/// A function.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct Function {
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    #[prost(int64, tag = "2")]
    pub(crate) name: i64,
    /// The linker's name.
    #[prost(int64, tag = "3")]
    pub(crate) system_name: i64,
    #[prost(int64, tag = "4")]
    pub(crate) filename: i64,
}

/// The types of values. The first four are those of Go's heap profiles; the last three are ours.
pub(crate) mod value {
    pub(crate) const ALLOC_OBJECTS: &str = "alloc_objects";
    pub(crate) const ALLOC_SPACE: &str = "alloc_space";
    pub(crate) const INUSE_OBJECTS: &str = "inuse_objects";
    pub(crate) const INUSE_SPACE: &str = "inuse_space";
    pub(crate) const PEAK_OBJECTS: &str = "peak_objects";
    pub(crate) const PEAK_SPACE: &str = "peak_space";
    pub(crate) const TEMPORARY_OBJECTS: &str = "temporary_objects";
}

/// The beginning of our comment with the recorded command.
pub(crate) const COMMAND_COMMENT: &str = "command: ";
