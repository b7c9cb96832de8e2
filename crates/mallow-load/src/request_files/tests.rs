//! Compares lists and logs with the requests that they describe.

use super::*;
use proptest::prelude::*;

/// A target as one would write it: method, path, headers, body, weight.
fn described(target: &Target) -> String {
    let mut text = format!("{} {}", target.method, target.path);
    for (name, value) in &target.headers {
        text.push_str(&format!(" [{name}: {}]", value.to_str().unwrap()));
    }
    if !target.body.is_empty() {
        text.push_str(&format!(" <{}>", String::from_utf8_lossy(&target.body)));
    }
    if target.weight != 1 {
        text.push_str(&format!(" ×{}", target.weight));
    }
    text
}

fn parsed(text: &str, base: Option<&Url>) -> Result<UrlFile, LoadError> {
    parse_urls(text, Path::new("urls.txt"), base, false, &mut |name| match name.to_str() {
        Some("body.json") => Ok(b"{}".to_vec()),
        _ => Err(std::io::Error::other("it is not there")),
    })
}

fn targets(text: &str) -> Vec<String> {
    parsed(text, None).unwrap().targets.iter().map(described).collect()
}

fn fault(text: &str) -> String {
    parsed(text, None).unwrap_err().to_string()
}

#[test]
fn sieges_lists_are_read() {
    let text = "# a comment\n\nHOST = 127.0.0.1:8080\nPAGE=$(HOST)/page\nhttp://$(HOST)/\n$(PAGE)?a=1\n\
                http://${HOST}/price\\$5\n  127.0.0.1:8080/cart POST a=1&b=2 3\n\
                $(HOST)/up PUT <body.json\n$(HOST)/empty POST\n";
    let expected = [
        "GET /",
        "GET /page?a=1",
        "GET /price$5",
        "POST /cart [content-type: application/x-www-form-urlencoded] <a=1&b=2 3>",
        "PUT /up [content-type: application/json] <{}>",
        "POST /empty",
    ];
    assert_eq!(targets(text), expected);
    let base = parsed(text, None).unwrap().base.unwrap();
    assert_eq!(
        (base.address.to_string(), base.host),
        ("127.0.0.1:8080".to_owned(), "127.0.0.1:8080".to_owned())
    );
}

#[test]
fn vegetas_requests_are_read() {
    let text = "# first\nGET http://localhost:81/\nX-Id: 7\nAccept: text/html\n\n\
                POST http://localhost:81/new\nContent-Type: application/json\n@body.json\n\
                HEAD http://localhost:81/h\n";
    let expected =
        ["GET / [x-id: 7] [accept: text/html]", "POST /new [content-type: application/json] <{}>", "HEAD /h"];
    assert_eq!(targets(text), expected);
}

#[test]
fn vegetas_json_is_read() {
    let text = "{\"method\":\"GET\",\"url\":\"http://localhost:81/\"}\n\n\
                {\"method\":\"PUT\",\"url\":\"http://localhost:81/x\",\"body\":\"aGk=\",\"header\":{\"A\":[\"1\",\"2\"]}}\n";
    assert_eq!(targets(text), ["GET /", "PUT /x [a: 1] [a: 2] <hi>"]);
}

