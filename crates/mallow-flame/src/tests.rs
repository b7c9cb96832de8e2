//! What stands in a picture, held against what was put in.

use crate::kept::KeptBoxes;
use crate::{FlameGraph, NothingToDraw};
use mallow_base::Language;
use mallow_stacks::{FlameCall, FlameWeight, Flames, Unit};
use proptest::prelude::*;
use quick_xml::events::Event;
use std::collections::BTreeMap;

fn graph() -> FlameGraph {
    FlameGraph {
        title: "Peak <app>".to_owned(),
        subtitle: "a & b".to_owned(),
        unit: Unit::Bytes,
        counted: String::new(),
        icicle: false,
        is_compared: false,
    }
}

fn stacks(stacks: &[(&str, u64, u64)]) -> Flames {
    let mut flames = Flames::default();
    for (names, before, after) in stacks {
        flames.add_names(names.split(';'), FlameWeight { before: *before, after: *after });
    }
    flames
}

/// A box of a picture.
#[derive(Clone, Debug, Default, PartialEq)]
struct Drawn {
    class: String,
    title: String,
    text: String,
    x: f64,
    y: f64,
    width: f64,
}

/// The boxes of a picture, whose XML must be well-formed.
fn boxes(svg: &str) -> Vec<Drawn> {
    let mut reader = quick_xml::Reader::from_str(svg);
    let (mut drawn, mut path): (Vec<Drawn>, Vec<String>) = (Vec::new(), Vec::new());
    let mut is_inside = false;
    loop {
        match reader.read_event().unwrap() {
            Event::Start(element) => {
                let name = String::from_utf8(element.name().as_ref().to_vec()).unwrap();
                let attribute = |key: &str| {
                    let value = element.try_get_attribute(key).unwrap();
                    value.map_or(String::new(), |value| String::from_utf8(value.value.to_vec()).unwrap())
                };
                let number = |key: &str| attribute(key).parse::<f64>().unwrap_or(-1.0);
                is_inside |= attribute("class") == "boxes";
                let depth = path.iter().filter(|name| *name == "g" || *name == "svg").count();
                if is_inside && depth == 2 && (name == "svg" || name == "rect") {
                    let (x, y, width) = (number("x"), number("y"), number("width"));
                    drawn.push(Drawn { class: attribute("class"), x, y, width, ..Drawn::default() });
                }
                path.push(name);
            }
            Event::Empty(element) if is_inside && element.name().as_ref() == b"rect" => {
                let class = element.try_get_attribute("class").unwrap().unwrap();
                drawn.last_mut().unwrap().class = String::from_utf8(class.value.to_vec()).unwrap();
            }
            Event::Text(text) if is_inside => {
                let text =
                    quick_xml::escape::unescape(std::str::from_utf8(&text).unwrap()).unwrap().into_owned();
                add_text(drawn.last_mut(), &path, &text);
            }
            Event::GeneralRef(reference) if is_inside => {
                let name = format!("&{};", std::str::from_utf8(&reference).unwrap());
                let text = quick_xml::escape::unescape(&name).unwrap().into_owned();
                add_text(drawn.last_mut(), &path, &text);
            }
            Event::End(_) => {
                is_inside &= path.pop().as_deref() != Some("g");
            }
            Event::Eof => return drawn,
            _ => {}
        }
    }
}

fn add_text(drawn: Option<&mut Drawn>, path: &[String], text: &str) {
    if let Some(drawn) = drawn {
        match path.last().map(String::as_str) {
            Some("title") => drawn.title.push_str(text),
            Some("text") => drawn.text.push_str(text),
            Some("tspan") => drawn.text.push_str(&format!(" [{text}]")),
            _ => {}
        }
    }
}

fn listed(svg: &str) -> String {
    let lines = boxes(svg).into_iter().map(|drawn| {
        let Drawn { class, title, text, x, y, width } = drawn;
        format!("{x:7.2} {y:5} {width:7.2} {class:<5} {text}\n{}\n", title.replace('\n', " | "))
    });
    lines.collect()
}

