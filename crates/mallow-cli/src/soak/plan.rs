//! Interprets the command line of `mallow soak` together with the environment: the second step after [`crate::args`].

use super::env_file;
use super::limit::memory_limit;
use super::script::{self, Script};
use super::targets;
use crate::args::{LowReady, LowSoak};
use crate::preload;
use mallow_growth::Rules;
use mallow_load::{Amount, Load, Url, parse_url};
use mallow_query::{Failure, reason};
use mallow_soak::{Ready, Server, SoakOptions, Work};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What to do.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) options: SoakOptions,
    /// The script's settings, which the warp format prints.
    pub(crate) settings: Script,
    /// Notes for the user.
    pub(crate) notes: Vec<String>,
}

/// Settings from outside of the command line.
struct PlanContext<'a> {
    low: &'a LowSoak,
    /// Variables of the file; those of the environment take precedence.
    file: Vec<(String, String)>,
    script: Script,
    /// Whether the script's variables replace flags that were not given: only if that was asked for.
    is_script: bool,
}

/// Makes a plan of a command line. `variable` reads the environment.
pub(crate) fn plan(low: &LowSoak, variable: &dyn Fn(&str) -> Option<String>) -> Result<Plan, Failure> {
    let is_script = low.load.compat.is_some();
    let file = file(low, is_script)?;
    let of_file = |name: &str| file.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let script = match is_script {
        true => script::of(|name| variable(name).or_else(|| of_file(name)))?,
        false => script::of(|_| None)?,
    };
    let around = PlanContext { low, file, script, is_script };
    let (work, notes) = around.work()?;
    let ready = around.ready(&work)?;
    targets::check_tls(&low.request, &work, &ready)?;
    let url = around.target(&work);
    let options = SoakOptions {
        server: match low.server.pid {
            Some(pid) => Server::Pid(pid),
            None => Server::Command(low.command.clone()),
        },
        environment: around.environment(url.as_ref(), variable),
        ready,
        work,
        accepted: around.accepted(),
        amount: around.amount()?,
        iterations: low.phases.iterations.unwrap_or(if is_script { around.script.tries } else { 20 }),
        extend: !low.phases.no_extend,
        warm_up: low.phases.warm_up.unwrap_or(2),
        burst: !low.phases.no_burst,
        idle: idle(low)?,
        max_time: low.phases.max_time,
        long: low.phases.long,
        ready_timeout: low.server.ready_timeout.unwrap_or(Duration::from_secs(30)),
        collection: low.phases.collect.clone(),
        trim: !low.phases.no_trim,
        keep_connections: low.request.keep_connections,
        record: !low.server.no_record,
        rules: rules(low)?,
        memory_limit_bytes: low.limits.memory_limit.or_else(|| memory_limit(Path::new("/"))),
        journal: low.shown.samples.clone(),
        resume: low.shown.resume,
        server_output: low.server.server_output.as_deref().map(output_file),
        snapshots: low.phases.heap_snapshots.clone(),
        snapshot_heap_bytes_max: match low.phases.heap_snapshots {
            Some(_) => u64::MAX,
            None => SNAPSHOT_HEAP_BYTES_MAX,
        },
        command_lines: low.shown.arguments.command_lines(),
        preload: preload::LIBRARY,
    };
    let settings = around.settings(&options, url);
    Ok(Plan { options, settings, notes })
}

/// Snapshots of larger heaps are taken only if a folder for them was given: two of them could fill a disk.
const SNAPSHOT_HEAP_BYTES_MAX: u64 = 1 << 30;

/// Returns the thresholds of growth, which are also used for a journal.
pub(crate) fn rules(low: &LowSoak) -> Result<Rules, Failure> {
    let mut rules = Rules {
        growth_per_request_max: low.limits.max_growth,
        retained_bytes_max: low.limits.max_retained,
        ..Rules::default()
    };
    if let Some(threshold) = low.limits.threshold {
        rules.heap_per_request_min = threshold;
        rules.resident_per_request_min = rules.resident_per_request_min.max(threshold);
    }
    rules.sensitivity_per_request = low.limits.sensitivity;
    if let Some(wanted) = low.limits.sensitivity.filter(|wanted| *wanted <= rules.heap_per_request_min) {
        return Err(Failure::new(format!(
            "--sensitivity {wanted}B/req needs a lower --threshold, such as {}B/req: what grows by less than that ({}) is never \
             called a leak.",
            wanted / 4.0,
            rules.heap_per_request_min
        )));
    }
    Ok(rules)
}

/// Returns the duration of the idle phases: before the load, after it, and with the load they must fit into the available time.
fn idle(low: &LowSoak) -> Result<Duration, Failure> {
    const IDLE: Duration = Duration::from_secs(2);
    /// The default of an idle phase is at most this part of the whole time.
    const PART: u32 = 8;
    let (given, all) = (low.phases.idle, low.phases.max_time.unwrap_or(Duration::MAX));
    match given {
        Some(given) if given.saturating_mul(2) >= all => Err(Failure::new(format!(
            "--max-time {all:?} leaves no time for the load beside --idle {given:?}, which is spent twice."
        ))),
        Some(given) => Ok(given),
        None => Ok(IDLE.min(all / PART)),
    }
}

/// Returns the variables of the named file, or of the `.env` in the current folder if the script's are asked for.
fn file(low: &LowSoak, is_script: bool) -> Result<Vec<(String, String)>, Failure> {
    let default = Path::new(".env");
    let path = match &low.server.env_file {
        Some(path) => path.as_path(),
        None if is_script && default.is_file() => default,
        None => return Ok(Vec::new()),
    };
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::new(format!("cannot read {}: {}.", path.display(), reason(&error))))?;
    env_file::parse(&text, path)
}

