//! A function's name without what differs between two builds of the same source.
//!
//! Taken away are offsets (`+0x12`), suffixes of compilers' copies (`.isra.0`, `.part.0`, `.constprop.0`,
//! `.cold`, `.llvm.123`, `.lto_priv.0`, and the bare numbers of Swift's thunks), symbol versions
//! (`@@GLIBC_2.2.5`), Rust's hashes, and the numbers of closures, lambdas and impls, which count what stands
//! before them in the file. Template and generic arguments stay: they are part of which function it is.

/// Suffixes that GCC, LLVM and their linkers add to copies and parts of a function; each may be followed by a number.
const COPIES: &[&str] = &[
    "isra",
    "part",
    "constprop",
    "cold",
    "llvm",
    "lto_priv",
    "localalias",
    "clone",
    "unlikely",
    "resume",
    "destroy",
    "cleanup",
    "outlined",
    "specialized",
    "str",
];

/// Words that Swift's demangler puts before a function that the optimiser merged or specialised.
const SWIFT_COPIES: &[&str] = &["merged ", "specialized "];

/// The name that two builds have in common.
pub(super) fn normalised(name: &str) -> String {
    let name = without_swift_copies(without_endings(name.trim()));
    let name = without_hashes(name);
    without_numbers(&name)
}

/// Returns the address if a name is only an address; then it does not identify a function in another build.
pub(super) fn address(name: &str) -> Option<u64> {
    u64::from_str_radix(name.strip_prefix("0x")?, 16).ok()
}

/// Cuts endings as long as there are any, since compilers stack them: `f.constprop.0.isra.0.cold+0x12`.
fn without_endings(name: &str) -> &str {
    let mut name = name;
    loop {
        let shorter = without_suffix(without_note(without_version(without_offset(name))));
        if shorter.len() == name.len() || shorter.is_empty() {
            return name;
        }
        name = shorter;
    }
}

/// `f+0x1f` and `f+31`, but not `operator+` and not Swift's `+ infix`.
fn without_offset(name: &str) -> &str {
    let Some((rest, offset)) = name.rsplit_once('+') else { return name };
    let is_hexadecimal = offset
        .strip_prefix("0x")
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit()));
    let is_offset = is_hexadecimal || is_number(offset);
    if is_offset && !rest.is_empty() && !rest.ends_with("operator") { rest.trim_end() } else { name }
}

/// `memcpy@@GLIBC_2.14`, `f@plt`.
fn without_version(name: &str) -> &str {
    let Some((rest, version)) = name.split_once('@') else { return name };
    let version = version.trim_start_matches('@');
    let is_version =
        !version.is_empty() && version.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b));
    if is_version && !rest.is_empty() { rest } else { name }
}

/// ` [clone .cold]`, ` (.llvm.123)`, ` [.isra.0]`, ` with unmangled suffix ".18"`: how demanglers write suffixes.
fn without_note(name: &str) -> &str {
    if let Some((rest, _)) = name.split_once(" with unmangled suffix \"") {
        return rest;
    }
    let open = match name.as_bytes().last() {
        Some(b']') => name.rfind(" ["),
        Some(b')') => name.rfind(" ("),
        _ => None,
    };
    let Some(open) = open else { return name };
    let inside = &name[open + 2..name.len() - 1];
    let inside = inside.strip_prefix("clone ").unwrap_or(inside);
    if inside.starts_with('.') && !inside.contains(' ') { &name[..open] } else { name }
}

/// One `.word` or `.number` of a compiler's copy.
fn without_suffix(name: &str) -> &str {
    let Some((rest, suffix)) = name.rsplit_once('.') else { return name };
    let is_copy = COPIES.contains(&suffix) || suffix.starts_with("llvm-") || is_number(suffix);
    if is_copy && !rest.is_empty() && !rest.ends_with(['.', ' ']) { rest } else { name }
}

fn without_swift_copies(name: &str) -> &str {
    let mut name = name;
    while let Some(rest) = SWIFT_COPIES.iter().find_map(|copy| name.strip_prefix(copy)) {
        name = rest;
    }
    name
}

/// Removes `::h` and 16 hexadecimal digits (Rust's legacy mangling), and `[8a55d2…]` after crate names (its v0
/// mangling).
fn without_hashes(name: &str) -> String {
    let name = match name.rsplit_once("::h") {
        Some((rest, hash)) if hash.len() == 16 && is_hexadecimal(hash) => rest,
        _ => name,
    };
    let mut text = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(open) = rest.find('[') {
        let inside = rest[open + 1..].split(']').next().unwrap_or_default();
        let is_behind_name = rest[..open].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        text.push_str(&rest[..open]);
        let end = open + 1 + inside.len();
        if is_behind_name && inside.len() >= 8 && is_hexadecimal(inside) && end < rest.len() {
            rest = &rest[end + 1..];
        } else {
            text.push('[');
            rest = &rest[open + 1..];
        }
    }
    text.push_str(rest);
    text
}

