//! Pages while the data changes: what stays is given once, wherever the pages end and whatever is removed or added.

use astrarium_database::{IndexUse, Limits, Resume};
use astrarium_testkit::EngineKind;
use astrarium_testkit::json::Json;
use astrarium_testkit::sql::case_file::Setting;
use astrarium_testkit::sql::stage::{Set, Stage, Way, read_query};

/// Documents in two partitions whose sort keys have ties, and are long in `long`.
fn documents() -> Vec<String> {
    let document = |number: usize| {
        let (key, rank) = (number % 2, number * 5 % 7);
        let long = format!("{}{rank}", "x".repeat(700));
        format!(
            "{{\"id\":\"{number}\",\"pk\":{key},\"r\":{rank},\"n\":{},\"long\":\"{long}\",\"l\":[1]}}",
            number % 3
        )
    };
    (0..20).map(document).collect()
}

/// With a composite index.
const DEFINITION: &str = "{\"partitionKey\":\"/pk\",\"indexingPolicy\":{\"compositeIndexes\":[[\
    {\"path\":\"/r\"},{\"path\":\"/n\",\"order\":\"descending\"}]]}}";

/// With composite indexes of long texts.
const LONG_DEFINITION: &str = "{\"partitionKey\":\"/pk\",\"indexingPolicy\":{\"compositeIndexes\":[[\
    {\"path\":\"/long\"},{\"path\":\"/same\",\"order\":\"descending\"}],[{\"path\":\"/same\"},{\"path\":\"/r\"}],[\
    {\"path\":\"/r\"},{\"path\":\"/middle\",\"order\":\"descending\"},{\"path\":\"/long\"}]]}}";

/// Queries whose rows are ids.
const QUERIES: [&str; 14] = [
    "SELECT VALUE c.id FROM c",
    "SELECT VALUE c.id FROM c WHERE c.r > 0",
    "SELECT VALUE c.id FROM c WHERE c.r IN (0, 1, 2, 3, 5, 9)",
    "SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(c.l, 1) AND c.r < 6",
    "SELECT VALUE c.id FROM c JOIN x IN c.l",
    "SELECT VALUE c.id FROM c ORDER BY c.r",
    "SELECT VALUE c.id FROM c ORDER BY c.r DESC",
    "SELECT VALUE c.id FROM c WHERE c.r > 1 ORDER BY c.r",
    "SELECT VALUE c.id FROM c ORDER BY c.r, c.n DESC",
    "SELECT VALUE c.id FROM c ORDER BY c.r DESC, c.n",
    "SELECT VALUE c.id FROM c ORDER BY c.long",
    "SELECT VALUE c.id FROM c ORDER BY c.long DESC",
    "SELECT DISTINCT VALUE c.id FROM c",
    "SELECT DISTINCT VALUE c.id FROM c ORDER BY c.r",
];

/// Ways that [`ways`] gives, and those of them that use indexes whenever they can.
const WAY_COUNT: usize = 6;
const BY_INDEX: std::ops::Range<usize> = 2..4;

struct World {
    stage: Stage,
    set: Set,
}

impl World {
    fn new(engine: EngineKind) -> World {
        let mut stage = Stage::new(engine);
        let definition = Json::parse(DEFINITION).expect("JSON of ours");
        let set = stage.furnish(&definition, &documents()).expect("make a container");
        World { stage, set }
    }

    /// Asks a query in small pages, with a change after each page that sees the ids of that page; gives all ids.
    fn ids(&self, way: &Way, text: &str, change: &mut dyn FnMut(&World, &[String])) -> Vec<String> {
        let query = read_query(text, &[]).expect("a query of ours");
        let limits = Limits { row_count_max: 3, index_use: way.index_use, ..Limits::default() };
        let mut ids = Vec::new();
        let mut resume: Option<Resume> = None;
        loop {
            let (rows, next) = self.stage.page(&query, way, limits, resume.take()).expect("a page");
            let page: Vec<String> = rows.iter().filter_map(|row| row.as_text().map(str::to_owned)).collect();
            change(self, &page);
            ids.extend(page);
            assert!(ids.len() < 200, "{text}: without end");
            match next {
                None => return ids,
                Some(_) => resume = next,
            }
        }
    }

    /// Documents with sort keys of which some agree for longer than a token.
    fn long(engine: EngineKind) -> World {
        let same = "s".repeat(600);
        let document = |number: usize| {
            let rank = number * 7 % 10;
            let long = format!("{}{}", "x".repeat(900), rank / 2);
            let late = format!("{}{rank}{}", "x".repeat(300), "y".repeat(600));
            format!(
                "{{\"id\":\"{number}\",\"pk\":{},\"long\":\"{long}\",\"late\":\"{late}\",\"list\":[\"{late}\",1,2,3],\
                \"same\":\"{same}\",\"middle\":\"{same}{rank}{same}\",\"r\":{},\"n\":0}}",
                number % 2,
                number % 3
            )
        };
        let documents: Vec<String> = (0..20).map(document).collect();
        let mut stage = Stage::new(engine);
        let definition = Json::parse(LONG_DEFINITION).expect("JSON of ours");
        let set = stage.furnish(&definition, &documents).expect("make a container");
        World { stage, set }
    }

