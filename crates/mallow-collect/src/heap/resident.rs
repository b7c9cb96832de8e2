//! How much memory of a process is resident that could be a heap: private, and neither a file's nor a stack nor static data.
//!
//! The short table of the kernel is read as often as a process is sampled. The long one, with every mapping, is read only when
//! what was recorded does not explain the short one, and again when half as much has come.

use super::{Executables, HeapMetrics, HeapSource, Linked, OwnAllocator, UNEXPLAINED_MIN_BYTES, heap_source};
use crate::image::is_missing;
use crate::mapping::Mapping;
use mallow_wire::shared::MALLOC_OURS;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

/// How much memory a thread of a recorded process has without `malloc`: its stack, and the recorder's memory for it.
const THREAD_BYTES: u64 = 512 << 10;

/// One process's memory, watched.
#[derive(Debug)]
pub(crate) struct MemoryWatch {
    pid: u32,
    statm: Option<File>,
    linked: Arc<OnceLock<Linked>>,
    /// The runtime that libraries and executable show.
    runtime: Option<&'static str>,
    /// The most that was resident of any kind.
    largest_bytes: u64,
    /// The most that could be a heap.
    resident_bytes: u64,
    /// The most of that where no block ever lay.
    foreign_bytes: u64,
    /// The value in `statm` when `smaps` was read last.
    looked_at_bytes: u64,
}

/// The contents of `/proc/PID/statm`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resident {
    /// All of it.
    pub(crate) bytes: u64,
    /// Memory that belongs to no file and is not shared.
    pub(crate) anonymous_bytes: u64,
}

impl MemoryWatch {
    /// Begins to watch a process.
    pub(crate) fn new(pid: u32, executable: Option<&Path>, executables: &mut Executables) -> MemoryWatch {
        let statm = File::open(format!("/proc/{pid}/statm")).ok();
        let runtime = executable.and_then(|path| runtime_of(&path.file_name()?.to_string_lossy()));
        let linked = executables.of(pid, executable);
        let mut watch = MemoryWatch {
            pid,
            statm,
            linked,
            runtime,
            largest_bytes: 0,
            resident_bytes: 0,
            foreign_bytes: 0,
            looked_at_bytes: 0,
        };
        // A short-lived process is read only now.
        let _ = watch.resident();
        watch
    }

    /// Watches nothing: a process that records itself, whose memory is the recording's as well.
    pub(crate) fn nothing(pid: u32) -> MemoryWatch {
        MemoryWatch {
            pid,
            statm: None,
            linked: Arc::default(),
            runtime: None,
            largest_bytes: 0,
            resident_bytes: 0,
            foreign_bytes: 0,
            looked_at_bytes: 0,
        }
    }

    /// Returns the most that was resident at any sample.
    pub(crate) fn largest_bytes(&self) -> u64 {
        self.largest_bytes
    }

    /// Returns what is resident now; `None` if the process has ended.
    pub(crate) fn resident(&mut self) -> Option<Resident> {
        let mut text = [0u8; 128];
        let read = self.statm.as_ref()?.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(text.get(..read)?).ok()?;
        let mut pages = text.split(' ').map(str::parse::<u64>).skip(1);
        let (all, shared) = (pages.next()?.ok()?, pages.next()?.ok()?);
        let page_bytes = rustix::param::page_size() as u64;
        let anonymous_bytes = all.saturating_sub(shared) * page_bytes;
        self.largest_bytes = self.largest_bytes.max(all * page_bytes);
        (all > 0).then_some(Resident { bytes: all * page_bytes, anonymous_bytes })
    }

