//! Processes as their records tell of them: what they are called, where they come from, and what they have mapped.

use super::scripted::is_interpreter;
use super::{Folder, Running};
use crate::left_behind;
use mallow_cpu::{CpuProcess, CpuThread, ThreadIndex};
use mallow_files::roots::{self, Root};
use mallow_jit::jitdump;
use mallow_jvm::{Jvm, Process};
use mallow_stacks::ProcessIndex;

impl Folder {
    pub(super) fn image(&mut self, pid: u32, name: &str) -> Running {
        let index = self.processes.len() as u32;
        self.processes.push(CpuProcess { pid, name: name.to_owned(), program: String::new() });
        Running { pid, index, ..Running::default() }
    }

    /// The processes that run now.
    pub(crate) fn left_behind(&self) -> Vec<(u32, &str)> {
        let name = |running: &Running| self.processes[running.index as usize].name.as_str();
        left_behind::that_run(self.running.iter().map(|(pid, running)| (*pid, name(running))))
    }

    pub(super) fn comm(&mut self, pid: u32, tid: u32, name: &str, is_exec: bool) {
        if is_exec {
            let root = self.running.get(&pid).and_then(|running| running.root);
            let mut image = self.image(pid, name);
            (image.is_beginning, image.root) = (true, root);
            self.running.insert(pid, image);
        }
        if let Some(running) = self.running.get_mut(&pid) {
            running.names.insert(tid, name.to_owned());
            if let Some(thread) = running.threads.get(&tid) {
                name.clone_into(&mut self.threads[thread.0 as usize].name);
            }
            if pid == tid {
                name.clone_into(&mut self.processes[running.index as usize].name);
            }
        } else {
            let mut image = self.image(pid, name);
            image.names.insert(tid, name.to_owned());
            self.running.insert(pid, image);
        }
    }

    pub(super) fn fork(&mut self, pid: u32, tid: u32, parent: u32, parent_thread: u32) {
        let of_parent = self.running.get(&parent);
        let name = of_parent.and_then(|running| running.names.get(&parent_thread)).cloned();
        if pid == parent {
            if let (Some(running), Some(name)) = (self.running.get_mut(&pid), name) {
                running.names.insert(tid, name);
            }
            return;
        }
        let (space, program, jvm, root) = of_parent.map_or_else(Default::default, |running| {
            let jvm = running.jvm.as_ref().map(|jvm| jvm.forked(Process::new(pid)));
            (running.space.clone(), self.processes[running.index as usize].program.clone(), jvm, running.root)
        });
        let mut image = self.image(pid, &name.clone().unwrap_or_default());
        (image.space, image.jvm, image.root) = (space, jvm, root);
        image.names.extend(name.map(|name| (tid, name)));
        self.processes[image.index as usize].program = program;
        self.running.insert(pid, image);
    }

    pub(super) fn mapped(&mut self, pid: u32, range: std::ops::Range<u64>, offset: u64, path: &str) {
        let mut running = match self.running.remove(&pid) {
            Some(running) => running,
            None => self.image(pid, ""),
        };
        self.map(&mut running, range, offset, path);
        self.running.insert(pid, running);
    }

    pub(super) fn map(
        &mut self,
        running: &mut Running,
        range: std::ops::Range<u64>,
        offset: u64,
        path: &str,
    ) {
        if jitdump::is_one(path) {
            self.dumps.insert(running.index, path.to_owned());
            return;
        }
        if is_interpreter(path) {
            self.interpreters.entry(running.index).or_insert(Some(0));
        }
        let process = &mut self.processes[running.index as usize];
        if process.program.is_empty() && path.starts_with('/') && !path.starts_with("//") {
            path.clone_into(&mut process.program);
        }
        if self.origin.is_now {
            // A process may change its root while it runs. One that has ended since had the one that it was seen with last.
            running.root = roots::hold(running.pid, || false).or(running.root);
        }
        let place = (running.root.unwrap_or(Root::Own), path);
        let exports = running.space.map(range, offset, place, &mut self.shared);
        if let Some(exports) = exports.filter(|_| self.origin.is_now) {
            running.jvm.get_or_insert_with(|| Jvm::new(exports, Process::new(running.pid)));
        }
    }

    pub(super) fn thread(&mut self, pid: u32, tid: u32) -> (ThreadIndex, u32) {
        if !self.running.contains_key(&pid) {
            let image = self.image(pid, "");
            self.running.insert(pid, image);
        }
        let running = self.running.entry(pid).or_default();
        let index = *running.threads.entry(tid).or_insert_with(|| {
            let name = running.names.get(&tid).cloned().unwrap_or_default();
            self.threads.push(CpuThread { process: ProcessIndex(running.index), tid, name });
            ThreadIndex(self.threads.len() as u32 - 1)
        });
        (index, running.index)
    }
}
