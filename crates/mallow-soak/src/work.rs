//! The work of one iteration: mallow's own load, a command, or another load generator.

use crate::error::SoakError;
use crate::options::{Ready, SoakOptions, Work};
use crate::shell;
use mallow_collect::CommandLines;
use mallow_evidence::{LatencyMetrics, LoadMetrics};
use mallow_load::{Amount, Generator, Latency, Load, Metrics, Protocol, check_endpoint, external};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What does the work.
#[derive(Debug)]
pub(crate) enum Worker {
    Http { generator: Box<Generator>, connections: u32, accepted: Vec<RangeInclusive<u16>> },
    Command(String),
    External { template: String, url: String, workers: u32 },
}

/// The minimum number of requests in an iteration.
const REQUESTS_MIN: u64 = 1000;
/// The duration of an iteration if none was given.
const NATURAL: Duration = Duration::from_secs(1);

impl Worker {
    /// Creates one. No work is done yet, but with TLS the server's certificate is verified.
    pub(crate) fn new(options: &SoakOptions) -> Result<Worker, SoakError> {
        Ok(match &options.work {
            Work::Http(load) => Worker::Http {
                generator: Box::new(Generator::start((**load).clone())?),
                connections: load.connections,
                accepted: options.accepted.clone(),
            },
            Work::Command(command) => Worker::Command(command.clone()),
            Work::External { template, url, workers } => {
                Worker::External { template: template.clone(), url: url.clone(), workers: *workers }
            }
        })
    }

    /// Runs one iteration. Without an amount it takes about a second. With `burst` the concurrency is higher than usual.
    pub(crate) fn run(
        &mut self,
        amount: Option<Amount>,
        burst: bool,
        is_over: &(dyn Fn() -> bool + Sync),
    ) -> LoadMetrics {
        match self {
            Worker::Http { generator, connections, accepted } => {
                let amount = amount.unwrap_or(Amount::Duration(NATURAL));
                let more = burst.then_some(*connections + connections.div_ceil(2));
                of_generator(&run_unless(generator, amount, more, is_over), accepted)
            }
            Worker::Command(command) => of_command(command, amount, is_over),
            Worker::External { template, url, workers } => {
                of_external(template, url, *workers, amount, is_over)
            }
        }
    }

    /// Describes the work: `http://127.0.0.1:3030/handshake (50 connections, HTTP/1.1, closed loop)`.
    pub(crate) fn in_words(&self, options: &SoakOptions) -> String {
        match (&options.work, self) {
            (Work::Http(load), Worker::Http { generator, .. }) => load_in_words(load, generator.protocol()),
            (Work::Command(_) | Work::External { .. }, _)
                if options.command_lines == CommandLines::ProgramsAlone =>
            {
                "a command of the shell".to_owned()
            }
            (Work::Command(command), _) => format!("`{command}`"),
            (Work::External { template, .. }, _) => format!("`{template}`"),
            (Work::Http(load), _) => load.endpoint.to_string(),
        }
    }

    /// Closes open connections.
    pub(crate) fn close(&mut self) {
        if let Worker::Http { generator, .. } = self {
            generator.close();
        }
    }
}

/// Sends load until it is done, or its time is up.
fn run_unless(
    generator: &mut Generator,
    amount: Amount,
    connections: Option<u32>,
    is_over: &(dyn Fn() -> bool + Sync),
) -> Metrics {
    const LOOK: Duration = Duration::from_millis(20);
    let (stopper, is_done) = (generator.stopper(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                if is_over() {
                    stopper.store(true, Ordering::Relaxed);
                }
                std::thread::park_timeout(LOOK);
            }
        });
        let metrics = generator.run(amount, connections);
        is_done.store(true, Ordering::Relaxed);
        watcher.thread().unpark();
        metrics
    })
}

/// Returns the length of further iterations, according to one of the default duration: all get the same number of
/// requests, so that a slow one changes nothing. A given rate is kept, however few requests that yields.
pub(crate) fn natural_amount(work: &Work, seen: &LoadMetrics) -> Option<Amount> {
    match work {
        Work::Http(load) if load.rate.is_some() => Some(Amount::Requests(seen.requests.max(1))),
        Work::Http(_) => Some(Amount::Requests(seen.requests.max(REQUESTS_MIN))),
        Work::Command(_) | Work::External { .. } => None,
    }
}

