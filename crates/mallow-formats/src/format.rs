//! Recognises a file's format by its first bytes.

use crate::{gc_log, perf_script_head};
use mallow_base::words;
use std::fmt;

/// The beginning of a heap snapshot by mallow's own hook, up to the version of its format.
const PYTHON_HEAP_START: &[u8] = b"{\"mallow\":\"python-heap/";

/// The beginning of the comment that says what the numbers of folded stacks are.
pub(crate) const METRIC_COMMENT: &str = "# metric: ";

/// The beginning of `perf.data`, if it was written by a machine with the same byte order.
const PERF_DATA_START: &[u8] = b"PERFILE2";

/// A format that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Our own trace.
    Mallow,
    /// heaptrack's data, raw or interpreted.
    Heaptrack,
    /// The text that `heaptrack_print` prints.
    HeaptrackPrint,
    /// DHAT's JSON, of Valgrind or of the crate dhat.
    Dhat,
    /// massif's text.
    Massif,
    /// memcheck's leaks as XML.
    MemcheckXml,
    /// jemalloc's heap profile.
    JemallocHeap,
    /// gperftools' heap profile.
    GperftoolsHeap,
    /// pprof's protobuf.
    Pprof,
    /// `perf.data`, written by `perf record`.
    PerfData,
    /// The text that `perf script` prints.
    PerfScript,
    /// An aggregation by stack that dtrace printed.
    Dtrace,
    /// An aggregation by stack that bpftrace printed.
    Bpftrace,
    /// One line per stack: frames separated by semicolons, outermost first, and a number.
    Folded,
    /// jemalloc's `stats_print`, text or JSON.
    JemallocStats,
    /// glibc's `malloc_info`.
    MallocInfo,
    /// The log of Ruby's gc_tracer gem.
    GcTracer,
    /// Ruby's `ObjectSpace.dump_all`.
    RubyHeap,
    /// A JVM's HPROF file.
    Hprof,
    /// V8's `.heapsnapshot`.
    V8Heap,
    /// CPython's heap, as mallow's own hook writes it.
    PythonHeap,
}

/// The kind of a file's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A heap profile or a CPU profile.
    Profile,
    /// The state of an allocator.
    AllocatorState,
    /// The log of Ruby's garbage collector.
    GcLog,
    /// The objects of a managed heap.
    Snapshot,
}

impl Kind {
    /// Returns the command that shows it.
    pub fn command(self) -> &'static str {
        match self {
            Kind::Profile => "mallow report",
            Kind::AllocatorState => "mallow import",
            Kind::GcLog => "mallow gc-log",
            Kind::Snapshot => "mallow heap",
        }
    }

    /// Returns its contents, for the middle of a sentence.
    pub(crate) fn subject(self) -> &'static str {
        match self {
            Kind::Profile => "what allocated",
            Kind::AllocatorState => "the state of an allocator",
            Kind::GcLog => "what Ruby's collector counted",
            Kind::Snapshot => "what lies in a managed heap",
        }
    }
}

words! {
    Format {
        Mallow = "mallow",
        Heaptrack = "heaptrack",
        HeaptrackPrint = "heaptrack-print",
        Dhat = "dhat",
        Massif = "massif",
        MemcheckXml = "memcheck-xml",
        JemallocHeap = "jemalloc-heap",
        GperftoolsHeap = "gperftools-heap",
        Pprof = "pprof",
        PerfData = "perf-data",
        PerfScript = "perf-script",
        Dtrace = "dtrace",
        Bpftrace = "bpftrace",
        Folded = "folded",
        JemallocStats = "jemalloc-stats",
        MallocInfo = "malloc-info",
        GcTracer = "gc-tracer",
        RubyHeap = "ruby-heap",
        Hprof = "hprof",
        V8Heap = "v8-heap",
        PythonHeap = "python-heap",
    }
}

