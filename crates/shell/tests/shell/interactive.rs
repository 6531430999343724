//! The shell in a pseudo-terminal.

use crate::site::Site;
use crate::terminal::{Terminal, plain};
use std::os::unix::fs::PermissionsExt as _;
use unicode_width::UnicodeWidthStr as _;

/// Name and test.
pub(crate) const TESTS: &[(&str, fn())] = &[
    ("terminal::completion", completion),
    ("terminal::multi_line", multi_line),
    ("terminal::what_is_open", what_is_open),
    ("terminal::help", help),
    ("terminal::history", history),
    ("terminal::forty_columns", forty_columns),
    ("terminal::colours", colours),
    ("terminal::interrupts", interrupts),
    ("terminal::pager", pager),
    ("terminal::removal_is_confirmed", removal_is_confirmed),
    ("terminal::editing", editing),
    ("terminal::hostile_text", hostile_text),
];

const PLACE: [&str; 2] = ["--use", "library/books"];

fn completion() {
    let site = Site::with_books();
    let mut terminal = Terminal::start(&site, 100, &[], &[]);
    terminal.send("cd lib\t");
    terminal.expect("library/");
    terminal.send("bo\t");
    terminal.expect("books");
    terminal.send("\r");
    terminal.expect("/library/books> ");
    terminal.send("SELECT c.pag\t");
    terminal.expect("c.pages");
    terminal.send(" FROM c WHE\t");
    terminal.expect("WHERE");
    terminal.send(" c.address.ci\t");
    terminal.expect("c.address.city");
    terminal.send(" = 'Rome' AND STARTSW\t");
    terminal.expect("STARTSWITH(");
    terminal.send("c.title, 'T');\r");
    terminal.expect("1 row");
    terminal.expect("> ");
    terminal.send(".thr\t\r");
    terminal.expect("RU/s");
    terminal.expect("> ");
    // Items: two candidates have nothing in common, so both are shown.
    terminal.send("cat \t");
    terminal.expect("1");
    terminal.send("3\r");
    terminal.expect("\"city\": \"Rome\"");
    terminal.expect(" ms");
    assert_eq!(terminal.leave(), 0);
}

fn multi_line() {
    let site = Site::with_books();
    let mut terminal = Terminal::start(&site, 100, &PLACE, &[]);
    terminal.send("SELECT VALUE c.title\r");
    terminal.send("FROM c\r");
    terminal.send("WHERE c.id = '3';\r");
    let shown = terminal.expect(" ms");
    assert!(shown.contains("Third") && shown.contains("1 row"), "{shown:?}");
    terminal.expect("> ");
    // An empty line ends it too, and a line that is a whole query needs nothing.
    terminal.send("SELECT VALUE c.title\r");
    terminal.send("FROM c WHERE c.id IN ('1')\r");
    terminal.send("\r");
    assert!(terminal.expect(" ms").contains("Notes"));
    terminal.expect("> ");
    assert!(terminal.say("SELECT VALUE COUNT(1) FROM c").contains("1 row"));
    // What cannot become a query is told at once, at its place.
    terminal.send("SELECT * FRM c\r");
    terminal.expect("^^^");
    terminal.expect("> ");
    terminal.send("sl\r");
    terminal.expect("Did you mean ls?");
    assert_eq!(terminal.leave(), 0);
}

