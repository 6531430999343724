//! Provisioned throughput: what a client may ask for, the least it may have, and the content of an offer.
//!
//! In: the two creation headers, or the body of an offer being replaced. Out: [`Throughput`] within its limits, and
//! [`Offer`], which also remembers the marks that the minimum depends on.
//! Invariants
//! - Manual throughput is a multiple of 100 from 400, autoscale a multiple of 1000 from 1000, both up to a million.
//! - An offer changes between the two only when the request says so (migration).
//!
//! Not here: which resource an offer belongs to and its links (`database`), how many ranges it means (`database`),
//! throttling (`database`).

use super::members::Members;
use super::{Invalid, excerpt};
use serde_json::{Map, Value, json};

/// Least manual throughput, in request units per second.
pub const MANUAL_MIN: u32 = 400;
/// Manual throughput comes in multiples of this.
pub const MANUAL_STEP: u32 = 100;
/// Least autoscale maximum, in request units per second.
pub const AUTOSCALE_MIN: u32 = 1_000;
/// Autoscale maxima come in multiples of this.
pub const AUTOSCALE_STEP: u32 = 1_000;
/// Most throughput of one database or container.
pub const THROUGHPUT_MAX: u32 = 1_000_000;
/// An autoscale resource runs at no less than its maximum divided by this.
const AUTOSCALE_IDLE_DIVISOR: u32 = 10;
/// So many containers may share the throughput of a database before each further one raises the minimum.
const SHARING_CONTAINERS_FREE: u32 = 25;
const KILOBYTES_PER_GIGABYTE: u64 = 1 << 20;
/// The member of an offer's content that tells whether requests beyond it are refused.
const THROTTLING: &str = "astrariumThrottling";

/// The throughput of a database or container, in request units per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Throughput {
    /// A fixed amount.
    Manual(u32),
    /// An amount that follows the load, between a tenth of the maximum and the maximum.
    Autoscale {
        /// The most it grows to.
        max: u32,
        /// By how many percent the service may raise the maximum on its own.
        increment_percent: u32,
    },
}

impl Throughput {
    /// What a container gets when its creator says nothing and its database shares nothing.
    pub const DEFAULT: Throughput = Throughput::Manual(MANUAL_MIN);

    /// Reads the creation headers: the text of `x-ms-offer-throughput` and of `x-ms-cosmos-offer-autopilot-settings`.
    pub fn from_headers(
        manual: Option<&str>,
        autoscale: Option<&str>,
    ) -> Result<Option<Throughput>, Invalid> {
        let nothing_yet = MinimumInputs::default();
        match (manual, autoscale) {
            (None, None) => Ok(None),
            (Some(_), Some(_)) => Err(Invalid::new(
                "Manual and autoscale throughput cannot be combined: send either x-ms-offer-throughput or \
                 x-ms-cosmos-offer-autopilot-settings.",
            )),
            (Some(text), None) => {
                let requested = text.trim().parse().map_err(|_| {
                    let given = excerpt(text);
                    Invalid::input(format!("the throughput '{given}' is not a whole number of request units"))
                })?;
                manual_throughput(requested, &nothing_yet).map(Some)
            }
            (None, Some(text)) => {
                let settings: Value = serde_json::from_str(text).map_err(|_| {
                    Invalid::input("the autoscale settings must be a JSON object with maxThroughput")
                })?;
                let settings = Members::of(&settings, "the autoscale settings")?;
                autoscale_throughput(&settings, &nothing_yet).map(Some)
            }
        }
    }

    /// The most this throughput ever grows to.
    pub fn highest(self) -> u32 {
        match self {
            Throughput::Manual(amount) => amount,
            Throughput::Autoscale { max, .. } => max,
        }
    }
}

/// What the least throughput of a resource depends on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MinimumInputs {
    /// The highest throughput it ever had.
    pub highest_ever: u32,
    /// The data it holds, in gigabytes, rounded up.
    pub storage_gigabytes: u64,
    /// For a database: the containers that share its throughput. For a container: 0.
    pub sharing_containers: u32,
}

/// The least manual throughput.
pub fn manual_minimum(inputs: &MinimumInputs) -> u32 {
    let shared = MANUAL_MIN.saturating_add(charged_containers(inputs).saturating_mul(100));
    let history = inputs.highest_ever / 100;
    let storage = clamp(inputs.storage_gigabytes);
    round_up(shared.max(history).max(storage), MANUAL_STEP)
}