impl Format {
    /// Returns the usual name of such a file.
    pub fn name(self) -> &'static str {
        match self {
            Format::Mallow => "mallow trace",
            Format::Heaptrack => "heaptrack file",
            Format::HeaptrackPrint => "heaptrack_print text",
            Format::Dhat => "DHAT file",
            Format::Massif => "massif file",
            Format::MemcheckXml => "memcheck XML file",
            Format::JemallocHeap => "jemalloc heap profile",
            Format::GperftoolsHeap => "gperftools heap profile",
            Format::Pprof => "pprof file",
            Format::PerfData => "perf.data file",
            Format::PerfScript => "perf script text",
            Format::Dtrace => "dtrace aggregation",
            Format::Bpftrace => "bpftrace aggregation",
            Format::Folded => "file of folded stacks",
            Format::JemallocStats => "jemalloc statistics file",
            Format::MallocInfo => "malloc_info file",
            Format::GcTracer => "gc_tracer log",
            Format::RubyHeap => "Ruby heap dump",
            Format::Hprof => "JVM heap dump",
            Format::V8Heap => "V8 heap snapshot",
            Format::PythonHeap => "Python heap snapshot",
        }
    }

    /// Returns whether such a file may have addresses without names.
    pub fn may_lack_names(self) -> bool {
        matches!(self, Format::JemallocHeap | Format::GperftoolsHeap | Format::Pprof)
    }

    /// Returns the kind of such a file.
    pub fn kind(self) -> Kind {
        match self {
            Format::JemallocStats | Format::MallocInfo => Kind::AllocatorState,
            Format::GcTracer => Kind::GcLog,
            Format::RubyHeap | Format::Hprof | Format::V8Heap | Format::PythonHeap => Kind::Snapshot,
            _ => Kind::Profile,
        }
    }

    /// Returns the format of a decompressed file that begins with these bytes. Some kilobytes are enough.
    pub fn of_beginning(bytes: &[u8]) -> Option<Format> {
        if bytes.starts_with(&mallow_trace::TRACE_MAGIC) {
            return Some(Format::Mallow);
        }
        if bytes.starts_with(PERF_DATA_START) {
            return Some(Format::PerfData);
        }
        if bytes.starts_with(b"JAVA PROFILE 1.0.") {
            return Some(Format::Hprof);
        }
        if bytes.trim_ascii_start().starts_with(PYTHON_HEAP_START) {
            return Some(Format::PythonHeap);
        }
        if is_ruby_heap(bytes) {
            return Some(Format::RubyHeap);
        }
        if is_v8_heap(bytes) {
            return Some(Format::V8Heap);
        }
        if bytes.contains(&0) || std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_some()) {
            return looks_like_pprof(bytes).then_some(Format::Pprof);
        }
        let is_text = bytes.iter().all(|byte| !byte.is_ascii_control() || byte.is_ascii_whitespace());
        let is_pprof = || (!is_text && looks_like_pprof(bytes)).then_some(Format::Pprof);
        of_text(&String::from_utf8_lossy(bytes)).or_else(is_pprof)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Returns whether this is a line of `ObjectSpace.dump_all`: a root or an object. The name of a file in it may not be valid text.
fn is_ruby_heap(bytes: &[u8]) -> bool {
    let start = bytes.trim_ascii_start();
    start.starts_with(b"{\"type\":\"") || start.starts_with(b"{\"address\":\"0x")
}

/// Returns whether it begins with `{"snapshot":{"meta":{…"node_fields"…`, with blanks anywhere. Old versions of
/// Chrome write a title before the description.
fn is_v8_heap(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    let tokens: [&[u8]; 4] = [b"{", b"\"snapshot\"", b":", b"{"];
    let is_next = |token: &[u8]| match rest.trim_ascii_start().strip_prefix(token) {
        Some(behind) => {
            rest = behind;
            true
        }
        None => false,
    };
    tokens.into_iter().all(is_next) && memchr::memmem::find(rest, b"\"node_fields\"").is_some()
}

