//! Files of every kind, good, broken and hostile.

use crate::meddler::meddler;
use crate::world::World;
use astrarium_testkit::{EngineKind, Key, Options, Request};
use astrarium_tools::{AccountSettings, ExistingMode, FileFormat};
use std::io::Write as _;

#[test]
fn lines_arrays_and_compression() {
    let world = World::furnished();
    let line = |number: u32| {
        format!("{{\"id\":\"{number}\",\"pk\":\"k{}\",\"n\":12345678901234567890,\"m\":1.10}}", number % 7)
    };
    let lines: Vec<String> = (0..500).map(line).collect();
    let report = world.import(&world.import_of(world.file("a.jsonl", lines.join("\n"))));
    assert!(report.is_complete && report.text.starts_with("500 documents written to d/c"), "{report:?}");
    let mut expected = lines.clone();
    expected.sort();
    assert_eq!(world.documents(), expected);
    // The same again: all of them exist.
    let mut again = world.import_of(world.file("a.json", format!("[{}]", lines.join(",\n"))));
    let report = world.import(&again);
    assert!(
        !report.is_complete && report.text.contains("500 failed") && report.text.contains("row 1: 409"),
        "{report:?}"
    );
    again.mode = ExistingMode::Skip;
    let report = world.import(&again);
    assert!(report.is_complete && report.text.contains("500 existed"), "{report:?}");
    again.mode = ExistingMode::Upsert;
    let changed = lines.join("\n").replace("1.10", "2.5");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(changed.as_bytes()).unwrap();
    again.file = world.file("changed", packed.finish().unwrap());
    assert!(world.import(&again).is_complete);
    assert!(world.documents().iter().all(|line| line.contains("\"m\":2.5")));
    again.file = world.file("changed.zst", zstd::encode_all(lines.join("\n").as_bytes(), 1).unwrap());
    again.format = Some(FileFormat::JsonLines);
    assert!(world.import(&again).is_complete);
    assert_eq!(world.documents(), expected);
}

#[test]
fn templates_types_and_new_containers() {
    let world = World::new();
    let csv = "country,city,n,when\nde,Köln,007,true\nfr,\"Le \"\"Mans\"\"\",12345678901234567890,false\n";
    let mut settings = world.import_of(world.file("a.csv", csv));
    world.refused(&settings, &["there is no container d/c", "--create-container"]);
    settings.create_container = Some("/pk".to_owned());
    settings.throughput = Some(500);
    settings.id = Some("{country}-{#}".to_owned());
    settings.partition_key = vec!["{country}:{city}".to_owned()];
    settings.dry_run = true;
    let report = world.import(&settings);
    assert!(report.text.contains("2 rows, 2 of them good"), "{report:?}");
    assert_eq!(
        world.server.client().ask(&Request::new("GET", "/dbs/d")).status,
        404,
        "a dry run makes nothing"
    );
    settings.dry_run = false;
    world.import(&settings);
    assert_eq!(
        world.documents(),
        [
            "{\"id\":\"de-1\",\"pk\":\"de:Köln\",\"country\":\"de\",\"city\":\"Köln\",\"n\":\"007\",\"when\":true}",
            "{\"id\":\"fr-2\",\"pk\":\"fr:Le \\\"Mans\\\"\",\"country\":\"fr\",\"city\":\"Le \\\"Mans\\\"\",\"n\":\"12345678901234567890\",\"when\":false}"
        ]
    );
    let offers = world.server.client().expect(200, &Request::new("GET", "/offers")).text();
    assert!(offers.contains("\"offerThroughput\":500"), "{offers}");
    settings.create_container = Some("/other".to_owned());
    world.refused(&settings, &["its partition key is /pk, not /other"]);
    settings.create_container = None;
    settings.partition_key.push("x".to_owned());
    world.refused(&settings, &["has 1 paths", "2 times"]);
    settings.partition_key = vec!["{nothing}".to_owned()];
    world.refused(&settings, &["2 bad rows of 2", "row 1: a template needs the property \"nothing\""]);
}

