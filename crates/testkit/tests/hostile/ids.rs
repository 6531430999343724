//! Ids at the limits and in the scripts of the world: what is accepted can be read, listed, replaced and deleted.

use crate::world::{DOCS, World};
use astrarium_testkit::Request;
use astrarium_testkit::json::{Json, escape};
use astrarium_testkit::request::encode_id;

/// A word of each of many scripts, and characters that break naive handling of text.
const SCRIPTS: [&str; 44] = [
    "Latin",
    "Ñandú",
    "Ελληνικά",
    "Кириллица",
    "Հայերեն",
    "עברית",
    "العربية",
    "فارسی",
    "ܣܘܪܝܝܐ",
    "ދިވެހި",
    "देवनागरी",
    "বাংলা",
    "ਗੁਰਮੁਖੀ",
    "ગુજરાતી",
    "ଓଡ଼ିଆ",
    "தமிழ்",
    "తెలుగు",
    "ಕನ್ನಡ",
    "മലയാളം",
    "සිංහල",
    "ไทย",
    "ລາວ",
    "བོད་ཡིག",
    "မြန်မာ",
    "ქართული",
    "ភាសាខ្មែរ",
    "አማርኛ",
    "ᏣᎳᎩ",
    "ᐃᓄᒃᑎᑐᑦ",
    "ᚠᚢᚦᚨᚱᚲ",
    "ꦧꦱꦗꦮ",
    "汉字",
    "漢字",
    "ひらがな",
    "カタカナ",
    "한국어",
    "𐎀𐎁𐎂",
    "𓀀𓁐",
    "😀👩‍👩‍👧",
    "e\u{301}",
    "\u{202e}right to left",
    "zero\u{200b}width",
    "\u{feff}mark",
    "\u{10ffff}",
];

/// Creates, reads, replaces, lists and deletes a resource by its escaped name.
#[track_caller]
fn check_item(world: &mut World, id: &str) {
    let target = format!("{DOCS}/{}", encode_id(id));
    let body = format!("{{\"id\":\"{}\",\"pk\":\"a\"}}", escape(id));
    let request = |verb: &str, target: &str| Request::new(verb, target).partition_key("[\"a\"]");
    let created = world.client.expect(201, &request("POST", DOCS).body(body.clone()));
    assert!(created.text().contains(&escape(id)), "{id:?}: {}", created.text());
    assert_eq!(world.client.expect(200, &request("GET", &target)).text(), created.text(), "{id:?}");
    world.client.expect(409, &request("POST", DOCS).body(body.clone()));
    world.client.expect(200, &request("PUT", &target).body(body));
    world.client.expect(204, &request("DELETE", &target));
    world.client.expect(404, &request("GET", &target));
}

#[test]
fn items_in_every_script() {
    let mut world = World::new();
    for id in SCRIPTS {
        check_item(&mut world, id);
    }
    world.assert_unchanged();
}

#[test]
fn items_with_odd_characters() {
    let mut world = World::new();
    for id in [
        " ",
        "  a  ",
        ".",
        "..",
        "...",
        "%",
        "%20",
        "%2F",
        "a%",
        "?",
        "a?b=c",
        "?a",
        "#",
        "a#b",
        "a+b",
        "a&b=c",
        "'",
        "\"",
        "<>",
        "{}",
        "[]",
        "|",
        "^",
        "`",
        "~",
        "\t",
        "\r\n",
        "\u{1}",
        "\u{7f}",
        "docs",
        "null",
        "true",
        "0",
        "-1",
        ";",
        ":",
        "@",
        "$",
        ",",
        "/",
        "\\",
        "a/b",
        "a\\b",
        "//",
        "a/",
        "/a",
        "../..",
        "x/attachments/y",
        "docs/x",
        "%2F/",
    ] {
        check_item(&mut world, id);
    }
    world.assert_unchanged();
}

#[test]
fn items_at_the_limits() {
    let mut world = World::new();
    check_item(&mut world, "i");
    check_item(&mut world, &"i".repeat(255));
    check_item(&mut world, &"i".repeat(256));
    check_item(&mut world, &"i".repeat(1023));
    check_item(&mut world, &"漢".repeat(341));
    let create = |id: &str| crate::world::create(format!("{{\"id\":\"{}\",\"pk\":\"a\"}}", escape(id)));
    let fragment = "Ensure to provide a unique non-empty string less than '1024' characters.";
    for id in ["", &"i".repeat(1024), &"漢".repeat(342), &"i".repeat(100_000)] {
        world.refused(400, fragment, &create(id));
    }
    for wrong in ["1", "null", "true", "{}", "[\"a\"]"] {
        world.refused(400, "id", &crate::world::create(format!("{{\"id\":{wrong},\"pk\":\"a\"}}")));
    }
    world.assert_unchanged();
}

