//! Programs whose files are made to end or to fill whoever reads them: they cost names, and the recording is whole.
//!
//! The kernel holds the bounds, as in `bombs.rs`.

use serde_json::Value;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// What a process may have for itself, and for how long, as `prlimit` wants it.
const LIMITS: [&str; 2] = ["--data=536870912", "--cpu=90"];
/// Functions of the program, each of which allocates once.
const FUNCTIONS: usize = 300;
/// What the program ends with.
const STATUS: i32 = 7;

const SHT_STRTAB: u32 = 3;
const SHT_NOTE: u32 = 7;
const SHF_COMPRESSED: u64 = 0x800;
const ELFCOMPRESS_ZSTD: u32 = 2;
const SECTION_HEADER_BYTES: usize = 64;

/// A built program, to be changed.
struct Program {
    folder: tempfile::TempDir,
}

impl Program {
    fn new() -> Program {
        let folder = tempfile::tempdir().unwrap();
        let mut source = "#include <stdlib.h>\nvoid *volatile kept;\n".to_owned();
        for at in 0..FUNCTIONS {
            writeln!(
                source,
                "__attribute__((noinline)) void victim_{at}(void) {{ kept = malloc({}); }}",
                at + 1
            )
            .unwrap();
        }
        source.push_str("int main(void) {\n");
        (0..FUNCTIONS).for_each(|at| writeln!(source, "  victim_{at}();").unwrap());
        writeln!(source, "  return {STATUS};\n}}").unwrap();
        fs::write(folder.path().join("app.c"), source).unwrap();
        let program = Program { folder };
        program.run("gcc", &["-g", "-O1", "-fno-optimize-sibling-calls", "-o", "app", "app.c"]);
        program
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn run(&self, tool: &str, words: &[&str]) {
        let output = Command::new(tool).args(words).current_dir(self.folder()).output().unwrap();
        assert!(output.status.success(), "{tool} {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn change(&self, change: impl FnOnce(&mut Vec<u8>)) {
        let path = self.folder().join("app");
        let mut bytes = fs::read(&path).unwrap();
        change(&mut bytes);
        fs::write(path, bytes).unwrap();
    }

    /// Puts sections of packed zeros in the place of those of debug information.
    fn pack_zeros(&self, sections: &[(&str, u64, u64)]) {
        for (name, stated, packed) in sections {
            let mut content = ELFCOMPRESS_ZSTD.to_le_bytes().to_vec();
            content.extend([0; 4]);
            content.extend(stated.to_le_bytes());
            content.extend(1u64.to_le_bytes());
            content.extend(packed_zeros(*packed));
            fs::write(self.folder().join("section"), content).unwrap();
            self.run("objcopy", &["--remove-section", name, "app"]);
            self.run("objcopy", &["--add-section", &format!("{name}=section"), "app"]);
        }
        self.change(|bytes| {
            for at in section_headers(bytes) {
                if sections.iter().any(|(name, ..)| section_name(bytes, at) == name.as_bytes()) {
                    let flags = number(bytes, at + 8) | SHF_COMPRESSED;
                    bytes[at + 8..at + 16].copy_from_slice(&flags.to_le_bytes());
                }
            }
        });
    }

    /// Records it, and gives what is said and what the report has.
    #[track_caller]
    fn recorded(&self, label: &str) -> (String, Value) {
        let mallow = |words: &[&str]| -> Output {
            let mut mallow = Command::new("prlimit");
            mallow.args(LIMITS).arg(env!("CARGO_BIN_EXE_mallow")).args(words);
            // No answers of others.
            mallow.env("MALLOW_SYMBOL_CACHE", self.folder().join("kept"));
            mallow.current_dir(self.folder()).stdin(Stdio::null()).output().unwrap()
        };
        let recorded = mallow(&["record", "--force", "-o", "trace", "--", "./app"]);
        let said = String::from_utf8_lossy(&recorded.stderr).into_owned();
        assert_eq!(recorded.status.code(), Some(STATUS), "{label}: {:?}\n{said}", recorded.status);
        let report = mallow(&["report", "trace", "--json"]);
        assert_eq!(report.status.code(), Some(0), "{label}: {}", String::from_utf8_lossy(&report.stderr));
        let document: Value = serde_json::from_slice(&report.stdout).unwrap();
        assert_eq!(document["complete"], true, "{label}");
        // What it allocates, and not a name less of the C library's.
        let sizes: u64 = (1..=FUNCTIONS as u64).sum();
        assert!(document["totals"]["allocations"].as_u64() >= Some(FUNCTIONS as u64), "{label}: {said}");
        assert!(document["totals"]["bytes"].as_u64() >= Some(sizes), "{label}: {said}");
        assert!(has_name(&document, "__libc_start"), "{label}: names of other modules are there\n{said}");
        (said, document)
    }
}

fn has_name(document: &Value, name: &str) -> bool {
    let sites = document["sites"].as_array().unwrap().iter();
    let mut frames = sites.flat_map(|site| site["frames"].as_array().unwrap());
    frames.any(|frame| frame["function"].as_str().unwrap().contains(name))
}

/// A frame of zstd with so many zeros, in blocks of one repeated byte.
fn packed_zeros(mut bytes: u64) -> Vec<u8> {
    const BLOCK_BYTES: u64 = 128 << 10;
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 7 << 3];
    loop {
        let block = bytes.min(BLOCK_BYTES);
        bytes -= block;
        let header = u32::from(bytes == 0) | 1 << 1 | (block as u32) << 3;
        frame.extend(&header.to_le_bytes()[..3]);
        frame.push(0);
        if bytes == 0 {
            return frame;
        }
    }
}

fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn half(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
}

fn section_headers(bytes: &[u8]) -> Vec<usize> {
    let first = number(bytes, 0x28) as usize;
    (0..half(bytes, 0x3c)).map(|index| first + index * SECTION_HEADER_BYTES).collect()
}

fn section_name(bytes: &[u8], header: usize) -> Vec<u8> {
    let names = section_headers(bytes)[half(bytes, 0x3e)];
    let start = number(bytes, names + 24) as usize + (number(bytes, header) as u32) as usize;
    bytes[start..].iter().copied().take_while(|byte| *byte != 0).collect()
}

fn header_of(bytes: &[u8], name: &str) -> usize {
    section_headers(bytes).into_iter().find(|at| section_name(bytes, *at) == name.as_bytes()).unwrap()
}

#[test]
fn an_honest_program_has_its_names() {
    let program = Program::new();
    let (said, document) = program.recorded("honest");
    assert!(!said.contains("warning"), "{said}");
    assert!(has_name(&document, "victim_17"));
}

#[test]
fn a_section_that_says_it_is_small_is_not_unpacked_further() {
    let program = Program::new();
    program.pack_zeros(&[(".debug_info", 1 << 20, 4 << 30), (".debug_line", 100 << 30, 1 << 20)]);
    let (said, document) = program.recorded("lies");
    assert!(has_name(&document, "victim_17") && !document.to_string().contains("app.c"), "{said}");
}

/// Sixty thousand sections, each of which is the same three megabytes of notes.
#[test]
fn notes_without_end_cost_the_names_of_their_module() {
    let program = Program::new();
    program.change(|bytes| {
        let notes = bytes.len().next_multiple_of(8);
        bytes.resize(notes + (3 << 20), 0);
        let headers = bytes.len();
        let mut note = [0u8; SECTION_HEADER_BYTES];
        note[4..8].copy_from_slice(&SHT_NOTE.to_le_bytes());
        note[24..32].copy_from_slice(&(notes as u64).to_le_bytes());
        note[32..40].copy_from_slice(&(3u64 << 20).to_le_bytes());
        note[48..56].copy_from_slice(&4u64.to_le_bytes());
        // The table of their names is where the file begins: `\x7fELF`, some marks, and a zero.
        let mut names = [0u8; SECTION_HEADER_BYTES];
        names[4..8].copy_from_slice(&SHT_STRTAB.to_le_bytes());
        names[32..40].copy_from_slice(&16u64.to_le_bytes());
        bytes.extend([0; SECTION_HEADER_BYTES]);
        bytes.extend(names);
        (2..60_000).for_each(|_| bytes.extend(note));
        bytes[0x28..0x30].copy_from_slice(&(headers as u64).to_le_bytes());
        bytes[0x3c..0x3e].copy_from_slice(&60_000u16.to_le_bytes());
        bytes[0x3e..0x40].copy_from_slice(&1u16.to_le_bytes());
    });
    let (_, document) = program.recorded("notes");
    assert!(!has_name(&document, "victim_"), "{document:#}");
}

/// The name of every symbol is the same three megabytes.
#[test]
fn names_without_end_are_cut_or_missing() {
    let program = Program::new();
    program.run("strip", &["--strip-debug", "app"]);
    program.change(|bytes| {
        let names = bytes.len();
        bytes.extend(std::iter::repeat_n(b'n', 3 << 20));
        bytes.push(0);
        let [symbols, strings] = [".symtab", ".strtab"].map(|name| header_of(bytes, name));
        bytes[strings + 24..strings + 32].copy_from_slice(&(names as u64).to_le_bytes());
        bytes[strings + 32..strings + 40].copy_from_slice(&((3u64 << 20) + 1).to_le_bytes());
        let (first, size) = (number(bytes, symbols + 24) as usize, number(bytes, symbols + 32) as usize);
        for symbol in (first..first + size).step_by(24) {
            bytes[symbol..symbol + 4].copy_from_slice(&1u32.to_le_bytes());
        }
    });
    let (_, document) = program.recorded("names");
    assert!(!has_name(&document, "victim_"));
}

#[test]
fn a_file_with_a_hole_is_no_longer_than_its_disk() {
    let program = Program::new();
    program.change(|bytes| {
        let symbols = header_of(bytes, ".symtab");
        bytes[symbols + 24..symbols + 32].copy_from_slice(&(1u64 << 30).to_le_bytes());
        bytes[symbols + 32..symbols + 40].copy_from_slice(&(24u64 << 30).to_le_bytes());
    });
    File::options().write(true).open(program.folder().join("app")).unwrap().set_len(1 << 40).unwrap();
    let _ = program.recorded("hole");
}
