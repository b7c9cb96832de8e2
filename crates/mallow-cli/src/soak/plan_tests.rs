//! Command lines, variables and files, and the resulting plans.

use super::*;
use crate::args::LowArgs;
use crate::request::Request;
use clap::Parser;
use mallow_load::{Endpoint, Order, Protocol, Trust};
use mallow_soak::Collection;

fn low(words: &[&str]) -> LowSoak {
    let words = ["mallow", "soak"].iter().chain(words);
    match LowArgs::try_parse_from(words).map(Request::from) {
        Ok(Request::Soak(low)) => *low,
        Ok(other) => panic!("{other:?}"),
        Err(error) => panic!("{error}"),
    }
}

fn planned(words: &[&str], variables: &[(&str, &str)]) -> Result<Plan, String> {
    let variable =
        |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    plan(&low(words), &variable).map_err(|failure| failure.sentence().to_owned())
}

#[track_caller]
fn options(words: &[&str], variables: &[(&str, &str)]) -> SoakOptions {
    planned(words, variables).unwrap_or_else(|sentence| panic!("{sentence}")).options
}

fn load(options: &SoakOptions) -> &Load {
    match &options.work {
        Work::Http(load) => load,
        other => panic!("{other:?}"),
    }
}

fn variable<'a>(options: &'a SoakOptions, name: &str) -> Option<&'a str> {
    options.environment.iter().find(|(known, _)| known == name).and_then(|(_, value)| value.to_str())
}

#[test]
fn the_script_is_one_flag() {
    let options = options(&["--compat", "warp", "--", "./server"], &[]);
    let load = load(&options);
    assert_eq!((load.endpoint.address.to_string().as_str(), load.connections), ("127.0.0.1:3030", 100));
    assert_eq!(load.targets[0].path, "/");
    assert_eq!(options.amount, Some(Amount::Duration(Duration::from_secs(3))));
    assert_eq!(options.iterations, 10);
    assert_eq!(options.ready, Ready::Listens(load.endpoint.address));
    assert_eq!((variable(&options, "HOST"), variable(&options, "PORT")), (Some("127.0.0.1"), Some("3030")));
}

/// HOST is set by some shells and PORT by many projects; what they name may be another server.
#[test]
fn variables_are_not_read_unasked_and_no_server_is_guessed() {
    let variables = [("HOST", "localhost"), ("PORT", "8080"), ("DURATION", "soon"), ("WORKERS", "7")];
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    std::fs::write(&log, "127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] \"GET /p HTTP/1.0\" 200 2326\n")
        .unwrap();
    let env = folder.path().join("test.env");
    std::fs::write(&env, "HOST=localhost\nPORT=8080\n").unwrap();
    let (log, env) = (log.to_str().unwrap(), env.to_str().unwrap());
    let lines: [&[&str]; 4] =
        [&[], &["--access-log", log], &["--load-cmd", "hey {url}"], &["--env-file", env, "--format", "warp"]];
    for line in lines {
        let sentence = planned(&[line, &["--", "./server"]].concat(), &variables).err().unwrap_or_default();
        let expected = "no URL says which server to load. Write --url http://127.0.0.1:PORT/, or --exec COMMAND for \
            other work; --compat warp takes HOST and PORT from the environment or from .env.";
        assert_eq!(sentence, expected, "{line:?}");
    }
}

#[test]
fn refusals_are_failures_unless_they_are_accepted_or_nobody_named_a_page() {
    let accepted = |words: &[&str]| options(words, &[]).accepted;
    assert_eq!(accepted(&["--compat", "warp", "--", "./server"]), [400..=499]);
    assert_eq!(accepted(&["--url", "http://127.0.0.1:1/a", "--", "./server"]), []);
    let given = ["--url", "http://127.0.0.1:1/a", "--accept", "404,5xx", "--", "./server"];
    assert_eq!(accepted(&given), [404..=404, 500..=599]);
    assert_eq!(accepted(&["--compat", "warp", "--accept", "404", "--", "./server"]), [404..=404]);
    for wrong in ["200", "600", "6xx", "x", "4x", "70000", "999xx"] {
        let words = ["mallow", "soak", "--accept", wrong, "--", "./server"];
        assert!(LowArgs::try_parse_from(words).is_err(), "{wrong}");
    }
}

