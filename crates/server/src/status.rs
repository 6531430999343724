//! `astrarium status`: servers, stores and key ranges of an account, with what is wrong first.
//!
//! In: the account's first store. Out: text for people, or JSON; 1 as exit code if something is wrong.
//! Everything is asked of the stores, so it works while no server does.

use crate::columns::{self, duration};
use crate::online;
use crate::settings::StatusSettings;
use astrarium_database::{CatalogRange, RangeUsage};
use astrarium_kv_postgres::{AccountServer, FORMAT, Overview, ShardOverview, Standby, StoreOverview};
use serde_json::{Value, json};
use std::process::ExitCode;

/// A standby that has not replayed so many bytes is far behind.
const LAG_BYTES_MAX: u64 = 64 << 20;
/// The same in seconds.
const LAG_SECONDS_MAX: f64 = 10.0;

pub(crate) fn run(settings: &StatusSettings) -> anyhow::Result<ExitCode> {
    let status = online::with_account(&settings.store, async |account, engine| {
        let ranges = account.monitoring().catalog_ranges().await?;
        Ok(Status { overview: engine.overview()?, ranges })
    })?;
    let problems = status.problems();
    if settings.json {
        println!("{:#}", status.json(&problems));
    } else {
        print!("{}", status.text(&problems));
    }
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// How a server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerState {
    Alive,
    /// It was stopped.
    Left,
    /// It went without a word, and another one has its name now.
    Replaced,
    /// It went without a word.
    Dead,
}

impl ServerState {
    fn name(self) -> &'static str {
        match self {
            ServerState::Alive => "alive",
            ServerState::Left => "stopped",
            ServerState::Replaced => "replaced",
            ServerState::Dead => "DEAD",
        }
    }
}

/// What was found.
struct Status {
    overview: Overview,
    ranges: Vec<CatalogRange>,
}

/// A key range with all that is known of it.
struct RangeStatus<'a> {
    place: &'a CatalogRange,
    store: Option<&'a StoreOverview>,
    shard: Option<&'a ShardOverview>,
    owner: Option<&'a AccountServer>,
}

impl Status {
    fn state_of(&self, server: &AccountServer) -> ServerState {
        let servers = &self.overview.servers;
        let has_name =
            |other: &&AccountServer| other.is_alive && other.description.name == server.description.name;
        if server.is_alive {
            ServerState::Alive
        } else if server.has_left {
            ServerState::Left
        } else if servers.iter().any(|other| has_name(&other)) {
            ServerState::Replaced
        } else {
            ServerState::Dead
        }
    }

    fn ranges(&self) -> impl Iterator<Item = RangeStatus<'_>> {
        let overview = &self.overview;
        self.ranges.iter().map(move |place| {
            let of = |store: &'_ StoreOverview| {
                store.shards.binary_search_by_key(&place.shard, |shard| shard.shard).ok()
            };
            let found = overview.stores.iter().find_map(|store| Some((store, of(store)?)));
            RangeStatus {
                place,
                store: found.map(|(store, _)| store),
                shard: found.and_then(|(store, index)| store.shards.get(index)),
                owner: overview.owner(place.shard),
            }
        })
    }

    /// What an operator has to do something about.
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for server in &self.overview.servers {
            if self.state_of(server) == ServerState::Dead {
                let (name, silent) = (&server.description.name, duration(server.silent_seconds));
                problems.push(format!("server {name} went without a word {silent} ago"));
            }
        }
        for store in &self.overview.stores {
            problems.extend(store_problems(store));
        }
        // A range of a store that does not answer cannot be found; that the store does not answer is told above.
        if self.overview.stores.iter().all(|store| store.trouble.is_none()) {
            let missing = self.ranges().filter(|range| range.shard.is_none());
            problems.extend(
                missing.map(|range| {
                    format!("range {} of {} is in no store", range.place.range, name(range.place))
                }),
            );
        }
        let lost = self.ranges().filter(|range| range.shard.is_some_and(|shard| shard.is_index_lost));
        problems.extend(lost.map(|range| {
            format!(
                "the index of range {} of {} is lost; servers build it anew",
                range.place.range,
                name(range.place)
            )
        }));
        problems
    }

    /// What is worth knowing and not wrong.
    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if !self.overview.servers.iter().any(|server| server.is_alive) {
            remarks.push("no server is running".to_owned());
        }
        for store in &self.overview.stores {
            if store.is_draining {
                let left =
                    self.ranges().filter(|range| range.store.is_some_and(|other| other.id == store.id));
                remarks.push(format!(
                    "store {} is being drained: {} ranges are left",
                    store.name,
                    left.count()
                ));
            }
            let warnings = store.status.iter().flat_map(|status| &status.warnings);
            remarks.extend(warnings.map(|warning| format!("store {}: {warning}", store.name)));
        }
        remarks
    }
}

