//! The generator against servers that count requests.

use crate::server::{Reply, Server};
use mallow_load::{Amount, Endpoint, Generator, Load, LoadError, Order, Protocol, Target};
use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

fn load(address: SocketAddr, connections: u32) -> Load {
    Load {
        flow: None,
        endpoint: Endpoint::plain(address, "test.example"),
        targets: vec![Target::get("/hello?a=1")],
        order: Order::Sequential,
        protocol: Some(Protocol::Http1),
        connections,
        keep_alive: true,
        rate: None,
        timeout: Duration::from_secs(10),
        threads: Some(2),
    }
}

fn handshake() -> Server {
    Server::start(|_| Reply::Answer(200, "hello"))
}

fn failures(causes: &[(&str, u64)]) -> BTreeMap<String, u64> {
    causes.iter().map(|(cause, count)| ((*cause).to_owned(), *count)).collect()
}

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

#[test]
fn exactly_so_many_requests_are_sent_over_so_many_connections() {
    let server = handshake();
    let mut generator = Generator::start(load(server.address, 7)).unwrap();
    let metrics = generator.run(Amount::Requests(1000), None);
    assert_eq!((metrics.requests, metrics.succeeded, metrics.failed()), (1000, 1000, 0));
    assert_eq!(metrics.statuses, BTreeMap::from([(200, 1000)]));
    assert_eq!((metrics.body_bytes, metrics.latency.count, metrics.corrected), (5000, 1000, None));
    assert_eq!((server.requests(), server.connections()), (1000, 7));
    let latency = metrics.latency;
    assert!(latency.p50_us <= latency.p90_us && latency.p90_us <= latency.p99_us, "{latency:?}");
    assert!(latency.p99_us <= latency.p999_us && latency.p999_us <= latency.worst_us, "{latency:?}");
    assert!(metrics.elapsed.as_micros() as u64 >= latency.worst_us);
    assert!(metrics.generator_cpu > Duration::ZERO);
    assert!(metrics.generator_busy > 0.0 && metrics.generator_busy <= 1.0, "{}", metrics.generator_busy);
}

/// The kernel delays an acknowledgement by at least 40 ms. If half of the responses came sooner, none waited for one.
#[test]
fn an_answer_in_two_pieces_waits_for_no_delayed_acknowledgement() {
    let server = Server::start(|_| Reply::TwoPieces);
    let metrics = Generator::start(load(server.address, 2)).unwrap().run(Amount::Requests(100), None);
    assert_eq!((metrics.succeeded, metrics.body_bytes, server.connections()), (100, 300, 2));
    assert!(metrics.latency.p50_us < 40_000, "{:?}", metrics.latency);
}

#[test]
fn connections_stay_open_between_runs_until_they_are_closed() {
    let server = handshake();
    let mut generator = Generator::start(load(server.address, 4)).unwrap();
    generator.run(Amount::Requests(200), None);
    generator.run(Amount::Requests(200), None);
    assert_eq!((server.connections(), server.settles_at(4)), (4, 4));
    generator.close();
    assert_eq!(server.settles_at(0), 0);
    assert_eq!(generator.run(Amount::Requests(200), None).succeeded, 200);
    assert_eq!((server.requests(), server.connections()), (600, 8));
    drop(generator);
    assert_eq!(server.settles_at(0), 0);
}

#[test]
fn a_run_can_have_a_number_of_connections_of_its_own() {
    let server = Server::start(|_| Reply::Late(ms(5)));
    let mut generator = Generator::start(load(server.address, 2)).unwrap();
    generator.run(Amount::Requests(60), Some(6));
    assert_eq!((server.connections(), server.settles_at(6)), (6, 6));
    generator.run(Amount::Requests(20), None);
    assert_eq!((server.connections(), server.settles_at(2)), (6, 2));
}

#[test]
fn without_keeping_each_request_has_a_connection() {
    let server = handshake();
    let mut generator = Generator::start(Load { keep_alive: false, ..load(server.address, 3) }).unwrap();
    assert_eq!(generator.run(Amount::Requests(50), None).succeeded, 50);
    assert_eq!((server.requests(), server.connections()), (50, 50));
    assert_eq!(server.seen()[49].headers["connection"], "close");
    assert_eq!(server.settles_at(0), 0);
}

#[test]
fn methods_headers_and_bodies_arrive_as_declared() {
    let server = handshake();
    let mut post = Target::get("/post");
    post.method = "POST".parse().unwrap();
    post.body = "a body".into();
    post.headers.insert("x-id", "7".parse().unwrap());
    let mut head = Target::get("/head");
    head.method = "HEAD".parse().unwrap();
    head.headers.insert("host", "another".parse().unwrap());
    let targets = vec![post, head, Target::get("/")];
    let mut generator = Generator::start(Load { targets, ..load(server.address, 1) }).unwrap();
    let metrics = generator.run(Amount::Requests(3), None);
    assert_eq!((metrics.succeeded, metrics.body_bytes), (3, 10));
    let told: Vec<String> = server
        .seen()
        .iter()
        .map(|seen| format!("{} {:?} {}", seen.line, seen.headers, String::from_utf8_lossy(&seen.body)))
        .collect();
    let expected = [
        "POST /post {\"content-length\": \"6\", \"host\": \"test.example\", \"x-id\": \"7\"} a body",
        "HEAD /head {\"host\": \"another\"} ",
        "GET / {\"host\": \"test.example\"} ",
    ];
    assert_eq!(told, expected);
}

