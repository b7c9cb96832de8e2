//! Parses a JVM's responses, in the formats of every collector.

use std::collections::BTreeMap;

/// Returns the bytes in use in the managed heap, from the response to `GC.heap_info`: the sum over the collector's
/// generations. `None` if no line has them.
///
/// G1, Serial and Parallel write `garbage-first heap   total 40960K, used 4109K [`, one line for each generation; ZGC
/// `ZHeap           used 10M, capacity 96M`; Shenandoah `1024M max, 1024M soft max, 64M committed, 5M used`.
/// Metaspace is in the same response, and is not part of the heap.
pub(super) fn heap_used(answer: &str) -> Option<u64> {
    // From 24 on, ZGC lists its generations below their sum; Parallel lists spaces in per cent.
    let sums: Vec<u64> = answer.lines().filter(|line| !is_metaspace(line)).filter_map(used).collect();
    if answer.contains("ZHeap") {
        sums.first().copied()
    } else {
        sums.into_iter().reduce(u64::saturating_add)
    }
}

/// Returns the bytes of classes, from the same response.
pub(super) fn metaspace(answer: &str) -> Option<(String, f64)> {
    let line = answer.lines().find(|line| line.trim_start().starts_with("Metaspace"))?;
    Some(("metaspace_used".to_owned(), used(line)? as f64))
}

fn is_metaspace(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("Metaspace") || line.starts_with("class space")
}

/// Returns the size after or before the word `used`.
fn used(line: &str) -> Option<u64> {
    let words: Vec<&str> = line.split([' ', ',', '\t']).filter(|word| !word.is_empty()).collect();
    let at = words.iter().position(|&word| word == "used")?;
    let behind = words.get(at + 1).and_then(|word| size(word));
    behind.or_else(|| size(words.get(at.checked_sub(1)?)?))
}

/// Parses `4109K`, `10M`, `1G`, `512B`.
fn size(word: &str) -> Option<u64> {
    let word = word.trim_end_matches('B');
    let digits = word.trim_end_matches(['K', 'M', 'G']);
    let unit = match &word[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// Returns committed bytes by category, from the response to `VM.native_memory summary`: `nmt_total`,
/// `nmt_java_heap`, `nmt_gc`, ... Empty if the JVM does not track them.
pub(super) fn native_memory(answer: &str) -> BTreeMap<String, f64> {
    answer.lines().filter_map(category).collect()
}

/// Parses `-                     Class (reserved=1048651KB, committed=203KB)`, and `Total: reserved=…KB, committed=…KB`.
fn category(line: &str) -> Option<(String, f64)> {
    let (name, rest) = match line.strip_prefix("Total:") {
        Some(rest) => ("total", rest),
        None => line.strip_prefix('-')?.split_once('(')?,
    };
    let committed = rest.split_once("committed=")?.1;
    let end = committed.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(committed.len());
    let name = name.trim().to_lowercase().replace(' ', "_");
    Some((format!("nmt_{name}"), size(&committed[..end])? as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KB: u64 = 1 << 10;

    #[test]
    fn every_collector_tells_what_its_heap_uses() {
        let g1 = "17:\n garbage-first heap   total 40960K, used 4109K [0x01, 0x02)\n  region size 4096K, 0 young (0K)\n \
                  Metaspace       used 73K, committed 320K, reserved 1114112K\n  class space    used 3K, committed 128K\n";
        assert_eq!(heap_used(g1), Some(4109 * KB));
        assert_eq!(metaspace(g1), Some(("metaspace_used".to_owned(), 73.0 * 1024.0)));
        let serial = " def new generation   total 38656K, used 100K [0x1, 0x2)\n  eden space 34368K,   2% used [0x1)\n \
                      tenured generation   total 85888K, used 900K [0x1)\n   the space 85888K,   0% used [0x1)\n";
        assert_eq!(heap_used(serial), Some(1000 * KB));
        let z = " ZHeap           used 10M, capacity 96M, max capacity 6028M\n Metaspace used 73K, committed 320K\n";
        assert_eq!(heap_used(z), Some(10 << 20));
        let shenandoah =
            "Shenandoah Heap\n 6028M max, 6028M soft max, 128M committed, 5M used\n 3014 x 2048K regions\n";
        assert_eq!(heap_used(shenandoah), Some(5 << 20));
        assert_eq!(heap_used("Epsilon says nothing"), None);
    }

    #[test]
    fn categories_of_native_memory_are_told_by_name() {
        let answer = "Total: reserved=7840547KB, committed=103375KB\n       malloc: 7131KB #4102\n\
                      -                 Java Heap (reserved=6172672KB, committed=40960KB)\n\
                      (mmap: reserved=6172672KB, committed=40960KB)\n\
                      -    Native Memory Tracking (reserved=70KB, committed=70KB)\n";
        let metrics = native_memory(answer);
        let expected =
            [("nmt_total", 103_375), ("nmt_java_heap", 40_960), ("nmt_native_memory_tracking", 70)];
        assert_eq!(metrics, expected.map(|(name, kb)| (name.to_owned(), (kb * KB) as f64)).into());
        assert!(native_memory("Native memory tracking is not enabled\n").is_empty());
    }
}