#[test]
fn boxes_have_names_metrics_and_places() {
    let mut flames = Flames::default();
    let (app, parser) = (Language::Native, Language::Python);
    let [main, parse, intern] = [("main", app), ("parse_row", parser), ("intern<T>", app)]
        .map(|(name, language)| flames.function(name, language, ""));
    let [at_main, one, other] =
        ["main.c:9 in app", "app.py:4", "app.py:7"].map(|place| Some(flames.place(place)));
    let call = |function, place| FlameCall { function, place, times: 1 };
    let deep = FlameCall { times: 16_384, ..call(parse, other) };
    flames.add([call(main, at_main), call(parse, one)], FlameWeight::of(3 << 20));
    flames.add([call(main, at_main), deep, call(intern, None)], FlameWeight::of(5 << 20));
    flames.add([call(main, at_main), call(intern, at_main)], FlameWeight::of(1));
    let svg = graph().draw(&flames).unwrap();
    insta::assert_snapshot!(listed(&svg), @r"
      10.00   126 1179.50 root  all [8.00 MiB, 100.0%]
    all | 8.00 MiB, 100.0%
      10.00   108 1179.50 n2    main [8.00 MiB, 100.0%]
    main | 8.00 MiB, 100.0% | main.c:9 in app
      10.00    90 1179.50 p1    parse_row × 16,384 [8.00 MiB, 100.0% · Python]
    parse_row × 16,384 · Python | 8.00 MiB, 100.0%; itself 3.00 MiB, 37.5% | stands up to 16,384 times on a stack | app.py:7 | app.py:4
      10.00    72  737.00 n5    intern<T> [5.00 MiB, 62.5%]
    intern<T> | 5.00 MiB, 62.5%, all of it its own
    ");
    let icicle = FlameGraph { icicle: true, ..graph() }.draw(&flames).unwrap();
    let rows = |svg: &str| boxes(svg).iter().map(|drawn| drawn.y).collect::<Vec<f64>>();
    let (up, down) = (rows(&svg), rows(&icicle));
    assert!(up[0] > up[1] && down[0] < down[1], "{up:?} {down:?}");
    assert_eq!(up[0] - up[1], down[1] - down[0]);
}

#[test]
fn what_became_more_and_less_is_written_and_what_is_gone_is_as_wide_as_it_was() {
    let flames = stacks(&[
        ("main;gone", 4096, 0),
        ("main;grown", 1000, 3000),
        ("main;less;deep", 2000, 1000),
        ("main;new", 0, 500),
        ("main;same", 700, 700),
    ]);
    let svg = FlameGraph { is_compared: true, ..graph() }.draw(&flames).unwrap();
    insta::assert_snapshot!(listed(&svg), @r"
      10.00   126 1179.50 root  all [−2.54 KiB]
    all | 7.61 KiB before, 5.08 KiB after: −2.54 KiB, −33.3%
      10.00   108 1179.50 l3    main [−2.54 KiB]
    main | 7.61 KiB before, 5.08 KiB after: −2.54 KiB, −33.3%
      10.00    90  468.93 gone  gone [−4.00 KiB, gone]
    gone | 4.00 KiB before, 0 B after: −4.00 KiB, gone
     479.43    90  343.32 m4    grown [+1.95 KiB]
    grown | 1000 B before, 2.93 KiB after: +1.95 KiB, +200.0%
     823.26    90  228.72 l4    less [−1000 B]
    less | 1.95 KiB before, 1000 B after: −1000 B, −50.0%
     823.26    72  228.72 l4    deep [−1000 B]
    deep | 1.95 KiB before, 1000 B after: −1000 B, −50.0%
    1052.47    90   56.80 new   new
    new | 0 B before, 500 B after: +500 B, new
    1109.77    90   79.73 same  same
    same | 700 B before, 700 B after: no difference
    ");
}

#[test]
fn names_cannot_break_out() {
    let names = "a<b>&\"';]]></script><script>x;tab\tend\n;\u{1b}[31m;\u{202e}gpj;\u{fffe};界";
    let svg = graph().draw(&stacks(&[(names, 0, 5)])).unwrap();
    let names: Vec<String> =
        boxes(&svg).iter().map(|drawn| drawn.title.lines().next().unwrap().to_owned()).collect();
    assert_eq!(
        names[1..],
        ["a<b>&\"'", "]]></script><script>x", "tab?end?", "?[31m", "?gpj", "?", "界"],
        "{names:?}"
    );
    assert_eq!(svg.matches("<script>").count(), 1);
    // The data's section ends once, and the script's.
    assert_eq!(svg.matches("]]>").count(), 2);
}

#[test]
fn what_is_too_narrow_is_left_out_and_said() {
    let many: Vec<(String, u64)> =
        (0..3000).map(|at| (format!("main;work;leaf_{at}"), 1 + u64::from(at == 7) * 10_000)).collect();
    let mut flames = Flames::default();
    for (names, bytes) in &many {
        flames.add_names(names.split(';'), FlameWeight::of(*bytes));
    }
    let svg = graph().draw(&flames).unwrap();
    let drawn = boxes(&svg);
    assert_eq!(drawn.len(), 4, "{drawn:?}");
    assert!(svg.contains(">2,999 boxes too narrow to be drawn<"), "{}", &svg[..4000]);
    // The script has them all.
    assert!(svg.contains("leaf_2999"));
    let kept = KeptBoxes::at_most(&flames, 1000);
    assert_eq!((kept.boxes.len(), kept.left_out, kept.left_out_width), (1000, 2003, 1));
}

#[test]
fn deep_stacks_are_drawn_as_far_as_anyone_scrolls() {
    let names: Vec<String> = (0..16_384).map(|at| format!("f{at}")).collect();
    let svg = graph().draw(&stacks(&[(&names.join(";"), 0, 9)])).unwrap();
    assert_eq!(boxes(&svg).len(), 400);
    assert!(svg.contains(">15,985 boxes deeper than 400 calls not drawn<"));
    assert!(svg.contains(" height=\"7282\" viewBox"), "{}", &svg[..300]);
}

#[test]
fn nothing_is_not_drawn() {
    assert_eq!(graph().draw(&Flames::default()), Err(NothingToDraw));
    assert_eq!(graph().draw(&stacks(&[("main", 0, 0)])), Err(NothingToDraw));
    assert_eq!(NothingToDraw.to_string(), "there is nothing to draw");
    assert!(graph().draw(&stacks(&[("main", 0, u64::MAX), ("main;work", 7, u64::MAX)])).is_ok());
}

/// Each path with what it weighs: the obvious way.
fn naive(stacks: &[(Vec<u8>, u64, u64)]) -> BTreeMap<Vec<u8>, (FlameWeight, u64)> {
    let mut sums: BTreeMap<Vec<u8>, (FlameWeight, u64)> = BTreeMap::new();
    for (names, before, after) in stacks {
        for length in 0..=names.len() {
            let (weight, width) = sums.entry(names[..length].to_vec()).or_default();
            weight.add(FlameWeight { before: *before, after: *after });
            *width += before.max(after);
        }
    }
    sums.retain(|_, (_, width)| *width > 0);
    sums
}

fn made() -> impl Strategy<Value = Vec<(Vec<u8>, u64, u64)>> {
    prop::collection::vec((prop::collection::vec(0..4_u8, 0..6), 0..20_u64, 0..20_u64), 1..30)
}

proptest! {
    #[test]
    fn boxes_are_the_sums_of_their_stacks(made in made(), boxes_max in 1..40_usize) {
        let mut flames = Flames::default();
        for (names, before, after) in &made {
            let names: Vec<String> = names.iter().map(u8::to_string).collect();
            flames.add_names(names.iter().map(String::as_str), FlameWeight { before: *before, after: *after });
        }
        let kept = KeptBoxes::at_most(&flames, boxes_max);
        let sums = naive(&made);
        let mut path: Vec<u8> = Vec::new();
        // Where each open box may still be filled.
        let mut room: Vec<(u64, u64)> = vec![(0, u64::MAX)];
        for (at, of) in kept.boxes.iter().enumerate() {
            path.truncate((of.depth as usize).saturating_sub(1));
            if let Some(function) = of.this.function {
                path.push(flames.functions[function.0 as usize].name.parse().unwrap());
            }
            let expected = sums.get(&path).copied().unwrap_or_default();
            prop_assert_eq!((of.weight, of.width), expected, "{:?}", path);
            room.truncate(of.depth as usize + 1);
            let (from, to) = room[of.depth as usize];
            prop_assert!(of.left >= from && of.left + of.width <= to, "box {} of {:?} overlaps", at, path);
            room[of.depth as usize] = (of.left + of.width, to);
            room.push((of.left, of.left + of.width));
        }
        let all = sums.len().max(1);
        prop_assert_eq!(kept.boxes.len(), all.min(boxes_max));
        if let Some(least) = kept.boxes.iter().map(|of| of.width).min() {
            prop_assert!(least >= kept.left_out_width);
        }
    }

    #[test]
    fn any_names_are_drawn(stacks in prop::collection::vec(("\\PC{1,8}(;\\PC{1,8}){0,3}", 0..9_u64, 1..9_u64), 1..8)) {
        let mut flames = Flames::default();
        for (names, before, after) in &stacks {
            flames.add_names(names.split(';'), FlameWeight { before: *before, after: *after });
        }
        for is_compared in [false, true] {
            let svg = FlameGraph { is_compared, ..graph() }.draw(&flames).unwrap();
            prop_assert!(boxes(&svg).len() > 1);
            let data = svg.split("<![CDATA[").nth(1).unwrap().split("]]>").next().unwrap();
            prop_assert!(serde_json::from_str::<serde_json::Value>(data).is_ok());
        }
    }
}
