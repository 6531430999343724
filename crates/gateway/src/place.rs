//! Which container and range served a request, and how far that range is: what SDKs keep their sessions by.

use crate::answer::{Answer, fixed_header, fixed_name, text_value};
use crate::database::Container;
use crate::wire::headers;
use http::HeaderValue;
use std::sync::Arc;

/// The place of an answer about items.
#[derive(Debug, Clone)]
pub(crate) struct ServedBy {
    pub(crate) container: Arc<Container>,
    pub(crate) range_id: u32,
    pub(crate) lsn: u64,
}

impl ServedBy {
    /// Sets the session token and its companions; all of them are needed by some SDK.
    pub(crate) fn set_headers(&self, answer: &mut Answer) {
        let (range_id, lsn) = (HeaderValue::from(self.range_id), HeaderValue::from(self.lsn));
        let mut token = String::with_capacity(32);
        let mut digits = itoa::Buffer::new();
        token.push_str(digits.format(self.range_id));
        token.push_str(":-1#");
        token.push_str(digits.format(self.lsn));
        answer.served = Some((self.container.rid(), self.range_id));
        let headers = &mut answer.headers;
        headers.insert(fixed_name!(headers::SESSION_TOKEN), text_value(token.as_bytes()));
        headers.insert(fixed_name!(headers::PARTITION_KEY_RANGE_ID), range_id.clone());
        headers.insert(fixed_name!(headers::PHYSICAL_PARTITION_ID), range_id);
        headers.insert(fixed_name!(headers::ALT_CONTENT_PATH), text_value(self.container.path().as_bytes()));
        headers.insert(fixed_name!(headers::CONTENT_PATH), text_value(self.container.rid_text().as_bytes()));
        headers.insert(fixed_name!(headers::LOCAL_LSN), lsn.clone());
        headers.insert(fixed_name!(headers::QUORUM_ACKED_LSN), lsn.clone());
        headers.insert(fixed_name!(headers::QUORUM_ACKED_LOCAL_LSN), lsn.clone());
        headers.insert(fixed_name!(headers::GLOBAL_COMMITTED_LSN), lsn.clone());
        headers.insert(fixed_name!(headers::LSN), lsn);
        fixed_header!(answer, headers::CURRENT_WRITE_QUORUM, "1");
        fixed_header!(answer, headers::CURRENT_REPLICA_SET_SIZE, "1");
        fixed_header!(answer, headers::XP_ROLE, "1");
        fixed_header!(answer, headers::NUMBER_OF_READ_REGIONS, "0");
        fixed_header!(answer, headers::SCHEMA_VERSION, "1.19");
    }
}
