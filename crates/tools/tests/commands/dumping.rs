//! Dump, load and copy: what clients see is the same afterwards, also under writes.

use crate::world::{World, run};
use astrarium_testkit::{Key, Request};
use astrarium_tools::{AccountSettings, CopySettings, DumpSettings, LoadSettings};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

fn dump(world: &World, file: &Path) -> Result<String, String> {
    let settings =
        DumpSettings { account: world.account(), file: file.to_owned(), only: Vec::new(), quiet: true };
    run(astrarium_tools::dump(&settings)).map(|report| report.text).map_err(|error| error.to_string())
}

fn load(world: &World, file: &Path, merge: bool) -> Result<String, String> {
    let settings = LoadSettings {
        account: world.account(),
        file: file.to_owned(),
        merge,
        dry_run: false,
        workers: 2,
        quiet: true,
    };
    run(astrarium_tools::load(&settings)).map(|report| report.text).map_err(|error| error.to_string())
}

/// An account with something of everything.
fn furnish(world: &World) {
    world.furnish("{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}}");
    let mut client = world.server.client();
    let mut make = |path: &str, body: &str| client.expect(201, &Request::new("POST", path).body(body));
    make(
        "/dbs/d/colls",
        "{\"id\":\"b\",\"partitionKey\":{\"paths\":[\"/t\",\"/u\"],\"kind\":\"MultiHash\",\"version\":2},\"defaultTtl\":100000,\
         \"uniqueKeyPolicy\":{\"uniqueKeys\":[{\"paths\":[\"/email\"]}]},\"indexingPolicy\":{\"indexingMode\":\"consistent\",\
         \"includedPaths\":[{\"path\":\"/*\"}],\"excludedPaths\":[{\"path\":\"/x/?\"}],\
         \"compositeIndexes\":[[{\"path\":\"/a\",\"order\":\"ascending\"},{\"path\":\"/b\",\"order\":\"descending\"}]]}}",
    );
    make("/dbs/d/colls/c/sprocs", "{\"id\":\"p\",\"body\":\"function () { return 'é'; }\"}");
    make("/dbs/d/colls/c/udfs", "{\"id\":\"f\",\"body\":\"function (x) { return x + 1; }\"}");
    make(
        "/dbs/d/colls/c/triggers",
        "{\"id\":\"t\",\"body\":\"function () {}\",\"triggerType\":\"Pre\",\"triggerOperation\":\"Create\"}",
    );
    make("/dbs/d/users", "{\"id\":\"ada\"}");
    make(
        "/dbs/d/users/ada/permissions",
        "{\"id\":\"q\",\"permissionMode\":\"Read\",\"resource\":\"dbs/d/colls/c\"}",
    );
    make("/dbs", "{\"id\":\"empty\"}");
    let offers = client.expect(200, &Request::new("GET", "/offers")).text();
    let offers: serde_json::Value = serde_json::from_str(&offers).unwrap();
    let mut offer = offers["Offers"][0].clone();
    offer["content"]["offerThroughput"] = 700.into();
    let rid = offer["_rid"].as_str().unwrap().to_owned();
    client.expect(200, &Request::new("PUT", &format!("/offers/{rid}")).body(offer.to_string()));
    let lines: Vec<String> = (0..2_500)
        .map(|number| {
            format!(
                "{{\"id\":\"{number}\",\"pk\":\"k{}\",\"n\":12345678901234567890,\"m\":1.10}}\n",
                number % 50
            )
        })
        .collect();
    let lines = lines.concat();
    world.import(&world.import_of(world.file("c.jsonl", lines)));
    let mut settings = world.import_of(world.file(
        "b.jsonl",
        "{\"id\":\"1\",\"t\":\"a\",\"u\":7,\"email\":\"x\"}\n{\"id\":\"1\",\"t\":\"a\",\"u\":8}\n{\"id\":\"é/\",\"t\":null}\n{\"id\":\"z\"}\n",
    ));
    settings.container = "d/b".parse().unwrap();
    world.import(&settings);
}

