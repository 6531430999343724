//! Who is signed in to the explorer, links to sign in with once, and how often wrong keys came.
//!
//! In: tokens, and the time by the database's clock. Out: [`Session`]s.
//! Invariants
//! - A session has two tokens, one for the browser's cookie and one for the page, and is found by both only: browsers send cookies to
//!   every port of a machine, and pages keep what they know by port.
//! - A token is 256 bits of the operating system's randomness. Only its hash under the account's key is kept.
//! - A session ends when its time is over, when somebody signs out of it, and when the server stops; a link with its first use.
//! - Sessions, links and the addresses that are remembered are bounded: the oldest session of the same rights makes room, so that who
//!   may only read signs nobody out who may write.
//! - A wrong key takes from the allowance of its address; a right one never asks for it, so nobody can lock others out.

use crate::wire::authorization::{KeyAccess, MasterKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Sessions at a time, of each kind of access.
const SESSIONS_MAX: usize = 1_000;
/// Links at a time.
const LINKS_MAX: usize = 16;
/// How long a link is good.
const LINK_SECONDS: u64 = 15 * 60;
/// Wrong keys in a row that an address may send.
const ATTEMPTS_MAX: u64 = 10;
/// After how long it may send one more.
const ATTEMPT_SECONDS: u64 = 6;
/// Addresses whose wrong keys are counted apart; all others are counted as one.
const ADDRESSES_MAX: usize = 1_000;
/// Longest token that is looked at.
const TOKEN_LENGTH_MAX: usize = 64;

/// Somebody who is signed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Session {
    /// What he may do.
    pub(super) access: KeyAccess,
    /// The second from which on he is not signed in any more.
    pub(super) expires: u64,
}

/// What whoever signs in is given.
pub(super) struct SignedIn {
    /// What the browser keeps as a cookie.
    pub(super) cookie: String,
    /// What the page keeps, and sends in its own header.
    pub(super) page_token: String,
    pub(super) session: Session,
}

/// All of them.
pub(super) struct Sessions {
    hash_key: MasterKey,
    session_seconds: u64,
    state: Mutex<SessionTable>,
    /// When the last session expires; 0 while there is none. Read by every request, without the lock.
    open_until: AtomicU64,
}

#[derive(Default)]
struct SessionTable {
    /// By their cookies.
    sessions: BTreeMap<TokenHash, KeptSession>,
    /// By when they expire.
    links: BTreeMap<TokenHash, u64>,
    /// When an address has all of its tries again. `None` stands for those that are not counted apart.
    spent: BTreeMap<Option<IpAddr>, u64>,
}

struct KeptSession {
    session: Session,
    page_token: TokenHash,
}

type TokenHash = [u8; 32];

impl Sessions {
    pub(super) fn new(hash_key: MasterKey, session_seconds: u64) -> Sessions {
        Sessions { hash_key, session_seconds, state: Mutex::default(), open_until: AtomicU64::new(0) }
    }

    /// When the last of the sessions expires, if there may be any.
    pub(super) fn open_until(&self) -> Option<u64> {
        let until = self.open_until.load(Relaxed);
        (until > 0).then_some(until)
    }

    /// Signs somebody in.
    pub(super) fn begin(&self, access: KeyAccess, now: u64) -> SignedIn {
        let (cookie, page_token) = (make_token(), make_token());
        let session = Session { access, expires: now.saturating_add(self.session_seconds) };
        let kept = KeptSession { session, page_token: self.hash(&page_token) };
        let mut state = self.locked();
        state.sessions.retain(|_, kept| kept.session.expires > now);
        let alike = state.sessions.iter().filter(|(_, kept)| kept.session.access == access);
        if alike.clone().count() >= SESSIONS_MAX {
            let oldest = alike.min_by_key(|(_, kept)| kept.session.expires).map(|(hash, _)| *hash);
            oldest.and_then(|oldest| state.sessions.remove(&oldest));
        }
        state.sessions.insert(self.hash(&cookie), kept);
        self.note_last(&state);
        SignedIn { cookie, page_token, session }
    }

    /// The session of a cookie, for the page that has its other half.
    pub(super) fn find(&self, cookie: &str, page_token: &str, now: u64) -> Option<Session> {
        if cookie.len().max(page_token.len()) > TOKEN_LENGTH_MAX {
            return None;
        }
        let (hash, page_hash) = (self.hash(cookie), self.hash(page_token));
        let state = self.locked();
        let kept = state.sessions.get(&hash).filter(|kept| kept.session.expires > now)?;
        is_same(&kept.page_token, &page_hash).then_some(kept.session)
    }

    /// Signs somebody out.
    pub(super) fn end(&self, cookie: &str) {
        if cookie.len() <= TOKEN_LENGTH_MAX {
            let hash = self.hash(cookie);
            let mut state = self.locked();
            state.sessions.remove(&hash);
            self.note_last(&state);
        }
    }

