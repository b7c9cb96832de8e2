//! Merging, folding and filtering on stacks written by hand, and against a slow twin.

use super::*;
use crate::Measure;
use crate::example::{allocated, frame, profile, site};
use mallow_base::Place;
use mallow_profile::Process;

fn names(sites: &Sites<'_>) -> Vec<(String, u64)> {
    let text = |row: &SiteRow| sites.frames(row).map(|f| f.function.as_str()).collect::<Vec<_>>().join("<");
    sites.rows.iter().map(|row| (text(row), row.totals.allocations)).collect()
}

fn stack(functions: &[&str]) -> Vec<Vec<Frame>> {
    functions.iter().map(|function| vec![frame(function, "/bin/app")]).collect()
}

#[test]
fn equal_stacks_of_two_processes_are_one_row() {
    let mut profile = profile();
    profile.processes.push(Process::default());
    site(&mut profile, 0, &stack(&["load", "main"]), allocated(3, 30));
    site(&mut profile, 1, &stack(&["load", "main"]), allocated(4, 40));
    site(&mut profile, 1, &stack(&["load", "other"]), allocated(5, 50));
    let sites = Sites::of(&profile, FrameVisibility::All, &Filter::default());
    assert_eq!(names(&sites), [("load<main".into(), 7), ("load<other".into(), 5)]);
    assert_eq!(sites.totals().bytes, 120);
}

#[test]
fn a_programs_own_wrappers_are_folded_too() {
    let mut profile = profile();
    site(&mut profile, 0, &stack(&["malloc", "app::pool::take<u8>(int)", "load", "main"]), allocated(1, 1));
    let shown = FrameVisibility::without_plumbing(vec!["app::pool::*".to_owned()]);
    assert_eq!(names(&Sites::of(&profile, shown, &Filter::default())), [("load<main".into(), 1)]);
    let built_in = Sites::of(&profile, FrameVisibility::WithoutPlumbing, &Filter::default());
    assert!(names(&built_in)[0].0.starts_with("app::pool::take"));
}

#[test]
fn a_place_is_one_row_though_only_one_of_its_stacks_has_it_inlined() {
    let mut profile = profile();
    let inlined = Frame { inlined: true, ..frame("clone", "/bin/app") };
    site(&mut profile, 0, &[vec![inlined, frame("add", "/bin/app")]], allocated(3, 30));
    site(&mut profile, 0, &stack(&["clone", "build"]), allocated(4, 40));
    let sites = Sites::of(&profile, FrameVisibility::WithoutPlumbing, &Filter::default());
    assert_eq!(names(&sites.by_naming_frame()), [("clone<add".into(), 7)]);
}

#[test]
fn stacks_that_differ_only_in_what_is_inlined_are_one_row() {
    let mut profile = profile();
    let inlined = |function: &str| Frame { inlined: true, ..frame(function, "/bin/app") };
    let plain = |function: &str| frame(function, "/bin/app");
    // As one address, as three, and with plumbing and another call inlined into it.
    site(&mut profile, 0, &[vec![inlined("clone"), plain("add")], vec![plain("main")]], allocated(1, 1));
    site(&mut profile, 0, &stack(&["clone", "add", "main"]), allocated(2, 2));
    site(
        &mut profile,
        0,
        &[vec![inlined("malloc"), inlined("clone"), plain("add")], vec![plain("main")]],
        allocated(4, 4),
    );
    site(&mut profile, 0, &stack(&["clone", "main"]), allocated(8, 8));
    for (shown, expected) in [
        (FrameVisibility::WithoutPlumbing, &[("clone<add<main", 7), ("clone<main", 8)][..]),
        (FrameVisibility::All, &[("clone<add<main", 3), ("malloc<clone<add<main", 4), ("clone<main", 8)]),
    ] {
        let sites = Sites::of(&profile, shown, &Filter::default());
        let expected: Vec<(String, u64)> =
            expected.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
        assert_eq!(names(&sites), expected);
    }
}