#[test]
fn targets_are_asked_for_by_weight() {
    let server = handshake();
    let heavy = Target { weight: 3, ..Target::get("/heavy") };
    let targets = vec![heavy, Target::get("/light")];
    let mut generator = Generator::start(Load { targets, ..load(server.address, 1) }).unwrap();
    generator.run(Amount::Requests(40), None);
    let heavy = server.seen().iter().filter(|seen| seen.line == "GET /heavy").count();
    assert_eq!((server.requests(), heavy), (40, 30));
}

#[test]
fn a_list_can_be_asked_for_once() {
    let server = handshake();
    let targets: Vec<Target> = (0..25).map(|number| Target::get(&format!("/{number}"))).collect();
    let load = Load { targets, order: Order::Once, ..load(server.address, 4) };
    let mut generator = Generator::start(load).unwrap();
    for _ in 0..2 {
        assert_eq!(generator.run(Amount::Duration(Duration::from_secs(60)), None).succeeded, 25);
    }
    let mut lines: Vec<String> = server.seen().into_iter().map(|seen| seen.line).collect();
    lines.sort();
    let mut expected: Vec<String> = (0..50).map(|number| format!("GET /{}", number / 2)).collect();
    expected.sort();
    assert_eq!(lines, expected);
}

#[test]
fn answers_of_an_error_are_answers_that_failed() {
    let server = Server::start(|seen| match seen.number % 4 {
        0 => Reply::Answer(500, "oh"),
        1 => Reply::Answer(404, ""),
        2 => Reply::Answer(304, ""),
        _ => Reply::Answer(200, "fine"),
    });
    let metrics = Generator::start(load(server.address, 1)).unwrap().run(Amount::Requests(40), None);
    assert_eq!(metrics.statuses, BTreeMap::from([(200, 10), (304, 10), (404, 10), (500, 10)]));
    assert_eq!((metrics.succeeded, metrics.failed(), metrics.failures.len()), (20, 20, 0));
    assert_eq!(server.connections(), 1);
}

#[test]
fn who_does_not_answer_in_time_is_given_up() {
    let server = Server::start(|seen| match seen.number {
        0 | 2 => Reply::Late(ms(3000)),
        _ => Reply::Answer(200, "x"),
    });
    let load = Load { timeout: ms(150), ..load(server.address, 1) };
    let metrics = Generator::start(load).unwrap().run(Amount::Requests(4), None);
    assert_eq!((metrics.requests, metrics.succeeded), (4, 2));
    assert_eq!(metrics.failures, failures(&[("timeout", 2)]));
    assert!(metrics.latency.worst_us >= 150_000 && metrics.elapsed < ms(3000), "{metrics:?}");
    // The late response to one request must not be read as that to the next.
    assert_eq!(server.connections(), 3);
}

#[test]
fn a_server_that_closes_after_each_answer_is_connected_to_again() {
    for announced in [true, false] {
        let server = Server::start(move |_| Reply::Last { announced });
        let metrics = Generator::start(load(server.address, 2)).unwrap().run(Amount::Requests(40), None);
        assert_eq!((metrics.succeeded, metrics.failures), (40, failures(&[])), "announced: {announced}");
        assert_eq!(server.requests(), 40);
    }
}

#[test]
fn a_connection_that_was_closed_between_runs_is_replaced() {
    let server = Server::start(|seen| {
        if seen.number == 0 { Reply::Last { announced: false } } else { Reply::Answer(200, "") }
    });
    let mut post = Target::get("/");
    post.method = "POST".parse().unwrap();
    let mut generator = Generator::start(Load { targets: vec![post], ..load(server.address, 1) }).unwrap();
    assert_eq!(generator.run(Amount::Requests(1), None).succeeded, 1);
    assert_eq!(server.settles_at(0), 0);
    assert_eq!(generator.run(Amount::Requests(1), None).succeeded, 1);
    assert_eq!((server.requests(), server.connections()), (2, 2));
}