#[test]
fn variables_stand_for_flags_and_flags_go_before_them() {
    let variables =
        [("HOST", "localhost"), ("PORT", "8080"), ("DURATION", "500ms"), ("WORKERS", "7"), ("TRIES", "3")];
    let scripted = options(&["--compat", "warp", "--", "./server"], &variables);
    assert_eq!(
        (load(&scripted).endpoint.address.port(), load(&scripted).connections, scripted.iterations),
        (8080, 7, 3)
    );
    assert_eq!(scripted.amount, Some(Amount::Duration(Duration::from_millis(500))));
    assert_eq!((variable(&scripted, "HOST"), variable(&scripted, "PORT")), (Some("localhost"), Some("8080")));
    let words = ["--compat", "warp", "-c", "2", "--iterations", "5", "-n", "40", "--", "./server"];
    let typed = options(&words, &variables);
    assert_eq!(
        (load(&typed).connections, typed.iterations, typed.amount),
        (2, 5, Some(Amount::Requests(40)))
    );
    let sentence = planned(&["--compat", "warp", "--", "s"], &[("PORT", "http")]).err().unwrap_or_default();
    assert!(sentence.starts_with("the variable PORT is `http`"), "{sentence}");
}

#[test]
fn with_a_url_the_defaults_are_ours() {
    let variables = [("WORKERS", "7"), ("TRIES", "3"), ("PORT", "9")];
    let options = options(&["--url", "http://127.0.0.1:8081/a?b=c", "--", "./server"], &variables);
    let load = load(&options);
    assert_eq!((load.connections, options.iterations, options.warm_up, options.amount), (50, 20, 2, None));
    assert_eq!(
        (options.idle, options.ready_timeout, load.timeout),
        (Duration::from_secs(2), Duration::from_secs(30), Duration::from_secs(30))
    );
    assert!(options.burst && options.extend && options.trim && options.record && load.keep_alive);
    assert_eq!(load.targets[0].path, "/a?b=c");
    // The server must listen at the address that was typed.
    assert_eq!(variable(&options, "PORT"), Some("8081"));
}

#[test]
fn an_env_file_is_for_the_server_too_and_the_environment_wins() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("test.env");
    std::fs::write(&path, "PORT=4040\nWORKERS='9'\nexport SECRET=\"a b\"\nSTAGE=test\n").unwrap();
    let path = path.to_string_lossy().into_owned();
    let environment = [("STAGE", "here"), ("WORKERS", "4")];
    let words = ["--env-file", &path, "--url", "http://127.0.0.1:1/", "--", "./server"];
    let for_the_server = options(&words, &environment);
    assert_eq!(
        (load(&for_the_server).connections, variable(&for_the_server, "PORT")),
        (50, Some("1")),
        "what is loaded is what was typed"
    );
    assert_eq!(variable(&for_the_server, "SECRET"), Some("a b"));
    let options = options(&["--compat", "warp", "--env-file", &path, "--", "./server"], &environment);
    assert_eq!((load(&options).endpoint.address.port(), load(&options).connections), (4040, 4));
    assert_eq!((variable(&options, "SECRET"), variable(&options, "STAGE")), (Some("a b"), None));
    assert_eq!(variable(&options, "PORT"), Some("4040"));
    let sentence = planned(&["--env-file", "/nonexistent/.env", "--", "x"], &[]).err().unwrap_or_default();
    assert_eq!(sentence, "cannot read /nonexistent/.env: no such file or directory.");
}

#[test]
fn requests_look_as_they_are_described() {
    let url = ["--url", "http://localhost:3030/x"];
    let words =
        ["-H", "Accept: text/plain", "-H", "X-A:b", "-d", "{}", "--http2", "--random", "7", "--rate", "0.5"];
    let words = [&url[..], &words, &["--threads", "2", "--timeout", "5s", "--", "./server"]].concat();
    let posted = options(&words, &[]);
    let sent = load(&posted);
    let target = &sent.targets[0];
    assert_eq!((target.method.as_str(), target.body.as_ref()), ("POST", &b"{}"[..]));
    assert_eq!(target.headers.get("accept").and_then(|value| value.to_str().ok()), Some("text/plain"));
    assert_eq!((sent.order, sent.protocol, sent.rate), (Order::Random(7), Some(Protocol::Http2), Some(0.5)));
    assert_eq!((sent.threads, sent.timeout), (Some(2), Duration::from_secs(5)));
    let put = options(&[&url[..], &["-m", "put", "-d", "x", "--", "s"]].concat(), &[]);
    assert_eq!(load(&put).targets[0].method.as_str(), "PUT");
    for (flag, sentence) in [
        (["-H", "no colon"], "`no colon` is not a header; write -H 'name: value'."),
        (["-m", "G T"], "`G T` is not a method of HTTP."),
        (["-D", "/nonexistent"], "cannot read /nonexistent: no such file or directory."),
    ] {
        let words = [&url[..], &flag, &["--", "s"]].concat();
        assert_eq!(planned(&words, &[]).err().as_deref(), Some(sentence));
    }
}

