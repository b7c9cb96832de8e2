//! What valgrind's DHAT says of a program, in a shape that can be laid beside a report of mallow.
//!
//! A site is named by the chain of its functions, leaf first, as both tools can know it:
//!
//! - the allocating function itself is left out (DHAT shows its own `malloc`, mallow shows none);
//! - inlined functions are left out (DHAT runs with `--read-inline-info=no`);
//! - a function without a symbol is `?`;
//! - neighbouring frames of libc and of the dynamic linker are one `libc`: each of their functions has several names
//!   (`opendir`, `__opendir`), and each tool takes another one;
//! - the chain ends where libc starts the program, because DHAT goes on from there into garbage;
//! - libc's table of exit handlers (`__new_exitfn`) is its own caller: it grows for whoever registers the 33rd handler,
//!   and both tools register handlers of their own first.

use serde_json::Value;
use std::collections::BTreeMap;

/// Blocks and bytes: allocated, live at the peak, live at the end.
pub type Metrics = [u64; 6];

/// Metrics per chain of functions.
pub type Sites = BTreeMap<Vec<String>, Metrics>;

const LIBC: &str = "libc";

struct Frame<'a> {
    function: &'a str,
    is_libc: bool,
}

/// Sites of a DHAT output file (`dhatFileVersion` 2).
#[must_use]
pub fn sites_of_dhat(dhat: &Value) -> Sites {
    let mut sites = Sites::new();
    for point in dhat["pps"].as_array().into_iter().flatten() {
        let indices = point["fs"].as_array().into_iter().flatten().filter_map(Value::as_u64);
        let texts = indices.filter_map(|index| dhat["ftbl"][index as usize].as_str());
        let metrics = ["tbk", "tb", "gbk", "gb", "ebk", "eb"].map(|name| point[name].as_u64().unwrap_or(0));
        add(&mut sites, chain(texts.skip(1).map_while(frame_of_dhat)), metrics);
    }
    sites
}

/// Sites of `mallow report --json --realloc origin`.
#[must_use]
pub fn sites_of_report(report: &Value) -> Sites {
    let mut sites = Sites::new();
    for row in report["sites"].as_array().into_iter().flatten() {
        let frames = row["frames"].as_array().into_iter().flatten();
        let frames = frames.filter(|frame| frame["inlined"] == false).map(|frame| Frame {
            function: frame["function"].as_str().unwrap_or_default(),
            is_libc: frame["module"].as_str().is_some_and(is_libc),
        });
        let frames = frames.skip_while(|frame| frame.function.starts_with("operator new"));
        let names = ["allocations", "bytes", "peak_blocks", "peak_bytes", "leaked_blocks", "leaked_bytes"];
        add(&mut sites, chain(frames), names.map(|name| row[name].as_u64().unwrap_or(0)));
    }
    sites
}

/// The sum over all sites.
#[must_use]
pub fn sum(sites: &Sites) -> Metrics {
    let mut sum = Metrics::default();
    for metrics in sites.values() {
        add_to(&mut sum, *metrics);
    }
    sum
}

/// Sites whose metrics differ, as lines for people.
#[must_use]
pub fn differences(dhat: &Sites, mallow: &Sites) -> Vec<String> {
    let mut chains: Vec<_> = dhat.keys().chain(mallow.keys()).collect();
    chains.sort();
    chains.dedup();
    let differ = chains.into_iter().filter(|chain| dhat.get(*chain) != mallow.get(*chain));
    differ
        .map(|chain| {
            let (dhat, mallow) = (dhat.get(chain), mallow.get(chain));
            format!("{}\n    DHAT   {dhat:?}\n    mallow {mallow:?}", chain.join(" < "))
        })
        .collect()
}

fn add(sites: &mut Sites, chain: Vec<String>, metrics: Metrics) {
    add_to(sites.entry(chain).or_default(), metrics);
}

fn add_to(sum: &mut Metrics, metrics: Metrics) {
    for (sum, metric) in sum.iter_mut().zip(metrics) {
        *sum += metric;
    }
}

/// `0x4902503: sqlite3Malloc (in /usr/lib/libsqlite3.so)`, or `(getpwuid.c:121)` where there is debug information: of
/// the programs judged here only libc and the dynamic linker have any. None where DHAT knows no module any more.
fn frame_of_dhat(text: &str) -> Option<Frame<'_>> {
    let frame = text.split_once(": ")?.1;
    let (function, place) = frame.rsplit_once(" (")?;
    let place = place.trim_end_matches(')');
    let is_libc = place.strip_prefix("in ").is_none_or(is_libc);
    Some(Frame { function, is_libc })
}

fn is_libc(module: &str) -> bool {
    let file = module.rsplit('/').next().unwrap_or(module);
    file.starts_with("libc.so") || file.starts_with("ld-linux")
}

fn chain<'a>(frames: impl Iterator<Item = Frame<'a>>) -> Vec<String> {
    let mut chain: Vec<String> = Vec::new();
    for frame in frames {
        if frame.function == "__new_exitfn" {
            return vec![frame.function.to_owned()];
        }
        if frame.function.starts_with("__libc_start") || frame.function.starts_with("(below main)") {
            break;
        }
        let name = if frame.is_libc { LIBC } else { plain(frame.function) };
        if name != LIBC || chain.last().is_none_or(|last| last != LIBC) {
            chain.push(name.to_owned());
        }
    }
    chain
}

/// Without version (`fopen@@GLIBC_2.2.5`) and parameters, whose spelling differs; `?` for an address.
fn plain(function: &str) -> &str {
    if function == "???" || function.starts_with("0x") {
        return "?";
    }
    function.split(['@', '(']).next().unwrap_or(function)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_shapes_of_one_stack_are_the_same_chain() {
        let dhat = json!({
            "ftbl": ["[root]", "0x1: malloc (in /vg/preload.so)", "0x2: ??? (in /lib/liba.so)",
                "0x3: f(int) (in /bin/p)", "0x4: __qsort_r (msort.c:1)", "0x5: qsort (msort.c:2)",
                "0x6: main (in /bin/p)", "0x7: (below main) (libc_start_call_main.h:58)", "0x8: ???"],
            "pps": [{"tbk": 1, "tb": 2, "gbk": 3, "gb": 4, "ebk": 5, "eb": 6, "fs": [1, 2, 3, 4, 5, 6, 7, 8]}],
        });
        let frame = |function: &str, module: &str, inlined: bool| json!({"function": function, "module": module, "inlined": inlined});
        let report = json!({"sites": [{
            "allocations": 1, "bytes": 2, "peak_blocks": 3, "peak_bytes": 4, "leaked_blocks": 5, "leaked_bytes": 6,
            "frames": [
                frame("operator new(unsigned long)", "/lib/libstdc++.so.6", false),
                frame("0x2", "/lib/liba.so", false),
                frame("inner(int)", "/bin/p", true),
                frame("f(int)", "/bin/p", false),
                frame("qsort", "/lib/libc.so.6", false),
                frame("main", "/bin/p", false),
                frame("__libc_start_call_main", "/lib/libc.so.6", false),
                frame("_start", "/bin/p", false),
            ],
        }]});
        let (dhat, mallow) = (sites_of_dhat(&dhat), sites_of_report(&report));
        assert_eq!(dhat.keys().next().unwrap(), &["?", "f", "libc", "main"]);
        assert_eq!(differences(&dhat, &mallow), [""; 0]);
        assert_eq!(sum(&mallow), [1, 2, 3, 4, 5, 6]);
        assert_eq!(differences(&dhat, &Sites::new()).len(), 1);
    }
}