#[test]
fn bad_files_change_nothing() {
    let world = World::furnished();
    let good = "{\"id\":\"1\",\"pk\":\"a\"}\n";
    let cases: &[(&str, String, &[&str])] = &[
        (
            "broken.jsonl",
            format!("{good}{{\"id\":\n"),
            &["1 bad rows of 2", "row 2: it is not JSON", "--failed"],
        ),
        ("number.jsonl", format!("{good}7\n"), &["row 2: it is not an object"]),
        ("id.jsonl", format!("{good}{{\"id\":7}}\n"), &["its id is not a string", "--id '{id}'"]),
        ("utf8.jsonl", String::new(), &["not JSON"]),
        ("ragged.csv", "id,pk\n1,a\n2\n".to_owned(), &["row 2: the row has 1 cells, the first line 2 names"]),
        ("twice.csv", "id,id\n1,2\n".to_owned(), &["two columns are called"]),
        ("cut.json", format!("[{good},{{\"id\":\"2\""), &["the text ends within a value"]),
        ("open.json", format!("[{good}"), &["the array does not end"]),
        ("deep.jsonl", format!("{good}{}\n", "[".repeat(100_000)), &["row 2: it is not JSON"]),
        ("long.jsonl", format!("{good}{{\"x\":\"{}\"}}\n", "x".repeat(5 << 20)), &["longer than 4 MB"]),
        ("what.dat", "hello".to_owned(), &["--format"]),
        ("key.jsonl", format!("{{\"id\":\"1\",\"pk\":\"{}\"}}\n", "x".repeat(3000)), &["row 1"]),
    ];
    for (name, content, fragments) in cases {
        let bytes = if *name == "utf8.jsonl" {
            b"{\"id\":\"1\"}\n{\"a\":\"\xff\"}\n".to_vec()
        } else {
            content.clone().into_bytes()
        };
        world.refused(&world.import_of(world.file(name, bytes)), fragments);
        assert!(world.documents().is_empty(), "{name}");
    }
    let cut = zstd::encode_all("{\"id\":\"1\",\"pk\":\"a\"}\n".repeat(1000).as_bytes(), 1).unwrap();
    world.refused(&world.import_of(world.file("cut.jsonl.zst", &cut[..cut.len() - 5])), &["read"]);
    world.refused(&world.import_of(world.path("missing")), &["open"]);
    world.refused(&world.import_of(world.folder.path().to_owned()), &["folder"]);
    assert!(world.documents().is_empty());
    assert!(world.import(&world.import_of(world.file("empty.jsonl", ""))).is_complete);
}

#[test]
fn rows_that_fail_go_into_a_file() {
    let world = World::furnished();
    let text = format!(
        "{{\"id\":\"1\",\"pk\":\"a\"}}\nnonsense\n{{\"id\":\"1\",\"pk\":\"a\",\"n\":1.10}}\n{{\"id\":\"2\",\"pk\":\"a\",\"x\":\"{}\"}}\n{{\"id\":\"{}\",\"pk\":\"a\"}}\n{{\"pk\":\"a\"}}\n",
        "x".repeat(3 << 20),
        "y".repeat(2000),
    );
    let mut settings = world.import_of(world.file("a.jsonl", text));
    settings.failed = Some(world.path("failed.jsonl"));
    // One by one, or the two with one id might race.
    settings.workers = 1;
    let report = world.import(&settings);
    assert!(
        !report.is_complete
            && report.text.contains("2 documents written")
            && report.text.contains("4 failed"),
        "{report:?}"
    );
    let failed = std::fs::read_to_string(world.path("failed.jsonl")).unwrap();
    let mut rows: Vec<serde_json::Value> =
        failed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    rows.sort_by_key(|row| row["row"].as_u64());
    let told: Vec<(u64, u64)> =
        rows.iter().map(|row| (row["row"].as_u64().unwrap(), row["status"].as_u64().unwrap())).collect();
    assert_eq!(told, [(2, 0), (3, 409), (4, 413), (5, 400)], "{failed:.2000}");
    assert_eq!(rows[0]["text"], "nonsense");
    assert!(failed.contains("\"n\":1.10"), "the document as it was");
    assert!(rows[3]["reason"].as_str().unwrap().contains("1024"), "{}", rows[3]["reason"]);
    let documents = world.documents();
    assert_eq!(documents.len(), 2);
    assert!(
        documents.iter().any(|document| document.len() > 40),
        "one has an id that was made: {documents:?}"
    );
}

