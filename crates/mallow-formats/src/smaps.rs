//! Parses `/proc/PID/smaps`, of a process or saved to a file.

use mallow_profile::MappedMemory;
use procfs::FromBufRead;
use procfs::process::{MMPermissions, MMapPath, MemoryMap, MemoryMaps};
use std::io::BufRead;

/// glibc aligns the heaps of its arenas to their maximum size (`HEAP_MAX_SIZE` in malloc/arena.c).
const ARENA_ALIGNMENT: u64 = 64 << 20;
/// The maximum size of a guard below a stack: glibc's has one page, Go's and the JVM's several.
const GUARD_BYTES_MAX: u64 = 1 << 20;

/// Parses the table.
///
/// # Errors
/// What is wrong with it, without a full stop.
pub fn read(table: impl BufRead) -> Result<MappedMemory, String> {
    let maps = MemoryMaps::from_buf_read(table)
        .map_err(|error| format!("it is no table of /proc/PID/smaps: {error}"))?;
    let mut memory = MappedMemory::default();
    let mut before: Option<&MemoryMap> = None;
    for map in &maps.0 {
        add(&mut memory, map, before);
        before = Some(map);
    }
    if memory.resident_bytes == 0 {
        return Err("it tells no resident memory; is it /proc/PID/smaps, and not maps?".to_owned());
    }
    Ok(memory)
}

fn add(memory: &mut MappedMemory, map: &MemoryMap, before: Option<&MemoryMap>) {
    let bytes = |key: &str| map.extension.map.get(key).copied().unwrap_or(0);
    let resident = bytes("Rss");
    memory.resident_bytes += resident;
    memory.swap_bytes += bytes("Swap");
    let part = match &map.pathname {
        MMapPath::Heap => &mut memory.brk_bytes,
        MMapPath::Stack | MMapPath::TStack(_) => {
            memory.stacks += 1;
            &mut memory.stack_bytes
        }
        MMapPath::Path(path) if is_shared(&path.to_string_lossy()) => &mut memory.shared_bytes,
        MMapPath::Vsys(_) => &mut memory.shared_bytes,
        MMapPath::Path(_) => &mut memory.file_bytes,
        MMapPath::Anonymous | MMapPath::Other(_) if is_stack(map, before) => {
            memory.stacks += 1;
            &mut memory.stack_bytes
        }
        MMapPath::Anonymous if map.address.0.is_multiple_of(ARENA_ALIGNMENT) && is_writable(map) => {
            &mut memory.arena_bytes
        }
        _ => &mut memory.anonymous_bytes,
    };
    *part += resident;
}

fn is_shared(path: &str) -> bool {
    ["/memfd:", "/dev/shm/", "/dev/zero"].iter().any(|start| path.starts_with(start))
}

fn is_writable(map: &MemoryMap) -> bool {
    map.perms.contains(MMPermissions::READ | MMPermissions::WRITE)
}

/// Returns whether there is an inaccessible guard directly below a mapping.
fn is_stack(map: &MemoryMap, before: Option<&MemoryMap>) -> bool {
    let is_guard = |guard: &MemoryMap| {
        let access = MMPermissions::READ | MMPermissions::WRITE | MMPermissions::EXECUTE;
        guard.address.1 == map.address.0
            && guard.address.1 - guard.address.0 <= GUARD_BYTES_MAX
            && guard.pathname == MMapPath::Anonymous
            && !guard.perms.intersects(access)
    };
    is_writable(map) && before.is_some_and(is_guard)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(range: &str, rights: &str, name: &str, kib: u64) -> String {
        format!(
            "{range} {rights} 00000000 00:00 0                          {name}\nSize:   9000 kB\nRss:  {kib} kB\nSwap:  1 kB\n\
             VmFlags: rd wr mr mw me ac \n"
        )
    }

    #[test]
    fn each_mapping_has_its_part() {
        let table = [
            mapping("55d000000000-55d000100000", "rw-p", "[heap]", 100),
            mapping("7f5404000000-7f5404021000", "rw-p", "", 12),
            mapping("7f5404021000-7f5408000000", "---p", "", 0),
            mapping("7f6000000000-7f6000001000", "---p", "", 0),
            mapping("7f6000001000-7f6000801000", "rw-p", "", 24),
            mapping("7f6000801000-7f6000802000", "---p", "", 0),
            mapping("7f6000802000-7f6001002000", "rw-p", "", 8),
            mapping("7f6100001000-7f6100802000", "rw-p", "", 7),
            mapping("7f6200000000-7f6200802000", "r-xp", "/usr/lib/libc.so.6", 300),
            mapping("7f6300000000-7f6300802000", "rw-s", "/dev/shm/ring", 5),
            mapping("7ffe00000000-7ffe00802000", "rw-p", "[stack]", 16),
        ]
        .concat();
        let memory = read(table.as_bytes()).unwrap();
        let kib = |bytes: u64| bytes / 1024;
        assert_eq!((kib(memory.resident_bytes), kib(memory.swap_bytes)), (472, 11));
        assert_eq!((kib(memory.brk_bytes), kib(memory.arena_bytes)), (100, 12));
        assert_eq!((kib(memory.stack_bytes), memory.stacks), (48, 3));
        assert_eq!(
            (kib(memory.file_bytes), kib(memory.shared_bytes), kib(memory.anonymous_bytes)),
            (300, 5, 7)
        );
    }

    #[test]
    fn other_tables_are_refused() {
        assert!(read(&b"hello\n"[..]).is_err());
        assert!(read(&b""[..]).unwrap_err().contains("no resident memory"));
        let own = read(std::io::BufReader::new(std::fs::File::open("/proc/self/smaps").unwrap())).unwrap();
        assert!(own.resident_bytes >= own.file_bytes + own.stack_bytes && own.stacks > 1);
    }
}
