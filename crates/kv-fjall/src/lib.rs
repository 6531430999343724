//! kv-fjall
