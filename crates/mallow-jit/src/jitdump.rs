//! Jitdump files: what a runtime writes of the code that it makes, such as `node --perf-prof`, Java's and .NET's agents, and wasmtime.
//!
//! A runtime maps its file as if it were code, which is how a profiler hears of it. The format is that of `jitdump-specification.txt` in
//! Linux's `tools/perf/Documentation`.

use crate::code_names::{CodeNames, is_trusted};
use std::path::Path;

/// The first four bytes where the machine is little-endian, as all are that we sample on.
const MAGIC: u32 = 0x4a69_5444;
/// Bytes of a record's head: kind, size, time.
const HEAD_BYTES: usize = 16;
const CODE_LOAD: u32 = 0;
const CODE_MOVE: u32 = 1;

/// Returns whether a file that is mapped as code is such a file: `jit-PID.dump`.
pub fn is_one(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let pid = name.strip_prefix("jit-").and_then(|rest| rest.strip_suffix(".dump"));
    pid.is_some_and(|pid| !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The functions of a file, as far as it can be read; none if it could be somebody else's.
pub fn of_file(path: &Path) -> CodeNames {
    if !is_trusted(path) {
        return CodeNames::default();
    }
    std::fs::read(path).map(|bytes| of_bytes(&bytes)).unwrap_or_default()
}

/// The functions of a file's bytes, as far as they make sense. Of two at one address the later one counts.
pub fn of_bytes(bytes: &[u8]) -> CodeNames {
    let mut functions: Vec<(u64, Option<u64>, String)> = Vec::new();
    // Magic, version, and how long the file's head is.
    let (Some(MAGIC), Some(head_bytes)) = (u32_at(bytes, 0), u32_at(bytes, 8)) else {
        return CodeNames::default();
    };
    let mut rest = bytes.get(head_bytes as usize..).unwrap_or_default();
    while let Some((kind, body, behind)) = record(rest) {
        match kind {
            CODE_LOAD => functions.extend(loaded(body)),
            CODE_MOVE => {
                let moved = moved(body, &functions);
                functions.extend(moved);
            }
            _ => {}
        }
        rest = behind;
    }
    CodeNames::sorted(functions)
}

/// The next record: its kind, its body, and what is behind it. None at the end, be it in order or torn.
fn record(bytes: &[u8]) -> Option<(u32, &[u8], &[u8])> {
    let (kind, size) = (u32_at(bytes, 0)?, u32_at(bytes, 4)? as usize);
    Some((kind, bytes.get(HEAD_BYTES..size)?, bytes.get(size..)?))
}

/// Process and thread, then address, address of the bytes, size, number, name, code.
fn loaded(body: &[u8]) -> Option<(u64, Option<u64>, String)> {
    let (start, size) = (u64_at(body, 8)?, u64_at(body, 24)?);
    let name = body.get(40..)?.split(|byte| *byte == 0).next()?;
    Some((start, start.checked_add(size), String::from_utf8_lossy(name).into_owned()))
}

/// Process and thread, then address, old address, new address, size, number.
fn moved(body: &[u8], known: &[(u64, Option<u64>, String)]) -> Option<(u64, Option<u64>, String)> {
    let (start, old, size) = (u64_at(body, 8)?, u64_at(body, 16)?, u64_at(body, 32)?);
    let (.., name) = known.iter().rev().find(|(start, ..)| *start == old)?;
    Some((start, start.checked_add(size), name.clone()))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, body: &[u8]) -> Vec<u8> {
        [&kind.to_le_bytes()[..], &(16 + body.len() as u32).to_le_bytes(), &7_u64.to_le_bytes(), body]
            .concat()
    }

    fn load(address: u64, name: &str, code: &[u8]) -> Vec<u8> {
        let words = [address, address, code.len() as u64, 1].map(u64::to_le_bytes).concat();
        record(0, &[&[9, 0, 0, 0, 9, 0, 0, 0], &words[..], name.as_bytes(), &[0], code].concat())
    }

    fn dump() -> Vec<u8> {
        let head = [0x4a69_5444_u32, 1, 40, 62, 0, 9].map(u32::to_le_bytes).concat();
        let words = [0x3000_u64, 0x1000, 0x3000, 16, 1].map(u64::to_le_bytes).concat();
        let moved = record(1, &[&[9, 0, 0, 0, 9, 0, 0, 0], &words[..]].concat());
        [
            head,
            vec![0; 16],
            load(0x1000, "js:hot a.js:3", &[0x90; 16]),
            load(0x2000, "js:cold", &[0x90; 8]),
            moved,
        ]
        .concat()
    }

    #[test]
    fn functions_have_their_places_and_may_move() {
        let names = of_bytes(&dump());
        assert_eq!(names.name(0x100f), Some("js:hot a.js:3"));
        assert_eq!((names.name(0x2007), names.name(0x2008)), (Some("js:cold"), None));
        assert_eq!(names.name(0x3000), Some("js:hot a.js:3"));
    }

    #[test]
    fn no_damage_makes_it_panic() {
        let mut bytes = dump();
        for end in 0..bytes.len() {
            let _ = of_bytes(&bytes[..end]);
        }
        for at in 0..bytes.len() {
            for change in [0x01, 0x80, 0xff] {
                bytes[at] ^= change;
                let _ = of_bytes(&bytes);
                bytes[at] ^= change;
            }
        }
    }

    #[test]
    fn a_name_tells_the_file() {
        assert!(is_one("/home/me/jit-42.dump") && is_one("jit-1.dump"));
        assert!(!is_one("/tmp/jit-.dump") && !is_one("/tmp/jit-a.dump") && !is_one("/tmp/perf-42.map"));
    }
}