#[test]
fn an_import_goes_on_without_duplicates() {
    let world = World::furnished();
    let lines: Vec<String> =
        (0..300).map(|number| format!("{{\"pk\":\"k{number}\",\"n\":{number}}}\n")).collect();
    let lines = lines.concat();
    let mut settings = world.import_of(world.file("a.jsonl", &lines));
    settings.resume = Some(world.path("resume"));
    world.import(&settings);
    let documents = world.documents();
    assert_eq!(documents.len(), 300);
    // As after an interruption: everything was sent, and the file knows of some of it only.
    let resume = std::fs::read_to_string(world.path("resume")).unwrap();
    let head = resume.lines().next().unwrap();
    std::fs::write(world.path("resume"), format!("{head}\n{{\"done\":40,\"sent\":20000}}\n{{\"done\":4"))
        .unwrap();
    let report = world.import(&settings);
    assert!(report.is_complete && report.text.contains("after 40 rows of an earlier run"), "{report:?}");
    assert_eq!(world.documents(), documents);
    let report = world.import(&settings);
    assert!(report.text.starts_with("0 documents written"), "{report:?}");
    // Another import is not this one.
    let mut other = settings.clone();
    other.file = world.file("b.jsonl", lines.replace("\"n\"", "\"m\""));
    world.refused(&other, &["not a resume file of this import", "fileStart"]);
    other = settings.clone();
    other.mode = ExistingMode::Upsert;
    world.refused(&other, &["mode"]);
    std::fs::write(world.path("resume"), "hello\n").unwrap();
    world.refused(&settings, &["not a resume file"]);
    assert_eq!(world.documents(), documents);
}

#[test]
fn low_throughput_and_rates() {
    let world = World::with(Options { throttling: true, ..Options::on(EngineKind::Memory) });
    world.furnish("{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}}");
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        // The server's clock stands still until a first request has spent more than a second's throughput, and so was refused in part.
        scope.spawn(|| {
            while world.spent() < 300.0 && !stop.load(std::sync::atomic::Ordering::Relaxed) {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                world.server.clock().advance_seconds(1);
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
        });
        let lines: Vec<String> =
            (0..600).map(|number| format!("{{\"id\":\"{number}\",\"pk\":\"a\"}}\n")).collect();
        let lines = lines.concat();
        let report = world.import(&world.import_of(world.file("a.jsonl", lines)));
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(report.is_complete && report.text.contains("600 documents written"), "{report:?}");
        assert!(report.text.contains("asked to wait"), "{report:?}");
    });
    let world = World::furnished();
    let lines: Vec<String> =
        (0..300).map(|number| format!("{{\"id\":\"{number}\",\"pk\":\"a\"}}\n")).collect();
    let lines = lines.concat();
    let mut settings = world.import_of(world.file("a.jsonl", lines));
    settings.rate = Some(2_000.0);
    settings.workers = 1;
    let began = std::time::Instant::now();
    world.import(&settings);
    // Three requests of a hundred documents each, of which the last need not be paid for before the end.
    let spent = 200.0 * 5.0 / 2_000.0;
    assert!(began.elapsed().as_secs_f64() >= spent, "{:?}", began.elapsed());
}

#[test]
fn an_endpoint_that_is_something_else() {
    let world = World::furnished();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().take(2) {
            let mut stream = stream.unwrap();
            let _ = std::io::Read::read(&mut stream, &mut [0; 4096]);
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>");
        }
    });
    let mut settings = world.import_of(world.file("a.jsonl", "{\"id\":\"1\",\"pk\":\"a\"}"));
    settings.account.endpoint = format!("http://{address}");
    world.refused(&settings, &["is not a server of Cosmos DB's protocol", "web page"]);
    settings.account.endpoint = "http://127.0.0.1:1".to_owned();
    world.refused(&settings, &["is the server running?"]);
}

/// Who imports onto what is there learns how to do that.
#[test]
fn documents_that_exist_name_the_mode() {
    let world = World::furnished();
    let file = world.file("a.jsonl", "{\"id\":\"1\",\"pk\":\"a\"}\n");
    let first = world.import(&world.import_of(file.clone()));
    assert!(first.is_complete && !first.text.contains("--mode"), "{}", first.text);
    let again = world.import(&world.import_of(file));
    assert!(!again.is_complete && again.text.contains("409"), "{}", again.text);
    assert!(again.text.contains("--mode upsert") && again.text.contains("--mode skip"), "{}", again.text);
}

