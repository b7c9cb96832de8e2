//! What a file that is no trace seems to be.

/// Returns whether it continues as JSON does: many scripts begin with a brace, and many settings with a bracket.
fn begins_json(text: &[u8]) -> bool {
    let Some((first, rest)) = text.split_first() else { return false };
    let next = rest.trim_ascii_start().first();
    match first {
        b'{' => matches!(next, None | Some(b'"' | b'}')),
        b'[' => matches!(next, None | Some(b'"' | b']' | b'{' | b'[' | b'-' | b'0'..=b'9')),
        _ => false,
    }
}

/// Returns which kind of file begins with these bytes, with its article: `a gzip file`.
pub fn looks_like(bytes: &[u8]) -> &'static str {
    const BEGINNINGS: [(&[u8], &str); 10] = [
        (b"\x7fELF", "an ELF program or library"),
        (b"\x1f\x8b", "a gzip file (heaptrack and pprof write such files)"),
        (b"\x28\xb5\x2f\xfd", "a zstd file (heaptrack writes such files)"),
        (b"PK\x03\x04", "a zip file"),
        (b"#!", "a script"),
        (b"JAVA PROFILE ", "a Java heap dump"),
        (b"heap profile:", "a heap profile of gperftools"),
        (b"heap_v2/", "a heap profile of jemalloc"),
        (b"desc: ", "a massif file"),
        (b"<?xml", "an XML file"),
    ];
    if bytes.is_empty() {
        return "an empty file";
    }
    if let Some((_, what)) = BEGINNINGS.iter().find(|(beginning, _)| bytes.starts_with(beginning)) {
        return what;
    }
    let text = bytes.trim_ascii_start();
    match text.first() {
        // Heaptrack's text begins with a line of its version: `v 10500 3`.
        _ if text.starts_with(b"v ") && text.get(2).is_some_and(u8::is_ascii_hexdigit) => "a heaptrack file",
        _ if begins_json(text) => "a JSON file",
        _ if bytes.iter().all(|byte| !byte.is_ascii_control() || byte.is_ascii_whitespace()) => "a text file",
        _ => "a file of an unknown kind",
    }
}
