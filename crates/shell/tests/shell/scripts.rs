//! The shell in scripts and pipes: what it writes, and how it ends.

use crate::site::Site;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::Stdio;

/// Name and test.
pub(crate) const TESTS: &[(&str, fn())] = &[
    ("script::forms_of_rows", forms_of_rows),
    ("script::items", items),
    ("script::navigation", navigation),
    ("script::queries", queries),
    ("script::procedures", procedures),
    ("script::containers", containers),
    ("script::sources", sources),
    ("script::exit_codes", exit_codes),
    ("script::servers_that_are_none", servers_that_are_none),
    ("script::readers_that_leave", readers_that_leave),
    ("script::outputs_that_fail", outputs_that_fail),
    ("script::the_url_that_was_typed_counts", the_url_that_was_typed_counts),
];

const PLACE: [&str; 2] = ["--use", "library/books"];

/// Statements in the container of books.
#[track_caller]
fn said(site: &Site, statements: &[&str]) -> String {
    let mut arguments = vec!["-q", PLACE[0], PLACE[1]];
    arguments.extend(statements.iter().flat_map(|statement| ["-c", *statement]));
    site.good(&arguments)
}

fn forms_of_rows() {
    let site = Site::with_books();
    let query = "SELECT c.id, c.title, c.pages FROM c WHERE c.author = 'Ada' ORDER BY c.id";
    let lines = said(&site, &[query]);
    assert_eq!(
        lines,
        "{\"id\":\"1\",\"title\":\"Notes\",\"pages\":66}\n\
         {\"id\":\"2\",\"title\":\"Sketch, of \\\"it\\\"\",\"pages\":1.1}\n"
    );
    let form = |mode: &str| site.good(&["-q", PLACE[0], PLACE[1], "--mode", mode, "-c", query]);
    assert_eq!(form("jsonl"), lines);
    let json = form("json");
    assert!(json.starts_with("[\n  {\n    \"id\": \"1\",") && json.ends_with("\n  }\n]\n"), "{json}");
    assert_eq!(form("csv"), "id,title,pages\n1,Notes,66\n2,\"Sketch, of \"\"it\"\"\",1.1\n");
    assert_eq!(
        form("table"),
        "id  title            pages\n\
         --  ---------------  -----\n\
         1   Notes               66\n\
         2   Sketch, of \"it\"    1.1\n"
    );
    // Whole documents keep the spelling of their numbers in every form.
    for mode in ["jsonl", "json", "csv", "table"] {
        let all = site.good(&["-q", PLACE[0], PLACE[1], "--mode", mode, "-c", "SELECT * FROM c"]);
        assert!(all.contains("12345678901234567890") && all.contains("1.10"), "{mode}: {all}");
    }
    assert_eq!(said(&site, &["SELECT VALUE COUNT(1) FROM c"]), "3\n");
    assert_eq!(said(&site, &[".mode json", "SELECT * FROM c WHERE false"]), "[]\n");
    assert_eq!(said(&site, &[".mode csv", "SELECT * FROM c WHERE false"]), "");
    let ended = site.run(&[PLACE[0], PLACE[1], "-c", query]);
    assert!(ended.stderr.starts_with("2 rows, ") && ended.stderr.ends_with(" ms\n"), "{ended:?}");
    assert!(!ended.stdout.contains("RU"), "figures are no data");
}

