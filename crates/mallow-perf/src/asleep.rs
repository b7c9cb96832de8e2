//! Threads that wait already when sampling of a process begins: the kernel tells of them only when they go on, and of what hangs never.
//!
//! `/proc` has the call in which a thread waits, and its memory has the stack. Nothing is stopped for it. The frame pointer is not to be had, so
//! a stack ends early at a function that needs it; such ones are counted as any stack that ends early.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

/// A thread that waits.
#[derive(Debug)]
pub(crate) struct Asleep {
    pub(crate) tid: u32,
    pub(crate) ip: u64,
    pub(crate) sp: u64,
    /// The stack above its stack pointer.
    pub(crate) stack: Vec<u8>,
    /// The kernel's functions that wait, innermost first, with how far in each: for root only.
    pub(crate) kernel: Vec<(String, u64)>,
}

/// Those of a process's threads that wait for something now.
pub(crate) fn asleep(pid: u32, threads: &[(u32, String)], stack_bytes: usize) -> Vec<Asleep> {
    let Ok(memory) = File::open(format!("/proc/{pid}/mem")) else { return Vec::new() };
    threads.iter().filter_map(|(tid, _)| look(pid, *tid, &memory, stack_bytes)).collect()
}

fn look(pid: u32, tid: u32, memory: &File, stack_bytes: usize) -> Option<Asleep> {
    let state =
        || Some((fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall")).ok()?, switches(pid, tid)?));
    let before = state()?;
    let (sp, ip) = place(&before.0)?;
    let kernel = fs::read_to_string(format!("/proc/{pid}/task/{tid}/stack")).unwrap_or_default();
    let mut stack = vec![0; stack_bytes];
    let mut read = 0;
    while let Some(room) = stack.get_mut(read..).filter(|room| !room.is_empty()) {
        match memory.read_at(room, sp + read as u64) {
            Ok(bytes) if bytes > 0 => read += bytes,
            // Beyond the stack's end.
            _ => break,
        }
    }
    stack.truncate(read);
    // If it ran meanwhile its stack is a mixture.
    let kernel = kernel.lines().map_while(kernel_frame).collect();
    (state()? == before).then_some(Asleep { tid, ip, sp, stack, kernel })
}

/// `NUMBER SIX ARGUMENTS SP IP` of a call, `-1 SP IP` beside one; `running`.
fn place(line: &str) -> Option<(u64, u64)> {
    let mut words = line.split_whitespace().rev();
    let mut number = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    let (ip, sp) = (number()?, number()?);
    (ip != 0 && sp != 0).then_some((sp, ip))
}

/// `[<0>] hrtimer_nanosleep+0x74/0xf0`
fn kernel_frame(line: &str) -> Option<(String, u64)> {
    let (name, offset) = line.rsplit_once(' ')?.1.split_once('+')?;
    let offset = offset.split('/').next()?.strip_prefix("0x")?;
    Some((name.to_owned(), u64::from_str_radix(offset, 16).ok()?))
}

/// Returns how often it left a CPU.
fn switches(pid: u32, tid: u32) -> Option<(u64, u64)> {
    let status = fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).ok()?;
    let count = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok());
    Some((count("voluntary_ctxt_switches:")?, count("nonvoluntary_ctxt_switches:")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_thread_waits_is_read_from_proc() {
        let line = "232 0x4 0x7ffd 0x1 0xffffffff 0x0 0x8 0x7ffc2f30 0x7f1c2e2a3e46\n";
        assert_eq!(place(line), Some((0x7ffc_2f30, 0x7f1c_2e2a_3e46)));
        assert_eq!(place("-1 0x7ffc2f30 0x7f1c2e2a3e46"), Some((0x7ffc_2f30, 0x7f1c_2e2a_3e46)));
        assert_eq!(kernel_frame("[<0>] do_syscall_64+0x71/0x280"), Some(("do_syscall_64".to_owned(), 0x71)));
        assert_eq!((place("running\n"), place("0 0x0 0x0"), place("")), (None, None, None));
    }
}
