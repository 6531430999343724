//! Which container and range served a request, and how far that range is: what SDKs keep their sessions by.

use crate::answer::Answer;
use crate::database::Container;
use crate::render;
use crate::wire::{headers, session};
use std::sync::Arc;

/// The place of an answer about items.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) container: Arc<Container>,
    pub(crate) range_id: u32,
    pub(crate) lsn: u64,
}

impl Place {
    /// Sets the session token and its companions; all of them are needed by some SDK.
    pub(crate) fn set_headers(&self, answer: &mut Answer) {
        let range_id = self.range_id.to_string();
        answer.set_text(headers::SESSION_TOKEN, session::format_session_token(&range_id, self.lsn));
        answer.set_text(headers::PARTITION_KEY_RANGE_ID, range_id.clone());
        answer.set_text(headers::PHYSICAL_PARTITION_ID, range_id);
        answer.set_text(headers::ALT_CONTENT_PATH, render::container_path(&self.container));
        answer.set_text(headers::CONTENT_PATH, self.container.rid().to_string());
        for name in [
            headers::LSN,
            headers::LOCAL_LSN,
            headers::QUORUM_ACKED_LSN,
            headers::QUORUM_ACKED_LOCAL_LSN,
            headers::GLOBAL_COMMITTED_LSN,
        ] {
            answer.set_number(name, self.lsn);
        }
        answer.set_static(headers::CURRENT_WRITE_QUORUM, "1");
        answer.set_static(headers::CURRENT_REPLICA_SET_SIZE, "1");
        answer.set_static(headers::XP_ROLE, "1");
        answer.set_static(headers::NUMBER_OF_READ_REGIONS, "0");
        answer.set_static(headers::SCHEMA_VERSION, "1.19");
    }
}
