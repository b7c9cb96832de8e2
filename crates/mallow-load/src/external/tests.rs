//! Compares the parsed output of every tool with what a person reads in it.

use super::*;

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../../../../fixtures/load/", $name))
    };
}

fn outside(tool: &'static str, counts: (u64, u64), seconds: f64, rate: f64) -> External {
    let (requests, failed) = counts;
    External {
        tool,
        requests: Some(requests),
        failed,
        seconds: Some(seconds),
        rate: Some(rate),
        latency: None,
    }
}

fn latency(known: [u64; 3], worst: u64) -> Option<ExternalLatency> {
    let [p50, p90, p99] = known.map(Some);
    Some(ExternalLatency { p50_us: p50, p90_us: p90, p99_us: p99, p999_us: None, worst_us: Some(worst) })
}

fn worst(us: u64) -> Option<ExternalLatency> {
    Some(ExternalLatency { worst_us: Some(us), ..ExternalLatency::default() })
}

#[test]
fn hey_is_read() {
    let expected = External {
        latency: latency([1900, 7300, 18_100], 23_300),
        ..outside("hey", (2000, 0), 0.3311, 6040.8022)
    };
    assert_eq!(read(fixture!("hey.txt")), Some(expected));
    let expected = External {
        latency: latency([1200, 3300, 10_000], 10_100),
        ..outside("hey", (200, 200), 0.0383, 5228.2122)
    };
    assert_eq!(read(fixture!("hey-404.txt")), Some(expected));
    assert_eq!(read(fixture!("hey-refused.txt")), Some(outside("hey", (20, 20), 0.002, 10_230.116_2)));
}

#[test]
fn wrk_is_read() {
    let expected = External {
        latency: latency([507, 2080, 6620], 14_760),
        ..outside("wrk", (32_118, 0), 1.01, 31_911.06)
    };
    assert_eq!(read(fixture!("wrk.txt")), Some(expected.clone()));
    let errors = External { requests: Some(32_125), failed: 12, ..expected };
    assert_eq!(read(fixture!("wrk-errors.txt")), Some(errors));
    let expected = External { latency: worst(12_030), ..outside("wrk", (31_039, 31_039), 1.1, 28_166.52) };
    assert_eq!(read(fixture!("wrk-404.txt")), Some(expected));
    assert_eq!(read(fixture!("wrk-refused.txt")), None);
}

#[test]
fn siege_is_read() {
    let expected = External { latency: worst(10_000), ..outside("siege", (200, 0), 0.08, 2500.0) };
    assert_eq!(read(fixture!("siege.txt")), Some(expected));
    let expected = External { latency: worst(20_000), ..outside("siege", (200, 0), 0.08, 2500.0) };
    assert_eq!(read(fixture!("siege-json.txt")), Some(expected));
    let expected = External { latency: worst(10_000), ..outside("siege", (200, 200), 0.06, 3333.33) };
    assert_eq!(read(fixture!("siege-404.txt")), Some(expected));
    assert_eq!(read(fixture!("siege-refused.txt")), Some(outside("siege", (8, 8), 0.0, 0.0)));
}

#[test]
fn ab_is_read() {
    let expected =
        External { latency: latency([1000, 2000, 7000], 8000), ..outside("ab", (500, 0), 0.065, 7698.47) };
    assert_eq!(read(fixture!("ab.txt")), Some(expected));
    let expected =
        External { latency: latency([0, 1000, 1000], 1000), ..outside("ab", (50, 50), 0.004, 14_120.3) };
    assert_eq!(read(fixture!("ab-404.txt")), Some(expected));
    assert_eq!(read(fixture!("ab-refused.txt")), None);
}

#[test]
fn an_answer_of_another_length_is_no_failure() {
    let text = "Complete requests:      100\nFailed requests:        12\n   \
                (Connect: 1, Receive: 1, Length: 10, Exceptions: 0)\n";
    let ab = read(text).unwrap();
    assert_eq!((ab.requests, ab.failed, ab.succeeded(), ab.seconds), (Some(100), 2, Some(98), None));
}

#[test]
fn vegeta_is_read() {
    let expected = External {
        latency: latency([981, 2100, 12_250], 1_002_000),
        ..outside("vegeta", (150, 3), 2.981, 50.34)
    };
    assert_eq!(read(fixture!("vegeta.txt")), Some(expected.clone()));
    let json = External { seconds: Some(2.981_023), ..expected };
    assert_eq!(read(fixture!("vegeta.json")), Some(json));
}

#[test]
fn oha_is_read() {
    let expected = External {
        latency: Some(ExternalLatency {
            p50_us: Some(1100),
            p90_us: Some(2100),
            p99_us: Some(12_500),
            p999_us: Some(50_000),
            worst_us: Some(52_100),
        }),
        ..outside("oha", (200, 5), 3.0012, 66.97)
    };
    assert_eq!(read(fixture!("oha.json")), Some(expected));
}

#[test]
fn other_words_are_nothing() {
    for text in [
        "",
        "hello\n",
        "{\n",
        "{}\n{\"requests\":1}\n",
        "Summary:\n",
        "x requests in 1s\n",
        "Transactions: \n",
    ] {
        assert_eq!(read(text), None, "{text}");
    }
}

proptest::proptest! {
    #[test]
    fn no_output_makes_it_panic(text in "(Summary:\n|Total:|\\[|\\]|[0-9.]{1,30}|Transactions:|\\{|\\}|\n| |requests in |%|Latency|µs){0,60}") {
        let _ = read(&text);
    }
}
