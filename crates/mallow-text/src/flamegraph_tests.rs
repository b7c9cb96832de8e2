//! What is in the boxes, and that inferno reads two metrics as we mean them.

use super::*;
use mallow_view::FoldedCall;

fn graph() -> FlameGraph {
    let text = |text: &str| text.to_owned();
    FlameGraph { title: text("Peak <app>"), subtitle: text("12 B"), unit: text("bytes"), icicle: false }
}

/// The text of each box, in the order of the file.
fn boxes(svg: &[u8]) -> Vec<String> {
    let text = String::from_utf8(svg.to_vec()).unwrap();
    let titles = text.split("<title>").skip(1);
    titles.map(|title| title.split("</title>").next().unwrap().to_owned()).collect()
}

fn drawn(stacks: &[(&str, u64)]) -> io::Result<Vec<String>> {
    let mut svg = Vec::new();
    graph().draw(stacks.iter().map(|(stack, value)| ((*stack).to_owned(), *value)), &mut svg)?;
    Ok(boxes(&svg))
}

fn compared(stacks: &[(&str, u64, u64)]) -> io::Result<Vec<u8>> {
    let mut svg = Vec::new();
    let stacks = stacks.iter().map(|(stack, before, after)| ((*stack).to_owned(), *before, *after));
    graph().draw_compared(stacks, &mut svg).map(|()| svg)
}

#[test]
fn a_box_has_its_name_and_its_share() {
    let mut expected = [
        "all (12 bytes, 100%)",
        "main (12 bytes, 100.00%)",
        "a&lt;b&gt; (9 bytes, 75.00%)",
        "c (3 bytes, 25.00%)",
    ];
    let mut boxes = drawn(&[("main;c", 3), ("main;a<b>", 9)]).unwrap();
    boxes.sort();
    expected.sort();
    assert_eq!(boxes, expected);
}

#[test]
fn each_language_has_its_colour_and_a_place_in_the_legend() {
    let call = |name: &str, language| FoldedCall { name: name.into(), language };
    let (native, python) = (Language::Native, Language::Python);
    let drawn = |rows: &[FoldedRow]| {
        let mut svg = Vec::new();
        graph().draw_rows(rows, &mut svg).unwrap();
        String::from_utf8(svg).unwrap()
    };
    let both = [
        FoldedRow { calls: vec![call("main", native), call("work", native)], value: 3 },
        FoldedRow { calls: vec![call("main", native), call("work", python)], value: 9 },
    ];
    let svg = drawn(&both);
    let of_box = |title: &str| {
        let (_, behind) = svg.split_once(&format!("<title>{title}</title>")).unwrap();
        behind.split_once("fill=\"").unwrap().1.split_once('"').unwrap().0.to_owned()
    };
    let fill = |language, name| {
        let Color { r, g, b } = colour(language, name);
        format!("rgb({r},{g},{b})")
    };
    assert_eq!(of_box("work (3 bytes, 25.00%)"), fill(native, "work"));
    assert_eq!(of_box("work (9 bytes, 75.00%)"), fill(python, "work"));
    let (_, legend) = svg.split_once("<g id=\"legend\">").unwrap();
    assert!(legend.contains(">native</text>") && legend.contains(">Python</text>"), "{legend}");
    assert!(!legend.contains("Ruby"), "{legend}");
    assert!(svg.trim_end().ends_with("</g></svg>"));
    // Without scripts there is nothing to tell apart.
    assert!(!drawn(&both[..1]).contains("legend"));
    // No shade of one language is a shade of another, and none leaves its range.
    for language in Language::ALL {
        assert!(base(language).iter().all(|part| *part <= 215), "{language:?}");
    }
}

#[test]
fn a_number_at_the_end_of_a_name_is_no_metric() {
    assert!(
        drawn(&[("main;lambda 12", 3)]).unwrap().contains(&"lambda\u{a0}12 (3 bytes, 100.00%)".to_owned())
    );
    assert!(drawn(&[("# main;work", 3)]).unwrap().contains(&"#\u{a0}main (3 bytes, 100.00%)".to_owned()));
}

#[test]
fn a_function_is_one_box_whatever_its_neighbours_are_called() {
    let boxes = drawn(&[("foo", 1), ("foo(int);x", 2), ("foo bar", 3), ("foo;y", 4)]).unwrap();
    assert_eq!(
        boxes.iter().filter(|text| text.starts_with("foo (")).collect::<Vec<_>>(),
        ["foo (5 bytes, 50.00%)"]
    );
}

#[test]
fn widths_are_those_after_and_differences_are_told() {
    let svg =
        compared(&[("main;gone", 4, 0), ("main;grown", 1, 3), ("main;less", 5, 1), ("main;same", 2, 2)])
            .unwrap();
    let mut boxes = boxes(&svg);
    boxes.sort();
    assert_eq!(
        boxes,
        [
            "all (6 bytes, 100%)",
            "grown (3 bytes, 50.00%; +33.33%)",
            "less (1 bytes, 16.67%; -66.67%)",
            "main (6 bytes, 100.00%; 0.00%)",
            "same (2 bytes, 33.33%; 0.00%)",
        ]
    );
}

#[test]
fn our_pairs_are_those_of_infernos_own_comparison() {
    let (before, after) = ("main;gone 4\nmain;same 2\n", "main;new 3\nmain;same 2\n");
    let mut lines = Vec::new();
    let options = inferno::differential::Options::default();
    inferno::differential::from_readers(options, before.as_bytes(), after.as_bytes(), &mut lines).unwrap();
    let mut lines: Vec<&str> = std::str::from_utf8(&lines).unwrap().lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["main;gone 4 0", "main;new 0 3", "main;same 2 2"]);
}

#[test]
fn what_cannot_be_drawn_is_an_error() {
    for (stacks, part) in [
        (&[][..], "nothing to draw"),
        (&[("main", 0)], "nothing to draw"),
        (&[("main", u64::MAX), ("main;work", 7)], "more than 2^63"),
    ] {
        let error = drawn(stacks).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
    assert!(compared(&[("main", 5, 0)]).is_err());
    assert!(drawn(&[("main", SUM_MAX)]).is_ok());
}

proptest::proptest! {
    #[test]
    fn any_names_are_drawn(stacks in proptest::collection::vec(("[^\\p{C};]{1,8}(;[^\\p{C};]{1,8}){0,3}", 1..9_u64, 0..9_u64), 1..8)) {
        let one = stacks.iter().map(|(stack, value, _)| (stack.clone(), *value));
        graph().draw(one, &mut Vec::new()).unwrap();
        graph().draw_compared(stacks.into_iter().map(|(s, after, before)| (s, before, after)), &mut Vec::new()).unwrap();
    }
}
