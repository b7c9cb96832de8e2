//! Whether two names are of one function, when one of them lacks the way to it.
//!
//! With line tables only, rustc names a function `read<&mut File>` or `{closure#0}`; its symbol says `io::reader::read` and
//! `io::reader::run::{{closure}}`, because the older of its two manglings has no generic arguments and no numbers.

/// Returns whether the symbol `fuller` names the function that DWARF calls `bare`.
pub fn is_fuller(fuller: &str, bare: &str) -> bool {
    fuller.contains(bare) || last_word(fuller) == last_word(bare)
}

/// The last part of a path without its generic arguments; all closures are one.
pub fn last_word(name: &str) -> &str {
    let name = without_arguments(name);
    let word = &name[last_separator(name)..];
    if word.starts_with("{closure") || word.starts_with("{{closure") { "{closure}" } else { word }
}

/// `read<T>` without `<T>`; what only begins with a bracket, such as `<T as Read>`, is left as it is.
fn without_arguments(name: &str) -> &str {
    if !name.ends_with('>') {
        return name;
    }
    let mut depth = 0_usize;
    for (at, byte) in name.bytes().enumerate().rev() {
        match byte {
            // The arrow of a function's type is no bracket.
            b'>' if at == 0 || name.as_bytes()[at - 1] != b'-' => depth += 1,
            b'<' => depth = depth.saturating_sub(1),
            _ => continue,
        }
        if depth == 0 {
            let kept = name[..at].trim_end_matches("::");
            return if kept.is_empty() { name } else { kept };
        }
    }
    name
}

/// Where the part behind the last `::` outside of brackets begins.
fn last_separator(name: &str) -> usize {
    let bytes = name.as_bytes();
    let (mut depth, mut begin) = (0_usize, 0);
    for at in 0..bytes.len() {
        match bytes[at] {
            b'<' | b'(' | b'[' | b'{' => depth += 1,
            b'>' if at > 0 && bytes[at - 1] == b'-' => {}
            b'>' | b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b':' if depth == 0 && at > 0 && bytes[at - 1] == b':' => begin = at + 1,
            _ => {}
        }
    }
    begin
}

#[cfg(test)]
mod tests {
    use super::is_fuller;

    #[test]
    fn one_function_is_known_by_both_of_its_names() {
        for (fuller, bare) in [
            ("ruzstd::frame::read_header", "read_header<&mut &[u8]>"),
            ("<io::File as io::Read>::read", "read<alloc::vec::Vec<u8>>"),
            ("io::run::{{closure}}", "{closure#3}"),
            ("io::run::{{closure}}", "{closure#0}<fn(u8) -> u8>"),
            ("core::ops::function::FnOnce::call_once", "call_once<fn() -> Result<(), String>, ()>"),
            ("store::Map<int>::get(int) const", "get"),
            ("bool operator< <int>(A<int> const&)", "operator< <int>"),
            ("core::ptr::drop_in_place<alloc::vec::Vec<u8>>", "drop_in_place<alloc::vec::Vec<u8, Global>>"),
        ] {
            assert!(is_fuller(fuller, bare), "{fuller} | {bare}");
        }
    }

    #[test]
    fn another_function_at_the_same_address_is_not_taken_for_it() {
        for (other, bare) in [
            ("io::reader::write", "read<u8>"),
            ("io::reader<read>::write", "fill<u8>"),
            ("io::run::{{closure}}", "run<u8>"),
            ("", "read"),
            ("::", "read<u8>"),
            ("<", "a>"),
        ] {
            assert!(!is_fuller(other, bare), "{other} | {bare}");
        }
    }
}