/// Returns what is wrong with the work, or with the way to detect that the server is ready, before anything is started.
pub(crate) fn check(options: &SoakOptions) -> Result<(), SoakError> {
    if let Some(load) = options.load() {
        Generator::check(load)?;
    }
    if let Ready::Answers(endpoint, _) = &options.ready {
        check_endpoint(endpoint)?;
    }
    Ok(())
}

fn load_in_words(load: &Load, protocol: Protocol) -> String {
    let path = load.targets.first().map_or("/", |target| target.path.as_str());
    let more = match (&load.flow, load.targets.len()) {
        (Some(flow), _) => {
            format!(" in a flow of {}: {}", flow.names().count(), flow.names().collect::<Vec<_>>().join(", "))
        }
        (None, 0 | 1) => String::new(),
        (None, count) => format!(" and {} more", count - 1),
    };
    let protocol = match protocol {
        Protocol::Http1 => "HTTP/1.1",
        Protocol::Http2 => "HTTP/2",
    };
    let pace = load.rate.map_or("closed loop".to_owned(), |rate| format!("{rate} requests a second"));
    let kept = if load.keep_alive { "" } else { ", no keep-alive" };
    let connections = load.connections;
    format!("{}{path}{more} ({connections} connections, {protocol}, {pace}{kept})", load.endpoint)
}

fn of_generator(metrics: &Metrics, accepted: &[RangeInclusive<u16>]) -> LoadMetrics {
    let high = metrics.statuses.iter().filter(|(status, _)| **status >= 400);
    let (taken, refused): (Vec<_>, Vec<_>) =
        high.partition(|(status, _)| accepted.iter().any(|range| range.contains(status)));
    let accepted = taken.into_iter().map(|(_, count)| count).sum();
    let mut failures: BTreeMap<String, u64> =
        refused.into_iter().map(|(status, count)| (format!("status {status}"), *count)).collect();
    failures.extend(metrics.failures.iter().map(|(cause, count)| (cause.clone(), *count)));
    LoadMetrics {
        requests: metrics.requests,
        succeeded: metrics.succeeded + accepted,
        accepted,
        failures,
        seconds: metrics.elapsed.as_secs_f64(),
        rate: metrics.rate(),
        latency: Some(measured(metrics.latency)),
        corrected: metrics.corrected.map(measured),
        generator_busy: Some(metrics.generator_busy),
        uncounted: false,
    }
}

fn measured(latency: Latency) -> LatencyMetrics {
    LatencyMetrics {
        p50_us: latency.p50_us,
        p90_us: latency.p90_us,
        p99_us: latency.p99_us,
        p999_us: Some(latency.p999_us),
        worst_us: Some(latency.worst_us),
    }
}

/// Converts the latencies of another load generator; `None` if it lacks one of the usual three.
fn of_other(latency: external::ExternalLatency) -> Option<LatencyMetrics> {
    Some(LatencyMetrics {
        p50_us: latency.p50_us?,
        p90_us: latency.p90_us?,
        p99_us: latency.p99_us?,
        p999_us: latency.p999_us,
        worst_us: latency.worst_us,
    })
}

/// Runs a command for each request: as many as the amount says, or one.
fn of_command(command: &str, amount: Option<Amount>, is_over: &(dyn Fn() -> bool + Sync)) -> LoadMetrics {
    let begun = Instant::now();
    let goes_on = |done: u64| match amount {
        Some(Amount::Requests(wanted)) => done < wanted,
        Some(Amount::Duration(length)) => done == 0 || begun.elapsed() < length,
        None => done == 0,
    };
    let mut metrics = LoadMetrics::default();
    while goes_on(metrics.requests) && !is_over() {
        match shell::run(command, is_over) {
            Ok(Some((status, _))) if status.success() => metrics.succeeded += 1,
            Ok(Some((status, _))) => *metrics.failures.entry(status.to_string()).or_default() += 1,
            // It was aborted, and is not repeated.
            Ok(None) => break,
            Err(error) => *metrics.failures.entry(error.to_string()).or_default() += 1,
        }
        metrics.requests += 1;
    }
    timed(metrics, begun)
}

fn timed(mut metrics: LoadMetrics, begun: Instant) -> LoadMetrics {
    metrics.seconds = begun.elapsed().as_secs_f64();
    metrics.rate = metrics.requests as f64 / metrics.seconds.max(1e-9);
    metrics
}