    /// Looks more closely when what was recorded, `recorded_bytes` at most at once, does not explain what is resident. `met_bytes` tells how much between
    /// two addresses lies where blocks were recorded at some time. Returns false when it is another program's memory, which has taken this one's place.
    #[must_use]
    pub(crate) fn look(
        &mut self,
        resident: Resident,
        mapping: &Mapping,
        recorded_bytes: impl FnOnce() -> u64,
        met_bytes: impl Fn(&Range<u64>) -> u64,
    ) -> bool {
        if is_locked(mapping) {
            return true;
        }
        let start_bytes = mapping.header().anonymous_bytes_at_start.load(Ordering::Relaxed);
        let grown_bytes = resident.anonymous_bytes.saturating_sub(start_bytes);
        let is_new = grown_bytes / 3 * 2 >= self.looked_at_bytes && grown_bytes > self.resident_bytes;
        let is_much = is_new && grown_bytes >= UNEXPLAINED_MIN_BYTES;
        if !is_much {
            return true;
        }
        let metrics = self.metrics_of(grown_bytes, mapping, recorded_bytes());
        let may_be_foreign = HeapMetrics { foreign_bytes: grown_bytes, ..metrics }.are_foreign();
        let is_runtime = self.runtime.is_some() || self.linked().is_go;
        let is_explained = match is_runtime {
            true => metrics.a_quarter_is_recorded(),
            false => metrics.are_explained() && !may_be_foreign,
        };
        if is_explained {
            return true;
        }
        self.looked_at_bytes = grown_bytes;
        let Ok(table) = std::fs::read_to_string(format!("/proc/{}/smaps", self.pid)) else { return true };
        if is_missing(table.as_bytes(), mapping.file()) {
            return false;
        }
        let mapped = of_mappings(&table, met_bytes);
        self.runtime = self.runtime.or(mapped.runtime);
        self.resident_bytes = self.resident_bytes.max(mapped.heap_bytes.min(grown_bytes));
        self.foreign_bytes = self.foreign_bytes.max(mapped.foreign_bytes.min(grown_bytes));
        true
    }

    fn metrics_of(&self, resident_bytes: u64, mapping: &Mapping, recorded_bytes: u64) -> HeapMetrics {
        let header = mapping.header();
        let threads = header.channels_taken.load(Ordering::Relaxed);
        let at_once = u64::from(header.channels_high.load(Ordering::Relaxed));
        let without_threads = |bytes: u64| bytes.saturating_sub(at_once * THREAD_BYTES);
        HeapMetrics {
            resident_bytes: without_threads(resident_bytes),
            foreign_bytes: without_threads(self.foreign_bytes),
            recorded_bytes,
            threads,
            has_linked_allocator: mapping.at_start().patches_made > 0,
        }
    }

    /// Returns what is known up to now: samples, and what the process stored when it announced its exit.
    pub(crate) fn metrics(&self, mapping: &Mapping, recorded_bytes: u64) -> HeapMetrics {
        let header = mapping.header();
        let value = |metric: &std::sync::atomic::AtomicU64| metric.load(Ordering::Relaxed);
        // Of the end only sums are known: of static data and of the stack as much is left out as there may be.
        let known = value(&header.stack_bytes_at_exit)
            .saturating_add(value(&header.anonymous_bytes_at_start))
            .saturating_add(self.linked().static_bytes);
        // A forked child shares pages with its parent until one of the two writes.
        let is_known = mapping.at_start().is_forked == 0 || value(&header.anonymous_bytes_at_start) > 0;
        let at_exit = value(&header.anonymous_bytes_at_exit).saturating_sub(known);
        let at_exit = if is_known && !is_locked(mapping) { at_exit } else { 0 };
        self.metrics_of(self.resident_bytes.max(at_exit), mapping, recorded_bytes)
    }

    fn linked(&self) -> Linked {
        self.linked.get().cloned().unwrap_or_default()
    }

    /// Returns whether Go made the executable.
    pub(crate) fn is_go(&self) -> bool {
        self.linked.get().is_some_and(|linked| linked.is_go)
    }

