//! Collects a JVM and reads its metrics through its attach interface ([`mallow_capture::attach`]).

mod metrics;

use mallow_capture::attach::ask;
use mallow_capture::process::is_jvm;
use mallow_evidence::RuntimeMetrics;
use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::time::Instant;

/// The state of all JVMs.
#[derive(Default)]
pub(super) struct Jvms {
    /// JVMs that could not be attached to. They are not tried again, since each attempt is a signal.
    refused: BTreeSet<u32>,
}

impl Jvms {
    /// Collects the JVMs among `pids` one after the other, and reads their metrics.
    pub(super) fn collect(&mut self, pids: &[u32], deadline: Instant) -> Vec<RuntimeMetrics> {
        let mut all = Vec::new();
        for &pid in pids.iter().filter(|&&pid| is_jvm(pid)) {
            if self.refused.contains(&pid) {
                continue;
            }
            match metrics_of(pid, deadline) {
                Ok(metrics) => all.push(metrics),
                // It is busy, or still starting.
                Err(fault) if matches!(fault.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock) => {}
                Err(_) => {
                    self.refused.insert(pid);
                }
            }
        }
        all
    }

    /// Makes the JVMs among `pids` write their perf maps. Versions before 17 cannot.
    pub(super) fn write_code_names(&mut self, pids: &[u32], deadline: Instant) {
        for &pid in pids.iter().filter(|&&pid| is_jvm(pid) && !self.refused.contains(&pid)) {
            let _ = ask(pid, "Compiler.perfmap", Some(deadline));
        }
    }
}

fn metrics_of(pid: u32, deadline: Instant) -> io::Result<RuntimeMetrics> {
    ask(pid, "GC.run", Some(deadline))?;
    let heap = ask(pid, "GC.heap_info", Some(deadline))?;
    let native = ask(pid, "VM.native_memory summary", Some(deadline)).unwrap_or_default();
    let managed_bytes = metrics::heap_used(&heap).ok_or_else(|| {
        io::Error::new(ErrorKind::InvalidData, "the JVM does not report what its heap uses")
    })?;
    let mut metrics = metrics::native_memory(&native);
    metrics.extend(metrics::metaspace(&heap));
    metrics.insert("heap_used".to_owned(), managed_bytes as f64);
    let name = "jvm".to_owned();
    Ok(RuntimeMetrics { name, pid, managed_bytes, objects: None, in_malloc: false, metrics })
}
