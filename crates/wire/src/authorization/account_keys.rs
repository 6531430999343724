//! The keys of an account, the text that clients sign with them, and the time in which a signature counts.
//!
//! The payload is five lines, each ended by a line break: verb, resource type, resource link, `x-ms-date`, `Date`; verb
//! and dates in lower case, the link as it is. Clients differ in link and dates, so candidates are tried in turn.
//! Not here: parsing the header (`authorization`), candidates for the link (`address`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_PAD_INDIFFERENT;
use smallvec::SmallVec;
use subtle::ConstantTimeEq as _;

use super::{AuthorizationError, MasterKey};
use crate::address::{Address, SigningCandidate};
use crate::date;

/// Long enough for nearly all payloads, so that checking a signature does not allocate.
type Payload = SmallVec<[u8; 512]>;

/// What the key of a good signature allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyAccess {
    /// Everything.
    Full,
    /// Reads and queries; a write deserves the same answer as a wrong signature.
    ReadOnly,
}

/// What a good signature tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signed {
    /// What its key allows.
    pub access: KeyAccess,
    /// Whether the signer means the ids of the address as resource ids.
    pub by_rid: bool,
}

/// The keys of an account.
#[derive(Debug, Clone)]
pub struct AccountKeys {
    /// Full access; tried first.
    pub primary: MasterKey,
    /// Full access, for changing keys without a pause.
    pub secondary: Option<MasterKey>,
    /// Reads only.
    pub primary_readonly: Option<MasterKey>,
    /// Reads only, for changing keys without a pause.
    pub secondary_readonly: Option<MasterKey>,
}

impl AccountKeys {
    /// An account with one key.
    pub fn single(primary: MasterKey) -> Self {
        AccountKeys { primary, secondary: None, primary_readonly: None, secondary_readonly: None }
    }

    /// Whether one of the keys is the emulator's, which everybody knows, however it is written.
    pub fn has_well_known(&self) -> bool {
        let others = [&self.secondary, &self.primary_readonly, &self.secondary_readonly];
        self.primary.is_well_known() || others.into_iter().flatten().any(MasterKey::is_well_known)
    }

    /// What a key allows that somebody has, if it is one of these.
    pub fn access_of_key(&self, key: &MasterKey) -> Option<KeyAccess> {
        // Keys are not kept; those that sign alike are alike.
        self.access_of(&key.sign(b""), b"")
    }

    /// Checks the `sig` of a master token. The date's own validity is [`DateWindow::check`]'s.
    pub fn verify(
        &self,
        signature: &str,
        verb: &str,
        address: &Address<'_>,
        x_ms_date: Option<&str>,
        date: Option<&str>,
    ) -> Result<Signed, AuthorizationError> {
        let dates = DateLines::new(x_ms_date, date).ok_or(AuthorizationError::MissingDate)?;
        if let Some(signature) = decode_signature(signature) {
            let mut payload = Payload::new();
            for candidate in address.signing_candidates() {
                for lines in dates.forms() {
                    payload.clear();
                    write_payload(&mut payload, verb, &candidate, lines);
                    if let Some(access) = self.access_of(&signature, &payload) {
                        return Ok(Signed { access, by_rid: candidate.by_rid });
                    }
                }
            }
        }
        Err(AuthorizationError::SignatureMismatch {
            payload: signing_payload(verb, address, x_ms_date, date),
        })
    }

    fn access_of(&self, signature: &[u8; 32], payload: &[u8]) -> Option<KeyAccess> {
        let keys = [
            (Some(&self.primary), KeyAccess::Full),
            (self.secondary.as_ref(), KeyAccess::Full),
            (self.primary_readonly.as_ref(), KeyAccess::ReadOnly),
            (self.secondary_readonly.as_ref(), KeyAccess::ReadOnly),
        ];
        keys.into_iter()
            .filter_map(|(key, access)| Some((key?, access)))
            .find(|(key, _)| bool::from(key.sign(payload).ct_eq(signature)))
            .map(|(_, access)| access)
    }
}