fn of_text(text: &str) -> Option<Format> {
    let start = text.trim_start();
    let first = start.lines().next().unwrap_or_default();
    let format = if is_heaptrack_version(first) {
        Format::Heaptrack
    } else if gc_log::is_header(first) {
        Format::GcTracer
    } else if start.starts_with("heap_v2/") || start.starts_with("--- symbol") {
        Format::JemallocHeap
    } else if start.starts_with("heap profile:") {
        Format::GperftoolsHeap
    } else if start.starts_with("desc:") {
        Format::Massif
    } else if start.starts_with('{') {
        of_json(start)?
    } else if start.contains("<valgrindoutput>") {
        Format::MemcheckXml
    } else if start.starts_with("<malloc version") {
        Format::MallocInfo
    } else if start.contains("___ Begin jemalloc statistics ___") {
        Format::JemallocStats
    } else if start.lines().any(|line| line.starts_with('@') && line.contains('[')) {
        Format::Bpftrace
    } else if is_heaptrack_print(start) {
        Format::HeaptrackPrint
    } else if text.lines().any(perf_script_head::is_head) {
        Format::PerfScript
    } else if text.lines().any(|line| is_count_alone(line) || is_dtrace_frame(line)) {
        // Checked before folded stacks: the program's own output, such as `total: 12`, is in the same file.
        Format::Dtrace
    } else if text.lines().any(is_bare_frame) && text.lines().any(is_number) {
        Format::Dtrace
    } else if start.starts_with(METRIC_COMMENT) || text.lines().any(is_folded) {
        Format::Folded
    } else {
        return None;
    };
    Some(format)
}

/// Returns whether it is `v 10500 3`; the oldest files have no second number.
fn is_heaptrack_version(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace();
    let is_number = |word: &str| u64::from_str_radix(word, 16).is_ok();
    words.next() == Some("v") && words.next().is_some_and(is_number) && words.all(is_number)
}

fn of_json(text: &str) -> Option<Format> {
    if text.contains("\"dhatFileVersion\"") {
        Some(Format::Dhat)
    } else if text.contains("\"jemalloc\"") {
        Some(Format::JemallocStats)
    } else {
        None
    }
}

fn is_heaptrack_print(text: &str) -> bool {
    text.lines().any(|line| {
        line.starts_with("MOST CALLS TO ALLOCATION FUNCTIONS")
            || line.starts_with("PEAK MEMORY CONSUMERS")
            || line.split_once(" calls with ").is_some_and(|(count, _)| count.parse::<u64>().is_ok())
    })
}

/// Returns whether it is `main;work;malloc 12`. A line that begins with a blank belongs to dtrace.
fn is_folded(line: &str) -> bool {
    !line.starts_with([' ', '\t', '#'])
        && line
            .rsplit_once(' ')
            .is_some_and(|(stack, count)| !stack.is_empty() && count.parse::<f64>().is_ok())
}

/// Returns whether it is a line of dtrace that ends a stack: blanks and a number.
fn is_count_alone(line: &str) -> bool {
    line.starts_with(' ') && line.trim().parse::<u64>().is_ok()
}

/// Returns whether a line of dtrace without blanks before it can only be a frame: ``module`function``, both there, and no blank in the module.
pub(crate) fn is_bare_frame(text: &str) -> bool {
    text.split_once('`').is_some_and(|(module, function)| {
        !module.is_empty()
            && !function.is_empty()
            && !function.starts_with([' ', '`'])
            && !module.contains(char::is_whitespace)
            && !function.contains('`')
    })
}

/// Returns whether it is a number and nothing else.
fn is_number(line: &str) -> bool {
    line.parse::<u64>().is_ok()
}

/// Returns whether it is a line of dtrace with a frame: blanks, a module, a grave accent, a function.
fn is_dtrace_frame(line: &str) -> bool {
    line.starts_with("  ") && line.contains('`')
}