/// The least maximum of an autoscale resource.
pub fn autoscale_minimum(inputs: &MinimumInputs) -> u32 {
    let shared = AUTOSCALE_MIN.saturating_add(charged_containers(inputs).saturating_mul(1_000));
    let history = inputs.highest_ever / 10;
    let storage = clamp(inputs.storage_gigabytes.saturating_mul(10));
    round_up(shared.max(history).max(storage), AUTOSCALE_STEP)
}

/// A request to change between manual and autoscale throughput.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Migration {
    /// From manual to autoscale.
    ToAutoscale,
    /// From autoscale to manual.
    ToManual,
}

impl Migration {
    /// Reads the two migration headers, already taken as flags.
    pub fn from_flags(to_autoscale: bool, to_manual: bool) -> Result<Option<Migration>, Invalid> {
        match (to_autoscale, to_manual) {
            (true, true) => Err(Invalid::new(
                "An offer cannot migrate to autoscale and to manual throughput at once: send one of the two headers.",
            )),
            (true, false) => Ok(Some(Migration::ToAutoscale)),
            (false, true) => Ok(Some(Migration::ToManual)),
            (false, false) => Ok(None),
        }
    }
}

/// The content of an offer: the throughput, and the marks its minimum depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// What is provisioned.
    pub throughput: Throughput,
    /// The highest throughput ever provisioned.
    pub highest_ever: u32,
    /// The most data ever held, in kilobytes.
    pub storage_kilobytes_ever: u64,
    /// Whether requests beyond the throughput are refused; if it does not say, the server's setting counts. An extension of
    /// ours: the member `astrariumThrottling` of the content.
    pub is_throttled: Option<bool>,
}

impl Offer {
    /// The offer of a new resource.
    pub fn new(throughput: Throughput) -> Offer {
        let highest_ever = throughput.highest();
        Offer { throughput, highest_ever, storage_kilobytes_ever: 0, is_throttled: None }
    }

    /// Reads what [`Offer::content`] wrote.
    pub fn from_content(content: &Value) -> Result<Offer, Invalid> {
        let content = Members::of(content, "the content of the offer")?;
        let throughput = match content.object("offerAutopilotSettings", "offerAutopilotSettings")? {
            Some(settings) => Throughput::Autoscale {
                max: amount(&settings, "maxThroughput")?,
                increment_percent: increment_percent(&settings)?,
            },
            None => Throughput::Manual(amount(&content, "offerThroughput")?),
        };
        let mut offer = Offer { is_throttled: content.flag(THROTTLING)?, ..Offer::new(throughput) };
        let marks = content.object("offerMinimumThroughputParameters", "offerMinimumThroughputParameters")?;
        if let Some(marks) = marks {
            offer.highest_ever = offer.highest_ever.max(amount(&marks, "maxThroughputEverProvisioned")?);
            let kilobytes = marks.integer("maxConsumedStorageEverInKB")?.unwrap_or_default();
            offer.storage_kilobytes_ever = u64::try_from(kilobytes).unwrap_or_default();
        }
        Ok(offer)
    }

    /// The `content` member of the offer resource.
    pub fn content(&self) -> Map<String, Value> {
        let running = match self.throughput {
            Throughput::Manual(amount) => amount,
            Throughput::Autoscale { max, .. } => max / AUTOSCALE_IDLE_DIVISOR,
        };
        let mut content = Map::new();
        content.insert("offerThroughput".to_owned(), running.into());
        content.insert("offerIsRUPerMinuteThroughputEnabled".to_owned(), false.into());
        let marks = json!({
            "maxThroughputEverProvisioned": self.highest_ever,
            "maxConsumedStorageEverInKB": self.storage_kilobytes_ever,
        });
        content.insert("offerMinimumThroughputParameters".to_owned(), marks);
        if let Throughput::Autoscale { max, increment_percent } = self.throughput {
            let settings = json!({
                "tier": 0,
                "maximumTierThroughput": max,
                "autoUpgrade": false,
                "maxThroughput": max,
                "autoUpgradePolicy": {"throughputPolicy": {"incrementPercent": increment_percent}},
            });
            content.insert("offerAutopilotSettings".to_owned(), settings);
        }
        if let Some(is_throttled) = self.is_throttled {
            content.insert(THROTTLING.to_owned(), is_throttled.into());
        }
        content
    }

    /// What the minimum of this offer depends on, given how many containers share it.
    pub fn minimum_inputs(&self, sharing_containers: u32) -> MinimumInputs {
        MinimumInputs {
            highest_ever: self.highest_ever,
            storage_gigabytes: self.storage_kilobytes_ever.div_ceil(KILOBYTES_PER_GIGABYTE),
            sharing_containers,
        }
    }

