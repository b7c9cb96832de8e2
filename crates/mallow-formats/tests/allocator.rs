//! The statistics of allocators.

use crate::oracles::fixture;
use mallow_formats::allocator::{Allocator, AllocatorMetrics, AllocatorState, read};
use mallow_formats::{Format, ImportError, read_as};

#[test]
fn jemalloc_text_gives_every_metric() {
    let state = read(&fixture("jemalloc/stats.txt")).unwrap();
    assert_eq!(state.allocator, Allocator::Jemalloc);
    assert_eq!(state.version, "5.3.0-0-g54eaed1d8b56b1aa528be3bdd1877e59c56fa90c");
    let expected = AllocatorMetrics {
        allocated: Some(15_577_088),
        active: Some(15_589_376),
        metadata: Some(2_986_368),
        resident: Some(18_522_112),
        mapped: Some(24_010_752),
        retained: Some(3_776_512),
        dirty: Some(8 * 4096),
        muzzy: Some(0),
        thread_caches: Some(40_640),
        ..AllocatorMetrics::default()
    };
    assert_eq!(state.totals, expected);
    assert_eq!(state.warnings, [] as [String; 0]);
    let arenas: Vec<_> = state
        .arenas
        .iter()
        .map(|arena| (arena.name.as_str(), arena.threads, arena.metrics.resident, arena.metrics.metadata))
        .collect();
    assert_eq!(arenas[0].0, "0");
    assert_eq!((arenas[0].1, arenas[0].2), (Some(1), Some(13_275_136)));
    assert_eq!((arenas[1].0, arenas[1].1, arenas[1].2), ("1", Some(0), Some(5_246_976)));
    // base 2,892,160 and internal 94,208, summed over the arenas, are the metadata.
    assert_eq!(arenas.iter().filter_map(|arena| arena.3).sum::<u64>(), 2_986_368);
}

#[test]
fn jemalloc_bins_tell_what_is_free_in_them() {
    let state = read(&fixture("jemalloc/stats.txt")).unwrap();
    let rows: Vec<_> =
        state.bins.iter().map(|bin| (bin.size_max, bin.blocks, bin.slabs, bin.free_blocks)).collect();
    // 8,000 blocks of 777 bytes fill 250 slabs of 32; of 755 slabs of two blocks of 2,048 bytes 1,510 are held.
    assert!(rows.contains(&(896, Some(8000), Some(250), 0)), "{rows:?}");
    assert!(rows.contains(&(2048, Some(1510), Some(755), 0)), "{rows:?}");
    assert!(rows.contains(&(320, Some(64), Some(1), 0)), "{rows:?}");
    let sum: u64 = state.bins.iter().filter_map(|bin| bin.allocated_bytes()).sum();
    assert_eq!(sum, 15_400_960, "the line \"small:\" of the merged arenas");
}

#[test]
fn jemalloc_json_tells_the_same_as_its_text() {
    let json = read(&fixture("jemalloc/stats.json")).unwrap();
    let text = read(&fixture("jemalloc/stats.txt")).unwrap();
    assert_eq!(json.totals, text.totals);
    assert_eq!(json.bins, text.bins);
    assert_eq!(json.version, text.version);
    assert_eq!(json.arenas, text.arenas);
}

#[test]
fn a_bin_with_holes_wastes_them() {
    let text = "___ Begin jemalloc statistics ___\nAllocated: 64, active: 4096\nMerged arenas stats:\n\
                bins:   size ind allocated curregs curslabs regs pgs util\n\
                \x20         64   3        64       1        2   64   1 0.007\n\
                \x20         --- \n\
                --- End jemalloc statistics ---\n";
    let state = read(text.as_bytes()).unwrap();
    assert_eq!((state.bins[0].free_blocks, state.bins[0].waste_bytes), (127, 127 * 64));
    assert_eq!(state.totals.resident, None, "old versions do not tell it");
}

#[test]
fn of_several_states_the_last_one_counts() {
    let one = |allocated| {
        format!(
            "noise\n___ Begin jemalloc statistics ___\nAllocated: {allocated}, active: 9\n--- End jemalloc statistics ---\n"
        )
    };
    let state = read((one(1) + &one(2)).as_bytes()).unwrap();
    assert_eq!(state.totals.allocated, Some(2));
    assert_eq!(state.warnings, ["the file holds 2 states; this is the last one"]);
    let json = |allocated| format!("{{\"jemalloc\":{{\"stats\":{{\"allocated\":{allocated}}}}}}}\n");
    let state = read((json(1) + &json(2) + "{\"jemalloc\":{").as_bytes()).unwrap();
    assert_eq!(state.totals.allocated, Some(2));
    assert_eq!(state.warnings.len(), 2, "{:?}", state.warnings);
    assert_eq!(state.warnings[1], "what stands behind the last whole document, from line 3 on, is left out");
}

