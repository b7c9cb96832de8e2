//! The generator as a program of its own, for benchmarks: `load ADDRESS CONNECTIONS SECONDS|REQUESTSn [h2] [threads=N] [rate=R]`.

use mallow_load::{Amount, Endpoint, Generator, Load, Order, Protocol, Target};
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, connections, amount, options @ ..] = words.as_slice() else {
        eprintln!("load ADDRESS CONNECTIONS SECONDS|REQUESTSn [h2] [close] [threads=N] [rate=R]");
        return ExitCode::from(2);
    };
    let option = |name: &str| options.iter().find_map(|word| word.strip_prefix(name));
    let load = Load {
        flow: None,
        endpoint: Endpoint::plain(address.parse().expect("an address"), "localhost"),
        targets: vec![Target::get("/")],
        order: Order::Sequential,
        protocol: option("h2").map(|_| Protocol::Http2),
        connections: connections.parse().expect("a number of connections"),
        keep_alive: option("close").is_none(),
        rate: option("rate=").map(|rate| rate.parse().expect("a rate")),
        timeout: Duration::from_secs(10),
        threads: option("threads=").map(|count| count.parse().expect("a number of threads")),
    };
    let amount = match amount.strip_suffix('n') {
        Some(count) => Amount::Requests(count.parse().expect("a number of requests")),
        None => Amount::Duration(Duration::from_secs_f64(amount.parse().expect("seconds"))),
    };
    let mut generator = Generator::start(load).expect("a generator");
    let metrics = generator.run(amount, None);
    println!("Requests/sec: {:.1}", metrics.rate());
    println!("requests {}", metrics.requests);
    println!("failed {}", metrics.failed());
    println!("resident_bytes_max {}", resident_bytes_max());
    println!("{metrics:#?}");
    ExitCode::SUCCESS
}

/// Returns the high-water mark of this process's memory.
fn resident_bytes_max() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).map_or(0, |kib| kib << 10)
}
