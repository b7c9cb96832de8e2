//! Parses the elements of memcheck's XML that describe leaks, without interpreting them.

use crate::{Format, ImportError, Position};
use quick_xml::Reader;
use quick_xml::events::Event;

/// memcheck's own files are never nested more deeply.
const DEPTH_MAX: usize = 64;

/// The contents of a file.
#[derive(Default)]
pub(super) struct Document {
    pub(super) pid: u32,
    pub(super) parent_pid: u32,
    /// The program and its arguments.
    pub(super) command: Vec<String>,
    pub(super) leaks: Vec<Leak>,
    /// Whether the outermost element is closed.
    pub(super) complete: bool,
}

/// A record of leaked blocks.
#[derive(Default)]
pub(super) struct Leak {
    pub(super) kind: String,
    /// Including the indirect ones.
    pub(super) bytes: u64,
    pub(super) blocks: u64,
    /// Bytes that were only reachable through the record's blocks.
    pub(super) indirect_bytes: u64,
    /// Innermost first.
    pub(super) frames: Vec<Raw>,
}

/// A frame as it is in the file; what is missing is 0 or empty.
#[derive(Default)]
pub(super) struct Raw {
    pub(super) address: u64,
    pub(super) module: String,
    pub(super) function: String,
    pub(super) folder: String,
    pub(super) file: String,
    pub(super) line: Option<u32>,
}

/// Parses a file.
pub(super) fn document(bytes: &[u8]) -> Result<Document, ImportError> {
    let mut reader = Reader::from_reader(bytes);
    let mut document = Document::default();
    let mut path: Vec<String> = Vec::new();
    let mut text = String::new();
    let damaged = |at: u64, expected: &str| ImportError::Damaged {
        format: Format::MemcheckXml,
        position: Position::Byte(at),
        expected: expected.to_owned(),
    };
    loop {
        let at = reader.buffer_position();
        match reader.read_event() {
            Ok(Event::Start(start)) => {
                if path.len() == DEPTH_MAX {
                    return Err(damaged(at, "an element less deep"));
                }
                path.push(String::from_utf8_lossy(start.name().as_ref()).into_owned());
                text.clear();
                document.open(&path);
            }
            Ok(Event::Text(part)) => text.push_str(&String::from_utf8_lossy(&part)),
            Ok(Event::CData(part)) => text.push_str(&String::from_utf8_lossy(&part)),
            Ok(Event::GeneralRef(name)) => text.push(character(&name)),
            Ok(Event::End(_)) => {
                document.close(&path, text.trim());
                text.clear();
                path.pop();
            }
            Ok(Event::Eof) => break,
            Ok(_) => {}
            // A truncated file ends in the middle of an element.
            Err(_) if reader.buffer_position() >= bytes.len() as u64 => break,
            Err(_) => return Err(damaged(reader.error_position(), "well-formed XML")),
        }
    }
    if !document.complete {
        // A record that was not closed is incomplete.
        if path.iter().any(|name| name == "error") {
            document.leaks.pop();
        }
        if !document.is_memcheck(&path) {
            return Err(damaged(0, "an element <valgrindoutput>"));
        }
    }
    document.leaks.retain(|leak| leak.kind.starts_with("Leak_"));
    Ok(document)
}

/// Returns the character of `&lt;` and similar entities.
fn character(name: &[u8]) -> char {
    match name {
        b"lt" => '<',
        b"gt" => '>',
        b"amp" => '&',
        b"quot" => '"',
        b"apos" => '\'',
        _ => '\u{fffd}',
    }
}

impl Document {
    fn is_memcheck(&self, path: &[String]) -> bool {
        path.first().is_some_and(|name| name == "valgrindoutput") || !self.leaks.is_empty()
    }

    fn open(&mut self, path: &[String]) {
        match names(path).as_slice() {
            ["valgrindoutput", "error"] => self.leaks.push(Leak::default()),
            // Further stacks of an error say where something else happened.
            ["valgrindoutput", "error", "stack", "frame"] => {
                if let Some(leak) = self.leaks.last_mut() {
                    leak.frames.push(Raw::default());
                }
            }
            _ => {}
        }
    }

    fn close(&mut self, path: &[String], text: &str) {
        match names(path).as_slice() {
            ["valgrindoutput"] => self.complete = true,
            ["valgrindoutput", "pid"] => self.pid = text.parse().unwrap_or(0),
            ["valgrindoutput", "ppid"] => self.parent_pid = text.parse().unwrap_or(0),
            ["valgrindoutput", "args", "argv", "exe" | "arg"] => self.command.push(text.to_owned()),
            ["valgrindoutput", "error", rest @ ..] => {
                if let Some(leak) = self.leaks.last_mut() {
                    leak.close(rest, text);
                }
            }
            _ => {}
        }
    }
}

impl Leak {
    fn close(&mut self, path: &[&str], text: &str) {
        match path {
            ["kind"] => text.clone_into(&mut self.kind),
            ["xwhat", "leakedbytes"] => self.bytes = text.parse().unwrap_or(0),
            ["xwhat", "leakedblocks"] => self.blocks = text.parse().unwrap_or(0),
            ["xwhat", "text"] => self.indirect_bytes = indirect(text).unwrap_or(0),
            ["stack", "frame", field] => {
                let Some(frame) = self.frames.last_mut() else { return };
                match *field {
                    "ip" => frame.address = address(text),
                    "obj" => text.clone_into(&mut frame.module),
                    "fn" => text.clone_into(&mut frame.function),
                    "dir" => text.clone_into(&mut frame.folder),
                    "file" => text.clone_into(&mut frame.file),
                    "line" => frame.line = text.parse().ok(),
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

fn names(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}

/// Parses `0x1095F8`.
fn address(text: &str) -> u64 {
    text.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or(0)
}

/// Parses the second number of `20,024 (24 direct, 20,000 indirect) bytes in 1 blocks are definitely lost`.
fn indirect(text: &str) -> Option<u64> {
    let (_, inside) = text.split_once(" direct, ")?;
    inside.split_once(" indirect)")?.0.replace(',', "").parse().ok()
}