#[test]
fn plumbing_is_folded_and_rows_that_then_look_the_same_are_merged() {
    let mut profile = profile();
    site(&mut profile, 0, &stack(&["operator new(unsigned long)", "load", "main"]), allocated(1, 1));
    site(
        &mut profile,
        0,
        &stack(&["malloc", "operator new(unsigned long)", "load", "main"]),
        allocated(2, 2),
    );
    let inlined = vec![frame("alloc::boxed::Box<T>::new", "/bin/app"), frame("load", "/bin/app")];
    site(&mut profile, 0, &[inlined, vec![frame("main", "/bin/app")]], allocated(4, 4));
    let folded = Sites::of(&profile, FrameVisibility::WithoutPlumbing, &Filter::default());
    assert_eq!(names(&folded), [("load<main".into(), 7)]);
    assert_eq!(Sites::of(&profile, FrameVisibility::All, &Filter::default()).rows.len(), 3);
}

#[test]
fn a_stack_of_plumbing_alone_keeps_its_outermost_frame() {
    let mut profile = profile();
    site(&mut profile, 0, &stack(&["malloc", "operator new(unsigned long)"]), allocated(1, 1));
    let one_address = vec![frame("malloc", "/bin/app"), frame("calloc", "/bin/app")];
    site(&mut profile, 0, &[one_address], allocated(2, 1));
    let sites = Sites::of(&profile, FrameVisibility::WithoutPlumbing, &Filter::default());
    assert_eq!(names(&sites), [("operator new(unsigned long)".into(), 1), ("calloc".into(), 2)]);
}

#[test]
fn a_site_without_a_stack_is_a_row_without_frames() {
    let mut profile = profile();
    site(&mut profile, 0, &[], allocated(9, 9));
    let sites = Sites::of(&profile, FrameVisibility::WithoutPlumbing, &Filter::default());
    assert_eq!(names(&sites), [(String::new(), 9)]);
}

#[test]
fn filters_look_at_every_frame_and_must_all_hold() {
    let mut profile = profile();
    let lib = vec![frame("inflate", "/usr/lib/libz.so.1")];
    site(&mut profile, 0, &[lib, vec![frame("main", "/bin/app")]], allocated(1, 1));
    site(&mut profile, 0, &stack(&["malloc", "parse<int>(int)", "main"]), allocated(2, 2));
    site(&mut profile, 0, &[], allocated(4, 4));
    let count = |function: Option<&str>, module: Option<&str>| {
        let filter = Filter {
            function: function.map(String::from),
            module: module.map(String::from),
            ..Filter::default()
        };
        Sites::of(&profile, FrameVisibility::WithoutPlumbing, &filter).totals().allocations
    };
    assert_eq!(count(None, None), 7);
    assert_eq!(count(Some("main"), None), 3);
    assert_eq!(count(Some("malloc"), None), 2);
    assert_eq!(count(Some("parse<…>"), None), 2);
    assert_eq!(count(None, Some("libz")), 1);
    assert_eq!(count(Some("parse"), Some("libz")), 0);
    assert_eq!(count(Some("main"), Some("libz")), 1);
}

#[test]
fn sorting_puts_the_highest_first_and_keeps_ties_in_order() {
    let mut profile = profile();
    site(&mut profile, 0, &stack(&["a"]), allocated(1, 10));
    site(&mut profile, 0, &stack(&["b"]), allocated(5, 10));
    site(&mut profile, 0, &stack(&["c"]), allocated(1, 10));
    site(&mut profile, 0, &stack(&["d"]), allocated(1, 99));
    let mut sites = Sites::of(&profile, FrameVisibility::All, &Filter::default());
    sites.sort(Measure::Allocations);
    let order: Vec<String> = names(&sites).into_iter().map(|(name, _)| name).collect();
    assert_eq!(order, ["b", "d", "a", "c"]);
}

#[test]
fn rows_merge_by_the_frame_that_names_them() {
    let mut profile = profile();
    site(&mut profile, 0, &stack(&["dup", "a", "main"]), allocated(1, 1));
    site(&mut profile, 0, &stack(&["dup", "b", "main"]), allocated(5, 5));
    let mut sites = Sites::of(&profile, FrameVisibility::WithoutPlumbing, &Filter::default());
    sites.sort(Measure::Bytes);
    assert_eq!(names(&sites.by_naming_frame()), [("dup<b<main".into(), 6)]);
}