fn of_external(
    template: &str,
    url: &str,
    workers: u32,
    amount: Option<Amount>,
    is_over: &(dyn Fn() -> bool + Sync),
) -> LoadMetrics {
    let command = filled(template, url, workers, amount);
    let begun = Instant::now();
    let mut metrics = LoadMetrics::default();
    let (status, printed) = match shell::run(&command, is_over) {
        Ok(Some(ended)) => ended,
        // The number of requests until then is not known.
        Ok(None) => return metrics,
        Err(error) => {
            metrics.requests = 1;
            metrics.failures.insert(error.to_string(), 1);
            return timed(metrics, begun);
        }
    };
    let mut metrics = timed(metrics, begun);
    if !status.success() {
        metrics.failures.insert(format!("the load generator: {status}"), 1);
        metrics.requests = 1;
        return metrics;
    }
    let told = external::read(&String::from_utf8_lossy(&printed)).unwrap_or_default();
    let Some(requests) = told.requests else {
        return LoadMetrics { requests: 1, succeeded: 1, uncounted: true, ..metrics };
    };
    let seconds = told.seconds.unwrap_or(metrics.seconds);
    let failures = (told.failed > 0).then(|| (format!("counted by {}", told.tool), told.failed));
    LoadMetrics {
        requests,
        succeeded: requests.saturating_sub(told.failed),
        failures: failures.into_iter().collect(),
        seconds,
        rate: told.rate.unwrap_or(requests as f64 / seconds.max(1e-9)),
        latency: told.latency.and_then(of_other),
        ..LoadMetrics::default()
    }
}

/// Returns the command line of another load generator. A number of requests that was not given is the minimum of an iteration.
fn filled(template: &str, url: &str, workers: u32, amount: Option<Amount>) -> String {
    let (seconds, requests) = match amount {
        Some(Amount::Duration(length)) => (length.as_secs().max(1), REQUESTS_MIN),
        Some(Amount::Requests(requests)) => (NATURAL.as_secs(), requests),
        None => (NATURAL.as_secs(), REQUESTS_MIN),
    };
    [
        ("{duration}", format!("{seconds}s")),
        ("{seconds}", seconds.to_string()),
        ("{workers}", workers.to_string()),
        ("{requests}", requests.to_string()),
        ("{url}", url.to_owned()),
    ]
    .into_iter()
    .fold(template.to_owned(), |line, (name, value)| line.replace(name, &value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_filled_in() {
        let line =
            |amount| filled("hey -z {duration} -c {workers} -n {requests} {url}", "http://a/", 7, amount);
        assert_eq!(line(None), "hey -z 1s -c 7 -n 1000 http://a/");
        assert_eq!(line(Some(Amount::Requests(30))), "hey -z 1s -c 7 -n 30 http://a/");
        assert_eq!(line(Some(Amount::Duration(Duration::from_secs(3)))), "hey -z 3s -c 7 -n 1000 http://a/");
    }

    #[test]
    fn a_status_that_is_accepted_is_no_failure() {
        let statuses = BTreeMap::from([(200, 5), (404, 3), (410, 1), (503, 1)]);
        let metrics = Metrics { requests: 10, succeeded: 5, statuses, ..Metrics::default() };
        let strict = of_generator(&metrics, &[]);
        assert_eq!((strict.succeeded, strict.accepted, strict.failures.len()), (5, 0, 3));
        let lenient = of_generator(&metrics, &[404..=404, 410..=419]);
        assert_eq!((lenient.succeeded, lenient.accepted), (9, 4));
        assert_eq!(lenient.failures, BTreeMap::from([("status 503".to_owned(), 1)]));
    }

    #[test]
    fn commands_are_counted_and_their_failures_named() {
        let metrics = of_command("exit 3", Some(Amount::Requests(2)), &|| false);
        assert_eq!((metrics.requests, metrics.succeeded), (2, 0));
        assert_eq!(metrics.failures["exit status: 3"], 2);
        assert_eq!(of_command("true", None, &|| false).succeeded, 1);
        let unknown = of_external("echo done", "", 1, None, &|| false);
        assert!(unknown.uncounted && unknown.succeeded == 1);
        let begun = Instant::now();
        let is_over = || begun.elapsed() > Duration::from_millis(200);
        let cut_short = of_command("test -z \"$(sleep 0.01)\"", Some(Amount::Requests(1_000_000)), &is_over);
        assert!((1..50).contains(&cut_short.requests) && cut_short.failures.is_empty(), "{cut_short:?}");
        assert_eq!(of_external("sleep 60", "", 1, None, &is_over), LoadMetrics::default());
    }
}