    /// Returns where the memory comes from. `modules` are paths of libraries that were on the process's stacks.
    pub(crate) fn source<'a>(
        &self,
        metrics: &HeapMetrics,
        mapping: &Mapping,
        mut modules: impl Iterator<Item = &'a str>,
    ) -> HeapSource {
        let linked = self.linked();
        let own_malloc = (mapping.at_start().malloc_in_front != MALLOC_OURS).then_some("malloc");
        let of_modules = || modules.find_map(|path| runtime_of(path.rsplit('/').next()?));
        let runtime = linked.is_go.then_some("Go").or(self.runtime).or_else(of_modules);
        let unseen = linked.allocator.or(own_malloc).filter(|_| linked.core.is_none());
        let own = unseen.and_then(|name| OwnAllocator::unless_seen(name, mapping.at_start(), &linked));
        match heap_source(metrics, own, runtime) {
            HeapSource::Malloc if linked.core.is_some_and(|core| core.records()) => HeapSource::Core,
            source => source,
        }
    }

    /// Waits until the executable's symbols were read.
    pub(crate) fn settle(&self) {
        // Somebody reads it already, if anybody could open it.
        let since = std::time::Instant::now();
        while self.linked.get().is_none() && Arc::strong_count(&self.linked) > 1 {
            if since.elapsed() > std::time::Duration::from_secs(5) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
    }
}

/// Of a program that has locked its memory all that it mapped is resident: the stacks of its threads are, to their ends.
fn is_locked(mapping: &Mapping) -> bool {
    mapping.header().is_locked.load(Ordering::Relaxed) != 0
}

/// The managed runtime that a file of this name is, if any.
fn runtime_of(name: &str) -> Option<&'static str> {
    const LIBRARIES: [(&str, &str); 9] = [
        ("libjvm.so", "the JVM"),
        ("libnode.so", "Node"),
        ("libpython", "Python"),
        ("libruby", "Ruby"),
        ("libcoreclr.so", ".NET"),
        ("libmono", "Mono"),
        ("libphp", "PHP"),
        ("libjulia", "Julia"),
        ("libluajit", "LuaJIT"),
    ];
    const PROGRAMS: [(&str, &str); 18] = [
        ("java", "the JVM"),
        ("node", "Node"),
        ("nodejs", "Node"),
        ("deno", "Deno"),
        ("bun", "Bun"),
        ("python", "Python"),
        ("pypy", "PyPy"),
        ("ruby", "Ruby"),
        ("dotnet", ".NET"),
        ("mono", "Mono"),
        ("php", "PHP"),
        ("julia", "Julia"),
        ("luajit", "LuaJIT"),
        ("beam.smp", "Erlang"),
        ("sbcl", "SBCL"),
        ("cc1", "GCC"),
        ("cc1plus", "GCC"),
        ("lto1", "GCC"),
    ];
    let library = LIBRARIES.iter().find(|(start, _)| name.starts_with(start));
    // A version may follow, a word may not: `python3.11`, but not `nodemon`.
    let is_version = |rest: &str| rest.chars().all(|c| c.is_ascii_digit() || c == '.' || c == '-');
    let program = || PROGRAMS.iter().find(|(start, _)| name.strip_prefix(start).is_some_and(is_version));
    library.or_else(program).map(|(_, runtime)| *runtime)
}

/// The mappings of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Mapped {
    /// Resident and private, in mappings that could be a heap.
    heap_bytes: u64,
    /// Of that, in mappings in which no block ever was.
    foreign_bytes: u64,
    runtime: Option<&'static str>,
}

/// Parses `/proc/PID/smaps`. Anonymous mappings right after a file's are its static data; those right above an
/// inaccessible guard are stacks.
///
/// The kernel makes one mapping of neighbours. So one in which blocks lay may be another allocator's but for their part.
fn of_mappings(table: &str, met_bytes: impl Fn(&Range<u64>) -> u64) -> Mapped {
    const GUARD_BYTES_MAX: u64 = 1 << 20;
    let mut mapped = Mapped::default();
    let (mut is_heap, mut range, mut before) = (false, 0..0, (0, false));
    for line in table.lines() {
        if let Some(size) = line.strip_prefix("Anonymous:") {
            let kib = size.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0);
            let bytes = if is_heap { kib << 10 } else { 0 };
            mapped.heap_bytes += bytes;
            mapped.foreign_bytes += bytes.saturating_sub(if bytes > 0 { met_bytes(&range) } else { 0 });
            continue;
        }
        let Some((start, end, access, path)) = mapping(line) else { continue };
        range = start..end;
        let (end_before, is_barrier) = before;
        let is_file = !path.is_empty() && !path.starts_with('[');
        mapped.runtime = mapped.runtime.or_else(|| runtime_of(path.rsplit('/').next()?).filter(|_| is_file));
        let is_private = access.starts_with("rw") && access.ends_with('p');
        let is_anonymous = path.is_empty() || path == "[heap]" || path.starts_with("[anon:");
        is_heap = is_private && is_anonymous && (path == "[heap]" || start != end_before || !is_barrier);
        let is_guard = access.starts_with("---") && end - start <= GUARD_BYTES_MAX;
        before = (end, is_file || is_guard);
    }
    mapped
}

