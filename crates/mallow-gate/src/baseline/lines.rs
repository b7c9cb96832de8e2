//! What the lines of a baseline hold. Fields in alphabetical order, as everywhere in the file.

use super::{LeftOut, Machine};
use crate::measurement::Environment;
use mallow_base::{Frame, mirror};
use serde::{Deserialize, Serialize};

mirror! {
    pub(super) struct EnvironmentLine both ways of Environment {
        allocator: String,
        architecture: String,
        counting: u32,
        libc: String,
        processors: u32,
        runtime: String,
    }
}

mirror! {
    pub(super) struct FrameLine both ways of Frame {
        #[serde(skip_serializing_if = "Option::is_none")]
        file: Option<String>,
        function: String,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        inlined: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        language: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        line: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        module: Option<String>,
    }
}

mirror! {
    #[derive(Default)]
    pub(super) struct LeftOutLine both ways of LeftOut {
        allocations: u64,
        sites: u64,
    }
}

mirror! {
    #[derive(Default)]
    pub(super) struct MachineLine both ways of Machine {
        #[serde(default, skip_serializing_if = "String::is_empty")]
        cpu: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        distribution: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        kernel: String,
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct SpreadLine {
    pub(super) at_min: u32,
    pub(super) max: u64,
    pub(super) min: u64,
    pub(super) mode: u64,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct SiteLine {
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) allocations: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) bytes: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) descriptors: u64,
    /// So many outermost frames are those of the site before.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) outer: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) remaining: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) remaining_bytes: u64,
    /// Keys of the other frames, innermost first.
    pub(super) stack: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) temporary: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
