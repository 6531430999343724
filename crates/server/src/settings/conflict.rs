//! Settings of `serve` that cannot go together: one of them would be ignored, so both are refused, with where each came from.

use clap::ArgMatches;
use clap::parser::ValueSource;

/// Pairs of settings by name; the second does nothing when the first is on.
const PAIRS: [(&str, &str, &str); 8] = [
    ("memory", "data", "nothing would be stored in the folder"),
    ("memory", "cache_mb", "there are no stored blocks to keep"),
    ("memory", "reserve_mb", "nothing is written to a disk"),
    ("store", "data", "nothing would be stored in the folder"),
    ("store", "memory", "the data is either kept or not"),
    ("store", "reserve_mb", "the disk is the store's to watch"),
    ("tls_certificate", "certificate_name", "your own certificate has the names that it has"),
    ("public_endpoint", "trust_forwarded", "clients are told the public endpoint whatever a proxy says"),
];

/// The first contradiction among the settings that somebody gave, in words.
pub(super) fn find(matches: &ArgMatches, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let shown = |id: &str| {
        let flag = format!("--{}", id.replace('_', "-"));
        match (matches.value_source(id), variable(id)) {
            (Some(ValueSource::EnvVariable), Some(variable)) => format!("{flag} (by {variable})"),
            _ => flag,
        }
    };
    let (first, second, reason) =
        PAIRS.iter().find(|(first, second, _)| is_on(matches, first) && is_on(matches, second))?;
    Some(format!(
        "{} and {} contradict each other: {reason}. Leave one of them out",
        shown(first),
        shown(second)
    ))
}

/// Whether somebody gave this setting, and did not switch it off.
fn is_on(matches: &ArgMatches, id: &str) -> bool {
    let given = matches!(matches.value_source(id), Some(ValueSource::CommandLine | ValueSource::EnvVariable));
    given && !matches!(matches.try_get_one::<bool>(id), Ok(Some(false)))
}