/// Start, end, access and path of a line that begins a mapping.
fn mapping(line: &str) -> Option<(u64, u64, &str, &str)> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let bound = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end) = (bound(start)?, bound(end)?);
    let access = words.next()?;
    Some((start, end.max(start), access, words.nth(3).unwrap_or("").trim()))
}

const _: () = assert!(UNEXPLAINED_MIN_BYTES > 2 * THREAD_BYTES);

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
55e0a0000000-55e0a0001000 r-xp 00000000 08:01 10                         /bin/app
Anonymous:             0 kB
55e0a0001000-55e0a0002000 rw-p 00001000 08:01 10                         /bin/app
Anonymous:             4 kB
55e0a0002000-55e0a4002000 rw-p 00000000 00:00 0
Anonymous:         65536 kB
55e0a5000000-55e0a5100000 rw-p 00000000 00:00 0                          [heap]
Anonymous:           100 kB
7f0000000000-7f0000001000 ---p 00000000 00:00 0
Anonymous:             0 kB
7f0000001000-7f0000801000 rw-p 00000000 00:00 0
Anonymous:          8000 kB
7f1000000000-7f1001000000 rw-p 00000000 00:00 0
Size:              16384 kB
Anonymous:         16000 kB
7f2000000000-7f2001000000 rw-s 00000000 00:01 3                          /memfd:mallow (deleted)
Anonymous:             0 kB
7f3000000000-7f3001000000 rw-p 00000000 08:01 11                         /data/private
Anonymous:          1000 kB
7fff00000000-7fff00100000 rw-p 00000000 00:00 0                          [stack]
Anonymous:          1000 kB
";

    #[test]
    fn static_data_stacks_and_files_are_no_heap() {
        let expected = Mapped { heap_bytes: 16100 << 10, foreign_bytes: 0, runtime: None };
        assert_eq!(of_mappings(TABLE, |range| range.end - range.start), expected);
        let in_brk = |range: &Range<u64>| if range.contains(&0x55e0_a504_0000) { 1 << 20 } else { 0 };
        assert_eq!(of_mappings(TABLE, in_brk), Mapped { foreign_bytes: 16000 << 10, ..expected });
        // A block that lay in the mapping of 16,000 KiB takes a megabyte off.
        let there = |range: &Range<u64>| if range.contains(&0x7f10_0000_0000) { 1 << 20 } else { 1 << 40 };
        assert_eq!(of_mappings(TABLE, there), Mapped { foreign_bytes: (16000 - 1024) << 10, ..expected });
    }

    #[test]
    fn runtimes_are_known_by_their_files_and_words_that_begin_alike_are_not() {
        for (name, runtime) in [
            ("python3.11", Some("Python")),
            ("libpython3.11.so.1.0", Some("Python")),
            ("libjvm.so", Some("the JVM")),
            ("node", Some("Node")),
            ("nodemon", None),
            ("javascript", None),
            ("app", None),
        ] {
            assert_eq!(runtime_of(name), runtime, "{name}");
        }
        let jvm = TABLE.replace("/data/private", "/usr/lib/jvm/libjvm.so");
        assert_eq!(of_mappings(&jvm, |all| all.end - all.start).runtime, Some("the JVM"));
    }

    #[test]
    fn damaged_tables_are_read_to_their_end() {
        for cut in 0..TABLE.len() {
            let _ = of_mappings(&TABLE[cut..], |all| all.end - all.start);
            let _ = of_mappings(&TABLE[..cut], |all| all.end - all.start);
        }
    }
}
