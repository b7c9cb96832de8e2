//! Flows against a server that issues values and requires them in later requests.

use crate::server::{ReceivedRequest, Reply, Server};
use mallow_load::{Amount, Endpoint, Flow, Generator, Load, Order, Protocol, parse_flow};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

const LOGIN: &str = r#"
[[step]]
post = "/login"
form = { name = "u{user}p{pass}" }
take.token = { json = "token" }
take.id = { cookie = "id" }

[[step]]
get = "/item/{token}?id={id}"
headers = { X-Token = "{token}" }
take.next = { header = "x-next" }

[[step]]
put = "/item"
json = { next = "{next}" }
"#;

fn flow(text: &str) -> Flow {
    parse_flow(text, Path::new("flow.toml")).unwrap()
}

fn load(server: &Server, connections: u32, flow: Flow) -> Load {
    Load {
        endpoint: Endpoint::plain(server.address, "test.example"),
        targets: Vec::new(),
        flow: Some(flow),
        order: Order::Sequential,
        protocol: Some(Protocol::Http1),
        connections,
        keep_alive: true,
        rate: None,
        timeout: Duration::from_secs(10),
        threads: Some(1),
    }
}

/// Issues a token and a cookie for each login, and requires both later.
fn session(seen: &ReceivedRequest) -> Reply {
    let body = String::from_utf8_lossy(&seen.body).into_owned();
    let header = |name: &str| seen.headers.get(name).cloned().unwrap_or_default();
    match seen.line.split(' ').collect::<Vec<_>>()[..] {
        ["POST", "/login"] => {
            let name = body.strip_prefix("name=").unwrap_or("none");
            let headers = format!("Set-Cookie: id={name}; Path=/\r\nSet-Cookie: old=; Max-Age=0\r\n");
            Reply::Headed(200, headers, format!("{{\"token\":\"t {name}\"}}"))
        }
        ["GET", path] if path.starts_with("/item/t%20") => {
            let is_known = header("x-token").starts_with("t u") && header("cookie").starts_with("id=u");
            Reply::Headed(if is_known { 200 } else { 403 }, "X-Next: n1\r\n".to_owned(), String::new())
        }
        ["PUT", "/item"] if body == r#"{"next":"n1"}"# => Reply::Answer(200, "done"),
        _ => Reply::Answer(404, ""),
    }
}

#[test]
fn a_user_brings_back_what_it_was_given_and_begins_each_pass_anew() {
    let server = Server::start(session);
    let mut generator = Generator::start(load(&server, 1, flow(LOGIN))).unwrap();
    // The run ends in the middle of a pass, and the next one continues it.
    let first = generator.run(Amount::Requests(5), None);
    let second = generator.run(Amount::Requests(1), None);
    assert_eq!((first.succeeded, first.failed(), second.succeeded), (5, 0, 1), "{first:?}");
    let told = |seen: &ReceivedRequest| {
        let header = |name: &str| seen.headers.get(name).map_or("-", String::as_str).to_owned();
        let body = String::from_utf8_lossy(&seen.body).into_owned();
        format!("{} [{}] [{}] {}", seen.line, header("cookie"), header("content-type"), body)
    };
    let pass = |number: u32| {
        [
            format!("POST /login [-] [application/x-www-form-urlencoded] name=u1p{number}"),
            format!("GET /item/t%20u1p{number}?id=u1p{number} [id=u1p{number}] [-] "),
            format!("PUT /item [id=u1p{number}] [application/json] {{\"next\":\"n1\"}}"),
        ]
    };
    assert_eq!(server.seen().iter().map(told).collect::<Vec<_>>(), [pass(1), pass(2)].concat());
}