/// With line tables only, rustc calls an inlined function `grow<u8>` and its copy that was not inlined `pool::Pool::grow`.
#[test]
fn one_line_is_one_row_whichever_name_its_function_has() {
    let mut profile = profile();
    let at = |function: &str, line: u32| {
        vec![Frame { file: Some("pool.rs".into()), line: Some(line), ..frame(function, "app") }]
    };
    let main = || vec![frame("main", "app")];
    for (function, line, count) in
        [("grow<u8>", 9, 1), ("pool::Pool::grow", 9, 5), ("pool::Pool::shrink", 9, 2), ("grow<u8>", 10, 3)]
    {
        site(&mut profile, 0, &[at(function, line), main()], allocated(count, count));
    }
    site(&mut profile, 0, &[vec![frame("grow", "app")], main()], allocated(7, 7));
    site(&mut profile, 0, &[vec![frame("pool::Pool::grow", "app")], main()], allocated(4, 4));
    let mut sites = Sites::of(&profile, FrameVisibility::WithoutPlumbing, &Filter::default());
    sites.sort(Measure::Bytes);
    let rows: Vec<(String, u64)> = names(&sites.by_naming_frame());
    assert_eq!(
        rows,
        [
            ("grow<main", 7),
            ("pool::Pool::grow<main", 6),
            ("pool::Pool::grow<main", 4),
            ("grow<u8><main", 3),
            ("pool::Pool::shrink<main", 2)
        ]
        .map(|(name, count)| (name.to_owned(), count))
    );
}

#[test]
fn modules_without_names_are_told_once() {
    let mut profile = profile();
    let unnamed = |module: &str| vec![frame("0x1234", module)];
    site(&mut profile, 0, &[unnamed("/lib/b.so"), unnamed("/bin/a"), unnamed("/lib/b.so")], allocated(1, 1));
    site(&mut profile, 0, &[vec![frame("main", "/bin/c")], unnamed("/bin/a")], allocated(1, 1));
    let sites = Sites::of(&profile, FrameVisibility::All, &Filter::default());
    assert_eq!(sites.modules_without_names(), ["/lib/b.so", "/bin/a"]);
}

/// The slow twin: whole lists of frames as keys.
#[test]
fn merging_agrees_with_comparing_whole_stacks() {
    let functions = ["malloc", "operator new(unsigned long)", "load", "main", "walk"];
    let mut profile = profile();
    let mut state = 1_u64;
    for _ in 0..500 {
        let mut next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize
        };
        let depth = next() % 4 + 1;
        let locations: Vec<Vec<Frame>> = (0..depth)
            .map(|_| {
                let count = next() % 2 + 1;
                let mut function = || functions[next() % functions.len()];
                (0..count).map(|at| Frame { inlined: at + 1 < count, ..frame(function(), "m") }).collect()
            })
            .collect();
        site(&mut profile, 0, &locations, allocated(1, 1));
    }
    let sites = Sites::of(&profile, FrameVisibility::WithoutPlumbing, &Filter::default());
    let mut twin: std::collections::HashMap<Vec<Place<'_>>, u64> = std::collections::HashMap::new();
    for site in &profile.sites {
        let frames: Vec<Frame> = profile.frames(site.stack).cloned().collect();
        let shown = profile.frames(site.stack).skip(crate::plumbing::leading(&frames, &[]));
        *twin.entry(shown.map(Frame::place).collect()).or_default() += site.totals.allocations;
    }
    assert_eq!(sites.rows.len(), twin.len());
    let mut counts: Vec<u64> = sites.rows.iter().map(|row| row.totals.allocations).collect();
    let mut twin_counts: Vec<u64> = twin.into_values().collect();
    counts.sort_unstable();
    twin_counts.sort_unstable();
    assert_eq!(counts, twin_counts);
}