    /// Removes those that are still there.
    fn remove_all<'a>(&self, ids: impl IntoIterator<Item = &'a String>) {
        for id in ids {
            let number: usize = id.parse().expect("ids are numbers");
            let _ = self.stage.remove(&self.set.spread, &format!("[{}]", number % 2), id);
        }
    }

    fn remove(&self, id: &str) {
        let number: usize = id.parse().expect("ids are numbers");
        self.stage.remove(&self.set.spread, &format!("[{}]", number % 2), id).expect("remove a document");
    }
}

fn ways(world: &World) -> Vec<Way> {
    let ways = world.stage.ways(&world.set, &Setting::default()).expect("ways to ask");
    let same = |way: &Way| std::sync::Arc::ptr_eq(&way.container, &world.set.spread);
    let ways: Vec<Way> = ways.into_iter().filter(same).take(1).chain(world.partitions()).collect();
    let uses = [IndexUse::ByCost, IndexUse::Always, IndexUse::Never];
    uses.into_iter()
        .flat_map(|index_use| ways.iter().map(move |way| Way { index_use, ..way.clone() }))
        .collect()
}

impl World {
    /// Ways to ask one partition.
    fn partitions(&self) -> Vec<Way> {
        let setting = Setting { key: Some("[0]".to_owned()), ..Setting::default() };
        self.stage.ways(&self.set, &setting).expect("ways to ask").into_iter().take(1).collect()
    }
}

#[test]
fn rows_already_given_may_go() {
    for engine in EngineKind::all() {
        for text in QUERIES.iter().copied() {
            // On disk, where each world takes its time, indexes only.
            let numbers = if engine == EngineKind::Memory { 0..WAY_COUNT } else { BY_INDEX };
            for number in numbers {
                let world = World::new(engine);
                let way = &ways(&world)[number];
                let still = world.ids(way, text, &mut |_, _| {});
                // All rows of a page go, the one at which the next page starts included.
                let changing =
                    world.ids(way, text, &mut |world, page| page.iter().for_each(|id| world.remove(id)));
                assert_eq!(changing, still, "{}: {text} ({})", engine.name(), way.name);
            }
        }
    }
}

/// A page that ends within a document knows which it was: where that one goes, the next gives all of its rows.
#[test]
fn a_document_given_in_part_may_go() {
    let text = "SELECT VALUE {\"id\": c.id, \"x\": x} FROM c JOIN x IN c.list";
    for number in 0..WAY_COUNT {
        let world = World::long(EngineKind::Memory);
        let way = &ways(&world)[number];
        let query = read_query(text, &[]).expect("a query of ours");
        let limits = Limits { row_count_max: 2, index_use: way.index_use, ..Limits::default() };
        let (rows, next) = world.stage.page(&query, way, limits, None).expect("a page");
        let id = |row: &Json| row.get("id").and_then(Json::as_text).expect("an id").to_owned();
        let first = id(rows.first().expect("a row"));
        world.remove(&first);
        let limits = Limits { row_count_max: 100, ..limits };
        let (mut rest, mut resume) = (Vec::new(), next);
        while let Some(place) = resume.take() {
            let (rows, next) = world.stage.page(&query, way, limits, Some(place)).expect("a page");
            rest.extend(rows);
            resume = next;
        }
        let (whole, _) = world.stage.page(&query, way, limits, None).expect("a page");
        assert_eq!(rest.iter().take(4).map(id).collect::<Vec<_>>(), vec![id(&rest[0]); 4], "{}", way.name);
        assert_eq!(rest[..whole.len()], whole, "{}", way.name);
    }
}

/// Sort keys that agree for longer than a token, or not at all, in both directions and with ties; the last ones wholly.
const LONG_ORDERS: [&str; 13] = [
    "SELECT VALUE c.id FROM c ORDER BY c.long",
    "SELECT VALUE c.id FROM c ORDER BY c.long DESC",
    "SELECT VALUE c.id FROM c ORDER BY c.late",
    "SELECT VALUE c.id FROM c ORDER BY c.late DESC",
    "SELECT VALUE c.id FROM c ORDER BY c.list DESC",
    "SELECT DISTINCT VALUE c.id FROM c ORDER BY c.long",
    "SELECT VALUE c.id FROM c ORDER BY c.long, c.same DESC",
    "SELECT VALUE c.id FROM c ORDER BY c.long DESC, c.same",
    "SELECT VALUE c.id FROM c ORDER BY c.same, c.r",
    "SELECT VALUE c.id FROM c ORDER BY c.r, c.middle DESC, c.long",
    "SELECT VALUE c.id FROM c ORDER BY c.middle",
    "SELECT VALUE c.id FROM c ORDER BY c.same",
    "SELECT VALUE c.id FROM c ORDER BY c.same DESC",
];