fn items() {
    let site = Site::with_books();
    let item = said(&site, &["cat 1"]);
    assert!(item.contains("12345678901234567890") && item.contains("\"_etag\""), "{item}");
    assert_eq!(said(&site, &["get 2 --key Ada"]), said(&site, &["cat /library/books/2 --key [\"Ada\"]"]));
    let bad = |statement: &str| site.bad(1, &[PLACE[0], PLACE[1], "-c", statement]);
    assert!(bad("cat 9").contains("there is no item \"9\""));
    assert!(bad("cat 1 --key Bob").contains("partition key [\"Bob\"]"));
    said(&site, &["put {\"id\":\"1\",\"author\":\"Bob\"}"]);
    assert!(bad("cat 1").contains("say which one with --key: [\"Ada\"]  [\"Bob\"]"), "{}", bad("cat 1"));
    said(&site, &["rm 1 --key Bob"]);
    assert!(bad("create {\"id\":\"1\",\"author\":\"Ada\"}").contains("409"));
    for (statement, reason) in [
        ("put 7", "an item is a JSON object"),
        ("put {\"id\":", "not complete"),
        ("put {\"id\":1e}", "not JSON"),
        ("put @/nowhere/at/all", "read /nowhere/at/all"),
        ("put", "is missing"),
        ("cat 1 2", "one word too many"),
        ("rm -x 1", "-x is no option"),
    ] {
        let told = bad(statement);
        assert!(told.contains(reason), "{statement}: {told}");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("item.json");
    std::fs::write(&file, "{\"id\": \"file\",\n \"author\": \"Ada\", \"n\": 0.1000}\n").unwrap();
    assert!(said(&site, &[&format!("put @{}", file.display()), "cat file"]).contains("0.1000"));
    said(&site, &["rm file"]);
    assert_eq!(said(&site, &["SELECT VALUE COUNT(1) FROM c"]), "3\n");
}

fn navigation() {
    let site = Site::with_books();
    let all = site.good(&[
        "-q",
        "-c",
        "ls",
        "-c",
        "cd library",
        "-c",
        "ls",
        "-c",
        "cd books",
        "-c",
        "pwd",
        "-c",
        "ls",
        "-c",
        "cd ..",
        "-c",
        "pwd",
    ]);
    assert_eq!(all, "library\nbooks\n/library/books\n1\n2\n3\n/library\n");
    assert!(said(&site, &["ls -l"]).contains("{\"id\":\"3\",\"author\":\"Bob\",\"_ts\":"));
    assert!(site.good(&["-c", "ls -l library"]).contains("\"partitionKey\":\"/author\""));
    let bad = |statement: &str| site.bad(1, &["-c", statement]);
    assert!(bad("cd libary").contains("Did you mean \"library\"?"));
    assert!(bad("cd library/boks").contains("Did you mean \"books\"?"));
    assert!(bad("ls nowhere/x").contains("there is no database \"nowhere\""));
    assert!(bad("cd library/books/1").contains("see it with cat"));
    assert!(bad("cd a/b/c/d").contains("at most three parts"));
    assert!(bad("SELEC * FROM c").contains("Did you mean SELECT?"));
    assert!(bad("SELECT * FROM c").contains("cd DATABASE/CONTAINER first"));
    assert!(bad(".mode jason").contains("Did you mean json?"));
    assert!(bad(".set timng on").contains("Did you mean timing?"));
    assert!(site.good(&["-c", ".help"]).contains(".watch"));
    assert!(site.good(&["-c", ".help .watch"]).contains(".watch [--all] [--count N]"));
    assert!(bad("use library").contains("write: cd library"));
    assert!(bad("SELECT *").contains("SELECT * FROM c"));
}

fn queries() {
    let site = Site::with_books();
    let found = said(
        &site,
        &[".params @a=Ada @n=60", "SELECT c.id FROM c WHERE c.author = @a AND c.pages > @n", ".params"],
    );
    assert_eq!(found, "{\"id\":\"1\"}\n@a=\"Ada\"\n@n=60\n");
    assert_eq!(said(&site, &[".set key Bob", ".set page 1", "SELECT c.id FROM c"]), "{\"id\":\"3\"}\n");
    let plan = said(&site, &[".explain SELECT * FROM c WHERE c.pages > 60"]);
    assert!(plan.contains("pages"), "{plan}");
    let used = said(&site, &[".index SELECT * FROM c WHERE c.pages > 60"]);
    assert!(used.contains("would help:"), "{used}");
    assert!(used.contains("/pages"), "{used}");
    assert!(said(&site, &[".index"]).contains("\"indexingMode\": \"consistent\""));
    let bad = |statement: &str| site.bad(1, &[PLACE[0], PLACE[1], "-c", statement]);
    assert!(bad("SELECT *\nFRM c;").contains("\n  FRM c\n  ^^^"), "{}", bad("SELECT *\nFRM c;"));
    assert!(
        bad("SELECT NOPE(c.a) FROM c").contains("  SELECT NOPE(c.a) FROM c\n         ^"),
        "{}",
        bad("SELECT NOPE(c.a) FROM c")
    );
    assert!(bad(".explain SELECT * FRM c").contains('^'));
    assert!(bad(".explain ls").contains(".explain SELECT * FROM c"));
    assert!(bad(".params a=1").contains("@NAME=VALUE"));
    // Everything there is, from the beginning on, and an end.
    let changes = said(&site, &[".watch --all --count 3"]);
    assert_eq!(changes.lines().count(), 3);
    assert!(changes.contains("12345678901234567890"), "{changes}");
}

fn procedures() {
    let site = Site::with_books();
    let body = "function (a, b) { console.log('hello'); getContext().getResponse().setBody({sum: a + b}); }";
    let definition = serde_json::json!({"id": "add", "body": body}).to_string();
    let request = astrarium_testkit::Request::new("POST", "/dbs/library/colls/books/sprocs").body(definition);
    assert_eq!(site.server.client().send(&request).unwrap().status, 201);
    assert_eq!(said(&site, &[".sproc ls"]), "add\n");
    assert_eq!(said(&site, &[".sproc run add [1, 2] --key Ada"]), "{\n  \"sum\": 3\n}\n");
    let ended = site.run(&[PLACE[0], PLACE[1], "-c", ".set key Ada", "-c", ".sproc run add [1, 2]"]);
    assert!(ended.stderr.contains("hello"), "{ended:?}");
    let bad = |statement: &str| site.bad(1, &[PLACE[0], PLACE[1], "-c", statement]);
    assert!(bad(".sproc run add").contains("--key KEY"));
    assert!(bad(".sproc run add {} --key Ada").contains("JSON array"));
    assert!(bad(".sproc run nope --key Ada").contains("404"));
}

fn containers() {
    let site = Site::with_books();
    let info = said(&site, &[".mode table", ".info"]);
    for part in ["library/books", "[\"/author\"]", "items          3", "partition  from  to"] {
        assert!(info.contains(part), "{part:?} in {info}");
    }
    assert!(site.good(&["-c", ".info"]).contains("\"consistency\":\"Session\""));
    assert!(site.good(&["--use", "library", "-c", ".info"]).contains("\"containers\":\"1\""));
    assert_eq!(
        said(&site, &[".throughput", ".throughput 500", ".throughput auto 4000"]),
        "400 RU/s\n500 RU/s\n4000 RU/s at most, scaled automatically\n"
    );
    let bad = |statement: &str| site.bad(1, &["--use", "library", "-c", statement]);
    assert!(bad("mkcontainer x").contains("path of its partition key"));
    assert!(bad("mkcontainer x y").contains("begins with /"));
    assert!(bad("mkcontainer books /a").contains("409"));
    assert!(bad("rm books").contains("rm -y /library/books"));
    site.good(&["-c", "mkcontainer /library/deep /a /b", "-c", "rm -y /library/books"]);
    assert_eq!(site.good(&["-c", "ls library"]), "deep\n");
    site.good(&[
        "--use",
        "library/deep",
        "-c",
        "put {\"id\":\"1\",\"a\":1,\"b\":null}",
        "-c",
        "cat 1 --key [1,null]",
        "-c",
        "rm 1",
    ]);
}

fn sources() {
    let site = Site::with_books();
    let script = "-- two statements\nSELECT VALUE c.id\nFROM c WHERE c.id = '1';\npwd\n\nSELECT VALUE c.id FROM c WHERE c.id = '2'\n";
    assert_eq!(
        site.run_with(&["-q", PLACE[0], PLACE[1]], script).stdout,
        "1\n/library/books\n2\n".replace("1\n/", "\"1\"\n/").replace("\n2\n", "\n\"2\"\n")
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.sql");
    std::fs::write(&file, script).unwrap();
    let ended = site.run(&["-q", PLACE[0], PLACE[1], "-c", "pwd", "-f", file.to_str().unwrap()]);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "/library/books\n\"1\"\n/library/books\n\"2\"\n"));
    assert_eq!(site.run_with(&["-q", "-f", "-"], "pwd").stdout, "/\n");
    assert_eq!(site.run_with(&["-q"], "pwd\nexit\npwd\n").stdout, "/\n");
    // The address as a word of its own, and as a connection string.
    let bare = Site { server: site.server, endpoint: String::new() };
    assert_eq!(bare.good(&[&site.endpoint, "-c", "ls"]), "library\n");
    let key = astrarium_wire::key_text::EMULATOR_KEY;
    assert_eq!(
        bare.good(&[&format!("AccountEndpoint={};AccountKey={key};", site.endpoint), "-c", "ls"]),
        "library\n"
    );
}