/// Returns whether it may be pprof, which has no magic number: the message begins with one of its fields, most often
/// the sample types, as a length and that many bytes.
fn looks_like_pprof(bytes: &[u8]) -> bool {
    let Some((&tag, rest)) = bytes.split_first() else { return false };
    let (field, wire_type) = (tag >> 3, tag & 7);
    match wire_type {
        0 => (7..=14).contains(&field),
        2 => (1..=11).contains(&field) && rest.first().is_some_and(|&length| length > 0),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back() {
        for format in Format::ALL {
            assert_eq!(Format::of_word(format.word()), Some(format));
        }
        assert_eq!(Format::of_word("perf"), None);
    }

    #[test]
    fn a_beginning_tells_the_format() {
        let cases: [(&[u8], Option<Format>); 31] = [
            (b"JAVA PROFILE 1.0.2\0\0\0\0\x08\0\0\x01", Some(Format::Hprof)),
            (b"{\"type\":\"ROOT\", \"root\":\"vm\", \"references\":[\"0x7", Some(Format::RubyHeap)),
            (b"{\"snapshot\":{\"meta\":{\"node_fields\":[\"type\"", Some(Format::V8Heap)),
            (b" { \"snapshot\"\n: { \"title\":\"x\",\"meta\" : {\"node_fields\":[\xff", Some(Format::V8Heap)),
            (b"{\"snapshot\":{\"dhatFileVersion\":2", Some(Format::Dhat)),
            (b"{\"address\":\"0x7f\", \"type\":\"STRING\", \"file\":\"\xff", Some(Format::RubyHeap)),
            (b"\x89MALLOW\n\x01\0\0\0", Some(Format::Mallow)),
            (b"v 10500 3\nX ls\n", Some(Format::Heaptrack)),
            (b"v 10200\nX ls\n", Some(Format::Heaptrack)),
            (b"reading file \"a.zst\"\nMOST CALLS TO ALLOCATION FUNCTIONS\n", Some(Format::HeaptrackPrint)),
            (b"{\"dhatFileVersion\":2,\"mode\":\"heap\"", Some(Format::Dhat)),
            (b"desc: --pages-as-heap=no\ncmd: ls\n", Some(Format::Massif)),
            (b"<?xml version=\"1.0\"?>\n\n<valgrindoutput>\n", Some(Format::MemcheckXml)),
            (b"heap_v2/524288\n  t*: 28106: 56637512 [0: 0]\n", Some(Format::JemallocHeap)),
            (b"heap profile:   1:   2 [  3:   4] @ heapprofile\n", Some(Format::GperftoolsHeap)),
            (b"\x0a\x04\x08\x01\x10\x02\x12\x00", Some(Format::Pprof)),
            (
                b"\n              libc`malloc\n              app`main+0x1\n              12\n",
                Some(Format::Dtrace),
            ),
            (b"=====\ntotal: 12\n\n              libc`malloc+0x1\n", Some(Format::Dtrace)),
            (b"Attaching 2 probes...\n\n@malloc_calls[\n    malloc+0\n]: 7\n", Some(Format::Bpftrace)),
            (b"libc`malloc+0x1\napp`main\n12\n", Some(Format::Dtrace)),
            (b"use `malloc` here\n12\n", None),
            (b"total: 12\nlibc`malloc+0x1\n7\n", Some(Format::Dtrace)),
            (b"app`main;libc`malloc 12\napp`main 3\n", Some(Format::Folded)),
            (b"main;work 12\n", Some(Format::Folded)),
            (b"___ Begin jemalloc statistics ___\n", Some(Format::JemallocStats)),
            (b"{\"jemalloc\":{\"version\":\"5.3.0\"", Some(Format::JemallocStats)),
            (b"<malloc version=\"1\">\n", Some(Format::MallocInfo)),
            (b"type\ttick\tcount\t\nstart\t15\t2\t\n", Some(Format::GcTracer)),
            (b"", None),
            (b"hello\n", None),
            (b"\x7fELF\x02\x01\x01\0\0\0", None),
        ];
        for (bytes, expected) in cases {
            assert_eq!(Format::of_beginning(bytes), expected, "{}", String::from_utf8_lossy(bytes));
        }
    }
}