    fn note_last(&self, state: &SessionTable) {
        let last = state.sessions.values().map(|kept| kept.session.expires).max();
        self.open_until.store(last.unwrap_or(0), Relaxed);
    }

    /// A token to sign in with once.
    pub(super) fn make_link(&self, now: u64) -> String {
        let token = make_token();
        let mut state = self.locked();
        state.links.retain(|_, expires| *expires > now);
        if state.links.len() < LINKS_MAX {
            state.links.insert(self.hash(&token), now.saturating_add(LINK_SECONDS));
        }
        token
    }

    /// Uses a link up; gives whether it was good.
    pub(super) fn use_link(&self, token: &str, now: u64) -> bool {
        token.len() <= TOKEN_LENGTH_MAX
            && self.locked().links.remove(&self.hash(token)).is_some_and(|expires| expires > now)
    }

    /// Takes a wrong key from an address's allowance; gives the seconds to wait if there is none.
    pub(super) fn take_attempt(&self, address: IpAddr, now: u64) -> Result<(), u64> {
        let mut state = self.locked();
        let key = state.counted_as(address, now);
        let whole = state.spent.entry(key).or_insert(now);
        let after = (*whole).max(now) + ATTEMPT_SECONDS;
        let latest = now + ATTEMPTS_MAX * ATTEMPT_SECONDS;
        if after > latest {
            return Err(after - latest);
        }
        *whole = after;
        Ok(())
    }

    fn hash(&self, token: &str) -> TokenHash {
        self.hash_key.sign(token.as_bytes())
    }

    /// Whole after every step, also where a thread died.
    fn locked(&self) -> MutexGuard<'_, SessionTable> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionTable {
    fn counted_as(&mut self, address: IpAddr, now: u64) -> Option<IpAddr> {
        let address = network_of(address);
        if self.spent.contains_key(&Some(address)) {
            return Some(address);
        }
        if self.spent.len() >= ADDRESSES_MAX {
            self.spent.retain(|_, whole| *whole > now);
        }
        (self.spent.len() < ADDRESSES_MAX).then_some(address)
    }
}

/// One customer has a /64 of IPv6, so that counts as one address.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() & (u128::MAX << 64)).into()),
        address @ IpAddr::V4(_) => address,
    }
}

/// Looks at every byte, whichever of them differ.
fn is_same(left: &TokenHash, right: &TokenHash) -> bool {
    let differing = left.iter().zip(right).fold(0, |differing, (left, right)| differing | (left ^ right));
    std::hint::black_box(differing) == 0
}

