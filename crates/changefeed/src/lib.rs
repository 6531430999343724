//! changefeed