#[test]
fn each_user_has_a_jar_of_its_own() {
    let server = Server::start(session);
    let metrics = Generator::start(load(&server, 5, flow(LOGIN))).unwrap().run(Amount::Requests(600), None);
    assert_eq!((metrics.requests, metrics.succeeded), (600, 600), "{metrics:?}");
    assert_eq!(metrics.statuses, BTreeMap::from([(200, 600)]));
    let seen = server.seen();
    let mut users: BTreeMap<String, usize> = BTreeMap::new();
    for request in seen.iter().filter_map(|seen| seen.headers.get("cookie")) {
        *users.entry(request.split('p').next().unwrap_or_default().to_owned()).or_default() += 1;
    }
    assert_eq!(users.keys().collect::<Vec<_>>(), ["id=u1", "id=u2", "id=u3", "id=u4", "id=u5"]);
    // Two users never share a connection.
    let owner =
        |seen: &ReceivedRequest| seen.headers.get("cookie").map(|cookie| (seen.connection, cookie.clone()));
    let mut owners: BTreeMap<usize, String> = BTreeMap::new();
    for (connection, cookie) in seen.iter().filter_map(owner) {
        let user = cookie.split('p').next().unwrap_or_default().to_owned();
        assert_eq!(*owners.entry(connection).or_insert_with(|| user.clone()), user);
    }
}

#[test]
fn an_answer_without_the_value_is_counted_by_its_own_name_and_the_pass_begins_anew() {
    let mute = |seen: &ReceivedRequest| match seen.line.as_str() {
        "POST /login" => Reply::Headed(200, "Set-Cookie: id=1\r\n".to_owned(), "{}".to_owned()),
        _ => Reply::Answer(500, ""),
    };
    let server = Server::start(mute);
    let metrics = Generator::start(load(&server, 1, flow(LOGIN))).unwrap().run(Amount::Requests(4), None);
    let missing = "step 1 (POST /login): no `token` in the answer (json token)".to_owned();
    assert_eq!((metrics.requests, metrics.succeeded), (4, 0));
    assert_eq!((metrics.failures, metrics.statuses.len()), (BTreeMap::from([(missing, 4)]), 0));
    assert_eq!(metrics.latency.count, 4, "they were answered");
    assert!(
        server.seen().iter().all(|seen| seen.line == "POST /login" && !seen.headers.contains_key("cookie"))
    );
}

/// A status is already reported as a failure.
#[test]
fn a_refused_login_is_a_status_and_not_a_missing_value() {
    let server = Server::start(|_| Reply::Answer(401, "no"));
    let metrics = Generator::start(load(&server, 1, flow(LOGIN))).unwrap().run(Amount::Requests(3), None);
    assert_eq!((metrics.statuses, metrics.failures.len()), (BTreeMap::from([(401, 3)]), 0));
    assert!(server.seen().iter().all(|seen| seen.line == "POST /login"));
}

#[test]
fn a_pass_without_an_answer_begins_anew_and_a_value_that_no_header_takes_is_counted() {
    let broken =
        |seen: &ReceivedRequest| if seen.line.starts_with("GET ") { Reply::Reset } else { session(seen) };
    let server = Server::start(broken);
    let metrics = Generator::start(load(&server, 1, flow(LOGIN))).unwrap().run(Amount::Requests(4), None);
    assert_eq!(metrics.statuses, BTreeMap::from([(200, 2)]), "{metrics:?}");
    assert_eq!(metrics.failures.values().sum::<u64>(), 2, "{metrics:?}");
    let text = "[[step]]\nget = \"/\"\ntake.a = { regex = \"(?s)a.b\" }\n[[step]]\nget = \"/b\"\nheaders = { X-A = \"{a}\" }\n";
    let server = Server::start(|_| Reply::Answer(200, "a\nb"));
    let metrics = Generator::start(load(&server, 1, flow(text))).unwrap().run(Amount::Requests(4), None);
    let unsendable = "step 2 (GET /b): a value cannot stand in its request".to_owned();
    assert_eq!((metrics.requests, metrics.failures), (4, BTreeMap::from([(unsendable, 2)])));
    assert_eq!(server.seen().len(), 2);
}