#[test]
fn faults_name_their_line() {
    let cases = [
        (
            "localhost/\nhttps://localhost/\n",
            "line 2: 'https://localhost' is another server than 'localhost' above; only one can be loaded at a time",
        ),
        (
            "localhost/\n127.0.0.1/\n",
            "line 2: '127.0.0.1' is another server than 'localhost' above; only one can be loaded at a time",
        ),
        ("\n$(HOST)/\n", "line 2: the variable 'HOST' has no value yet"),
        ("$(HOST/\n", "line 1: '$(HOST/' has no ')'"),
        ("localhost/ FETCH\n", "line 1: 'FETCH' is no method; a URL has no blanks in it"),
        ("localhost/ POST <gone\n", "line 1: cannot read 'gone': it is not there"),
        (
            "GET http://localhost/\nnonsense\n",
            "line 2: 'nonsense' is neither a header (NAME: VALUE) nor a body (@FILE)",
        ),
        ("GET http://localhost/\n\nA: b\n", "line 3: 'A: b' is no request; one is METHOD URL"),
        ("GET http://localhost/\nA b: c\n", "line 2: 'A b: c' is no header"),
        ("GET http://localhost/\n@gone\n", "line 2: cannot read 'gone': it is not there"),
        ("{\"method\":\"GET\",\"url\":\"localhost\",\"body\":\"!\"}\n", "line 1: the body is not in base64"),
    ];
    for (text, expected) in cases {
        assert_eq!(fault(text), format!("'urls.txt', {expected}"));
    }
    assert_eq!(
        fault("{\"method\":\"GET\"}\n"),
        "'urls.txt', line 1: this is no target of vegeta: missing field `url` at line 1 column 16"
    );
    assert_eq!(fault("# nothing\n"), "'urls.txt' holds no request: write one URL on each line");
    assert_eq!(
        fault("192.0.2.1/\n"),
        "'192.0.2.1' is not this machine; add --allow-remote to send load there"
    );
}

#[test]
fn variables_cannot_grow_without_bound() {
    let mut text = String::from("A0=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n");
    for index in 1..40 {
        let before = index - 1;
        text.push_str(&format!("A{index}=$(A{before})$(A{before})\n"));
    }
    assert_eq!(fault(&text), "'urls.txt', line 17: with its variables put in, the line is longer than 1 MiB");
}

#[test]
fn a_base_stands_for_every_host() {
    let base = crate::parse_url("127.0.0.1:9999/ignored", false).unwrap();
    let file = parsed("http://example.com/a\nhttp://example.org:81/b\n/c\n", Some(&base)).unwrap();
    assert_eq!(file.targets.iter().map(described).collect::<Vec<_>>(), ["GET /a", "GET /b", "GET /c"]);
    assert_eq!(file.base, Some(base));
    assert_eq!(parsed("/only/paths\n", None).unwrap().base, None);
}

#[test]
fn bodies_are_found_beside_the_list() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("b.txt"), "hello").unwrap();
    let list = folder.path().join("urls.txt");
    std::fs::write(&list, "\u{feff}localhost/x POST <b.txt\n").unwrap();
    let file = read_urls(&list, None, false).unwrap();
    assert_eq!(described(&file.targets[0]), "POST /x [content-type: text/plain] <hello>");
    std::fs::write(&list, b"localhost/\nlocalhost/\xff\n").unwrap();
    let fault = read_urls(&list, None, false).unwrap_err().to_string();
    assert!(fault.ends_with("', line 2: it is not UTF-8"), "{fault}");
    let fault = read_urls(&folder.path().join("none"), None, false).unwrap_err().to_string();
    assert!(fault.starts_with("cannot read '"), "{fault}");
}

fn log(text: &str, all_methods: bool) -> Result<UrlFile, LoadError> {
    parse_access_log(text.as_bytes(), Path::new("access.log"), all_methods)
}

fn asked(text: &str) -> Vec<String> {
    log(text, true).unwrap().targets.iter().map(described).collect()
}

#[test]
fn logs_in_quotes_are_weighed() {
    let text = "127.0.0.1 - - [21/Nov/2026:10:00:00 +0000] \"GET /a?x=1 HTTP/1.1\" 200 17 \"-\" \"curl/7.88.1\"\n\
                127.0.0.1 - me [21/Nov/2026:10:00:01 +0000] \"GET /b HTTP/2.0\" 304 0\n\
                shop:80 127.0.0.1 - - [x] \"POST /cart HTTP/1.1\" 200 5 \"http://a/\\\"b\" \"GET it\"\n\
                127.0.0.1 - - [x] \"GET /b HTTP/1.1\" 200 5 \"-\" \"-\"\n\
                127.0.0.1 - - [x] \"-\" 408 0 \"-\" \"-\"\n\
                127.0.0.1 - - [x] \"HEAD /\\xC3\\xBC HTTP/1.0\" 200 0\n";
    let file = log(text, false).unwrap();
    assert_eq!(
        file.targets.iter().map(described).collect::<Vec<_>>(),
        ["GET /b ×2", "HEAD /%C3%BC", "GET /a?x=1"]
    );
    let expected = [
        "requests left out, because they may change something: 1 of POST",
        "1 of 6 lines hold no request; the first is line 5",
    ];
    assert_eq!(file.notes, expected);
    let all = log(text, true).unwrap();
    assert_eq!(all.targets.iter().map(described).filter(|it| it == "POST /cart").count(), 1);
    assert!(
        all.notes.contains(&"a log has no bodies: what it posted is posted empty".to_owned()),
        "{:?}",
        all.notes
    );
}

