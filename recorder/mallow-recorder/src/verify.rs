//! A recorder that checks itself: every stack is found again in two other ways, and differences are counted
//! in the header.
//!
//! The judges are a walk from scratch with the same rules, which tests the memo, and the C runtime's own
//! unwinder (`_Unwind_Backtrace` of libgcc), which shares no code with us and tests the rules. Only built
//! with the feature `verify`: this is many times slower than recording.

use crate::Caller;
use crate::from_scratch::{FRAMES_MAX, walk_each};
use crate::process;
use crate::walk::UnwindContext;
use core::arch::{asm, global_asm};
use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::sync::atomic::Ordering;
use mallow_wire::shared::{NODE_ROOT, is_node_cut, node_address, node_parent};

global_asm!(".weak _Unwind_Backtrace", ".weak _Unwind_GetIP");

/// The maximal number of frames that are compared.
const COMPARED_MAX: usize = 512;

/// Compares the stack of a node with both other methods, unless the node table had no room for all of it.
///
/// # Safety
/// As [`walk_each`].
#[inline(never)]
pub unsafe fn compare(node: u32, caller: Caller, cx: &UnwindContext) {
    if is_node_cut(node) {
        return;
    }
    let header = process::header();
    header.verify_stacks.fetch_add(1, Ordering::Relaxed);
    let mut ours = [0u64; COMPARED_MAX];
    let depth = keys(node, &mut ours);
    let mut same = true;
    // SAFETY: by contract.
    let walked_depth = unsafe {
        walk_each(caller, cx, |i, _, key| {
            same &= i >= COMPARED_MAX || ours[i] == key;
            true
        })
    };
    same &= walked_depth == depth || walked_depth == FRAMES_MAX;
    ours.iter_mut().for_each(|key| *key = node_address(*key));
    // SAFETY: by contract.
    let judged = unsafe { judge(caller, &ours[..depth.min(COMPARED_MAX)]) };
    if let Some(agrees) = judged {
        header.verify_judged.fetch_add(1, Ordering::Relaxed);
        header.verify_judge_mismatches.fetch_add(!agrees as u64, Ordering::Relaxed);
    }
    if !same {
        header.verify_mismatches.fetch_add(1, Ordering::Relaxed);
    }
}

/// Reads the keys of a node's stack, innermost first; returns the depth, which may exceed the room.
fn keys(mut node: u32, into: &mut [u64]) -> usize {
    let mut depth = 0;
    while node != NODE_ROOT {
        // SAFETY: ids come from the table.
        let entry = unsafe { &*process::nodes().add(node as usize) };
        if let Some(place) = into.get_mut(depth) {
            *place = entry.key.load(Ordering::Relaxed);
        }
        depth += 1;
        node = node_parent(entry.link.load(Ordering::Relaxed));
    }
    depth
}

struct Conclusion<'a> {
    ours: &'a [u64],
    /// Frames of the host that were met; none before its innermost one.
    met: Option<usize>,
    agrees: bool,
    get_ip: extern "C" fn(*mut c_void) -> usize,
}

/// The result of the C runtime's unwinder; `None` if it is not loaded.
unsafe fn judge(caller: Caller, ours: &[u64]) -> Option<bool> {
    let (backtrace, get_ip): (usize, usize);
    // SAFETY: reads the global offset table; the entries are 0 when nobody defines the symbols.
    unsafe {
        asm!("mov {}, qword ptr [rip + _Unwind_Backtrace@GOTPCREL]", out(reg) backtrace, options(nostack, preserves_flags, readonly));
        asm!("mov {}, qword ptr [rip + _Unwind_GetIP@GOTPCREL]", out(reg) get_ip, options(nostack, preserves_flags, readonly));
    }
    if backtrace == 0 || get_ip == 0 {
        return None;
    }
    // SAFETY: the symbols have these types by the C++ ABI. `sp` points at the return address.
    unsafe {
        type Visit = extern "C" fn(*mut c_void, *mut Conclusion<'_>) -> c_int;
        let backtrace: extern "C" fn(Visit, *mut Conclusion<'_>) -> c_int = transmute(backtrace);
        debug_assert_eq!(ours.first(), Some(&*(caller.sp as *const u64)));
        let mut conclusion = Conclusion {
            ours,
            met: None,
            agrees: true,
            get_ip: transmute::<usize, extern "C" fn(*mut c_void) -> usize>(get_ip),
        };
        backtrace(visit, &mut conclusion);
        // It may end before us where we follow frame pointers through code without tables, but never after
        // us.
        Some(conclusion.agrees && conclusion.met.is_some())
    }
}

extern "C" fn visit(context: *mut c_void, conclusion: *mut Conclusion<'_>) -> c_int {
    const GO_ON: c_int = 0;
    // SAFETY: the unwinder passes on what `judge` gave it.
    let conclusion = unsafe { &mut *conclusion };
    let ip = (conclusion.get_ip)(context) as u64;
    let at = match conclusion.met {
        // Our own frames come first.
        None if conclusion.ours.first() != Some(&ip) => return GO_ON,
        None => 0,
        Some(at) => at + 1,
    };
    conclusion.met = Some(at);
    let ended = ip == 0 && at >= conclusion.ours.len();
    conclusion.agrees &= ended || at >= COMPARED_MAX || conclusion.ours.get(at) == Some(&ip);
    GO_ON
}