fn output_file(path: &Path) -> PathBuf {
    if path == Path::new("-") { PathBuf::from("/dev/stderr") } else { path.to_owned() }
}

impl PlanContext<'_> {
    fn work(&self) -> Result<(Work, Vec<String>), Failure> {
        let low = self.low;
        if let Some(command) = &low.load.exec {
            return Ok((Work::Command(command.clone()), Vec::new()));
        }
        if let Some(template) = &low.load.load_cmd {
            let url = low.load.url.clone().map_or_else(|| self.scripts_url(), Ok)?;
            return Ok((
                Work::External { template: template.clone(), url, workers: self.concurrency() },
                Vec::new(),
            ));
        }
        let base = match &low.load.url {
            Some(url) => Some(parse_url(url, low.request.allow_remote)?),
            None => None,
        };
        let asked =
            targets::asked(low, base, &|| Ok(parse_url(&self.scripts_url()?, low.request.allow_remote)?))?;
        let load = Load {
            endpoint: targets::endpoint(&low.request, &asked.url),
            targets: asked.targets,
            flow: asked.flow,
            order: targets::order(low),
            protocol: targets::protocol(low),
            connections: self.concurrency(),
            keep_alive: !low.request.no_keep_alive,
            rate: low.load.rate,
            timeout: low.request.timeout.unwrap_or(Duration::from_secs(30)),
            threads: low.request.threads,
        };
        Ok((Work::Http(Box::new(load)), asked.notes))
    }

    /// Returns the script's URL if it was asked for. No other server is guessed at: it could be somebody else's.
    fn scripts_url(&self) -> Result<String, Failure> {
        if self.is_script {
            return Ok(script::url(&self.script));
        }
        Err(Failure::new(
            "no URL says which server to load. Write --url http://127.0.0.1:PORT/, or --exec COMMAND for other work; \
             --compat warp takes HOST and PORT from the environment or from .env.",
        ))
    }

    fn concurrency(&self) -> u32 {
        self.low.load.concurrency.unwrap_or(if self.is_script { self.script.workers } else { 50 })
    }

    /// The script's address is a default, the server may have no page there, and the script counts any response.
    fn accepted(&self) -> Vec<RangeInclusive<u16>> {
        let given = &self.low.request.accept;
        if given.is_empty() && self.is_script && self.names_no_page() {
            vec![400..=499]
        } else {
            given.clone()
        }
    }

    fn names_no_page(&self) -> bool {
        let load = &self.low.load;
        load.url.is_none() && [&load.urls, &load.access_log, &load.flow].into_iter().all(Option::is_none)
    }

    fn amount(&self) -> Result<Option<Amount>, Failure> {
        match (self.low.load.requests, self.low.load.duration) {
            (Some(requests), _) => Ok(Some(Amount::Requests(requests))),
            (None, Some(duration)) if duration.is_zero() => {
                Err(Failure::new("--duration 0 gives the server nothing to do; give it a second or more."))
            }
            (None, Some(duration)) => Ok(Some(Amount::Duration(duration))),
            (None, None) if self.is_script => Ok(Some(Amount::Duration(self.script.duration))),
            (None, None) => Ok(None),
        }
    }

    /// Returns the address that receives the load, if it is known.
    fn target(&self, work: &Work) -> Option<SocketAddr> {
        match work {
            Work::Http(load) => Some(load.endpoint.address),
            Work::External { url, .. } => parse_url(url, true).ok().map(|url: Url| url.address),
            Work::Command(_) => None,
        }
    }

    fn ready(&self, work: &Work) -> Result<Ready, Failure> {
        Ok(match &self.low.server.ready {
            Some(LowReady::Now) => Ready::AtOnce,
            Some(LowReady::Port(address)) => Ready::Listens(*address),
            Some(LowReady::Text(_)) if self.low.server.pid.is_some() => {
                return Err(Failure::new(
                    "the output of a process that runs already cannot be read; use --ready port:N.",
                ));
            }
            Some(LowReady::Text(text)) => Ready::Says(text.clone()),
            Some(LowReady::Url(url)) => {
                let url = parse_url(url, self.low.request.allow_remote)?;
                Ready::Answers(targets::endpoint(&self.low.request, &url), url.path)
            }
            None => self.target(work).map_or(Ready::AtOnce, Ready::Listens),
        })
    }

    /// Returns the file's variables that the environment lacks, and HOST and PORT. An address that was typed takes
    /// precedence over the environment; one that was derived from the environment is equal to it.
    fn environment(
        &self,
        target: Option<&SocketAddr>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Vec<(OsString, OsString)> {
        let is_address = |name: &str| target.is_some() && (name == "HOST" || name == "PORT");
        let of_file = self.file.iter().filter(|(name, _)| variable(name).is_none() && !is_address(name));
        let mut all: Vec<(OsString, OsString)> =
            of_file.map(|(name, value)| (name.into(), value.into())).collect();
        if let Some(address) = target {
            let host =
                if self.low.load.url.is_none() { self.script.host.clone() } else { address.ip().to_string() };
            all.push(("HOST".into(), host.into()));
            all.push(("PORT".into(), address.port().to_string().into()));
        }
        all
    }

    /// Returns the settings that the script would print for this plan.
    fn settings(&self, options: &SoakOptions, target: Option<SocketAddr>) -> Script {
        let mut settings = self.script.clone();
        settings.tries = options.iterations;
        settings.workers = self.concurrency();
        if let Some(Amount::Duration(duration)) = options.amount {
            settings.duration = duration;
        }
        if let Some(address) = target {
            settings.port = address.port();
            if self.low.load.url.is_some() {
                settings.host = address.ip().to_string();
            }
        }
        settings
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
