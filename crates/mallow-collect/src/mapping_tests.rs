//! Files that are no shared memory, and programs that write it while it is read.

use super::*;
use crate::shared_memory::SharedMemory;
use rustix::fs::{MemfdFlags, fcntl_add_seals, ftruncate, memfd_create};
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicBool;

fn refused(fd: &OwnedFd) -> String {
    Mapping::new(fd).unwrap_err().to_string()
}

#[test]
fn only_memory_that_keeps_its_length_is_mapped() {
    let lasting = [SealFlags::SEAL, SealFlags::SHRINK, SealFlags::GROW];
    for left_out in lasting {
        let fd = memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&fd, file_bytes(1) as u64).unwrap();
        let others = lasting
            .into_iter()
            .filter(|seal| *seal != left_out)
            .fold(SealFlags::empty(), |all, seal| all | seal);
        fcntl_add_seals(&fd, others).unwrap();
        assert!(refused(&fd).contains("is not sealed"), "{left_out:?}");
    }
    let plain = OwnedFd::from(tempfile::tempfile().unwrap());
    ftruncate(&plain, file_bytes(1) as u64).unwrap();
    let device = OwnedFd::from(std::fs::File::open("/dev/zero").unwrap());
    for fd in [&plain, &device] {
        assert!(refused(fd).contains("is not sealed"));
    }
    // Without pages of its own: whoever reads it is ended where there is none.
    let huge = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | MemfdFlags::HUGETLB;
    let huge = memfd_create("test", huge).unwrap();
    ftruncate(&huge, file_bytes(1).next_multiple_of(1 << 30) as u64).unwrap();
    fcntl_add_seals(&huge, lasting.into_iter().collect::<SealFlags>()).unwrap();
    assert!(refused(&huge).contains("is not sealed"));
    assert!(ftruncate(SharedMemory::new(1).handed_over(), 0).is_err(), "what is mapped cannot be cut short");
}

/// A program that changes a path between the look at its bytes and their use must not make a `String` of what is no UTF-8.
#[test]
fn memory_that_changes_while_it_is_read_is_copied_once() {
    let memory = SharedMemory::new(1);
    let path = [b'a'; 4096];
    let record_bytes = size_of::<ModuleRecord>() + path.len();
    let at = |field: usize| MODULES_OFFSET + field;
    memory.write(at(std::mem::offset_of!(ModuleRecord, path_bytes)), &(path.len() as u16).to_le_bytes());
    memory.write(at(size_of::<ModuleRecord>()), &path);
    memory.write(at(std::mem::offset_of!(ModuleRecord, record_bytes)), &(record_bytes as u32).to_le_bytes());
    memory.write(std::mem::offset_of!(Header, modules_reserved), &(record_bytes as u64).to_le_bytes());
    let mapping = memory.map();
    assert_eq!(mapping.module(0).unwrap().0.path.len(), path.len());
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let file = std::fs::File::from(memory.handed_over());
        let is_done = &is_done;
        scope.spawn(move || {
            let odd = [[0xf4; 64], [b'a'; 64]];
            let mut turn = 0;
            while !is_done.load(Ordering::Relaxed) {
                turn += 1;
                let offset = at(size_of::<ModuleRecord>() + turn % 60 * 64) as u64;
                file.write_all_at(&odd[turn % 2], offset).unwrap();
            }
        });
        for _ in 0..3000 {
            let path = mapping.module(0).unwrap().0.path;
            assert!(std::str::from_utf8(path.as_bytes()).is_ok());
        }
        is_done.store(true, Ordering::Relaxed);
    });
}