#[test]
fn malloc_info_gives_arenas_and_free_chunks() {
    let state = read(&fixture("malloc-info/heaps.xml")).unwrap();
    assert_eq!(state.allocator, Allocator::Glibc);
    let expected = AllocatorMetrics {
        allocated: Some(14_516_224 - 76_913),
        free: Some(76_913),
        mapped: Some(14_516_224),
        mapped_max: Some(14_520_320),
        own_mappings: Some(0),
        retained: Some(0),
        ..AllocatorMetrics::default()
    };
    assert_eq!(state.totals, expected);
    let arenas: Vec<_> = state
        .arenas
        .iter()
        .map(|arena| (arena.name.as_str(), arena.metrics.mapped, arena.metrics.free))
        .collect();
    assert_eq!(arenas, [("0", Some(9_502_720), Some(73_664)), ("1", Some(5_013_504), Some(3249))]);
    let bins: Vec<_> =
        state.bins.iter().map(|bin| (bin.size_min, bin.size_max, bin.free_blocks, bin.waste_bytes)).collect();
    assert_eq!(bins, [(657, 657, 1, 657)]);
    assert_eq!(state.warnings, [] as [String; 0]);
}

#[test]
fn chunks_of_all_arenas_are_one_table() {
    let text = "<malloc version=\"1\">\n<heap nr=\"0\">\n<sizes>\n<size from=\"17\" to=\"32\" total=\"64\" count=\"2\"/>\n</sizes>\n</heap>\n\
                <heap nr=\"1\">\n<sizes>\n<size from=\"17\" to=\"32\" total=\"32\" count=\"1\"/>\n</sizes>\n</heap>\n\
                <total type=\"mmap\" count=\"1\" size=\"1000\"/>\n<system type=\"current\" size=\"500\"/>\n</malloc>\n";
    let state = read(text.as_bytes()).unwrap();
    assert_eq!((state.bins[0].free_blocks, state.bins[0].waste_bytes), (3, 96));
    assert_eq!((state.totals.allocated, state.totals.mapped), (Some(1500), Some(1500)));
}

#[test]
fn what_makes_no_sense_is_told_with_its_place() {
    for (text, expected) in [
        ("<malloc version=\"1\">\n<total type=\"fast\" size=\"x\"/>\n", "byte 21: a number as size"),
        ("<malloc version=\"1\">\n", "byte 0: an arena, or the totals of all"),
        ("<malloc version=\"1\">\n<heap nr=\"0\"", "byte 21: an element of XML"),
        (
            "a\n___ Begin jemalloc statistics ___\nVersion: \"5\"\n",
            "line 2: a line that begins with \"Allocated:\"",
        ),
        ("{\"jemalloc\":{\"stats\":", "line 1: a JSON document"),
        ("{\"jemalloc\":{}}", "line 1: jemalloc.stats"),
        ("hello\n", "this is not a profile but"),
    ] {
        let error = read(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
    let error = read_as(&fixture("malloc-info/heaps.xml"), Format::MallocInfo).unwrap_err();
    assert!(matches!(error, ImportError::NotAProfile { format: Format::MallocInfo }));
}

#[test]
fn a_text_that_was_cut_off_says_so() {
    let bytes = fixture("jemalloc/stats.txt");
    let state = read(&bytes[..12_000]).unwrap();
    assert!(state.warnings[0].contains("end before their last line"), "{:?}", state.warnings);
    let bytes = fixture("malloc-info/heaps.xml");
    let state: AllocatorState = read(&bytes[..bytes.len() - "</malloc>\n".len()]).unwrap();
    assert!(state.warnings[0].contains("ends before </malloc>"), "{:?}", state.warnings);
}

#[test]
fn no_damage_makes_it_panic() {
    for (name, length) in
        [("malloc-info/heaps.xml", 2000), ("jemalloc/stats.txt", 6000), ("jemalloc/stats.json", 1500)]
    {
        let bytes = fixture(name);
        let bytes = &bytes[..bytes.len().min(length)];
        for end in 0..bytes.len() {
            let _ = read(&bytes[..end]);
        }
        let mut damaged = bytes.to_vec();
        for at in 0..damaged.len() {
            for change in [0x01, 0x10] {
                damaged[at] ^= change;
                let _ = read(&damaged);
                damaged[at] ^= change;
            }
        }
    }
}