/// A statement that goes on says what is open, and there are three ways out of it.
fn what_is_open() {
    let site = Site::with_books();
    let mut terminal = Terminal::start(&site, 100, &PLACE, &[]);
    terminal.send("SELECT * FROM c WHERE c.title = 'Notes\r");
    terminal.expect("' is open: ; or an empty line ends the statement, .cancel drops it");
    // Within a quote `;` alone ends the statement, which is told what is wrong with it.
    terminal.send(";\r");
    terminal.expect("error:");
    terminal.expect("/library/books> ");
    terminal.send("SELECT VALUE (c.pages + [1\r");
    terminal.expect("[ is open: ");
    terminal.send("]\r");
    terminal.expect("( is open: ");
    terminal.send("\r");
    terminal.expect("error:");
    terminal.expect("/library/books> ");
    terminal.send("put {\"id\": \"9\",\r");
    terminal.expect("{ is open: ");
    terminal.send(".cancel\r");
    terminal.expect("/library/books> ");
    terminal.send("SELECT VALUE c.title /* a remark\r");
    terminal.expect("/* is open: ");
    terminal.send("*/ FROM c\r");
    terminal.expect("; or an empty line ends the statement");
    // Names are offered in later lines too.
    terminal.send("WHERE STARTSW\t");
    terminal.expect("STARTSWITH(");
    terminal.send("c.pag\t");
    terminal.expect("c.pages");
    terminal.send("\u{3}");
    terminal.expect("/library/books> ");
    // Nothing of all that was done, and the shell is where it was.
    assert!(terminal.say("SELECT VALUE COUNT(1) FROM c").contains('3'));
    // Recalled, it is one statement of several lines.
    terminal.send("SELECT VALUE c.title\rFROM c WHERE c.id = '3';\r");
    terminal.expect("Third");
    terminal.expect(" ms");
    terminal.expect("> ");
    terminal.send("\u{1b}[A\r");
    terminal.expect("Third");
    terminal.expect(" ms");
    terminal.expect("> ");
    assert_eq!(terminal.leave(), 0);
}

/// All commands on one screen without a pager, and more about each.
fn help() {
    let site = Site::with_books();
    let mut terminal = Terminal::start(&site, 80, &PLACE, &[("PAGER", "sed s/^/PAGED:/")]);
    terminal.send(".help\r");
    let shown = terminal.expect("> ");
    let lines: Vec<&str> = shown.lines().skip(1).collect();
    assert!(lines.len() <= 23 && !shown.contains("PAGED:"), "{} lines: {shown}", lines.len());
    assert!(lines.iter().all(|line| line.width() < 80), "{shown}");
    for name in ["SELECT", "mkcontainer", ".throughput", ".quit", ".help NAME"] {
        assert!(shown.contains(name), "{name} in {shown}");
    }
    for (name, fragment) in [
        ("put", "put @item.json"),
        (".sproc", "JSON array"),
        ("select", "OFFSET 0 LIMIT 10"),
        ("watch", "--all"),
    ] {
        terminal.send(&format!(".help {name}\r"));
        terminal.expect(fragment);
        terminal.expect("> ");
    }
    for (line, fragment) in [
        ("use library", "write: cd library"),
        ("show databases", "ls lists"),
        ("db.books.find()", "SELECT * FROM c"),
    ] {
        terminal.send(&format!("{line}\r"));
        terminal.expect(fragment);
        terminal.expect("> ");
    }
    // In a table a row without the property is no empty line.
    let shown = terminal.say("SELECT c.tags FROM c");
    assert_eq!(shown.matches("{}").count(), 2, "{shown:?}");
    let shown = terminal.say("SELECT c.nope FROM c");
    assert_eq!(shown.matches("{}").count(), 3, "{shown:?}");
    // What the server adds is left out of whole items only.
    assert!(terminal.say("SELECT c.id, c._ts FROM c").contains("_ts"));
    assert!(!terminal.say("SELECT * FROM c").contains("_etag"));
    assert_eq!(terminal.leave(), 0);
}