/// White space between values is no value, however much of it there is.
#[test]
fn white_space_is_passed_over() {
    let world = World::furnished();
    let space = " \t\r\n".repeat(50_000);
    let row = |id: u32| format!("{{\"id\":\"{id}\",\"pk\":\"a\"}}");
    let array = format!("{space}[{space}{}{space},{space}{}{space}]{space}", row(1), row(2));
    let lines = format!("{space}{}\n{space}\n{}{space}", row(3), row(4));
    for (name, text) in [("a.json", array), ("b.jsonl", lines)] {
        let report = world.import(&world.import_of(world.file(name, text)));
        assert!(
            report.is_complete && report.text.starts_with("2 documents written"),
            "{name}: {}",
            report.text
        );
    }
    let broken = format!("[{}{space}x", row(5));
    let place = format!("byte {}", broken.len() - 1);
    world.refused(&world.import_of(world.file("c.json", broken)), &["a comma is missing", &place]);
}

/// A file is read and made into documents once: what was found good is what is written, whatever becomes of the file meanwhile.
#[test]
fn what_was_checked_is_what_is_written() {
    const COUNT: usize = 20_000;
    for name in ["rows.jsonl", "rows.csv", "failing.csv"] {
        let world = World::furnished();
        let filler = "x".repeat(150);
        let is_json = name == "rows.jsonl";
        let row = |number: usize| {
            let key = number % 7;
            if is_json {
                return format!("{{\"id\":\"{number}\",\"pk\":\"{key}\",\"n\":{number},\"x\":\"{filler}\"}}");
            }
            format!("{number},p{key},{number},{filler}")
        };
        let names = (!is_json).then(|| "id,pk,n,x".to_owned());
        let lines: Vec<String> = names.into_iter().chain((0..COUNT).map(row)).collect();
        let text = lines.join("\n");
        let file = world.file(name, text);
        let mut settings = world.import_of(file.clone());
        if name == "failing.csv" {
            settings.failed = Some(world.path("failed.jsonl"));
        }
        let port = world.server.address().port();
        let endpoint = meddler(port, move |request, answer| {
            if request.starts_with("POST") && request.contains("/docs HTTP") {
                std::fs::write(&file, "").unwrap();
            }
            answer
        });
        settings.account = AccountSettings {
            clock: settings.account.clock.clone(),
            ..AccountSettings::new(&endpoint, &Key::Primary.text())
        };
        let report = world.import(&settings);
        assert!(report.text.starts_with(&format!("{COUNT} documents written")), "{name}: {}", report.text);
        assert_eq!(world.documents().len(), COUNT, "{name}");
    }
}

/// Kinds of columns are those of all rows, also where the first thousand look otherwise; numbers that are texts then keep their zeros.
#[test]
fn columns_are_what_all_of_their_cells_are() {
    let world = World::furnished();
    let row = |number: usize| {
        let late = if number < 1_500 { String::new() } else { number.to_string() };
        let odd = if number == 2_999 { "none".to_owned() } else { format!("{number}.50") };
        format!("{number},a,{late},{odd},{}", number.is_multiple_of(2))
    };
    let names = "id,pk,late,odd,even".to_owned();
    let lines: Vec<String> = std::iter::once(names).chain((0..3_000).map(row)).collect();
    let text = lines.join("\n");
    let settings = world.import_of(world.file("a.csv", &text));
    assert!(world.import(&settings).is_complete);
    let documents = world.documents();
    assert_eq!(documents.len(), 3_000);
    for expected in [
        "{\"id\":\"0\",\"pk\":\"a\",\"odd\":\"0.50\",\"even\":true}",
        "{\"id\":\"1500\",\"pk\":\"a\",\"late\":1500,\"odd\":\"1500.50\",\"even\":true}",
        "{\"id\":\"2999\",\"pk\":\"a\",\"late\":2999,\"odd\":\"none\",\"even\":false}",
    ] {
        assert!(documents.iter().any(|document| document == expected), "{expected} of {:?}", &documents[..3]);
    }
    // A row that is bad in any case, after one that changes the kinds.
    let settings = world.import_of(world.file("b.csv", format!("{text}\nx,y\n")));
    world.refused(&settings, &["1 bad rows of 3001", "row 3001: the row has 2 cells"]);
}