    /// The least throughput that a replace of this offer may ask for.
    pub fn minimum(&self, sharing_containers: u32) -> u32 {
        let inputs = self.minimum_inputs(sharing_containers);
        match self.throughput {
            Throughput::Manual(_) => manual_minimum(&inputs),
            Throughput::Autoscale { .. } => autoscale_minimum(&inputs),
        }
    }

    /// The offer after a replace request: `body` is the whole offer resource as the client sends it back.
    pub fn replaced(
        &self,
        body: &Value,
        migration: Option<Migration>,
        sharing_containers: u32,
    ) -> Result<Offer, Invalid> {
        let body = Members::of(body, "the offer")?;
        let content = body.object("content", "the content of the offer")?;
        let content = content.ok_or_else(|| body.wrong("content", "an object"))?;
        let settings = content.object("offerAutopilotSettings", "offerAutopilotSettings")?;
        let inputs = self.minimum_inputs(sharing_containers);
        let throughput = match (migration, self.throughput, settings) {
            (Some(Migration::ToAutoscale), Throughput::Manual(amount), settings) => {
                migrated_to_autoscale(amount, settings, &inputs)?
            }
            // The client leaves the amount to us, so that nothing running is cut off.
            (Some(Migration::ToManual), Throughput::Autoscale { max, .. }, _) => {
                Throughput::Manual(max.max(manual_minimum(&inputs)))
            }
            (Some(Migration::ToManual), Throughput::Manual(_), _) | (_, Throughput::Manual(_), None) => {
                let requested = content.integer("offerThroughput")?;
                let requested =
                    requested.ok_or_else(|| content.wrong("offerThroughput", "a whole number"))?;
                manual_throughput(requested, &inputs)?
            }
            (_, Throughput::Manual(_), Some(_)) => {
                return Err(needs_migration("manual", "autoscale", "x-ms-cosmos-migrate-offer-to-autopilot"));
            }
            (_, Throughput::Autoscale { .. }, Some(settings)) => autoscale_throughput(&settings, &inputs)?,
            (_, Throughput::Autoscale { .. }, None) => {
                return Err(needs_migration(
                    "autoscale",
                    "manual",
                    "x-ms-cosmos-migrate-offer-to-manual-throughput",
                ));
            }
        };
        let highest_ever = self.highest_ever.max(throughput.highest());
        // Clients that build the content anew leave it as it was; null takes it back.
        let is_throttled =
            if content.is_null(THROTTLING) { None } else { content.flag(THROTTLING)?.or(self.is_throttled) };
        Ok(Offer { throughput, highest_ever, is_throttled, ..*self })
    }
}

fn needs_migration(from: &str, to: &str, header: &str) -> Invalid {
    Invalid::new(format!(
        "The offer has {from} throughput and the request asks for {to} throughput. To change over, send the header \
         {header}: true."
    ))
}

fn migrated_to_autoscale(
    amount: u32,
    settings: Option<Members<'_>>,
    inputs: &MinimumInputs,
) -> Result<Throughput, Invalid> {
    if let Some(settings) = settings {
        return autoscale_throughput(&settings, inputs);
    }
    let max = round_up(amount, AUTOSCALE_STEP).max(autoscale_minimum(inputs)).min(THROUGHPUT_MAX);
    Ok(Throughput::Autoscale { max, increment_percent: 0 })
}

fn manual_throughput(requested: i64, inputs: &MinimumInputs) -> Result<Throughput, Invalid> {
    within(requested, manual_minimum(inputs), MANUAL_STEP).map(Throughput::Manual)
}

fn autoscale_throughput(settings: &Members<'_>, inputs: &MinimumInputs) -> Result<Throughput, Invalid> {
    let requested = settings.integer("maxThroughput")?;
    let requested = requested.ok_or_else(|| settings.wrong("maxThroughput", "a whole number"))?;
    let max = within(requested, autoscale_minimum(inputs), AUTOSCALE_STEP)?;
    Ok(Throughput::Autoscale { max, increment_percent: increment_percent(settings)? })
}

fn increment_percent(settings: &Members<'_>) -> Result<u32, Invalid> {
    let policy = settings.object("autoUpgradePolicy", "autoUpgradePolicy")?;
    let policy =
        policy.map(|policy| policy.object("throughputPolicy", "throughputPolicy")).transpose()?.flatten();
    let Some(policy) = policy else { return Ok(0) };
    let percent = policy.integer("incrementPercent")?.unwrap_or_default();
    let in_range = u32::try_from(percent).ok().filter(|percent| *percent <= 100);
    in_range.ok_or_else(|| policy.wrong("incrementPercent", "a whole number from 0 to 100"))
}

