//! A sample's chain of callers, as the kernel wrote it: its own, the program's, or both.

use linux_perf_event_reader::SampleRecord;

/// Above this, an entry of a chain says whose frames follow.
const CONTEXT_MIN: u64 = u64::MAX - 4095;
/// Frames of the kernel follow.
const CONTEXT_KERNEL: u64 = -128_i64 as u64;
/// Frames of the program follow.
const CONTEXT_USER: u64 = -512_i64 as u64;

/// Returns the kernel's frames and the program's, innermost first, each as an address one behind its instruction. The
/// innermost of both is no return address.
pub(super) fn chain_of(sample: &SampleRecord<'_>) -> (Vec<u64>, Vec<u64>) {
    let (mut kernel, mut user) = (Vec::new(), Vec::new());
    let Some(chain) = &sample.callchain else { return (kernel, user) };
    let mut context = CONTEXT_USER;
    for at in 0..chain.len() {
        let Some(address) = chain.get(at) else { break };
        if address >= CONTEXT_MIN {
            context = address;
            continue;
        }
        let list = match context {
            CONTEXT_KERNEL => &mut kernel,
            CONTEXT_USER => &mut user,
            _ => continue,
        };
        list.push(if list.is_empty() { address.saturating_add(1) } else { address.max(1) });
    }
    (kernel, user)
}
