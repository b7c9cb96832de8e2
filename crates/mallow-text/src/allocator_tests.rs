//! Statistics of allocators as they are shown.

use super::*;
use insta::assert_snapshot;
use mallow_formats::Document;

#[track_caller]
fn text(fixture: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(fixture);
    let Document::AllocatorState(state) = mallow_formats::open(&path).unwrap() else { panic!("{fixture}") };
    let text = page(&state, Style::PLAIN);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.lines().all(|line| line.trim_end() == line), "{text}");
    text
}

#[test]
fn the_statistics_of_jemalloc() {
    assert_snapshot!(text("jemalloc/stats.txt"));
}

#[test]
fn the_state_of_glibc() {
    assert_snapshot!(text("malloc-info/heaps.xml"));
}

#[test]
fn size_classes_with_holes() {
    let bin = |size, blocks, free_blocks| Bin {
        size_min: size,
        size_max: size,
        blocks: Some(blocks),
        slabs: Some(3),
        free_blocks,
        waste_bytes: free_blocks * size,
    };
    let state = AllocatorState {
        allocator: mallow_profile::Allocator::Jemalloc,
        version: "5.3.0".to_owned(),
        totals: AllocatorMetrics {
            allocated: Some(1 << 20),
            active: Some(5 << 20),
            ..AllocatorMetrics::default()
        },
        arenas: Vec::new(),
        bins: (1..=12).map(|index| bin(index * 1024, 10, 1000)).collect(),
        warnings: Vec::new(),
    };
    assert_snapshot!(page(&state, Style::PLAIN));
}
