//! Names of the kernel's functions, as far as it shows them.
//!
//! The kernel takes some 40 ms to tell them, more than all else that is done when a short recording ends. So they are read ahead, in a thread that
//! waits until it is known that there are such frames, and that the program is none of the shortest.

use mallow_jit::CodeNames;
use std::fs;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

/// The kernel's functions, read once.
#[derive(Default)]
pub(crate) struct KernelNames {
    ahead: Option<Ahead>,
    names: Option<CodeNames>,
}

struct Ahead {
    begin: Sender<()>,
    is_begun: bool,
    reader: JoinHandle<CodeNames>,
}

impl KernelNames {
    /// With a thread that can read them. Before events are opened, as these are inherited by threads.
    pub(crate) fn with_reader() -> KernelNames {
        let (begin, begun) = channel();
        let read = move || begun.recv().map_or_else(|_| CodeNames::default(), |()| kernel_names());
        let reader = std::thread::Builder::new().name("kernel-names".to_owned()).spawn(read);
        // Without a thread they are read when they are wanted.
        let ahead = reader.ok().map(|reader| Ahead { begin, is_begun: false, reader });
        KernelNames { ahead, names: None }
    }

    /// Has the thread begin, if there is one.
    pub(crate) fn read_ahead(&mut self) {
        if let Some(ahead) = self.ahead.as_mut().filter(|ahead| !ahead.is_begun) {
            ahead.is_begun = ahead.begin.send(()).is_ok();
        }
    }

    /// The names of the kernel that runs now.
    pub(crate) fn get(&mut self) -> &CodeNames {
        let ahead = self.ahead.take().filter(|ahead| ahead.is_begun);
        self.names.get_or_insert_with(|| {
            let read = ahead.and_then(|ahead| ahead.reader.join().ok());
            read.unwrap_or_else(kernel_names)
        })
    }
}

/// Those of the kernel that runs now.
fn kernel_names() -> CodeNames {
    let list = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    CodeNames::sorted(list.lines().filter_map(kernel_line).collect())
}

/// Returns the range of the kernel's scheduler, if it is visible: by the symbols with which the kernel itself finds
/// out what a thread waits in.
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

/// Returns whether the kernel that runs now has this symbol at this address.
pub(crate) fn is_our_kernel(symbol: &str, address: u64) -> bool {
    let list = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let is_it = |(start, _, name): (u64, Option<u64>, String)| start == address && name == symbol;
    list.lines().filter_map(kernel_line).any(is_it)
}

/// `ffffffff81000000 T _text`, with the module after a tab. Hidden addresses are 0.
fn kernel_line(line: &str) -> Option<(u64, Option<u64>, String)> {
    // A hundred thousand lines, so each byte is looked at once.
    let (start, rest) = line.split_once(' ')?;
    let (kind, rest) = rest.split_once(' ')?;
    let is_code = matches!(kind, "t" | "T" | "w" | "W");
    is_code.then_some(())?;
    let start = u64::from_str_radix(start, 16).ok().filter(|start| *start > 0)?;
    let name = rest.split_once('\t').map_or(rest, |(name, _)| name);
    Some((start, None, name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_read_ahead_are_those_that_are_read_at_once() {
        let mut ahead = KernelNames::with_reader();
        ahead.read_ahead();
        let mut at_once = KernelNames::with_reader();
        let names = ["schedule", "do_syscall_64", "no_such_function"];
        let of = |of: &mut KernelNames| names.map(|name| of.get().address(name));
        let found = of(&mut ahead);
        assert_eq!(found, of(&mut at_once));
        assert_eq!((found, found[2]), (of(&mut KernelNames::default()), None));
    }

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