fn history() {
    let site = Site::with_books();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state").join("history");
    let variables = [("ASTRARIUM_HISTORY", file.to_str().unwrap())];
    let key = astrarium_wire::key_text::EMULATOR_KEY;
    let mut terminal = Terminal::start(&site, 200, &PLACE, &variables);
    terminal.say("SELECT VALUE c.title FROM c WHERE c.id = '3'");
    terminal.say("ls");
    terminal.send(&format!("SELECT '{key}' AS k;\r"));
    terminal.expect(" ms");
    terminal.expect("> ");
    terminal.send(" pwd\r");
    terminal.expect("/library/books\r\n");
    terminal.expect("> ");
    assert_eq!(terminal.leave(), 0);
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(text, "SELECT VALUE c.title FROM c WHERE c.id = '3'\nls\n", "no key, nothing after a space");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    // Another shell finds it: by the arrow, and by a search.
    let mut terminal = Terminal::start(&site, 200, &PLACE, &variables);
    terminal.send("\u{1b}[A");
    terminal.expect("ls");
    terminal.send("\u{3}");
    terminal.expect("> ");
    terminal.send("\u{12}c.title");
    terminal.expect("SELECT VALUE c.title FROM c WHERE c.id = '3'");
    terminal.send("\r");
    terminal.expect("Third");
    terminal.expect(" ms");
    assert_eq!(terminal.leave(), 0);
}

fn forty_columns() {
    let site = Site::with_books();
    site.good(&[
        PLACE[0],
        PLACE[1],
        "-c",
        &format!(
            "put {{\"id\":\"long\",\"author\":\"Ada\",\"title\":\"{}\",\"pages\":7}}",
            "wide 漢字 ".repeat(40)
        ),
    ]);
    let mut terminal = Terminal::start(&site, 40, &PLACE, &[("PAGER", "")]);
    for query in ["SELECT c.id, c.title, c.pages FROM c", "SELECT * FROM c", "ls -l", ".info", ".help"] {
        terminal.send(&format!("{query}\r"));
        let shown = if query == ".help" { terminal.expect("Ctrl-R") } else { terminal.expect(" ms") };
        let output = shown.split_once("\r\n").map_or("", |(_, output)| output);
        assert!(!output.is_empty(), "{shown:?}");
        for line in output.split("\r\n").filter(|_| query.starts_with("SELECT") || query == "ls -l") {
            assert!(line.width() <= 40, "{query}: {line:?}");
        }
        terminal.expect("> ");
    }
    assert_eq!(terminal.leave(), 0);
}

fn colours() {
    let site = Site::with_books();
    let shown = |variables: &[(&str, &str)]| {
        let mut terminal = Terminal::start(&site, 80, &PLACE, variables);
        terminal.say("SELECT * FROM c");
        terminal.send("nonsense\r");
        terminal.expect("error:");
        let raw = terminal.raw();
        assert_eq!(terminal.leave(), 0);
        raw
    };
    assert!(shown(&[]).contains("\u{1b}[1;31merror:"));
    for variables in [[("NO_COLOR", "1")], [("TERM", "dumb")]] {
        let raw = shown(&variables);
        let is_coloured = raw.split("\u{1b}[").skip(1).any(|part| {
            part.find(|one: char| one.is_ascii_alphabetic()).is_some_and(|at| part[at..].starts_with('m'))
        });
        assert!(!is_coloured, "{variables:?}: {raw:?}");
    }
}

fn interrupts() {
    let site = Site::with_books();
    let mut terminal = Terminal::start(&site, 80, &PLACE, &[("PAGER", "")]);
    terminal.send(".watch\r");
    terminal.expect("watching");
    site.good(&[PLACE[0], PLACE[1], "-c", "put {\"id\":\"new\",\"author\":\"Eve\"}"]);
    terminal.expect("\"id\":\"new\"");
    terminal.send("\u{3}");
    let shown = terminal.expect("ended");
    assert!(!shown.contains("error"), "{shown:?}");
    terminal.expect("> ");
    // The shell is still there, and a line that is begun is dropped by the same key.
    terminal.send("SELECT 'begun");
    terminal.expect("begun");
    terminal.send("\u{3}");
    terminal.expect("> ");
    assert!(terminal.say("SELECT VALUE COUNT(1) FROM c").contains('4'));
    // A query that would take hours is cancelled, and nothing else.
    let numbers: Vec<String> = (0..3_000).map(|number| number.to_string()).collect();
    let item = format!("put {{\"id\":\"many\",\"author\":\"Eve\",\"l\":[{}]}}", numbers.join(","));
    site.good(&[PLACE[0], PLACE[1], "-c", &item]);
    terminal
        .send("SELECT VALUE COUNT(1) FROM c JOIN a IN c.l JOIN b IN c.l JOIN d IN c.l WHERE a + b + d < 0\r");
    terminal.expect("< 0");
    std::thread::sleep(std::time::Duration::from_millis(500));
    terminal.send("\u{3}");
    terminal.expect("cancelled");
    terminal.expect("> ");
    assert!(terminal.say("SELECT VALUE COUNT(1) FROM c").contains('5'));
    assert_eq!(terminal.leave(), 0);
}