#[test]
fn causes_are_told_apart() {
    let cause = |reply: Reply| {
        let server = Server::start(move |_| reply.clone());
        let metrics = Generator::start(load(server.address, 1)).unwrap().run(Amount::Requests(3), None);
        assert_eq!((metrics.requests, metrics.succeeded, server.requests()), (3, 0, 3));
        metrics.failures
    };
    assert_eq!(cause(Reply::Raw("")), failures(&[("closed early", 3)]));
    assert_eq!(
        cause(Reply::Raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")),
        failures(&[("closed early", 3)])
    );
    assert_eq!(cause(Reply::Raw("HTTP/1.1 200 OK\r\nConte")), failures(&[("closed early", 3)]));
    assert_eq!(cause(Reply::Raw("good morning\r\n\r\n")), failures(&[("bad answer", 3)]));
    assert_eq!(cause(Reply::Reset), failures(&[("connection reset", 3)]));
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let metrics = Generator::start(load(nobody, 2)).unwrap().run(Amount::Requests(6), None);
    assert_eq!((metrics.requests, metrics.failures), (6, failures(&[("connection refused", 6)])));
}

#[test]
fn no_request_begins_after_the_end_and_those_under_way_are_waited_for() {
    let server = Server::start(|_| Reply::Late(ms(120)));
    let mut generator = Generator::start(load(server.address, 3)).unwrap();
    let metrics = generator.run(Amount::Duration(ms(300)), None);
    // They start after 0, at least 120 and at least 240 ms, so the last of them end after at least 360 ms.
    assert_eq!((metrics.requests, server.requests()), (metrics.succeeded, metrics.requests as usize));
    assert!(metrics.requests <= 9, "{}", metrics.requests);
    assert!(metrics.elapsed >= ms(240), "{:?}", metrics.elapsed);
}

#[test]
fn a_rate_is_kept_on_a_schedule() {
    let server = handshake();
    let load = Load { rate: Some(400.0), ..load(server.address, 5) };
    let metrics = Generator::start(load).unwrap().run(Amount::Requests(201), None);
    assert_eq!((metrics.succeeded, server.requests()), (201, 201));
    // The last one is due 200 steps of 2.5 ms after the first, which may be late.
    assert!(metrics.elapsed >= ms(450), "{:?}", metrics.elapsed);
    assert_eq!(metrics.corrected.unwrap().count, 201);
}

#[test]
fn a_stall_holds_up_all_that_was_due_meanwhile() {
    let server =
        Server::start(|seen| if seen.number == 50 { Reply::Late(ms(100)) } else { Reply::Answer(200, "") });
    let load = Load { rate: Some(1000.0), ..load(server.address, 1) };
    let metrics = Generator::start(load).unwrap().run(Amount::Requests(300), None);
    assert_eq!(metrics.succeeded, 300);
    let (raw, corrected) = (metrics.latency, metrics.corrected.unwrap());
    // A request that was due k ms after the stalled one has waited for at least 100 - k ms. So the third worst of
    // 300, the 99th percentile, has waited for 98 ms, or, as the timer has whole milliseconds, 97. Only one request
    // was slow by itself.
    assert!(corrected.p99_us >= 96_000, "{corrected:?}");
    assert!(corrected.p90_us >= 69_000, "{corrected:?}");
    assert!(raw.worst_us >= 100_000 && raw.p99_us < corrected.p99_us, "{raw:?} {corrected:?}");
    assert!(raw.p90_us < corrected.p90_us, "{raw:?} {corrected:?}");
}

#[test]
fn a_run_that_is_stopped_waits_a_second_and_no_longer() {
    let server = Server::start(|request| {
        // The first twenty come at once, the others after the timeout.
        if request.number < 20 { Reply::Answer(200, "") } else { Reply::Late(Duration::from_secs(20)) }
    });
    let mut generator = Generator::start(load(server.address, 4)).unwrap();
    let stopper = generator.stopper();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(500));
        stopper.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let begun = std::time::Instant::now();
    let metrics = generator.run(Amount::Requests(1000), None);
    let took = begun.elapsed();
    assert!((Duration::from_millis(1500)..Duration::from_secs(5)).contains(&took), "{took:?}");
    assert_eq!((metrics.requests, metrics.succeeded), (20, 20));
}

#[test]
fn nonsense_is_refused() {
    let address: SocketAddr = "127.0.0.1:9".parse().unwrap();
    let fault = |load: Load| match Generator::start(load) {
        Ok(_) => panic!("it was taken"),
        Err(error @ (LoadError::BadLoad { .. } | LoadError::BadUrl { .. })) => error.to_string(),
        Err(other) => panic!("{other:?}"),
    };
    let load = || load(address, 1);
    assert_eq!(
        fault(Load { targets: vec![], ..load() }),
        "this load cannot be made: there is nothing to ask for"
    );
    assert_eq!(
        fault(Load { connections: 0, ..load() }),
        "this load cannot be made: it needs at least one connection"
    );
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(
            fault(Load { rate: Some(rate), ..load() }),
            "this load cannot be made: a rate is a number of requests a second above 0"
        );
    }
    let targets = vec![Target::get("hello")];
    assert_eq!(fault(Load { targets, ..load() }), "'hello' cannot be loaded: a path begins with a slash");
    assert_eq!(
        fault(Load { endpoint: Endpoint { host: "a\nb".to_owned(), ..load().endpoint }, ..load() }),
        "this load cannot be made: 'a\nb' is no host"
    );
}
