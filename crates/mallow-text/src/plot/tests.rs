//! The contents of a chart: every name, every band, and XML that can be parsed.

use super::*;

fn curve(name: &str, is_right: bool, points: &[(f64, f64)], colour: usize) -> Curve {
    Curve { name: name.into(), is_right, points: points.to_vec(), stroke: Stroke::Line, colour }
}

fn plot() -> Plot {
    let mib = 1_048_576.0;
    let heap: Vec<(f64, f64)> =
        (0..24).map(|at| (f64::from(at) * 5000.0, (2.0 + f64::from(at) * 0.08) * mib)).collect();
    let rss: Vec<(f64, f64)> = (0..24)
        .map(|at| (f64::from(at) * 5000.0, (14.0 + f64::from(at) * 0.1 + f64::from(at % 3) * 0.2) * mib))
        .collect();
    let band = |from: f64, to: f64, label: &str, shade| Band { from, to, label: label.into(), shade };
    Plot {
        title: "LEAKING: ./server <&> \"x\"".into(),
        subtitle: "16.0 bytes per request".into(),
        across: Axis { label: "requests".into(), unit: Unit::Count },
        left: Axis { label: "live heap".into(), unit: Unit::Bytes },
        right: Some(Axis { label: "resident".into(), unit: Unit::Bytes }),
        curves: vec![
            curve("live heap", false, &heap, 0),
            curve("RSS", true, &rss, 1),
            Curve { stroke: Stroke::Dashed, ..curve("trend", false, &[heap[12], heap[23]], 0) },
        ],
        bands: vec![
            band(0.0, 3000.0, "burst", Some(0)),
            band(3000.0, 15_000.0, "warm-up", Some(1)),
            band(60_000.0, 115_000.0, "judged", Some(0)),
        ],
    }
}

/// Returns the text of all elements with this name.
fn texts(svg: &str) -> Vec<String> {
    let mut reader = quick_xml::Reader::from_str(svg);
    let mut texts = Vec::new();
    loop {
        match reader.read_event() {
            Ok(quick_xml::events::Event::Eof) => return texts,
            Ok(quick_xml::events::Event::Text(text)) => {
                texts.push(String::from_utf8_lossy(&text).trim().to_owned());
            }
            Ok(_) => {}
            Err(error) => panic!("{error}: {svg}"),
        }
    }
}

#[test]
fn names_scales_and_stretches_are_written() {
    let svg = plot().svg();
    let texts = texts(&svg);
    for text in [
        "requests",
        "live heap",
        "resident",
        "RSS",
        "trend",
        "burst",
        "warm-up",
        "judged",
        "20 k",
        "16.0 MiB",
    ] {
        assert!(texts.iter().any(|written| written == text), "{text} in {texts:?}");
    }
    assert!(svg.contains("LEAKING: ./server &lt;&amp;&gt; &quot;x&quot;"), "{svg}");
    // 24 points are marked, those of a trend are not.
    assert_eq!(svg.matches("<circle").count(), 48);
    assert_eq!(svg.matches("<polyline").count(), 3);
}

#[test]
fn everything_is_inside() {
    let svg = plot().svg();
    for part in svg.split("points=\"").skip(1) {
        for point in part.split('"').next().unwrap_or_default().split_whitespace() {
            let (x, y) = point.split_once(',').unwrap_or_default();
            let (x, y): (f64, f64) = (x.parse().unwrap_or(-1.0), y.parse().unwrap_or(-1.0));
            assert!((LEFT..=RIGHT).contains(&x) && (TOP..=BOTTOM).contains(&y), "{point}");
        }
    }
}

#[test]
fn nothing_and_nonsense_can_be_drawn() {
    texts(&Plot::default().svg());
    let mut odd = plot();
    odd.right = None;
    odd.curves[1].points = vec![(f64::NAN, 1.0), (1.0, f64::INFINITY)];
    odd.curves[0].points.truncate(1);
    odd.bands[0].to = f64::NAN;
    let svg = odd.svg();
    texts(&svg);
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
}