fn within(requested: i64, minimum: u32, step: u32) -> Result<u32, Invalid> {
    let refuse = |problem: String| Err(Invalid::new(format!("Requested throughput {requested} {problem}.")));
    match u32::try_from(requested) {
        Ok(amount) if amount > THROUGHPUT_MAX => refuse(format!("is more than the maximum {THROUGHPUT_MAX}")),
        Err(_) if requested > 0 => refuse(format!("is more than the maximum {THROUGHPUT_MAX}")),
        Ok(amount) if amount >= minimum && amount.is_multiple_of(step) => Ok(amount),
        Ok(amount) if amount >= minimum => refuse(format!("is not a multiple of {step}")),
        _ => refuse(format!("is less than required minimum throughput {minimum}")),
    }
}

fn amount(owner: &Members<'_>, name: &str) -> Result<u32, Invalid> {
    let amount = owner.integer(name)?.and_then(|amount| u32::try_from(amount).ok());
    amount.ok_or_else(|| owner.wrong(name, "a whole number of request units"))
}

fn charged_containers(inputs: &MinimumInputs) -> u32 {
    inputs.sharing_containers.saturating_sub(SHARING_CONTAINERS_FREE)
}

fn clamp(amount: u64) -> u32 {
    u32::try_from(amount).unwrap_or(u32::MAX)
}

