//! Request targets: any path and query is an address or refused, and every question about it has an answer.

use astrarium_wire::address::Address;
use astrarium_wire::percent;

pub(crate) fn run(target: &str) {
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    if let Some(decoded) = percent::decode_once(target) {
        assert!(decoded.len() <= target.len());
    }
    assert_eq!(percent::decode_once(&percent::encode_component(target)).as_deref(), Some(target));
    assert!(percent::encode_header_text(target).is_ascii());
    let Ok(address) = Address::parse(path, query) else { return };
    assert_eq!(address.depth(), address.ids.len());
    assert!(address.depth() <= address.kind.depth());
    assert!(!address.allowed_methods().is_empty());
    let _ = (address.allows("GET"), address.looks_like_rid());
    assert!(!address.name_link().starts_with('/'));
    let _ = (address.resource_link(), address.owner_link());
    let candidates = address.signing_candidates().count();
    assert!((1..=12).contains(&candidates), "{candidates} candidates to sign");
}