#[test]
fn lists_and_logs_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let urls = folder.path().join("urls.txt");
    std::fs::write(&urls, "http://127.0.0.1:5050/a\nhttp://127.0.0.1:5050/b POST x=1\n").unwrap();
    let urls = urls.to_string_lossy().into_owned();
    let listed = options(&["--urls", &urls, "-H", "x-y: z", "--", "s"], &[]);
    assert_eq!((load(&listed).endpoint.address.port(), load(&listed).targets.len()), (5050, 2));
    assert!(load(&listed).targets.iter().all(|target| target.headers.contains_key("x-y")));
    let log = folder.path().join("access.log");
    std::fs::write(&log, "127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] \"GET /p HTTP/1.0\" 200 2326\n")
        .unwrap();
    let log = log.to_string_lossy().into_owned();
    let replayed = options(&["--compat", "warp", "--access-log", &log, "--", "s"], &[("PORT", "6060")]);
    assert_eq!(
        (load(&replayed).endpoint.address.port(), load(&replayed).targets[0].path.as_str()),
        (6060, "/p")
    );
    let elsewhere = options(&["--access-log", &log, "--url", "http://127.0.0.1:7070", "--", "s"], &[]);
    assert_eq!(load(&elsewhere).endpoint.address.port(), 7070);
}

#[test]
fn other_work_and_other_servers() {
    let exec = options(&["--exec", "curl x", "--", "./server"], &[]);
    assert!(matches!(&exec.work, Work::Command(command) if command == "curl x"));
    assert_eq!((exec.ready.clone(), exec.iterations), (Ready::AtOnce, 20));
    let outside = options(&["--compat", "warp", "--load-cmd", "hey {url}", "--", "s"], &[("PORT", "81")]);
    let Work::External { template, url, workers } = &outside.work else { panic!("{:?}", outside.work) };
    assert_eq!((template.as_str(), url.as_str(), *workers), ("hey {url}", "http://127.0.0.1:81/", 100));
    let adopted = options(&["--pid", "77", "--url", "http://127.0.0.1:1/"], &[]);
    assert!(matches!(adopted.server, Server::Pid(77)));
    let ready = |word: &str| options(&["--url", "http://127.0.0.1:1", "--ready", word, "--", "s"], &[]).ready;
    assert_eq!(ready("port:99"), Ready::Listens(SocketAddr::from(([127, 0, 0, 1], 99))));
    assert_eq!(ready("text:up: now"), Ready::Says("up: now".into()));
    assert_eq!(
        ready("http://127.0.0.1:9/up"),
        Ready::Answers(Endpoint::plain(SocketAddr::from(([127, 0, 0, 1], 9)), "127.0.0.1:9"), "/up".into())
    );
    let collect = |word: &str| options(&["--exec", "true", "--collect", word, "--", "s"], &[]).collection;
    assert_eq!(collect("/gc"), Collection::Path("/gc".into()));
    assert_eq!(collect("SIGUSR1"), Collection::Signal(10));
    assert_eq!((collect("auto"), collect("never")), (Collection::Automatic, Collection::Never));
}

#[test]
fn flags_say_how_tls_is_spoken() {
    let of = |words: &[&str]| {
        let url = ["--url", "https://localhost:8443/a"];
        load(&options(&[words, &url, &["--", "s"]].concat(), &[])).clone()
    };
    let tls = |words: &[&str]| of(words).endpoint.tls.map(|tls| (tls.trust, tls.name)).unwrap();
    assert_eq!(tls(&[]), (Trust::System, "localhost".into()));
    assert_eq!(tls(&["--cacert", "ca.pem"]), (Trust::File("ca.pem".into()), "localhost".into()));
    assert_eq!(tls(&["-k", "--sni", "a.example"]), (Trust::AnyCertificate, "a.example".into()));
    let protocol = |words: &[&str]| of(words).protocol;
    assert_eq!(protocol(&[]), None, "the server chooses");
    assert_eq!(
        [protocol(&["--http1"]), protocol(&["--http2"])],
        [Some(Protocol::Http1), Some(Protocol::Http2)]
    );
    let refused = |words: &[&str]| planned(&[words, &["--insecure", "--", "s"]].concat(), &[]).err();
    assert_eq!(
        refused(&["--url", "http://127.0.0.1:1/"]).as_deref(),
        Some("--insecure is for a server with TLS; write --url https://….")
    );
    assert_eq!(refused(&["--url", "http://127.0.0.1:1/", "--ready", "https://127.0.0.1:2/up"]), None);
}

