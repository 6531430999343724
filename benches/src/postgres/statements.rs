//! A statement from many connections at once, timed as `load` times requests.

use super::client::Client;
use crate::load::Outcome;
use crate::process::own_usage;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What to run, and for how long.
pub(crate) struct Statements<'values> {
    pub(crate) sql: &'values str,
    /// The values of each run, in turn.
    pub(crate) values: &'values [Vec<String>],
    pub(crate) connections: usize,
    pub(crate) time_max: Duration,
    /// Whether values may be used more than once.
    pub(crate) repeat: bool,
}

/// Runs a statement with each of its values from a thread for each connection.
pub(crate) fn run(
    connect: impl Fn() -> anyhow::Result<Client>,
    load: &Statements<'_>,
) -> anyhow::Result<Outcome> {
    let mut clients = Vec::new();
    for _ in 0..load.connections {
        let mut client = connect()?;
        let statement = client.prepare(load.sql)?;
        clients.push((client, statement));
    }
    let next = AtomicUsize::new(0);
    let (began, usage) = (Instant::now(), own_usage()?);
    let work = |(mut client, statement)| -> anyhow::Result<Vec<f32>> {
        let mut micros = Vec::new();
        while began.elapsed() < load.time_max {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let place = if load.repeat { number % load.values.len() } else { number };
            let Some(values) = load.values.get(place) else { break };
            let asked = Instant::now();
            Client::run(&mut client, &statement, values)?;
            micros.push(asked.elapsed().as_secs_f32() * 1e6);
        }
        Ok(micros)
    };
    let micros = std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = clients.into_iter().map(|client| scope.spawn(move || work(client))).collect();
        let mut micros = Vec::new();
        for thread in threads {
            micros.extend(thread.join().expect("a thread of the bench ends")?);
        }
        anyhow::Ok(micros)
    })?;
    Ok(Outcome::of(micros, began.elapsed().as_secs_f64(), own_usage()?.since(usage)))
}