/// All that clients see but what the system makes.
fn seen(world: &World) -> Vec<String> {
    let mut client = world.server.client();
    let mut seen = Vec::new();
    for path in [
        "/dbs",
        "/dbs/d/colls",
        "/dbs/d/users",
        "/dbs/d/users/ada/permissions",
        "/dbs/d/colls/c/sprocs",
        "/dbs/d/colls/c/udfs",
        "/dbs/d/colls/c/triggers",
        "/offers",
    ] {
        let feed: serde_json::Value =
            serde_json::from_str(&client.expect(200, &Request::new("GET", path)).text()).unwrap();
        let things = feed.as_object().unwrap().values().find_map(|value| value.as_array()).unwrap();
        let mut shown: Vec<String> = things
            .iter()
            .map(|thing| {
                let mut thing = thing.clone();
                let members = thing.as_object_mut().unwrap();
                members.retain(|name, _| !name.starts_with('_'));
                if path == "/offers" {
                    members.retain(|name, _| name == "content");
                }
                thing.to_string()
            })
            .collect();
        shown.sort();
        seen.push(format!("{path} {shown:#?}"));
    }
    seen.extend(world.documents());
    seen.extend(world.documents_of("d/b"));
    seen
}

#[test]
fn a_load_is_what_was_dumped() {
    let world = World::new();
    furnish(&world);
    let before = seen(&world);
    for name in ["all.tar.zst", "all.tar.gz", "all.tar"] {
        let file = world.path(name);
        assert!(dump(&world, &file).unwrap().contains("2504 documents of 2 containers"));
        let other = World::new();
        let report = load(&other, &file, false).unwrap();
        assert!(report.contains("2504 documents of 2 containers loaded"), "{report}");
        assert_eq!(seen(&other), before);
        let refused = load(&other, &file, false).unwrap_err();
        assert!(
            refused.contains("exists, so nothing was changed") && refused.contains("--merge"),
            "{refused}"
        );
        if name == "all.tar" {
            load(&other, &file, true).unwrap();
            assert_eq!(seen(&other), before);
            let text = std::fs::read(&file).unwrap();
            assert!(text.windows(12).any(|bytes| bytes == b"definitions."), "a tar that anybody reads");
        }
    }
}

#[test]
fn a_cut_dump_changes_nothing() {
    let world = World::new();
    furnish(&world);
    let file = world.path("all.tar.zst");
    dump(&world, &file).unwrap();
    let whole = std::fs::read(&file).unwrap();
    let other = World::new();
    for cut in [0, 100, whole.len() / 2, whole.len() - 10] {
        let cut = world.file("cut.tar.zst", &whole[..cut]);
        let refused = load(&other, &cut, false).unwrap_err();
        assert!(refused.contains("nothing was changed"), "{refused}");
    }
    assert!(load(&other, &world.file("hello", "hello"), false).is_err());
    assert!(load(&other, &world.path("missing"), false).is_err());
    let databases = other.server.client().expect(200, &Request::new("GET", "/dbs")).text();
    assert!(databases.contains("\"_count\":0"), "{databases}");
    let only = DumpSettings {
        account: world.account(),
        file: world.path("x.tar"),
        only: vec!["nothing".to_owned()],
        quiet: true,
    };
    assert!(
        run(astrarium_tools::dump(&only)).unwrap_err().to_string().contains("there is no database nothing")
    );
    assert!(!world.path("x.tar").exists());
}

/// While clients write, every moment has exactly one of two documents, and a sum that stays.
#[test]
fn a_dump_under_writes_is_of_one_moment() {
    let world = World::furnished();
    let lines: Vec<String> = (0..3_000)
        .map(|number| format!("{{\"id\":\"f{number}\",\"pk\":\"filler\",\"x\":\"{}\"}}\n", "x".repeat(200)))
        .collect();
    let lines = lines.concat();
    world.import(&world.import_of(world.file("a.jsonl", lines)));
    world.import(&world.import_of(world.file(
        "b.jsonl",
        "{\"id\":\"one\",\"pk\":\"p\",\"n\":0}\n{\"id\":\"sum\",\"pk\":\"p\",\"n\":1000}\n",
    )));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut client = world.server.client();
            let (mut here, mut there) = ("one", "two");
            let mut count = 0;
            while !stop.load(Ordering::Relaxed) {
                let rest = 1000 - count % 1000;
                let batch = format!(
                    "[{{\"operationType\":\"Delete\",\"id\":\"{here}\"}},\
                     {{\"operationType\":\"Create\",\"resourceBody\":{{\"id\":\"{there}\",\"pk\":\"p\",\"n\":{}}}}},\
                     {{\"operationType\":\"Replace\",\"id\":\"sum\",\"resourceBody\":{{\"id\":\"sum\",\"pk\":\"p\",\"n\":{rest}}}}}]",
                    1000 - rest
                );
                let request = Request::new("POST", "/dbs/d/colls/c/docs")
                    .partition_key("[\"p\"]")
                    .header("x-ms-cosmos-is-batch-request", "True")
                    .header("x-ms-cosmos-batch-atomic", "True")
                    .body(batch);
                client.expect(200, &request);
                (here, there) = (there, here);
                count += 1;
            }
            count
        });
        for round in 0..3 {
            let file = world.path(&format!("{round}.tar"));
            let dumped = dump(&world, &file);
            if let Err(refused) = &dumped {
                // With a deletion in every listing there is no moment, and that is said.
                assert!(refused.contains("deleted faster"), "{refused}");
                continue;
            }
            let other = World::new();
            load(&other, &file, false).unwrap();
            let documents = other.documents();
            assert_eq!(
                documents.len(),
                3_002,
                "{:?}",
                documents.iter().filter(|line| !line.contains("filler")).collect::<Vec<_>>()
            );
            let number = |line: &String| {
                serde_json::from_str::<serde_json::Value>(line).unwrap()["n"].as_u64().unwrap()
            };
            let sum: u64 = documents.iter().filter(|line| !line.contains("filler")).map(number).sum();
            assert_eq!(sum, 1000);
        }
        stop.store(true, Ordering::Relaxed);
        assert!(writer.join().unwrap() > 0);
    });
    let file = world.path("quiet.tar");
    dump(&world, &file).unwrap();
}