#[test]
fn logs_of_json_are_weighed() {
    let cases = [
        ("{\"request\":\"GET /nginx?a=1 HTTP/1.1\",\"status\":200}", "GET /nginx?a=1"),
        ("{\"request_method\":\"GET\",\"request_uri\":\"/uri?b\"}", "GET /uri?b"),
        ("{\"request\":{\"method\":\"PUT\",\"uri\":\"/caddy\",\"host\":\"x\"},\"status\":200}", "PUT /caddy"),
        ("{\"RequestMethod\":\"GET\",\"RequestPath\":\"/traefik\"}", "GET /traefik"),
        ("{\"httpRequest\":{\"requestMethod\":\"GET\",\"requestUrl\":\"https://shop/cloud\"}}", "GET /cloud"),
        ("{\"http_method\":\"HEAD\",\"path\":\"/q\",\"query_string\":\"c=1\"}", "HEAD /q?c=1"),
        ("{\"url\":\"/plain\"}", "GET /plain"),
    ];
    for (line, expected) in cases {
        assert_eq!(asked(line), [expected]);
    }
    assert_eq!(
        log("{\"url\":\"/p\"}", false).unwrap().notes,
        ["1 requests name no method and are treated as GET"]
    );
}

#[test]
fn a_log_without_requests_says_so() {
    let fault = |text: &str| log(text, false).unwrap_err().to_string();
    assert_eq!(
        fault("hello\n{\"a\":1}\n"),
        "'access.log' holds no request: a log in the common or combined format, or with a line of JSON for each \
         request, is understood"
    );
    assert_eq!(
        fault("\"POST / HTTP/1.1\"\n"),
        "'access.log' holds no request: only GET and HEAD are taken from a log, unless all methods are requested"
    );
    let packed =
        parse_access_log(&b"\x1f\x8b\x08\n"[..], Path::new("access.log.gz"), false).unwrap_err().to_string();
    assert_eq!(packed, "cannot read 'access.log.gz': it is compressed; unpack it with gunzip first");
}

#[test]
fn the_rarest_of_too_many_requests_are_left_out() {
    let mut text = String::new();
    for number in 0..100_003 {
        text.push_str(&format!("\"GET /{number} HTTP/1.1\"\n"));
    }
    text.push_str("\"GET /100002 HTTP/1.1\"\n");
    let file = log(&text, false).unwrap();
    assert_eq!((file.targets.len(), described(&file.targets[0])), (100_000, "GET /100002 ×2".to_owned()));
    assert_eq!(file.notes, ["3 requests left out that are rarer than 100000 others"]);
}

#[test]
fn a_line_without_end_is_skipped() {
    let text =
        format!("\"GET /a HTTP/1.1\"\n\"GET /{} HTTP/1.1\"\n\"GET /b HTTP/1.1\"\n", "x".repeat(200_000));
    let file = log(&text, false).unwrap();
    assert_eq!(file.targets.iter().map(described).collect::<Vec<_>>(), ["GET /a", "GET /b"]);
    assert_eq!(file.notes, ["1 of 3 lines hold no request; the first is line 2"]);
}

proptest! {
    #[test]
    fn nothing_makes_lists_panic(text in "(GET |http://|localhost|/|\\$\\(|\\$|\\\\|A=|\\)|\n| POST | <|@|: |\\{|\"url\"|[a-z]|é){0,60}") {
        let _ = parsed(&text, None);
        let _ = log(&text, true);
    }

    #[test]
    fn nothing_makes_logs_panic(text in "(\"|GET |/|\\\\x|\\\\|[0-9a-f]|\n| HTTP/1.1|\\{\"request\":|é){0,60}") {
        let _ = log(&text, true);
    }
}
