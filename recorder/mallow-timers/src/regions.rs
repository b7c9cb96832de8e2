//! Where a process logs its script's code, and what it asks of mallow: a region of the memory's file.

use crate::ids;
use crate::kernel;
use crate::memory::{Memory, open_named};
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use mallow_recorder::{process, script, sys};
use mallow_wire::script::CODE_LOG_BYTES;
use mallow_wire::shared::{CHANNELS_OFFSET, CODES_OFFSET, PAGE_BYTES};
use mallow_wire::timers::{
    REGION_ASKS, REGION_ENDS, REGION_REFUSED, REGION_SAMPLED, REGIONS, VARIABLE, WAKE_VARIABLE,
};

/// How long a process waits for an answer, at most; it goes on without.
const PATIENCE_MS: u64 = 250;
/// The same before it locks itself in or executes a program: a signal could end it then.
const PATIENCE_TO_END_MS: u64 = 5000;

/// Where the region lies here; null without one. A forked child has its own in the same place.
static AT: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
/// Its number.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// This process's region.
pub(crate) fn number() -> Option<u32> {
    (!AT.load(Ordering::Acquire).is_null()).then(|| NUMBER.load(Ordering::Relaxed))
}

/// Takes a region for this process; false when there is none.
pub(crate) fn take(memory: Memory) -> bool {
    let is_taken = claim(memory).is_some();
    if !is_taken {
        memory.count(|header| &header.scripts_without);
    }
    is_taken
}

fn claim(memory: Memory) -> Option<()> {
    let before = AT.swap(core::ptr::null_mut(), Ordering::AcqRel);
    let reserved = if before.is_null() { kernel::reserve(CHANNELS_OFFSET) } else { before };
    if reserved.is_null() {
        return None;
    }
    let pid = ids::pid();
    let free = |number: &usize| {
        let region = memory.regions().get(*number);
        region.is_some_and(|region| {
            region.pid.compare_exchange(0, pid, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        })
    };
    let number = (0..REGIONS).find(free)?;
    let offset = memory.region_offset(number)?;
    let file = open_named(VARIABLE, kernel::open_shared)?;
    // SAFETY: the address range was reserved for this, or is that of the parent's region, which the child has no use for.
    let is_mapped = unsafe {
        kernel::map_over(reserved, PAGE_BYTES, file, offset)
            && kernel::map_over(
                reserved.wrapping_add(CODES_OFFSET),
                CODE_LOG_BYTES,
                file,
                offset + PAGE_BYTES,
            )
    };
    sys::close(file);
    if !is_mapped {
        return None;
    }
    // SAFETY: a header's page, and a log where shared memory has one; they stay mapped.
    unsafe {
        process::log_scripts_in(reserved);
        script::inherit(reserved);
    }
    NUMBER.store(number as u32, Ordering::Relaxed);
    AT.store(reserved, Ordering::Release);
    Some(())
}

/// Asks for events with signals, and waits for an answer.
pub(crate) fn ask_for_events(memory: Memory) {
    tell(memory, REGION_ASKS, PATIENCE_MS, &[REGION_SAMPLED, REGION_REFUSED]);
}

/// Asks that they end, and waits until they have; false where there were none.
pub(crate) fn end_events(memory: Memory) -> bool {
    let region = number().and_then(|number| memory.regions().get(number as usize));
    let has_events = region
        .is_some_and(|region| [REGION_SAMPLED, REGION_ASKS].contains(&region.state.load(Ordering::Acquire)));
    if has_events {
        tell(memory, REGION_ENDS, PATIENCE_TO_END_MS, &[REGION_REFUSED]);
    }
    has_events
}

fn tell(memory: Memory, state: u32, patience_ms: u64, answers: &[u32]) {
    const STEP_MS: u64 = 10;
    let Some(region) = number().and_then(|number| memory.regions().get(number as usize)) else { return };
    region.state.store(state, Ordering::Release);
    wake();
    let mut waited_ms = 0;
    loop {
        let now = region.state.load(Ordering::Acquire);
        if answers.contains(&now) || memory.is_over() || waited_ms >= patience_ms {
            return;
        }
        sys::futex_wait(&region.state, now, STEP_MS);
        waited_ms += STEP_MS;
    }
}

/// Has mallow look.
fn wake() {
    if let Some(pipe) = open_named(WAKE_VARIABLE, kernel::open_pipe) {
        kernel::write_byte(pipe);
        sys::close(pipe);
    }
}