fn pager() {
    let site = Site::with_books();
    let mut terminal = Terminal::start(&site, 80, &PLACE, &[("PAGER", "sed s/^/PAGED:/")]);
    let short = terminal.say("SELECT c.id FROM c");
    assert!(!short.contains("PAGED:"), "{short:?}");
    terminal.send(".mode json\r");
    terminal.expect("> ");
    let long = terminal.say("SELECT * FROM c");
    assert!(
        long.contains("PAGED:    \"city\": \"Rome\"") || long.contains("PAGED:      \"city\": \"Rome\""),
        "{long:?}"
    );
    // Whoever leaves the pager early has seen enough: nothing is cancelled, and what was typed after it runs.
    let items: Vec<String> = (0..300)
        .map(|number| {
            format!("put {{\"id\":\"p{number}\",\"author\":\"Eve\",\"text\":\"{}\"}};", "x".repeat(2_000))
        })
        .collect();
    let ended = site.run_with(&PLACE, &items.join("\n"));
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let mut early = Terminal::start(&site, 80, &PLACE, &[("PAGER", "head -n 1 | sed s/^/FIRST:/")]);
    early.send(".mode json\r");
    early.expect("> ");
    early.send("SELECT * FROM c; SELECT VALUE 'after' FROM c WHERE c.id = '1';\r");
    let shown = early.expect("\"after\"");
    assert!(shown.contains("FIRST:") && !shown.contains("cancelled"), "{shown:?}");
    assert_eq!(early.leave(), 0);
    terminal.send(".set pager off\r");
    terminal.expect("> ");
    let plain = terminal.say("SELECT * FROM c");
    assert!(plain.contains("Rome") && !plain.contains("PAGED:"), "{plain:?}");
    assert_eq!(terminal.leave(), 0);
}

fn removal_is_confirmed() {
    let site = Site::with_books();
    let mut terminal = Terminal::start(&site, 80, &PLACE, &[]);
    terminal.send("rm 3\r");
    terminal.expect("[y/N] ");
    terminal.send("n\r");
    terminal.expect("nothing was removed");
    terminal.expect("> ");
    terminal.send("rm 3\r");
    terminal.expect("[y/N] ");
    terminal.send("y\r");
    terminal.expect("removed");
    terminal.expect("> ");
    terminal.send("rm /library\r");
    terminal.expect("to go on: ");
    terminal.send("books\r");
    terminal.expect("nothing was removed");
    terminal.expect("> ");
    terminal.send("rm /library\r");
    terminal.expect("to go on: ");
    terminal.send("library\r");
    terminal.expect("removed");
    terminal.expect("\r/> ");
    assert_eq!(terminal.leave(), 0);
    assert_eq!(site.good(&["-c", "ls"]), "");
}