/// Cuts the numbers of `{closure#0}`, `{lambda(int)#2}`, `{impl#3}`, `$_4` and `closure #1 in`; writes Rust's
/// two spellings of a closure alike, and `> >` as `>>`.
fn without_numbers(name: &str) -> String {
    let name = name.replace("{{closure}}", "{closure}").replace("> >", ">>").replace("> >", ">>");
    let mut text = String::with_capacity(name.len());
    let mut rest = name.as_str();
    while let Some(at) = rest.find(['#', '$']) {
        let (mark, behind) = (rest.as_bytes()[at], &rest[at + 1..]);
        let (before, digits) = match (mark, behind.strip_prefix('_')) {
            (b'$', Some(digits)) => (&rest[..at + 2], digits),
            (b'$', None) => (&rest[..=at], ""),
            _ => (rest[..at].trim_end(), behind),
        };
        let without = digits.trim_start_matches(|c: char| c.is_ascii_digit());
        if without.len() < digits.len() {
            text.push_str(before);
            rest = without;
        } else {
            text.push_str(&rest[..=at]);
            rest = behind;
        }
    }
    text.push_str(rest);
    text
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn is_hexadecimal(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, expected: &str) {
        assert_eq!(normalised(name), expected);
        assert_eq!(normalised(expected), expected, "normalised twice");
    }

    #[test]
    fn plain_names_stay() {
        for name in ["main", "std::vector<int>::push_back(int&&)", "a.b.c", "", "0x1234", "operator+(A, B)"] {
            check(name, name);
        }
    }

    #[test]
    fn offsets_go() {
        check("malloc+0x12", "malloc");
        check("parse(int)+31", "parse(int)");
        check("A::operator+", "A::operator+");
        check("static Int.+ infix(Int, Int) -> Int", "static Int.+ infix(Int, Int) -> Int");
        check("+12", "+12");
    }

    #[test]
    fn copies_of_gcc_and_llvm_go() {
        check("load.isra.0", "load");
        check("load.constprop.3.isra.0.cold", "load");
        check("load.part.1+0x1f", "load");
        check("load.llvm.1234567890123", "load");
        check("load.lto_priv.0", "load");
        check("void app::fill<int>(int) [clone .isra.0]", "void app::fill<int>(int)");
        check("app::load(char*) (.llvm.99)", "app::load(char*)");
        check("app::load(char*) [clone .constprop.0] [clone .cold]", "app::load(char*)");
    }

    #[test]
    fn thunks_of_swift_lose_their_number() {
        check("$sSSIegg_SSIegn_TRTA.18", "$sSSIegg_SSIegn_TRTA");
        check("$sSSIegg_SSIegn_TRTA.33", "$sSSIegg_SSIegn_TRTA");
        check(
            "partial apply for thunk for @escaping () -> () with unmangled suffix \".18\"",
            "partial apply for thunk for @escaping () -> ()",
        );
        check("specialized merged Channel.write(_:)", "Channel.write(_:)");
        check("closure #12 in Channel.write(_:)", "closure in Channel.write(_:)");
    }

    #[test]
    fn hashes_of_rust_go() {
        check("csv::Reader::read::h0123456789abcdef", "csv::Reader::read");
        check("core[846817f741e54dfd]::ops::call", "core::ops::call");
        check("<[u8; 16] as app::T>::f", "<[u8; 16] as app::T>::f");
        check("app::<impl [u8]>::f", "app::<impl [u8]>::f");
    }

    #[test]
    fn closures_and_lambdas_lose_their_number() {
        check("app::run::{closure#3}", "app::run::{closure}");
        check("app::run::{{closure}}", "app::run::{closure}");
        check("app::{impl#12}::f::{closure_env#0}", "app::{impl}::f::{closure_env}");
        check(
            "run(int)::{lambda(char)#2}::operator()(char) const",
            "run(int)::{lambda(char)}::operator()(char) const",
        );
        check("run::$_7::operator()(int) const", "run::$_::operator()(int) const");
        check("run()::<lambda(int)>", "run()::<lambda(int)>");
        check("Map<A, B<C> >", "Map<A, B<C>>");
    }

    #[test]
    fn versions_of_symbols_go() {
        check("memcpy@@GLIBC_2.14", "memcpy");
        check("malloc@plt", "malloc");
        check("thunk for @escaping () -> ()", "thunk for @escaping () -> ()");
    }

    #[test]
    fn an_address_is_no_name() {
        assert_eq!(address("0x1f"), Some(31));
        assert_eq!(address("main"), None);
        assert_eq!(address("0x"), None);
    }
}
