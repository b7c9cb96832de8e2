//! What a file may contain, and how anything else is refused.

use super::*;

fn parse(text: &str) -> Result<Flow, String> {
    parse_flow(text, Path::new("flow.toml")).map_err(|error| error.to_string())
}

const LOGIN: &str = r#"
[[step]]
name = "login"
post = "/login?next=%2F"
form = { user = "anna{user}", password = "p&q" }
take.token = { json = "data.token" }
take.csrf = { regex = 'value="(\w+)"' }

[[step]]
put = "/items/{token}"
headers = { Authorization = "Bearer {token}", X-Csrf = "{csrf}" }
json = { name = "item {pass}", tags = ["a", "{csrf}"] }

[[step]]
get = "/logout"
"#;

#[test]
fn steps_are_read_with_what_they_take_and_put_in() {
    let flow = parse(LOGIN).unwrap();
    assert_eq!(flow.names().collect::<Vec<_>>(), ["login", "PUT /items/{token}", "GET /logout"]);
    assert_eq!(flow.values, 4);
    let values = ["7", "2", "c", "t/1"].map(|value| Some(value.to_owned()));
    let filled = |text: &Text| text.filled(&values).unwrap();
    let [login, put, _] = &flow.steps[..] else { panic!("{flow:?}") };
    assert_eq!(filled(&login.body), "password=p%26q&user=anna7");
    assert_eq!(login.headers[0].0, "content-type");
    assert_eq!(
        login.takes.iter().map(|take| take.place).collect::<Vec<_>>(),
        [2, 3],
        "in the order of names"
    );
    assert_eq!(&*login.takes[1].missing, "step 1 (login): no `token` in the answer (json data.token)");
    assert_eq!(filled(&put.path), "/items/t%2F1");
    let headers: Vec<String> =
        put.headers.iter().map(|(name, text)| format!("{name}: {}", filled(text))).collect();
    assert_eq!(headers, ["content-type: application/json", "authorization: Bearer t/1", "x-csrf: c"]);
    let body: serde_json::Value = serde_json::from_str(&filled(&put.body)).unwrap();
    assert_eq!(body, serde_json::json!({ "name": "item 2", "tags": ["a", "c"] }));
}

#[test]
fn what_makes_no_sense_is_told_with_its_line() {
    for (text, sentence) in [
        (
            "[[step]]\nget = \"/{token}\"",
            "line 1: `{token}` is taken by no step before this one (a brace by itself is `{{`)",
        ),
        (
            "\n[[step]]\nget = \"x\"",
            "line 2: the path \"x\" begins with no slash; the server is the one of --url",
        ),
        (
            "[[step]]\nname = \"a\"",
            "line 1: a step needs a request: get, post, put, patch, delete or head, with its path",
        ),
        ("[[step]]\nget = \"/\"\npost = \"/\"", "line 1: a step is one request; write a [[step]] for each"),
        ("[[step]]\npost = \"/\"\nbody = \"\"\nform = {}", "line 1: a step has one body: form, json or body"),
        (
            "[[step]]\nget = \"/\"\ntake.a = {}",
            "line 1: `take.a` needs one place: header, cookie, json or regex",
        ),
        ("[[step]]\nget = \"/\"\ntake.user = { json = \"a\" }", "line 1: a value cannot be called \"user\""),
        ("[[step]]\nget = \"/\"\ntake.a = { regex = \"(\" }", "line 1: the pattern of `a` makes no sense"),
        ("[[step]]\nget = \"/\"\nheaders = { \"a b\" = \"c\" }", "line 1: \"a b\" is no header's name"),
        ("[[step]]\nget = \"/\"\n\nmethod = \"GET\"", "line 4: unknown field `method`"),
        ("[[step]\n", "line 1: "),
    ] {
        let error = parse(text).map(|_| ()).unwrap_err();
        assert!(error.starts_with(&format!("'flow.toml', {sentence}")), "{text}: {error}");
    }
    assert_eq!(
        parse("# nothing\n").map(|_| ()),
        Err("'flow.toml' holds no request: write a [[step]] with get = \"/path\" or post = \"/path\" for each".to_owned())
    );
}
