//! The threads of a process, in the order in which they were met.

use mallow_profile::ThreadIndex;
use mallow_trace::ThreadName;

/// The threads of a process. A program may start any number of them, so those that come very late are merged into
/// one.
#[derive(Debug)]
pub(crate) struct Threads {
    pid: u32,
    /// None where those that use a channel one after the other count as one.
    named: Option<Vec<ThreadName>>,
    /// How many names may still be read in this pass.
    names_left: usize,
}

/// How many threads are distinguished.
const THREADS_MAX: usize = 1 << 16;
/// The name of those that come later.
const LATER: &str = "(later threads)";
/// Names that are read in one pass: other processes have to be read too.
const NAMES_IN_PASS: usize = 256;

impl Threads {
    /// Returns those of a process; `are_kept` says whether they are distinguished.
    pub(crate) fn new(pid: u32, are_kept: bool) -> Threads {
        Threads { pid, named: are_kept.then(Vec::new), names_left: 0 }
    }

    /// Returns those that are distinguished.
    pub(crate) fn named(&self) -> &[ThreadName] {
        self.named.as_deref().unwrap_or_default()
    }

    /// Converts it to a list.
    pub(crate) fn into_named(self) -> Vec<ThreadName> {
        self.named.unwrap_or_default()
    }

    /// About how many bytes of memory they take.
    pub(crate) fn held_bytes(&self) -> u64 {
        (self.named().len() * 2 * size_of::<ThreadName>()) as u64
    }

    /// A pass begins.
    pub(crate) fn begin_pass(&mut self) {
        self.names_left = NAMES_IN_PASS;
    }

    /// Called when a thread claims a channel; returns its number.
    pub(crate) fn meet(&mut self, channel: usize, tid: u32) -> ThreadIndex {
        let Some(named) = &mut self.named else { return ThreadIndex(channel as u32) };
        let index = named.len().min(THREADS_MAX) as u32;
        if named.len() < THREADS_MAX {
            let name = if self.names_left > 0 { thread_name(self.pid, tid) } else { String::new() };
            self.names_left = self.names_left.saturating_sub(1);
            named.push(ThreadName { index, tid, name });
        } else if named.len() == THREADS_MAX {
            named.push(ThreadName { index, tid: 0, name: LATER.to_owned() });
        }
        ThreadIndex(index)
    }
}

fn thread_name(pid: u32, tid: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_beyond_the_limit_are_merged() {
        let mut threads = Threads::new(0, true);
        let last = (0..THREADS_MAX + 10).map(|tid| threads.meet(7, tid as u32)).last();
        assert_eq!(last, Some(ThreadIndex(THREADS_MAX as u32)));
        assert_eq!(threads.named().len(), THREADS_MAX + 1);
        assert_eq!(threads.named().last().unwrap().name, LATER);
    }

    #[test]
    fn without_thread_names_each_channel_is_one_thread() {
        let mut threads = Threads::new(0, false);
        assert_eq!([3, 3, 4].map(|channel| threads.meet(channel, 1)), [3, 3, 4].map(ThreadIndex));
        assert!(threads.named().is_empty());
    }

    #[test]
    fn a_pass_reads_a_bounded_number_of_thread_names() {
        let pid = std::process::id();
        let mut threads = Threads::new(pid, true);
        threads.begin_pass();
        (0..NAMES_IN_PASS + 5).for_each(|_| _ = threads.meet(0, pid));
        let named = threads.named().iter().filter(|thread| !thread.name.is_empty());
        assert_eq!(named.count(), NAMES_IN_PASS);
    }
}
