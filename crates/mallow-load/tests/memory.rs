//! The generator's memory does not grow with the number of requests. This test is alone in its process, because it measures memory.

mod server;

use mallow_load::{Amount, Endpoint, Generator, Load, Order, Protocol, Target};
use server::{Reply, Server};
use std::time::Duration;

/// Ten times this number is sent after it.
const REQUESTS: u64 = 4_000;
/// How much memory may grow meanwhile: latencies alone, kept one by one, would be 320 kB.
const GROWTH_MAX_BYTES: u64 = 160 << 10;

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[test]
fn memory_is_bounded() {
    let server = Server::start(|_| Reply::Answer(200, "hello"));
    let load = Load {
        flow: None,
        endpoint: Endpoint::plain(server.address, "test.example"),
        targets: vec![Target::get("/")],
        order: Order::Sequential,
        protocol: Some(Protocol::Http1),
        connections: 8,
        keep_alive: true,
        rate: None,
        timeout: Duration::from_secs(10),
        threads: Some(2),
    };
    let mut generator = Generator::start(load).unwrap();
    for _ in 0..3 {
        assert_eq!(generator.run(Amount::Requests(REQUESTS), None).succeeded, REQUESTS);
    }
    // What is kept per request grows in each round; what the process allocates once, such as a thread's first arena, grows in one of them.
    let round = |_| {
        let before = resident_bytes();
        assert_eq!(generator.run(Amount::Requests(10 * REQUESTS), None).succeeded, 10 * REQUESTS);
        resident_bytes().saturating_sub(before)
    };
    let growth = (0..3).map(round).find(|growth| *growth <= GROWTH_MAX_BYTES);
    assert!(
        growth.is_some(),
        "more than {GROWTH_MAX_BYTES} bytes in each of three rounds of {} requests",
        10 * REQUESTS
    );
}