/// Names of databases, containers, users and scripts: all scripts, and none of the characters that end a segment.
#[test]
fn names_in_every_script() {
    let mut world = World::new();
    let kinds = [
        ("/dbs", ""),
        ("/dbs/d/colls", ",\"partitionKey\":{\"paths\":[\"/pk\"]}"),
        ("/dbs/d/users", ""),
        ("/dbs/d/colls/c/udfs", ",\"body\":\"function () {}\""),
    ];
    for (feed, members) in kinds {
        let body = |name: &str| format!("{{\"id\":\"{}\"{members}}}", escape(name));
        let longest = "n".repeat(255);
        for name in SCRIPTS.iter().copied().chain([
            longest.as_str(),
            "漢".repeat(255).as_str(),
            "a b",
            ".",
            "..",
            "%41",
            "+",
        ]) {
            let target = format!("{feed}/{}", encode_id(name));
            world.client.expect(201, &Request::new("POST", feed).body(body(name)));
            let read = world.client.expect(200, &Request::new("GET", &target));
            assert!(
                read.text().starts_with(&format!("{{\"id\":\"{}\"", escape(name))),
                "{name:?}: {}",
                read.text()
            );
            world.client.expect(204, &Request::new("DELETE", &target));
        }
        let fragment = "Ensure to provide a unique non-empty string less than '255' characters.";
        let too_long = "n".repeat(256);
        for name in ["", "a/b", "a\\b", "a?b", "a#b", "a ", "\u{0}", too_long.as_str()] {
            world.refused(400, fragment, &Request::new("POST", feed).body(body(name)));
        }
        // Scripts may be called so, as on the service.
        for name in ["a\tb", "a\nb", "\r"] {
            if feed.ends_with("udfs") {
                world.client.expect(201, &Request::new("POST", feed).body(body(name)));
                let target = format!("{feed}/{}", encode_id(name));
                world.client.expect(200, &Request::new("GET", &target));
                world.client.expect(204, &Request::new("DELETE", &target));
            } else {
                world.refused(400, fragment, &Request::new("POST", feed).body(body(name)));
            }
        }
    }
    world.assert_unchanged();
}

/// A database whose name is the rid of another one is reached by its name only, and the other one by its rid only: what
/// was signed tells which is meant.
#[test]
fn names_that_look_like_rids() {
    let mut world = World::new();
    let victim = world.client.expect(200, &Request::new("GET", "/dbs/d")).text();
    let rid = Json::parse(&victim).unwrap().get("_rid").and_then(Json::as_text).unwrap().to_owned();
    let target = format!("/dbs/{rid}");
    let by_name = |verb: &str, target: &str| Request::new(verb, target).signed_by_names();
    world.client.expect(404, &by_name("GET", &target));
    world.client.expect(404, &by_name("DELETE", &target));
    world.client.expect(201, &Request::new("POST", "/dbs").body(format!("{{\"id\":\"{rid}\"}}")));
    let found = world.client.expect(200, &by_name("GET", &target)).text();
    assert!(found.contains(&format!("\"id\":\"{rid}\"")), "{found}");
    let found = world.client.expect(200, &Request::new("GET", &target)).text();
    assert!(found.contains("\"id\":\"d\""), "{found}");
    // By the form alone it could be either: neither is changed.
    world.refused(400, "has the name", &Request::new("DELETE", &target));
    let container = "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"]}}";
    let colls = format!("{target}/colls");
    world.refused(400, "has the name", &Request::new("POST", &colls).body(container));
    world.client.expect(201, &by_name("POST", &colls).body(container));
    let items = world.client.expect(200, &by_name("GET", &format!("{colls}/c/docs"))).text();
    assert!(items.contains("\"Documents\":[]"), "{items}");
    // A name below a rid, and a rid below a name, are nothing at all.
    world.client.expect(404, &Request::new("GET", &format!("{colls}/c/docs")));
    world.client.expect(404, &by_name("DELETE", &format!("/dbs/d/colls/{rid}")));
    world.client.expect(204, &by_name("DELETE", &target));
    world.assert_unchanged();
    world.client.expect(404, &by_name("DELETE", &target));
    world.assert_unchanged();
}