fn exit_codes() {
    let site = Site::with_books();
    assert_eq!(site.good(&["-c", ""]), "");
    let ended = site.run(&["-c", "nonsense", "-c", "ls"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (1, ""), "the first failure is the end");
    let ended = site.run(&["--keep-going", "-c", "nonsense", "-c", "ls"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (1, "library\n"));
    site.bad(2, &["--nonsense"]);
    site.bad(2, &["--mode", "xml"]);
    site.bad(2, &["-f", "/nowhere/at/all"]);
    site.bad(2, &["--use", "a/b/c"]);
    let told = site.bad(3, &["--key", &"A".repeat(64), "-c", "ls", "-c", "pwd"]);
    assert!(told.contains("refuses the key") && !told.contains("AAAA"), "{told}");
    let told = site.bad(3, &["--key", "not base64!", "-c", "ls"]);
    assert!(told.contains("key") && !told.contains("not base64!"), "{told}");
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let bare = Site { server: site.server, endpoint: format!("http://{nobody}") };
    let told = bare.bad(3, &["--keep-going", "-c", "ls", "-c", "ls"]);
    assert_eq!(told.matches("is the server running?").count(), 1, "{told}");
    let bare = Site { server: bare.server, endpoint: String::new() };
    assert!(bare.bad(3, &["localhost:8081", "-c", "ls"]).contains("must begin with http"));
}

fn servers_that_are_none() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut line = String::new();
            while reader.read_line(&mut line).unwrap_or(0) > 2 {
                line.clear();
            }
            let page = "<html><title>\u{1b}[2J</title></html>";
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
                page.len()
            );
        }
    });
    let site = Site { server: Site::empty().server, endpoint };
    let told = site.bad(3, &["-c", "ls"]);
    assert!(told.contains("answers with a web page") && !told.contains('\u{1b}'), "{told}");
}