fn make_token() -> String {
    let mut bytes = [0; 32];
    let provider = rustls::crypto::ring::default_provider();
    // Without randomness there is nothing to go on with: a token that could be guessed is worse than no server.
    assert!(provider.secure_random.fill(&mut bytes).is_ok(), "the operating system gives no random bytes");
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::key_text::EMULATOR_KEY;
    use std::net::{Ipv4Addr, Ipv6Addr};

    fn sessions() -> Sessions {
        Sessions::new(MasterKey::from_base64(EMULATOR_KEY).unwrap(), 100)
    }

    fn found(sessions: &Sessions, signed_in: &SignedIn, now: u64) -> Option<Session> {
        sessions.find(&signed_in.cookie, &signed_in.page_token, now)
    }

    #[test]
    fn a_session_ends_in_time_and_by_signing_out() {
        let sessions = sessions();
        let one = sessions.begin(KeyAccess::ReadOnly, 1_000);
        assert_eq!(one.session, Session { access: KeyAccess::ReadOnly, expires: 1_100 });
        assert_eq!(found(&sessions, &one, 1_099), Some(one.session));
        assert_eq!(found(&sessions, &one, 1_100), None);
        assert_eq!(sessions.find("", &one.page_token, 1_000), None);
        assert_eq!(sessions.find(&one.cookie.repeat(2), &one.page_token, 1_000), None);
        let other = sessions.begin(KeyAccess::Full, 1_000);
        assert_ne!(one.cookie, other.cookie);
        sessions.end(&one.cookie);
        assert_eq!(found(&sessions, &one, 1_000), None);
        assert!(found(&sessions, &other, 1_000).is_some());
    }

    #[test]
    fn it_is_known_without_a_lock_until_when_there_is_a_session() {
        let sessions = sessions();
        assert_eq!(sessions.open_until(), None);
        let one = sessions.begin(KeyAccess::Full, 1_000);
        let other = sessions.begin(KeyAccess::ReadOnly, 1_010);
        let state = sessions.locked();
        assert_eq!(sessions.open_until(), Some(1_110));
        drop(state);
        sessions.end(&other.cookie);
        assert_eq!(sessions.open_until(), Some(1_100));
        sessions.end(&one.cookie);
        assert_eq!(sessions.open_until(), None);
    }

    #[test]
    fn a_cookie_alone_is_no_session() {
        let sessions = sessions();
        let (one, other) = (sessions.begin(KeyAccess::Full, 1_000), sessions.begin(KeyAccess::Full, 1_000));
        assert_ne!(one.cookie, one.page_token);
        for page_token in ["", "1", &one.cookie, &other.page_token, &one.page_token.repeat(2)] {
            assert_eq!(sessions.find(&one.cookie, page_token, 1_000), None, "{page_token}");
        }
        assert_eq!(sessions.find(&one.page_token, &one.page_token, 1_000), None);
        assert!(found(&sessions, &one, 1_000).is_some());
    }

    #[test]
    fn the_oldest_session_makes_room() {
        let sessions = sessions();
        let first = sessions.begin(KeyAccess::Full, 1_000);
        let second = sessions.begin(KeyAccess::Full, 1_001);
        for _ in 0..SESSIONS_MAX - 1 {
            sessions.begin(KeyAccess::Full, 1_002);
        }
        assert_eq!(found(&sessions, &first, 1_002), None);
        assert!(found(&sessions, &second, 1_002).is_some());
        assert_eq!(sessions.locked().sessions.len(), SESSIONS_MAX);
        sessions.begin(KeyAccess::Full, 2_000);
        assert_eq!(sessions.locked().sessions.len(), 1);
    }

    #[test]
    fn who_may_only_read_signs_nobody_out_who_may_write() {
        let sessions = sessions();
        let writer = sessions.begin(KeyAccess::Full, 1_000);
        let reader = sessions.begin(KeyAccess::ReadOnly, 1_001);
        for _ in 0..SESSIONS_MAX {
            sessions.begin(KeyAccess::ReadOnly, 1_002);
        }
        assert!(found(&sessions, &writer, 1_002).is_some());
        assert_eq!(found(&sessions, &reader, 1_002), None);
        assert_eq!(sessions.locked().sessions.len(), SESSIONS_MAX + 1);
    }

    #[test]
    fn a_link_works_once_and_not_for_long() {
        let sessions = sessions();
        let link = sessions.make_link(1_000);
        assert!(!sessions.use_link("x", 1_000));
        assert!(sessions.use_link(&link, 1_000));
        assert!(!sessions.use_link(&link, 1_000));
        let late = sessions.make_link(1_000);
        assert!(!sessions.use_link(&late, 1_000 + LINK_SECONDS));
        for _ in 0..100 {
            sessions.make_link(5_000);
        }
        assert_eq!(sessions.locked().links.len(), LINKS_MAX);
    }

    #[test]
    fn wrong_keys_are_bounded_by_address() {
        let sessions = sessions();
        let address = |last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
        for _ in 0..ATTEMPTS_MAX {
            assert_eq!(sessions.take_attempt(address(1), 1_000), Ok(()));
        }
        assert_eq!(sessions.take_attempt(address(1), 1_000), Err(ATTEMPT_SECONDS));
        assert_eq!(sessions.take_attempt(address(1), 1_004), Err(2));
        assert_eq!(sessions.take_attempt(address(2), 1_000), Ok(()));
        assert_eq!(sessions.take_attempt(address(1), 1_006), Ok(()));
        assert_eq!(sessions.take_attempt(address(1), 1_006), Err(ATTEMPT_SECONDS));
        // A network of IPv6 is one address, and one of IPv4 in IPv6 is that of IPv4.
        let six = |text: &str| IpAddr::V6(text.parse::<Ipv6Addr>().unwrap());
        for last in 0..ATTEMPTS_MAX {
            assert_eq!(sessions.take_attempt(six(&format!("2001:db8::{last:x}")), 1_000), Ok(()));
        }
        assert!(sessions.take_attempt(six("2001:db8::ff"), 1_000).is_err());
        assert!(sessions.take_attempt(six("2001:db8:0:1::"), 1_000).is_ok());
        assert!(sessions.take_attempt(six("::ffff:10.0.0.1"), 1_006).is_err());
    }

    #[test]
    fn addresses_are_bounded() {
        let sessions = sessions();
        for number in 0..3 * ADDRESSES_MAX as u32 {
            let _ = sessions.take_attempt(IpAddr::V4(Ipv4Addr::from_bits(number)), 1_000);
        }
        assert!(sessions.locked().spent.len() <= ADDRESSES_MAX + 1);
        // Those beyond share one allowance, which is spent; those within still have theirs.
        assert!(sessions.take_attempt(IpAddr::V4(Ipv4Addr::from_bits(u32::MAX)), 1_000).is_err());
        assert!(sessions.take_attempt(IpAddr::V4(Ipv4Addr::from_bits(1)), 1_000).is_ok());
    }
}