fn store_problems(store: &StoreOverview) -> Vec<String> {
    let mut problems = Vec::new();
    let name = &store.name;
    if let Some(trouble) = &store.trouble {
        problems.push(format!("store {name} cannot be used: {trouble}"));
    }
    if let Some(status) = store.status.as_ref().filter(|status| status.format != Some(FORMAT)) {
        problems.push(format!("store {name} has format {}", crate::stores::format_words(status.format)));
    }
    let is_late = |standby: &&Standby| {
        standby.lag_bytes > LAG_BYTES_MAX || standby.lag_seconds.is_some_and(|lag| lag > LAG_SECONDS_MAX)
    };
    for standby in store.standbys.iter().filter(is_late) {
        let lag = lag_words(standby);
        problems.push(format!("standby {} of store {name} is behind by {lag}", standby.name));
    }
    problems
}

fn lag_words(standby: &Standby) -> String {
    match standby.lag_seconds {
        Some(seconds) => format!("{} bytes, {seconds:.1} s", standby.lag_bytes),
        None => format!("{} bytes", standby.lag_bytes),
    }
}

fn name(place: &CatalogRange) -> String {
    format!("{}/{}", place.database, place.container)
}

/// The screen.
impl Status {
    fn text(&self, problems: &[String]) -> String {
        let overview = &self.overview;
        let usages = self.ranges().filter_map(|range| range.shard.map(|shard| RangeUsage::of(shard.tallies)));
        let (documents, bytes) =
            usages.fold((0, 0), |sum, usage| (sum.0 + usage.documents, sum.1 + usage.bytes));
        let alive = overview.servers.iter().filter(|server| server.is_alive).count();
        let up = overview.stores.iter().filter(|store| store.trouble.is_none()).count();
        let mut facts = vec![
            ("account", overview.account.clone()),
            ("servers", format!("{alive} alive")),
            ("stores", format!("{up} of {} answer", overview.stores.len())),
            ("ranges", format!("{}, with {documents} documents of {bytes} bytes", self.ranges.len())),
            ("problems", if problems.is_empty() { "none".to_owned() } else { problems.len().to_string() }),
        ];
        facts.extend(problems.iter().map(|problem| ("  PROBLEM", problem.clone())));
        facts.extend(self.remarks().into_iter().map(|remark| ("  remark", remark)));
        let parts = [columns::facts(&facts), self.servers_text(), self.stores_text(), self.ranges_text()];
        parts.join("\n")
    }

    fn servers_text(&self) -> String {
        let row = |server: &AccountServer| {
            let state = self.state_of(server);
            let silent = match state {
                ServerState::Left => "-".to_owned(),
                _ => format!("{} ago", duration(server.silent_seconds)),
            };
            let description = &server.description;
            vec![
                description.name.clone(),
                description.endpoint.clone(),
                description.version.clone(),
                duration(server.age_seconds),
                silent,
                state.name().to_owned(),
            ]
        };
        let rows: Vec<_> = self.overview.servers.iter().map(row).collect();
        columns::table(&["server", "endpoint", "version", "started", "heartbeat", "state"], &rows)
    }

    fn stores_text(&self) -> String {
        let row = |store: &StoreOverview| {
            let status = store.status.as_ref();
            let number = |number: Option<u64>| number.map_or("-".to_owned(), |number| number.to_string());
            let state = match (&store.trouble, store.is_draining) {
                (Some(_), _) => "DOWN",
                (None, true) => "draining",
                (None, false) => "up",
            };
            vec![
                store.name.clone(),
                store.url.clone(),
                status.and_then(|status| status.format).map_or("-".to_owned(), |format| format.to_string()),
                number(status.map(|status| status.shards)),
                number(status.map(|status| status.bytes)),
                standby_words(store),
                state.to_owned(),
            ]
        };
        let rows: Vec<_> = self.overview.stores.iter().map(row).collect();
        columns::table(&["store", "url", "format", "shards", "bytes", "standbys", "state"], &rows)
    }

