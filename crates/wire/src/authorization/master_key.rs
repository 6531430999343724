//! An account key, ready to sign.
//!
//! In: base64 text. Out: HMAC-SHA256 of any bytes, from a state computed once, so that a signature costs two blocks of
//! the hash less. The key itself is not kept. Not here: what is signed (`account_keys`, `resource_token`, `continuation`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::key_text::{self, EMULATOR_KEY, KeyError};

/// A key that signs; printing it shows nothing.
#[derive(Clone)]
pub struct MasterKey {
    state: Hmac<Sha256>,
}

impl MasterKey {
    /// Reads the base64 text of a key.
    pub fn from_base64(text: &str) -> Result<Self, KeyError> {
        Ok(MasterKey::from_bytes(&key_text::decode_key(text)?))
    }

    /// A key of any bytes; for keys derived within this crate, whose length is known to be good.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        MasterKey { state: Hmac::new_from_slice(bytes).expect("HMAC takes keys of any length") }
    }

    /// Whether it is the emulator's key, which protects nothing.
    pub fn is_well_known(&self) -> bool {
        // Keys are not kept; those that sign alike are alike.
        MasterKey::from_base64(EMULATOR_KEY).is_ok_and(|known| known.sign(b"") == self.sign(b""))
    }

    /// HMAC-SHA256 of `payload`.
    pub fn sign(&self, payload: &[u8]) -> [u8; 32] {
        let mut state = self.state.clone();
        state.update(payload);
        state.finalize().into_bytes().into()
    }

    /// The signature as a client sends it, for tools and tests that act as one.
    pub fn sign_base64(&self, payload: &[u8]) -> String {
        STANDARD.encode(self.sign(payload))
    }
}

impl std::fmt::Debug for MasterKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("MasterKey(..)")
    }
}
