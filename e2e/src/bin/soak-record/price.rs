//! What the recorder costs a server: two of the same server run side by side, one of them recorded, and wrk asks them in turn, a
//! second each.
//!
//! A machine's speed drifts by tenths within a minute, so that soaks one after the other differ by more than what is sought;
//! neighbouring seconds do not. wrk, server and the recorder's collector share the processors.

use e2e::run;
use e2e::soak::{Mode, free_port};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Requests a second of neighbouring seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    with: f64,
    without: f64,
}

impl Pair {
    fn ratio(self) -> f64 {
        self.with / self.without
    }
}

/// The servers that are priced: a plain one on hyper, and one with eight small blocks more a request.
pub(crate) fn is_priced(mode: &Mode) -> bool {
    [("hello", "hello"), ("rust", "clean")].contains(&(mode.server.as_str(), mode.name.as_str()))
}

/// Asks both servers in turn, the other one first in every second pair.
pub(crate) fn pairs(mode: &Mode, count: usize) -> Vec<Pair> {
    if count == 0 {
        return Vec::new();
    }
    let (recorded, plain) = (free_port(), free_port());
    // The soak's only work is to wait: wrk asks beside it.
    let seconds = count * 2 + count / 2 + 10;
    let mut soak = run::mallow();
    soak.args(["soak", "--idle", "0s", "--warm-up", "0", "--iterations", "1", "--no-extend"]);
    soak.args(["--ready", &format!("port:{recorded}"), "--exec", &format!("sleep {seconds}"), "--"]);
    let mut soak = started(soak.args(&mode.command), recorded);
    let mut server = started(run::command(&mode.command[0]).args(&mode.command[1..]), plain);
    let ask = |port: u16| rate(&format!("http://127.0.0.1:{port}{}", mode.path));
    // Both are warm then.
    let _ = [recorded, plain].map(ask);
    let pair = |number: usize| match number.is_multiple_of(2) {
        true => Pair { with: ask(recorded), without: ask(plain) },
        false => {
            let without = ask(plain);
            Pair { with: ask(recorded), without }
        }
    };
    let pairs: Vec<Pair> = (0..count).map(pair).collect();
    server.kill().expect("our own child can be killed");
    server.wait().expect("our own child can be waited for");
    soak.wait().expect("our own child can be waited for");
    print!("{}", in_words(mode, &pairs));
    pairs
}

/// Starts a command that makes somebody listen at a port, and waits for that.
fn started(command: &mut Command, port: u16) -> Child {
    command.env("PORT", port.to_string()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().expect("the command can be started");
    let began = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(began.elapsed() < Duration::from_secs(30), "no server listens at port {port}");
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

/// What wrk reaches in a second.
fn rate(url: &str) -> f64 {
    let finished = run::finish(run::command("wrk").args(["-t1", "-c50", "-d1s", url])).well();
    let rate = finished.stdout.lines().find_map(|line| line.strip_prefix("Requests/sec:"));
    rate.and_then(|rate| rate.trim().parse().ok()).expect("wrk prints its rate")
}

/// A line of the record.
pub(crate) fn in_words(mode: &Mode, pairs: &[Pair]) -> String {
    let of = |metric: &dyn Fn(&Pair) -> f64| super::spread(pairs.iter().map(metric)).1;
    let mut ratios: Vec<f64> = pairs.iter().map(|pair| pair.ratio()).collect();
    ratios.sort_by(f64::total_cmp);
    let quarter =
        |which: usize| ratios.get((ratios.len().saturating_sub(1)) * which / 4).copied().unwrap_or_default();
    format!(
        "- `{}/{}`: {:.0} requests/s with, {:.0} without; of a pair **{:.3}** (median of {}; a quarter is below {:.3}, a quarter above \
         {:.3})\n",
        mode.server,
        mode.name,
        of(&|pair| pair.with),
        of(&|pair| pair.without),
        of(&|pair| pair.ratio()),
        pairs.len(),
        quarter(1),
        quarter(3),
    )
}