/// The text that a client should sign for this request, in its most likely form.
///
/// For the message of a refusal, also when a read-only key signed a write.
pub fn signing_payload(
    verb: &str,
    address: &Address<'_>,
    x_ms_date: Option<&str>,
    date: Option<&str>,
) -> String {
    let mut payload = Payload::new();
    let lines = DateLines::new(x_ms_date, date).and_then(|dates| dates.forms().next()).unwrap_or(("", ""));
    if let Some(candidate) = address.signing_candidates().next() {
        write_payload(&mut payload, verb, &candidate, lines);
    }
    String::from_utf8_lossy(&payload).into_owned()
}

/// How long before and after its date a signature counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DateWindow {
    /// How far the client's clock may be ahead.
    pub ahead_seconds: u32,
    /// Lifetime, plus how far the client's clock may be behind.
    pub behind_seconds: u32,
}

impl Default for DateWindow {
    /// As the service: a lifetime of 15 minutes and 15 minutes of skew each way.
    fn default() -> Self {
        DateWindow { ahead_seconds: 15 * 60, behind_seconds: 30 * 60 }
    }
}

impl DateWindow {
    /// Checks the date that was signed, `x_ms_date` before `date`, against the server's time.
    pub fn check(
        &self,
        x_ms_date: Option<&str>,
        date: Option<&str>,
        now_seconds: i64,
    ) -> Result<(), AuthorizationError> {
        let text = present(x_ms_date).or(present(date)).ok_or(AuthorizationError::MissingDate)?;
        let signed_at = date::parse(text).map_err(|_| AuthorizationError::BadDate)?;
        let starts_at_seconds = signed_at.saturating_sub(i64::from(self.ahead_seconds));
        let expires_at_seconds = signed_at.saturating_add(i64::from(self.behind_seconds));
        if (starts_at_seconds..=expires_at_seconds).contains(&now_seconds) {
            Ok(())
        } else {
            Err(AuthorizationError::OutsideWindow { starts_at_seconds, expires_at_seconds, now_seconds })
        }
    }
}

/// The last two lines of the payload in their possible forms.
#[derive(Clone, Copy)]
struct DateLines<'a> {
    x_ms_date: Option<&'a str>,
    date: Option<&'a str>,
}

impl<'a> DateLines<'a> {
    fn new(x_ms_date: Option<&'a str>, date: Option<&'a str>) -> Option<Self> {
        let lines = DateLines { x_ms_date: present(x_ms_date), date: present(date) };
        (lines.x_ms_date.is_some() || lines.date.is_some()).then_some(lines)
    }

    /// `x-ms-date` alone, or with `Date` as old clients sign that send both; `Date` alone when there is nothing else.
    fn forms(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let forms = match (self.x_ms_date, self.date) {
            (Some(x_ms_date), Some(date)) => [Some((x_ms_date, "")), Some((x_ms_date, date))],
            (Some(x_ms_date), None) => [Some((x_ms_date, "")), None],
            (None, Some(date)) => [Some(("", date)), None],
            (None, None) => [None, None],
        };
        forms.into_iter().flatten()
    }
}

/// An empty header counts as absent.
fn present(header: Option<&str>) -> Option<&str> {
    header.filter(|text| !text.is_empty())
}

fn write_payload(payload: &mut Payload, verb: &str, candidate: &SigningCandidate<'_>, dates: (&str, &str)) {
    write_lower_case_line(payload, verb);
    payload.extend_from_slice(candidate.resource_type.as_bytes());
    payload.push(b'\n');
    payload.extend_from_slice(candidate.link.as_bytes());
    payload.push(b'\n');
    write_lower_case_line(payload, dates.0);
    write_lower_case_line(payload, dates.1);
}

fn write_lower_case_line(payload: &mut Payload, text: &str) {
    let start = payload.len();
    payload.extend_from_slice(text.as_bytes());
    if let Some(line) = payload.get_mut(start..) {
        line.make_ascii_lowercase();
    }
    payload.push(b'\n');
}

/// The 32 bytes of a signature, or `None` for a text that cannot be one.
fn decode_signature(text: &str) -> Option<[u8; 32]> {
    // 44 characters with padding; the room of 48 bytes satisfies the decoder's cautious estimate.
    if text.len() > 44 {
        return None;
    }
    let mut bytes = [0; 48];
    let length = STANDARD_PAD_INDIFFERENT.decode_slice(text, &mut bytes).ok()?;
    if length == 32 { bytes.first_chunk().copied() } else { None }
}
