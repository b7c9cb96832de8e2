//! Names of code that no file tells: the kernel's, a script's, and what a program made while it ran.

use crate::kernel_names::KernelNames;
use crate::made_code::MadeCode;
use crate::stack_table::{CodePlace, KERNEL};
use mallow_base::Frame;
use mallow_cpu::CpuProcess;
use mallow_jit::{CodeNames, frame_of, jitdump};
use mallow_scripts::FrameTable;
use rustc_hash::FxHashMap;
use std::path::Path;

/// Names of code without a file.
pub(super) struct Names<'a> {
    pub(super) processes: &'a [CpuProcess],
    pub(super) dumps: &'a FxHashMap<u32, String>,
    pub(super) is_our_kernel: bool,
    pub(super) is_our_machine: bool,
    pub(super) script_frames: &'a FrameTable,
    pub(super) made: &'a MadeCode,
}

impl Names<'_> {
    /// Returns the frame at a place; `None` if its file has the symbol.
    pub(super) fn of(
        &self,
        place: CodePlace,
        kept: &mut FxHashMap<u32, CodeNames>,
        kernel: &mut KernelNames,
    ) -> Option<Frame> {
        match place {
            CodePlace::InFile(_) => None,
            CodePlace::Script(number) => self.script_frames.frame(number).cloned(),
            CodePlace::Kernel(address) => {
                let names = self.is_our_kernel.then(|| kernel.get());
                let name = names.and_then(|names| names.name(address - 1));
                let function = name.unwrap_or(KERNEL).to_owned();
                Some(Frame { function, module: Some(KERNEL.to_owned()), ..Frame::default() })
            }
            CodePlace::Made(..) => self.made.frame(place).cloned(),
            CodePlace::Anonymous(process, address) => {
                let pid = self.processes.get(process as usize)?.pid;
                let names = kept.entry(process).or_insert_with(|| match self.dumps.get(&process) {
                    _ if !self.is_our_machine => CodeNames::default(),
                    Some(path) => jitdump::of_file(Path::new(path)),
                    None => CodeNames::of_process(pid),
                });
                names.name(address - 1).map(frame_of)
            }
        }
    }
}