    fn ranges_text(&self) -> String {
        let row = |range: RangeStatus<'_>| {
            let usage = range.shard.map(|shard| RangeUsage::of(shard.tallies));
            let number = |number: Option<u64>| number.map_or("-".to_owned(), |number| number.to_string());
            vec![
                name(range.place),
                range.place.range.to_string(),
                range.place.shard.0.to_string(),
                range.store.map_or("-", |store| &store.name).to_owned(),
                range.owner.map_or("-", |owner| &owner.description.name).to_owned(),
                number(usage.map(|usage| usage.documents)),
                number(usage.map(|usage| usage.bytes)),
                number(range.shard.map(|shard| shard.version)),
                number(range.shard.map(|shard| shard.unmerged_blocks)),
                range.shard.map_or("-", |shard| if shard.is_index_lost { "LOST" } else { "good" }).to_owned(),
            ]
        };
        let rows: Vec<_> = self.ranges().map(row).collect();
        let headings = [
            "container",
            "range",
            "shard",
            "store",
            "owner",
            "documents",
            "bytes",
            "lsn",
            "unmerged",
            "index",
        ];
        columns::table(&headings, &rows)
    }
}

/// The standbys of a store in a few words.
fn standby_words(store: &StoreOverview) -> String {
    let words = |standby: &Standby| {
        format!(
            "{} {} {} (behind by {})",
            standby.name,
            standby.state,
            standby.sync_state,
            lag_words(standby)
        )
    };
    let all: Vec<String> = store.standbys.iter().map(words).collect();
    if all.is_empty() { "-".to_owned() } else { all.join(", ") }
}

/// The same for programs.
impl Status {
    fn json(&self, problems: &[String]) -> Value {
        let servers: Vec<Value> =
            self.overview.servers.iter().map(|server| self.server_json(server)).collect();
        let stores: Vec<Value> = self.overview.stores.iter().map(store_json).collect();
        let ranges: Vec<Value> = self.ranges().map(|range| range_json(&range)).collect();
        json!({
            "account": self.overview.account,
            "problems": problems,
            "remarks": self.remarks(),
            "servers": servers,
            "stores": stores,
            "ranges": ranges,
        })
    }

    fn server_json(&self, server: &AccountServer) -> Value {
        let state = self.state_of(server);
        json!({
            "id": format!("{:016x}", server.id),
            "name": server.description.name,
            "endpoint": server.description.endpoint,
            "version": server.description.version,
            "ageSeconds": server.age_seconds,
            "heartbeatAgeSeconds": if state == ServerState::Left { Value::Null } else { server.silent_seconds.into() },
            "state": state.name().to_lowercase(),
        })
    }
}

fn store_json(store: &StoreOverview) -> Value {
    let standby = |standby: &Standby| {
        json!({
            "name": standby.name,
            "state": standby.state,
            "syncState": standby.sync_state,
            "lagBytes": standby.lag_bytes,
            "lagSeconds": standby.lag_seconds,
        })
    };
    let status = store.status.as_ref();
    json!({
        "place": store.id.0,
        "name": store.name,
        "url": store.url,
        "isReachable": store.trouble.is_none(),
        "trouble": store.trouble,
        "isDraining": store.is_draining,
        "version": status.map(|status| &status.version),
        "format": status.and_then(|status| status.format),
        "bytes": status.map(|status| status.bytes),
        "shards": status.map(|status| status.shards),
        "warnings": status.map(|status| &status.warnings),
        "standbys": store.standbys.iter().map(standby).collect::<Vec<_>>(),
    })
}

fn range_json(range: &RangeStatus<'_>) -> Value {
    let usage = range.shard.map(|shard| RangeUsage::of(shard.tallies));
    json!({
        "database": range.place.database,
        "container": range.place.container,
        "range": range.place.range.to_string(),
        "shard": range.place.shard.0,
        "store": range.store.map(|store| &store.name),
        "owner": range.owner.map(|owner| &owner.description.name),
        "documents": usage.map(|usage| usage.documents),
        "bytes": usage.map(|usage| usage.bytes),
        "lsn": range.shard.map(|shard| shard.version),
        "unmergedBlocks": range.shard.map(|shard| shard.unmerged_blocks),
        "unmergedBytes": range.shard.map(|shard| shard.unmerged_bytes),
        "isIndexLost": range.shard.map(|shard| shard.is_index_lost),
    })
}