#[test]
fn a_copy_is_the_same() {
    let world = World::new();
    furnish(&world);
    let other = World::new();
    let settings = CopySettings {
        from: String::new(),
        from_key: Key::Primary.text(),
        to: String::new(),
        to_key: Key::Primary.text(),
        only: Vec::new(),
        merge: false,
        follow: false,
        insecure: false,
        workers: 2,
        quiet: true,
        accounts: Some((world.account(), other.account())),
    };
    let report = run(astrarium_tools::copy(&settings)).unwrap();
    assert!(report.text.contains("2504 documents of 2 containers copied"), "{report:?}");
    assert_eq!(seen(&other), seen(&world));
    let again = run(astrarium_tools::copy(&settings)).unwrap_err().to_string();
    assert!(again.contains("exists, so nothing was changed"), "{again}");
    let same = AccountSettings::new(&world.account().endpoint, &Key::Primary.text());
    let same = CopySettings {
        accounts: Some((world.account(), AccountSettings { clock: world.account().clock, ..same })),
        ..settings
    };
    assert!(run(astrarium_tools::copy(&same)).unwrap_err().to_string().contains("the same account"));
}

/// What changes at the source arrives, until the command is ended; a deletion does not, as the documentation says.
#[test]
fn a_copy_that_follows() {
    let world = World::furnished();
    let put = |id: &str, number: u32| {
        let body = format!("{{\"id\":\"{id}\",\"pk\":\"a\",\"n\":{number}}}");
        let request = Request::new("POST", "/dbs/d/colls/c/docs").body(body).partition_key("[\"a\"]");
        world.server.client().ask(&request.header("x-ms-documentdb-is-upsert", "true"));
    };
    put("1", 1);
    put("2", 1);
    let other = World::new();
    let settings = CopySettings {
        from: String::new(),
        from_key: Key::Primary.text(),
        to: String::new(),
        to_key: Key::Primary.text(),
        only: Vec::new(),
        merge: false,
        follow: true,
        insecure: false,
        workers: 2,
        quiet: true,
        accounts: Some((world.account(), other.account())),
    };
    std::thread::scope(|scope| {
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let follower = scope.spawn(|| {
            run(async {
                tokio::select! {
                    report = astrarium_tools::copy(&settings) => report,
                    _ = ended => Err(astrarium_tools::ToolError::Input("ended".to_owned())),
                }
            })
        });
        // A container that is not there yet has no documents.
        let copied = || {
            let request = Request::new("GET", "/dbs/d/colls/c/docs");
            other.server.client().ask(&request).text()
        };
        let arrives = |text: &str| {
            for _ in 0..1_200 {
                if copied().contains(text) {
                    return;
                }
                assert!(!follower.is_finished(), "it goes on until it is ended");
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
            panic!("{text} does not arrive: {}", copied());
        };
        arrives("\"id\":\"2\"");
        put("1", 2);
        arrives("\"id\":\"1\",\"pk\":\"a\",\"n\":2");
        world.server.client().ask(&Request::new("DELETE", "/dbs/d/colls/c/docs/2").partition_key("[\"a\"]"));
        // What is written after the deletion arrives, so the deletion was passed by.
        put("3", 3);
        arrives("\"id\":\"3\"");
        assert_eq!(world.documents().len(), 2);
        // A split is followed.
        let split = "{\"database\":\"d\",\"container\":\"c\",\"range\":\"0\"}";
        world.server.client().expect(200, &Request::new("POST", "/_admin/split").body(split));
        world.server.settle();
        put("4", 4);
        arrives("\"id\":\"4\"");
        assert!(copied().contains("\"id\":\"2\""), "deletions are not followed");
        end.send(()).unwrap();
        assert!(follower.join().unwrap().unwrap_err().to_string().contains("ended"));
    });
}

/// Other files are told from archives that were cut, and names that would lie are refused before anything is asked.
#[test]
fn files_that_are_no_archives() {
    let world = World::furnished();
    for (name, content) in [
        ("documents.jsonl", &b"{\"id\":\"1\"}\n"[..]),
        ("empty", b""),
        ("zip", b"PK\x03\x04 and so on"),
        ("long", &[b'x'; 4096]),
    ] {
        let error = load(&world, &world.file(name, content), false).unwrap_err();
        assert!(
            error.contains("no archive that astrarium dump has written") && !error.contains("cut"),
            "{name}: {error}"
        );
        assert!(
            error.contains("nothing was changed") && error.contains("astrarium import"),
            "{name}: {error}"
        );
    }
    assert!(load(&world, world.folder.path(), false).unwrap_err().contains("is a folder"));
    let pipe = world.path("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    assert!(load(&world, &pipe, false).unwrap_err().contains("no plain file"), "nothing is waited for");
    for (name, fragment) in [
        ("x.zip", ".gz or .zst"),
        ("x.json", "called .tar.zst"),
        ("x.csv.gz", "called .tar.zst"),
        ("x.xlsx", ".tar.zst"),
    ] {
        let error = dump(&world, &world.path(name)).unwrap_err();
        assert!(error.contains(fragment) && !world.path(name).exists(), "{name}: {error}");
    }
    let error = dump(&world, &world.path("none/x.tar")).unwrap_err();
    assert!(error.contains("there is no folder"), "{error}");
}

/// Throughput that the service would not take is found before a container is made.
#[test]
fn impossible_throughput_is_refused() {
    let world = World::furnished();
    let file = world.path("good.tar");
    dump(&world, &file).unwrap();
    let empty = World::new();
    for (written, fragment) in [
        ("-1", "throughput -1"),
        ("1e308", "must be a multiple of 100 from 400 to 1000000"),
        ("450", "throughput 450"),
        ("2000000", "throughput 2000000"),
        ("\"400\"", "must be a multiple"),
    ] {
        let changed = world.path("changed.tar");
        rewrite(&file, &changed, written);
        let error = load(&empty, &changed, false).unwrap_err();
        assert!(error.contains(fragment) && error.contains("nothing was changed"), "{written}: {error}");
        assert_eq!(
            empty.server.client().expect(200, &Request::new("GET", "/dbs")).header("x-ms-item-count"),
            Some("0")
        );
    }
}

/// Writes an archive again with another throughput of its container, and with the checksum of that.
fn rewrite(from: &Path, to: &Path, throughput: &str) {
    let mut archive = tar::Archive::new(std::fs::File::open(from).unwrap());
    let mut builder = tar::Builder::new(std::fs::File::create(to).unwrap());
    let mut old = String::new();
    let mut new = String::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().to_str().unwrap().to_owned();
        let mut text = String::new();
        std::io::Read::read_to_string(&mut entry, &mut text).unwrap();
        if name == "definitions.json" {
            old.clone_from(&text);
            text = text.replace("\"throughput\": 400", &format!("\"throughput\": {throughput}"));
            assert_ne!(text, old, "the container has its own");
            new.clone_from(&text);
        } else if name == "manifest.json" {
            text = text.replace(&digest(&old), &digest(&new));
            text =
                text.replacen(&format!("\"bytes\": {}", old.len()), &format!("\"bytes\": {}", new.len()), 1);
        }
        let mut header = tar::Header::new_ustar();
        header.set_size(text.len() as u64);
        header.set_mode(0o600);
        builder.append_data(&mut header, &name, text.as_bytes()).unwrap();
    }
    builder.finish().unwrap();
}

fn digest(text: &str) -> String {
    use sha2::Digest as _;
    sha2::Sha256::digest(text).iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}
