use astrarium_testkit::{EngineKind, json::Json, sql::stage::*, sql::case_file::Setting, sql::answer::shown};
#[test]
fn scratch() {
    let mut stage = Stage::new(EngineKind::Memory);
    let list: Vec<String> = (0..50).map(|n| n.to_string()).collect();
    let doc = format!("{{\"id\":\"1\",\"pk\":\"a\",\"l\":[{}],\"s\":\"{}\"}}", list.join(","), "a".repeat(20000));
    let set = stage.furnish(&Json::parse("{}").unwrap(), &[doc]).unwrap();
    let levels: usize = std::env::var("LEVELS").ok().and_then(|l| l.parse().ok()).unwrap_or(16);
    let nest = |open: &str, seed: &str| { let mut q = seed.to_owned(); for i in 0..levels { q = format!("(SELECT VALUE {} FROM {} a{i})", open.replace('x', &format!("a{i}")), if q.starts_with('(') { q } else { format!("(SELECT VALUE {q})") }); } q };
    let queries = vec![
        ("array", format!("SELECT VALUE IS_DEFINED({}) FROM c", nest("[x, x]", "[1]"))),
        ("concat", format!("SELECT VALUE LENGTH({}) FROM c", nest("CONCAT(x, x)", "\"aaaaaaaaaaaaaaaa\""))),
        ("pipes", format!("SELECT VALUE LENGTH({}) FROM c", nest("x || x", "\"aaaaaaaaaaaaaaaa\""))),
        ("array_concat", format!("SELECT VALUE ARRAY_LENGTH({}) FROM c", nest("ARRAY_CONCAT(x, x)", "[1]"))),
        ("object", format!("SELECT VALUE IS_DEFINED({}) FROM c", nest("{\"p\": x, \"q\": x}", "1"))),
        ("like", "SELECT VALUE c.s LIKE \"%a%a%a%a%a%a%a%a%b\" FROM c".to_owned()),
        ("regex", "SELECT VALUE IS_DEFINED(REGEXMATCH(c.s, \"^(a+)+$b\")) FROM c".to_owned()),
        ("regex2", "SELECT VALUE IS_DEFINED(REGEXMATCH(c.s, \"(a*)*b\")) FROM c".to_owned()),
        ("top join", "SELECT TOP 5 VALUE 1 FROM c JOIN a IN c.l JOIN b IN c.l JOIN d IN c.l JOIN e IN c.l JOIN f IN c.l JOIN g IN c.l".to_owned()),
        ("replace", "SELECT VALUE LENGTH(REPLACE(c.s, \"a\", c.s)) FROM c".to_owned()),
        ("split", "SELECT VALUE ARRAY_LENGTH(STRINGSPLIT(c.s, \"a\")) FROM c".to_owned()),
        ("join text", "SELECT VALUE LENGTH(STRINGJOIN(STRINGSPLIT(c.s, \"a\"), c.s)) FROM c".to_owned()),
    ];
    for (name, q) in queries {
        if let Ok(only) = std::env::var("ONLY") { if only != name { continue; } }
        let began = std::time::Instant::now();
        match read_query(&q, &[]) { Err(e) => println!("{name}: refused {e}"),
          Ok(query) => { let way = stage.ways(&set, &Setting::default()).unwrap().remove(0); let mut s = shown(&stage.ask(&query, &way)); s.truncate(200); println!("{name}: {:?} {s}", began.elapsed()); } }
    }
}