fn editing() {
    let site = Site::with_books();
    let folder = tempfile::tempdir().unwrap();
    let temporary = folder.path().to_str().unwrap();
    let script = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        format!("sh {}", path.display())
    };
    let good = script("good", "sed -i 's/\"Notes\"/\"More notes\"/' \"$1\"\n");
    let program = std::env::current_exe().unwrap();
    let other = format!(
        "'{}' --as-shell --endpoint {} --use library/books -q -c 'put {{\"id\":\"1\",\"author\":\"Ada\",\"title\":\"Theirs\"}}' </dev/null\n\
         sed -i 's/More notes/Mine/' \"$1\"\n",
        program.display(),
        site.endpoint
    );
    let conflicting = script("conflicting", &format!("unset ASTRARIUM_SHELL_TEST_TERMINAL\n{other}"));
    let broken = script("broken", "echo '{' > \"$1\"\n");
    let kept = |shown: &str| {
        let path = shown
            .split("kept in ")
            .nth(1)
            .and_then(|rest| rest.split_whitespace().next())
            .unwrap()
            .to_owned();
        std::fs::read_to_string(path).unwrap()
    };
    let run = |editor: &str| {
        let mut terminal = Terminal::start(&site, 200, &PLACE, &[("EDITOR", editor), ("TMPDIR", temporary)]);
        let shown = terminal.say(".edit 1");
        assert_eq!(terminal.leave(), 0);
        shown
    };
    assert!(run(&good).contains("replaced"));
    let item = site.good(&[PLACE[0], PLACE[1], "-c", "cat 1"]);
    assert!(item.contains("\"More notes\"") && item.contains("12345678901234567890"), "{item}");
    assert!(run("true").contains("nothing was changed"));
    let shown = run(&conflicting);
    assert!(
        shown.contains("+   \"title\": \"Theirs\"") && shown.contains("+   \"title\": \"Mine\""),
        "{shown:?}"
    );
    assert!(kept(&shown).contains("\"Mine\""), "what was typed is not lost");
    assert!(site.good(&[PLACE[0], PLACE[1], "-c", "cat 1"]).contains("Theirs"), "nothing was overwritten");
    let shown = run(&broken);
    assert!(shown.contains("no JSON"), "{shown:?}");
    assert_eq!(kept(&shown), "{\n");
}

fn hostile_text() {
    let site = Site::with_books();
    let hostile = "\\u001b]0;owned\\u0007\\u001b[2J\\u009b31m\\u202e";
    let item =
        format!("put {{\"id\":\"h{hostile}\",\"author\":\"Eve\",\"a{hostile}\":\"v{hostile}\",\"pages\":3}}");
    // As a client that does not escape would send it, too.
    let raw = "put {\"id\":\"raw\",\"author\":\"Eve\",\"v\":\"\u{7f}\u{9b}31m\u{202e}\"}";
    site.good(&[PLACE[0], PLACE[1], "-c", &item, "-c", raw]);
    let mut terminal = Terminal::start(&site, 120, &PLACE, &[("PAGER", ""), ("NO_COLOR", "1")]);
    for line in [
        "SELECT * FROM c WHERE c.author = 'Eve'",
        "ls",
        "ls -l",
        "cat raw",
        "SELECT c.nope FROM c WHERE c['\\u001b[2J",
    ] {
        terminal.send(&format!("{line}\r"));
        if line.ends_with("2J") {
            terminal.send("'];\r");
        }
        terminal.expect(" ms");
        terminal.expect("> ");
    }
    for mode in ["json", "jsonl", "csv"] {
        terminal.send(&format!(".mode {mode}\r"));
        terminal.expect("> ");
        terminal.say("SELECT * FROM c WHERE c.author = 'Eve'");
    }
    terminal.send("cat \t");
    terminal.expect("raw");
    let shown = terminal.raw();
    assert!(plain(&shown).contains("\\u001b"), "{shown:?}");
    for harm in ["\u{1b}]0;", "\u{1b}[2J", "\u{9b}", "\u{202e}", "\u{7f}"] {
        assert!(!shown.contains(harm), "{harm:?} in {shown:?}");
    }
    // Elsewhere than on a terminal, documents stay as they are.
    assert!(site.good(&[PLACE[0], PLACE[1], "-c", "cat raw"]).contains("\u{7f}\u{9b}31m\u{202e}"));
}