#[test]
fn the_time_that_there_is_holds_the_idle_server_twice_and_the_load() {
    let idle = |words: &[&str]| {
        planned(&[words, &["--exec", "true", "--", "s"]].concat(), &[]).map(|plan| plan.options.idle)
    };
    assert_eq!(idle(&["--max-time", "1min"]), Ok(Duration::from_secs(2)));
    assert_eq!(idle(&["--max-time", "2s"]), Ok(Duration::from_millis(250)));
    assert_eq!(idle(&["--max-time", "2s", "--idle", "900ms"]), Ok(Duration::from_millis(900)));
    let refused = "--max-time 2s leaves no time for the load beside --idle 1s, which is spent twice.";
    assert_eq!(idle(&["--max-time", "2s", "--idle", "1s"]), Err(refused.to_owned()));
}

#[test]
fn limits_are_rules() {
    let words =
        ["--threshold", "1B/req", "--max-growth", "2", "--max-retained", "1MiB", "--memory-limit", "1GiB"];
    let options = options(&[&words[..], &["--exec", "true", "--", "s"]].concat(), &[]);
    let rules = &options.rules;
    assert_eq!((rules.heap_per_request_min, rules.resident_per_request_min), (1.0, 64.0));
    assert_eq!((rules.growth_per_request_max, rules.retained_bytes_max), (Some(2.0), Some(1 << 20)));
    assert_eq!(options.memory_limit_bytes, Some(1 << 30));
    let long = self::options(&["--exec", "true", "--for", "8h", "--", "s"], &[]);
    assert_eq!(long.long, Some(Duration::from_secs(28_800)));
}

#[test]
fn a_sensitivity_lies_above_the_threshold() {
    let wanted = |words: &[&str]| {
        options(&[words, &["--exec", "true", "--", "s"]].concat(), &[]).rules.sensitivity_per_request
    };
    assert_eq!((wanted(&[]), wanted(&["--sensitivity", "16B/req"])), (None, Some(16.0)));
    assert_eq!(wanted(&["--sensitivity", "2B/req", "--threshold", "1B/req"]), Some(2.0));
    let sentence = planned(&["--exec", "true", "--sensitivity", "2B/req", "--", "s"], &[]).unwrap_err();
    assert!(
        sentence.starts_with("--sensitivity 2B/req needs a lower --threshold, such as 0.5B/req"),
        "{sentence}"
    );
}

#[test]
fn other_machines_are_left_alone() {
    let sentence = planned(&["--url", "http://192.0.2.1/", "--", "s"], &[]).err().unwrap_or_default();
    assert_eq!(sentence, "'192.0.2.1' is not this machine; add --allow-remote to send load there.");
    assert_eq!(
        planned(&["--url", "http://127.0.0.1:1", "--duration", "0s", "--", "s"], &[]).err().as_deref(),
        Some("--duration 0 gives the server nothing to do; give it a second or more.")
    );
}

#[test]
fn what_cannot_be_meant_is_refused() {
    for line in [
        "",
        "--url",
        "--pid 1 -- ./server",
        "--exec x --url http://127.0.0.1/ -- s",
        "--exec x --compat warp -- s",
        "--compat wasp -- s",
        "--rate 0 -- s",
        "--collect sometimes -- s",
        "--ready soon -- s",
        "-n 0 -- s",
        "-n 1 -z 1s -- s",
        "--resume -- s",
        "--read f -- s",
        "--baseline f --against g -- s",
        "--deny tuesday -- s",
        "--deny allocations>1 -- s",
        "--max-growth 4B/s -- s",
        "--iterations 0 -- s",
        "--no-keep-alive --http2 -- s",
        "--http1 --http2 -- s",
        "--cacert f --insecure -- s",
    ] {
        let words = ["mallow", "soak"].into_iter().chain(line.split_whitespace());
        assert!(LowArgs::try_parse_from(words).is_err(), "{line}");
    }
}

#[test]
fn a_flow_takes_the_place_of_targets_and_the_url_names_the_server_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("flow.toml");
    std::fs::write(&file, "[[step]]\nname = \"in\"\npost = \"/login\"\n[[step]]\nget = \"/a\"\n").unwrap();
    let flow = file.to_str().unwrap();
    let options = options(&["--flow", flow, "--url", "http://127.0.0.1:8080", "--", "./server"], &[]);
    let load = load(&options);
    let names: Vec<&str> = load.flow.iter().flat_map(|flow| flow.names()).collect();
    assert_eq!((names, load.targets.len()), (vec!["in", "GET /a"], 0));
    assert_eq!((options.iterations, options.accepted.len()), (20, 0), "it is not the script");
    let refused = planned(&["--flow", flow, "--url", "http://127.0.0.1:8080/a", "--", "./server"], &[]);
    let sentence = "--flow has the paths that are asked for, so --url names the server alone, without /a.";
    assert_eq!(refused.map(|_| ()), Err(sentence.to_owned()));
}
