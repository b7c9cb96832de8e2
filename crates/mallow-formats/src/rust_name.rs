//! Demangles names of Rust functions that tools of other languages left mangled.
//!
//! Tools that support only C++ leave Rust's newer mangling unchanged (`_RNv…`) and undo half of the older one, which
//! is C++'s with additional escapes: `_$LT$T$u20$as$u20$app..Row$GT$::make::h0123456789abcdef`.

/// A limit of expansion: a malicious name that repeats a part again and again would become very long.
const READABLE_BYTES_PER_BYTE: usize = 64;
/// Replaces the hash if a tool has removed it.
const NO_HASH: &str = "h0000000000000000";

/// Returns the demangled name; `None` if it is not a mangled name of Rust.
pub(crate) fn readable(name: &str) -> Option<String> {
    let readable = if name.starts_with("_R") || name.starts_with("_ZN") {
        demangled(name)?
    } else if is_half_demangled(name) {
        demangled(&mangled_again(name))?
    } else {
        return None;
    };
    (readable.len() <= name.len().saturating_mul(READABLE_BYTES_PER_BYTE)).then_some(readable)
}

/// Returns the demangled name, or any other name unchanged.
pub(crate) fn made_readable(name: &str) -> String {
    readable(name).unwrap_or_else(|| name.to_owned())
}

fn demangled(name: &str) -> Option<String> {
    rustc_demangle::try_demangle(name).ok().map(|readable| format!("{readable:#}"))
}

/// Returns whether a name has Rust's escapes, or its hash after a path.
fn is_half_demangled(name: &str) -> bool {
    const ESCAPES: [&str; 8] = ["$LT$", "$GT$", "$u20$", "$RF$", "$u7b$", "$C$", "$BP$", "$u5b$"];
    ESCAPES.iter().any(|escape| name.contains(escape)) || hash(name).is_some()
}

/// Splits a path and the hash after it.
fn hash(name: &str) -> Option<(&str, &str)> {
    let (path, hash) = name.rsplit_once("::")?;
    let digits = hash.strip_prefix('h').filter(|digits| digits.len() == NO_HASH.len() - 1)?;
    digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then_some((path, hash))
}

/// Returns the linker's name.
fn mangled_again(name: &str) -> String {
    let (path, hash) = hash(name).unwrap_or((name, NO_HASH));
    let elements = path.split("::").chain([hash]).filter(|element| !element.is_empty());
    let elements: String = elements.map(|element| format!("{}{element}", element.len())).collect();
    format!("_ZN{elements}E")
}

#[cfg(test)]
mod tests {
    use super::readable;

    #[test]
    fn both_manglings_and_what_cpp_tools_make_of_them() {
        for (name, read) in [
            ("_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar"),
            ("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"),
            ("csv::reader::ReaderBuilder::new::hbad6cbe59351a0a9", "csv::reader::ReaderBuilder::new"),
            (
                "_$LT$csv..reader..ReaderBuilder$u20$as$u20$core..default..Default$GT$::default::h2a03a831bf4ae93a",
                "<csv::reader::ReaderBuilder as core::default::Default>::default",
            ),
            (
                "alloc::slice::_$LT$impl$u20$$u5b$T$u5d$$GT$::to_vec::h088f392e5d073d7d",
                "alloc::slice::<impl [T]>::to_vec",
            ),
            (
                "csv_aggregate::run::_$u7b$$u7b$closure$u7d$$u7d$::he3862689eae7a6ee",
                "csv_aggregate::run::{{closure}}",
            ),
            ("_$LT$T$u20$as$u20$a..B$GT$::c", "<T as a::B>::c"),
        ] {
            assert_eq!(readable(name).as_deref(), Some(read));
        }
    }

    #[test]
    fn other_names_stay() {
        for name in ["main", "std::sort(int*, int*)", "a::hash", "_Znwm", "foo$bar", "x::h0123", ""] {
            assert_eq!(readable(name), None, "{name}");
        }
    }
}
