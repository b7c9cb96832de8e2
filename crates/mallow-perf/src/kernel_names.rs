//! Names of the kernel's functions, as far as it shows them.

use mallow_jit::CodeNames;
use std::fs;

/// Those of the kernel that runs now.
pub(crate) fn kernel_names() -> CodeNames {
    let list = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    CodeNames::sorted(list.lines().filter_map(kernel_line).collect())
}

/// Where the kernel's scheduler lies, as far as we may see it: by the marks with which it finds out itself what a thread waits in.
pub(crate) fn scheduler() -> std::ops::Range<u64> {
    let list = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let mark = |name: &str| {
        let before = &list[..list.find(&format!(" {name}\n"))?];
        u64::from_str_radix(before.lines().next_back()?.split(' ').next()?, 16).ok()
    };
    match (mark("__sched_text_start"), mark("__sched_text_end")) {
        (Some(start), Some(end)) if start > 0 => start..end,
        _ => 0..0,
    }
}

/// Whether the kernel that runs now has this symbol at this address.
pub(crate) fn is_our_kernel(symbol: &str, address: u64) -> bool {
    let list = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let is_it = |(start, _, name): (u64, Option<u64>, String)| start == address && name == symbol;
    list.lines().filter_map(kernel_line).any(is_it)
}

/// `ffffffff81000000 T _text`, with the module behind a tab. Addresses are 0 for whom they are hidden from.
fn kernel_line(line: &str) -> Option<(u64, Option<u64>, String)> {
    let mut words = line.split_whitespace();
    let start = u64::from_str_radix(words.next()?, 16).ok().filter(|start| *start > 0)?;
    let is_code = matches!(words.next()?, "t" | "T" | "w" | "W");
    is_code.then_some(())?;
    Some((start, None, words.next()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_names_are_those_of_code() {
        assert_eq!(
            kernel_line("ffffffff81000000 T _text"),
            Some((0xffff_ffff_8100_0000, None, "_text".into()))
        );
        assert_eq!(kernel_line("ffffffff81000000 d data"), None);
        assert_eq!(kernel_line("0000000000000000 T hidden"), None);
    }
}