fn round_up(amount: u32, step: u32) -> u32 {
    amount.checked_next_multiple_of(step).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn autoscale(max: u32, increment_percent: u32) -> Throughput {
        Throughput::Autoscale { max, increment_percent }
    }

    fn check_headers(
        manual: Option<&str>,
        autoscale: Option<&str>,
        expected: Result<Option<Throughput>, &str>,
    ) {
        match (Throughput::from_headers(manual, autoscale), expected) {
            (Ok(actual), Ok(expected)) => assert_eq!(actual, expected),
            (Err(actual), Err(fragment)) => assert!(actual.message().contains(fragment), "{actual}"),
            (actual, expected) => panic!("{manual:?} {autoscale:?}: {actual:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn headers() {
        let invalid = Err("One of the specified inputs is invalid");
        check_headers(None, None, Ok(None));
        for (text, expected) in [
            ("400", Ok(Some(Throughput::Manual(400)))),
            (" 10100 ", Ok(Some(Throughput::Manual(10_100)))),
            ("1000000", Ok(Some(Throughput::Manual(1_000_000)))),
            ("399", Err("Requested throughput 399 is less than required minimum throughput 400")),
            ("-1", Err("Requested throughput -1 is less than required minimum throughput 400")),
            ("450", Err("Requested throughput 450 is not a multiple of 100")),
            ("1000100", Err("is more than the maximum 1000000")),
            ("9999999999", Err("is more than the maximum 1000000")),
            ("99999999999999999999", invalid),
            ("4e2", invalid),
            ("", invalid),
        ] {
            check_headers(Some(text), None, expected);
        }
        for (text, expected) in [
            (r#"{"maxThroughput":4000}"#, Ok(Some(autoscale(4_000, 0)))),
            (
                r#"{"maxThroughput": 1000, "autoUpgradePolicy": {"throughputPolicy": {"incrementPercent": 3}}}"#,
                Ok(Some(autoscale(1_000, 3))),
            ),
            (
                r#"{"maxThroughput":-200}"#,
                Err("Requested throughput -200 is less than required minimum throughput 1000"),
            ),
            (r#"{"maxThroughput":1500}"#, Err("Requested throughput 1500 is not a multiple of 1000")),
            (r#"{"maxThroughput":"1000"}"#, invalid),
            (r#"{"maxThroughput":1000,"autoUpgradePolicy":7}"#, invalid),
            (
                r#"{"maxThroughput":1000,"autoUpgradePolicy":{"throughputPolicy":{"incrementPercent":-1}}}"#,
                invalid,
            ),
            ("{}", invalid),
            ("[", invalid),
        ] {
            check_headers(None, Some(text), expected);
        }
        check_headers(Some("400"), Some(r#"{"maxThroughput":4000}"#), Err("cannot be combined"));
    }

    #[test]
    fn minimums_follow_history_storage_and_sharing() {
        for (highest_ever, storage_gigabytes, sharing_containers, manual, autoscale) in [
            (0, 0, 0, 400, 1_000),
            (400, 10, 25, 400, 1_000),
            (50_000, 0, 0, 500, 5_000),
            (50_100, 0, 0, 600, 6_000),
            (0, 650, 0, 700, 7_000),
            (0, 0, 30, 900, 6_000),
            (1_000_000, 20_000, 0, 20_000, 200_000),
            (u32::MAX, u64::MAX, u32::MAX, u32::MAX, u32::MAX),
        ] {
            let inputs = MinimumInputs { highest_ever, storage_gigabytes, sharing_containers };
            assert_eq!(
                (manual_minimum(&inputs), autoscale_minimum(&inputs)),
                (manual, autoscale),
                "{inputs:?}"
            );
        }
    }

    fn check_replace(
        offer: Offer,
        content: &Value,
        migration: Option<Migration>,
        expected: Result<Throughput, &str>,
    ) {
        let body = json!({"id": "uT2L", "resource": "dbs/a/", "content": content});
        match (offer.replaced(&body, migration, 0), expected) {
            (Ok(actual), Ok(expected)) => {
                assert_eq!(actual.throughput, expected);
                assert_eq!(actual.highest_ever, offer.highest_ever.max(expected.highest()));
            }
            (Err(actual), Err(fragment)) => assert!(actual.message().contains(fragment), "{actual}"),
            (actual, expected) => panic!("{content}: {actual:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn replacing_an_offer() {
        let manual = Offer::new(Throughput::Manual(400));
        let scaled = Offer::new(autoscale(5_000, 2));
        let (to_autoscale, to_manual) = (Some(Migration::ToAutoscale), Some(Migration::ToManual));
        let max =
            |max: i64| json!({"offerThroughput": 500, "offerAutopilotSettings": {"maxThroughput": max}});
        let mut read_back = Value::Object(scaled.content());
        read_back["offerAutopilotSettings"]["maxThroughput"] = json!(7_000);
        read_back["offerAutopilotSettings"]["autoUpgradePolicy"]["throughputPolicy"]["incrementPercent"] =
            json!(20);

        check_replace(manual, &json!({"offerThroughput": 2_500}), None, Ok(Throughput::Manual(2_500)));
        check_replace(manual, &json!({"offerThroughput": 300}), None, Err("required minimum throughput 400"));
        check_replace(manual, &json!({}), None, Err("One of the specified inputs is invalid"));
        check_replace(manual, &max(4_000), None, Err("x-ms-cosmos-migrate-offer-to-autopilot: true"));
        check_replace(manual, &max(4_000), to_autoscale, Ok(autoscale(4_000, 0)));
        check_replace(manual, &json!({"offerThroughput": 400}), to_autoscale, Ok(autoscale(1_000, 0)));
        check_replace(scaled, &read_back, None, Ok(autoscale(7_000, 20)));
        check_replace(scaled, &max(900), None, Err("required minimum throughput 1000"));
        check_replace(
            scaled,
            &json!({"offerThroughput": 600}),
            None,
            Err("x-ms-cosmos-migrate-offer-to-manual-throughput: true"),
        );
        check_replace(scaled, &max(0), to_manual, Ok(Throughput::Manual(5_000)));
        check_replace(scaled, &read_back, to_autoscale, Ok(autoscale(7_000, 20)));
        check_replace(manual, &max(0), to_manual, Ok(Throughput::Manual(500)));
        assert!(Migration::from_flags(true, true).is_err());
        assert!(manual.replaced(&json!({"content": 1}), None, 0).is_err());
        assert!(manual.replaced(&json!(null), None, 0).is_err());
    }

    #[test]
    fn content_shows_and_restores_the_offer() {
        let manual =
            Offer { highest_ever: 9_000, storage_kilobytes_ever: 5, ..Offer::new(Throughput::Manual(400)) };
        let content = Value::Object(manual.content());
        let expected = json!({
            "offerThroughput": 400, "offerIsRUPerMinuteThroughputEnabled": false,
            "offerMinimumThroughputParameters": {"maxThroughputEverProvisioned": 9_000, "maxConsumedStorageEverInKB": 5}
        });
        assert_eq!(content, expected);
        assert_eq!(Offer::from_content(&content), Ok(manual));

        let scaled = Offer::new(autoscale(7_000, 0));
        let content = Value::Object(scaled.content());
        assert_eq!(content["offerThroughput"], 700);
        let settings = json!({
            "tier": 0, "maximumTierThroughput": 7_000, "autoUpgrade": false, "maxThroughput": 7_000,
            "autoUpgradePolicy": {"throughputPolicy": {"incrementPercent": 0}}
        });
        assert_eq!(content["offerAutopilotSettings"], settings);
        assert_eq!(Offer::from_content(&content), Ok(scaled));
    }
}
