//! Turns the linker's names into the names that a person wrote.
//!
//! It never loses a name: what no scheme can read is returned as it came.

use std::panic::catch_unwind;

use cpp_demangle::{DemangleOptions, Symbol};

/// True for names that a C++ or Rust compiler mangled, so that they say more than a bare DWARF name.
pub(crate) fn is_mangled(name: &[u8]) -> bool {
    name.starts_with(b"_Z") || name.starts_with(b"_R")
}

/// The readable form of a symbol's name: Rust (v0, and legacy without its hash), C++ (Itanium ABI, with parameters),
/// else the name as it is.
pub fn demangle(name: &str) -> String {
    // A symbol table holds whatever someone put there; a name that makes a demangler panic stays as it is.
    let readable = catch_unwind(|| demangle_rust(name).or_else(|| demangle_cpp(name)));
    readable.ok().flatten().unwrap_or_else(|| name.to_owned())
}

fn demangle_rust(name: &str) -> Option<String> {
    if !name.starts_with("_R") && !is_legacy_rust(name) {
        return None;
    }
    // The alternate form leaves out the hash, which changes with every compiler and would split one function into two
    // when runs are compared.
    rustc_demangle::try_demangle(name).ok().map(|rust| format!("{rust:#}"))
}

fn demangle_cpp(name: &str) -> Option<String> {
    if !name.starts_with("_Z") {
        return None;
    }
    let whole = || Symbol::new(name).ok()?.demangle_with_options(&DemangleOptions::new()).ok();
    whole().or_else(|| outline(name))
}

/// Returns a function's name without its template's arguments, its parameters and its result: these may have
/// expressions in them that the demangler does not support, as those of `std::swap` have. `None` for a name whose end
/// is not certain then.
fn outline(name: &str) -> Option<String> {
    let mut rest = name.strip_prefix("_Z")?;
    let is_nested = rest.starts_with('N');
    if is_nested {
        rest = rest[1..].trim_start_matches(['r', 'V', 'K']);
    }
    let mut parts = Vec::new();
    if let Some(behind) = rest.strip_prefix("St") {
        parts.push("std");
        rest = behind;
    }
    loop {
        rest = rest.strip_prefix('L').unwrap_or(rest);
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let len: usize = rest[..digits].parse().ok()?;
        parts.push(rest.get(digits..digits + len).filter(|part| !part.is_empty())?);
        rest = &rest[digits + len..];
        if !is_nested || !rest.starts_with(|next: char| next.is_ascii_digit()) {
            break;
        }
    }
    match rest.bytes().next() {
        Some(b'I') if !is_nested => Some(parts.join("::") + "<…>"),
        Some(b'I') => None,
        Some(b'E') if is_nested => Some(parts.join("::")),
        Some(_) if !is_nested => Some(parts.join("::")),
        _ => None,
    }
}

/// Legacy Rust names are C++ names whose last element is `h` and 16 hexadecimal digits. Only those go to the Rust
/// demangler: it would read a C++ `_ZN1a1bE` too, but not its parameters.
fn is_legacy_rust(name: &str) -> bool {
    name.starts_with("_ZN")
        && name.match_indices("17h").any(|(at, _)| {
            let rest = &name.as_bytes()[at + 3..];
            rest.len() > 16 && rest[..16].iter().all(u8::is_ascii_hexdigit) && rest[16] == b'E'
        })
}

#[cfg(test)]
mod tests {
    use super::demangle;

    #[test]
    fn rust_names_lose_their_hash() {
        assert_eq!(demangle("_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
        assert_eq!(
            demangle("_ZN4core3fmt5write17h0123456789abcdefE.llvm.8431967103518247"),
            "core::fmt::write"
        );
        assert_eq!(
            demangle("_ZN50_$LT$T$u20$as$u20$core..convert..Into$LT$U$GT$$GT$4into17hfedcba9876543210E"),
            "<T as core::convert::Into<U>>::into"
        );
    }

    #[test]
    fn rust_v0_names() {
        assert_eq!(demangle("_RNvC6_123foo3bar"), "123foo::bar");
        assert_eq!(demangle("_RNvNtCs1234_7mycrate3foo3bar"), "mycrate::foo::bar");
    }

    #[test]
    fn cpp_names_keep_template_and_parameter_types() {
        assert_eq!(demangle("_ZN1a1bEv"), "a::b()");
        assert_eq!(
            demangle("_ZNSt6vectorIiSaIiEE9push_backERKi"),
            "std::vector<int, std::allocator<int> >::push_back(int const&)"
        );
        assert_eq!(demangle("_Znwm"), "operator new(unsigned long)");
    }

    #[test]
    fn of_a_cpp_name_with_unknown_expressions_the_function_is_told() {
        let arguments =
            "IjENSt9enable_ifIXsrSt6__and_IJSt6__not_ISt15__is_tuple_likeIT_EEEE5valueEvE4typeERS4_SE_";
        assert_eq!(demangle(&format!("_ZSt4swap{arguments}")), "std::swap<…>");
        assert_eq!(demangle(&format!("_ZL4swap{arguments}")), "swap<…>");
        assert_eq!(demangle("_ZN3app4swapEXsrSt6__and_IJEE"), "app::swap");
        // Whether a function follows in the template cannot be determined.
        let member = format!("_ZN3app4list{arguments}");
        assert_eq!(demangle(&member), member);
    }

    #[test]
    fn a_cpp_name_that_looks_like_a_hash_stays_cpp() {
        assert_eq!(demangle("_ZN3foo17h0123456789abcdegEi"), "foo::h0123456789abcdeg(int)");
    }

    #[test]
    fn other_names_stay() {
        for name in ["main", "", "_Z", "_R", "_ZN", "malloc", "_Zzzz", "_RRRR", "Ünïcode", "_ZNé"] {
            assert_eq!(demangle(name), name);
        }
    }
}