fn readers_that_leave() {
    let site = Site::with_books();
    let filler = "x".repeat(60_000);
    for number in 0..6 {
        said(&site, &[&format!("put {{\"id\":\"f{number}\",\"author\":\"F\",\"filler\":\"{filler}\"}}")]);
    }
    let mut command =
        site.command(&["-q", PLACE[0], PLACE[1], "-c", "SELECT * FROM c", "-c", "SELECT * FROM c"]);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let ended = child.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(ended.status.success() && told.is_empty(), "{told}");
}

/// A full disk is a failure, and is told; that nobody can be told is none.
fn outputs_that_fail() {
    let site = Site::with_books();
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = site.command(&[PLACE[0], PLACE[1], "-c", "SELECT * FROM c"]);
    let ended = command.stdin(Stdio::null()).stdout(full()).stderr(Stdio::piped()).output().unwrap();
    let told = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(1), "{told}");
    assert!(told.contains("write the output: No space left"), "{told}");
    for (statement, code) in [("SELECT * FROM c", 0), ("nonsense", 1)] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = site.command(&[PLACE[0], PLACE[1], "-c", statement]);
        let ended = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(writer).status().unwrap();
        assert_eq!(ended.code(), Some(code), "{statement}");
    }
}

fn the_url_that_was_typed_counts() {
    let mut site = Site::with_books();
    let endpoint = std::mem::take(&mut site.endpoint);
    let run = |arguments: &[&str], variable: &str| {
        let mut command = site.command(arguments);
        command.env("ASTRARIUM_ENDPOINT", variable).stdin(Stdio::null());
        command.output().unwrap().status.code()
    };
    assert_eq!(run(&[&endpoint, "-c", "ls"], "http://127.0.0.1:1"), Some(0));
    assert_eq!(run(&["--endpoint", &endpoint, "-c", "ls"], "http://127.0.0.1:1"), Some(0));
    assert_eq!(run(&["-c", "ls"], &endpoint), Some(0));
    assert_eq!(run(&["-c", "ls"], "http://127.0.0.1:1"), Some(3));
}
