//! One moment and two, with all inputs and with few.

use super::*;
use mallow_profile::{Allocator, AllocatorMetrics};

const MIB: u64 = 1 << 20;

fn moment(managed: u64, native: u64, free: u64, stacks: u64) -> Moment {
    let totals = AllocatorMetrics {
        allocated: Some((native + managed / 2) * MIB),
        free: Some(free * MIB),
        ..AllocatorMetrics::default()
    };
    Moment {
        managed: Some(ManagedMemory {
            objects: 1000,
            bytes: managed * MIB,
            malloc_bytes: managed / 2 * MIB,
            is_partial: false,
        }),
        mapped: Some(MappedMemory {
            resident_bytes: (managed + native + free + stacks + 30 + 5) * MIB,
            stack_bytes: stacks * MIB,
            stacks: 4,
            file_bytes: 30 * MIB,
            ..MappedMemory::default()
        }),
        threads: Some(4),
        allocator: Some(AllocatorState {
            allocator: Allocator::Glibc,
            version: String::new(),
            totals,
            arenas: Vec::new(),
            bins: Vec::new(),
            warnings: Vec::new(),
        }),
        ..Moment::default()
    }
}

fn bytes_of(page: &Explanation, part: Part) -> Option<u64> {
    page.parts.iter().find(|row| row.part == part).unwrap().bytes
}

#[test]
fn parts_add_up_to_what_is_resident() {
    let page = explain(None, &moment(40, 200, 10, 2));
    let sum: u64 = page.parts.iter().filter_map(|row| row.bytes).sum();
    assert_eq!(Some(sum), page.resident_bytes);
    assert_eq!(bytes_of(&page, Part::Native), Some(200 * MIB), "objects' contents are no native memory");
    assert_eq!(bytes_of(&page, Part::Unexplained), Some(5 * MIB));
    assert_eq!(page.culprit, Some(Part::Native));
    assert!(page.sentences.iter().any(|sentence| sentence.starts_with("One moment does not show")));
}

#[test]
fn the_culprit_is_the_part_that_grew_most() {
    let before = moment(400, 20, 10, 2);
    for (now, culprit) in [
        (moment(500, 20, 10, 2), Some(Part::Managed)),
        (moment(400, 90, 10, 2), Some(Part::Native)),
        (moment(400, 20, 90, 2), Some(Part::Allocator)),
        (moment(400, 20, 10, 60), Some(Part::Stacks)),
        (moment(400, 20, 10, 2), None),
    ] {
        let page = explain(Some(&before), &now);
        assert_eq!(page.culprit, culprit, "{:?}", page.sentences);
    }
}

#[test]
fn parts_without_an_input_are_unknown() {
    let managed = Some(ManagedMemory { objects: 1, bytes: 3 * MIB, malloc_bytes: 0, is_partial: false });
    let page = explain(None, &Moment { managed, resident_bytes: Some(100 * MIB), ..Moment::default() });
    assert_eq!((bytes_of(&page, Part::Native), bytes_of(&page, Part::Stacks)), (None, None));
    assert_eq!((bytes_of(&page, Part::Unexplained), page.culprit), (Some(97 * MIB), Some(Part::Unexplained)));
    let page = explain(None, &Moment { managed, ..Moment::default() });
    assert_eq!((page.resident_bytes, bytes_of(&page, Part::Unexplained)), (None, None));
}

#[test]
fn stacks_of_threads_that_ended_are_seen() {
    let mut now = moment(40, 20, 10, 200);
    now.mapped.as_mut().unwrap().stacks = 300;
    let page = explain(None, &now);
    assert_eq!(page.culprit, Some(Part::Stacks));
    assert!(page.sentences[1].starts_with("300 stacks are mapped for 4 threads"), "{:?}", page.sentences);
}

#[test]
fn a_partial_heap_has_no_known_size() {
    let mut now = moment(40, 20, 10, 2);
    now.managed.as_mut().unwrap().is_partial = true;
    let page = explain(Some(&moment(10, 20, 10, 2)), &now);
    assert_eq!(bytes_of(&page, Part::Managed), None);
    assert_eq!(page.parts[0].note, "40.0 MiB or more: the dump is a part");
    assert_ne!(page.culprit, Some(Part::Managed));
}