/// Whatever becomes of the last row of a page and of the next one, what stays is given once.
#[test]
fn rows_with_long_keys_may_go() {
    for engine in EngineKind::all() {
        for text in LONG_ORDERS.iter().copied() {
            // On disk, where each world takes its time, indexes only.
            for number in if engine == EngineKind::Memory { 0..WAY_COUNT } else { BY_INDEX } {
                rows_with_long_keys_may_go_from(engine, text, number);
            }
        }
    }
}

fn rows_with_long_keys_may_go_from(engine: EngineKind, text: &str, number: usize) {
    let world = World::long(engine);
    let way = &ways(&world)[number];
    let whole = world.ids(way, text, &mut |_, _| {});
    let context = format!("{}: {text} ({})", engine.name(), way.name);
    let mut sorted = whole.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(sorted.len(), whole.len(), "{context}");
    let still = world.ids(way, text, &mut |world, page| world.remove_all(page.last()));
    assert_eq!(still, whole, "{context}");
    // Now the next row goes, too.
    let world = World::long(engine);
    let mut removed: Vec<String> = Vec::new();
    let changing = world.ids(&ways(&world)[number], text, &mut |world, page| {
        let Some(last) = page.last() else { return };
        let next = whole.iter().skip_while(|id| *id != last).nth(1);
        removed.extend(next.cloned());
        world.remove_all([last].into_iter().chain(next));
    });
    let stays: Vec<&String> = whole.iter().filter(|id| !removed.contains(id)).collect();
    assert_eq!(changing.iter().collect::<Vec<_>>(), stays, "{context}");
}

/// The next row may get other keys while the last one goes: then it says nothing of where to go on.
#[test]
fn the_next_row_may_move_away() {
    for text in ["SELECT VALUE c.id FROM c ORDER BY c.long", "SELECT VALUE c.id FROM c ORDER BY c.same"] {
        for number in 0..WAY_COUNT {
            let world = World::long(EngineKind::Memory);
            let way = &ways(&world)[number];
            let whole = world.ids(way, text, &mut |_, _| {});
            let mut moved: Vec<String> = Vec::new();
            let changing = world.ids(way, text, &mut |world, page| {
                let Some(last) = page.last().filter(|_| moved.is_empty()) else { return };
                let next = whole.iter().skip_while(|id| *id != last).nth(1).expect("there are several pages");
                world.remove_all([last]);
                let far = format!("{}~{next}", "x".repeat(900));
                let pk = next.parse::<usize>().expect("ids are numbers") % 2;
                let document =
                    format!("{{\"id\":\"{next}\",\"pk\":{pk},\"long\":\"{far}\",\"same\":\"{far}\"}}");
                world.stage.put(&world.set.spread, &document).expect("write a document");
                moved.push(next.clone());
            });
            let stays = |ids: &[String]| -> Vec<String> {
                ids.iter().filter(|id| !moved.contains(id)).cloned().collect()
            };
            assert_eq!(stays(&changing), stays(&whole), "{text} ({})", way.name);
        }
    }
}

#[test]
fn new_rows_disturb_nothing() {
    for text in QUERIES {
        for number in 0..WAY_COUNT {
            let world = World::new(EngineKind::Memory);
            let way = &ways(&world)[number];
            let still = world.ids(way, text, &mut |_, _| {});
            let mut count = 0;
            let changing = world.ids(way, text, &mut |world, _| {
                count += 1;
                // Before and after everything, by id and by rank.
                if count < 10 {
                    for (id, rank) in [(format!("{}", 100 + count), -1), (format!("{}", 900 + count), 9)] {
                        let document = format!(
                            "{{\"id\":\"{id}\",\"pk\":0,\"r\":{rank},\"long\":\"{rank}\",\"l\":[1]}}"
                        );
                        world.stage.put(&world.set.spread, &document).expect("write a document");
                    }
                }
            });
            let old: Vec<String> = changing.iter().filter(|id| id.len() < 3).cloned().collect();
            assert_eq!(old, still, "{text}: the rows that were there");
            let mut sorted = changing.clone();
            sorted.sort();
            sorted.dedup();
            assert_eq!(sorted.len(), changing.len(), "{text}: every row once");
        }
    }
}

/// A position is for one kind of query; another query refuses it or makes sense of it, and never fails otherwise.
#[test]
fn foreign_positions_are_refused() {
    let world = World::new(EngineKind::Memory);
    let way = &ways(&world)[0];
    let limits = Limits { row_count_max: 3, ..Limits::default() };
    let positions: Vec<Resume> = QUERIES
        .iter()
        .filter_map(|text| world.stage.page(&read_query(text, &[]).ok()?, way, limits, None).ok()?.1)
        .collect();
    assert_eq!(positions.len(), QUERIES.len());
    for text in QUERIES.iter().chain(&[
        "SELECT c.r, COUNT(1) AS n FROM c GROUP BY c.r",
        "SELECT VALUE 1",
        "SELECT VALUE COUNT(1) FROM c",
    ]) {
        for position in &positions {
            let query = read_query(text, &[]).expect("a query of ours");
            if let Err(error) = world.stage.page(&query, way, limits, Some(position.clone())) {
                assert_eq!(error.kind(), astrarium_database::Kind::Request, "{text}: {error}");
            }
        }
    }
}
