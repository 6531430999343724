//! Addresses as data: target, then what must come out.

use super::*;
use proptest::prelude::*;

use ResourceKind::{
    Account, Attachment, ClientEncryptionKey, Conflict, Container, Database, Document, Offer,
    PartitionKeyDelete, PartitionKeyRange, Permission, Schema, StoredProcedure, Trigger, User,
    UserDefinedFunction,
};

fn split(target: &str) -> (&str, Option<&str>) {
    target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)))
}

fn parse(target: &str) -> Result<Address<'_>, AddressError> {
    let (path, query) = split(target);
    Address::parse(path, query)
}

#[track_caller]
fn check(target: &str, kind: ResourceKind, ids: &[&str], name_link: &str, owner_link: &str) {
    let address = parse(target).unwrap();
    assert_eq!(address.kind, kind);
    assert_eq!(address.ids.as_slice(), ids);
    assert_eq!(address.name_link(), name_link);
    assert_eq!(address.owner_link(), owner_link);
}

#[test]
fn routes() {
    check("/", Account, &[], "", "");
    check("", Account, &[], "", "");
    check("//", Account, &[], "", "");
    check("/dbs", Database, &[], "dbs", "");
    check("//dbs/", Database, &[], "dbs", "");
    check("/dbs/a/", Database, &["a"], "dbs/a", "");
    check("/dbs/a/colls", Container, &["a"], "dbs/a/colls", "dbs/a");
    check("/dbs/colls/colls/docs", Container, &["colls", "docs"], "dbs/colls/colls/docs", "dbs/colls");
    check("/dbs/a/colls/b/docs/", Document, &["a", "b"], "dbs/a/colls/b/docs", "dbs/a/colls/b");
    check("/dbs/a/colls/b/docs/c/", Document, &["a", "b", "c"], "dbs/a/colls/b/docs/c", "dbs/a/colls/b");
}

#[test]
fn routes_below_a_container() {
    check(
        "/dbs/a/colls/b/sprocs/c",
        StoredProcedure,
        &["a", "b", "c"],
        "dbs/a/colls/b/sprocs/c",
        "dbs/a/colls/b",
    );
    check("/dbs/a/colls/b/triggers", Trigger, &["a", "b"], "dbs/a/colls/b/triggers", "dbs/a/colls/b");
    check("/dbs/a/colls/b/udfs", UserDefinedFunction, &["a", "b"], "dbs/a/colls/b/udfs", "dbs/a/colls/b");
    check(
        "/dbs/a/colls/b/pkranges",
        PartitionKeyRange,
        &["a", "b"],
        "dbs/a/colls/b/pkranges",
        "dbs/a/colls/b",
    );
    check(
        "/dbs/a/colls/b/conflicts/c",
        Conflict,
        &["a", "b", "c"],
        "dbs/a/colls/b/conflicts/c",
        "dbs/a/colls/b",
    );
    check("/dbs/a/colls/b/schemas", Schema, &["a", "b"], "dbs/a/colls/b/schemas", "dbs/a/colls/b");
    check(
        "/dbs/a/colls/b/operations/partitionkeydelete/",
        PartitionKeyDelete,
        &["a", "b"],
        "dbs/a/colls/b/operations/partitionkeydelete",
        "dbs/a",
    );
    check(
        "/dbs/a/colls/b/docs/c/attachments/d/",
        Attachment,
        &["a", "b", "c", "d"],
        "dbs/a/colls/b/docs/c/attachments/d",
        "dbs/a/colls/b/docs/c",
    );
}

#[test]
fn routes_elsewhere() {
    check("/dbs/a/users", User, &["a"], "dbs/a/users", "dbs/a");
    check(
        "/dbs/a/users/u/permissions/p",
        Permission,
        &["a", "u", "p"],
        "dbs/a/users/u/permissions/p",
        "dbs/a/users/u",
    );
    check(
        "/dbs/a/clientencryptionkeys/k",
        ClientEncryptionKey,
        &["a", "k"],
        "dbs/a/clientencryptionkeys/k",
        "dbs/a",
    );
    check("/offers", Offer, &[], "offers", "");
    check("/offers/uT2L/", Offer, &["uT2L"], "offers/uT2L", "");
}

#[test]
fn ids_are_decoded_once_and_never_normalised() {
    let document = |raw: &str, id: &str| {
        let target = format!("/dbs/a/colls/b/docs/{raw}");
        check(&target, Document, &["a", "b", id], &format!("dbs/a/colls/b/docs/{id}"), "dbs/a/colls/b");
    };
    document("..", "..");
    document(".", ".");
    document("a+b", "a+b");
    document("%2520", "%20");
    document("%E6%97%a5", "日");
    document("a%2Fb", "a/b");
    document("100%", "100%");
    document("%0D%0A%09%20", "\r\n\t ");
    document("Disallowed?Chars", "Disallowed?Chars");
    document("a?", "a?");
    document("?x", "?x");
    document("a%20?b%20?c/d", "a ?b ?c/d");
    document("a&b=c", "a&b=c");
}

#[test]
fn a_query_elsewhere_is_not_part_of_an_id() {
    check("/dbs/a?x=1", Database, &["a"], "dbs/a", "");
    check("/dbs/a/colls/b/docs?x", Document, &["a", "b"], "dbs/a/colls/b/docs", "dbs/a/colls/b");
    check("/dbs/a/colls/b/docs/c/?x", Document, &["a", "b", "c"], "dbs/a/colls/b/docs/c", "dbs/a/colls/b");
}

#[test]
fn refusals() {
    for target in [
        "/db",
        "/DBS",
        "/dbs//",
        "/dbs//colls",
        "/dbs/a//colls",
        "/media/x",
        "/operations/dtc",
        "/dbs/a/colls/b/operations",
        "/dbs/a/colls/b/operations/x",
        "/dbs/a/colls/b/docs/c/x",
        "/dbs/a/colls//docs",
        "/dbs/a/colls/b/docs/c/attachments/d/e",
        "/dbs/a/colls/b/docs/c/attachments/d//",
        "/a/b/c/d/e/f/g/h/i/j/k",
        "/dbs/a/colls//docs/x?y",
        "/dbs/a/colls/b/docs/c/d",
        "/dbs/a/colls/b/docs/c/d?e",
        "/offers/offers/AANB/",
    ] {
        let is_child = target.starts_with("/dbs") || target.starts_with("/offers");
        let expected = if is_child { AddressError::UnknownChild } else { AddressError::UnknownRoute };
        assert_eq!(parse(target).unwrap_err(), expected, "{target}");
    }
    for target in ["/addresses/", "//addresses/?$resolveFor=dbs", "/addresses?$filter=protocol eq rntbd"] {
        assert_eq!(parse(target).unwrap_err(), AddressError::DirectMode, "{target}");
    }
    assert_eq!(parse("/dbs/%FF").unwrap_err(), AddressError::BadEncoding);
    assert_eq!(parse("/dbs/a/colls/b/docs/x?%FF").unwrap_err(), AddressError::BadEncoding);
    assert_eq!(parse(&"/".repeat(TARGET_BYTES_MAX + 1)).unwrap_err(), AddressError::TooLong);
}

#[track_caller]
fn check_signing(target: &str, expected: &[(&str, &str)]) {
    let address = parse(target).unwrap();
    let candidates: Vec<_> = address.signing_candidates().collect();
    let pairs: Vec<_> = candidates.iter().map(|one| (one.resource_type, one.link.as_ref())).collect();
    assert_eq!(pairs, expected, "{target}");
}

/// A slash that belongs to an id is escaped, is never a separator, and is signed as either form.
#[test]
fn escaped_slashes_belong_to_ids() {
    let target = "/dbs/a/colls/b/docs/x%2Fattachments%2fy%5C";
    let link = "dbs/a/colls/b/docs/x/attachments/y\\";
    check(target, Document, &["a", "b", "x/attachments/y\\"], link, "dbs/a/colls/b");
    check_signing(target, &[("docs", link), ("docs", &target[1..])]);
    check("/dbs/a%2Fcolls%2Fb", Database, &["a/colls/b"], "dbs/a/colls/b", "");
    check("/dbs/a/colls/b%2Fdocs%2Fx", Container, &["a", "b/docs/x"], "dbs/a/colls/b/docs/x", "dbs/a");
}

#[test]
fn signing_candidates_by_name() {
    check_signing("/", &[("", "")]);
    check_signing("/dbs", &[("dbs", "")]);
    check_signing("/dbs/ToDo/", &[("dbs", "dbs/ToDo")]);
    check_signing("/dbs/a/colls", &[("colls", "dbs/a")]);
    check_signing("/dbs/a/colls/b/docs", &[("docs", "dbs/a/colls/b")]);
    check_signing("/dbs/a/colls/b/docs/c", &[("docs", "dbs/a/colls/b/docs/c")]);
    check_signing("/dbs/a/colls/b/pkranges/", &[("pkranges", "dbs/a/colls/b")]);
    check_signing("/dbs/a/users/u/permissions", &[("permissions", "dbs/a/users/u")]);
    check_signing(
        "/dbs/a b/colls/%C3%A9/docs",
        &[("docs", "dbs/a b/colls/é"), ("docs", "dbs/a b/colls/%C3%A9")],
    );
    check_signing(
        "/dbs/a/colls/b/operations/partitionkeydelete",
        &[("partitionkey", "dbs/a/colls/b"), ("colls", "dbs/a/colls/b")],
    );
    check_signing("/dbs/a/colls/b/docs/x?y", &[("docs", "dbs/a/colls/b/docs/x?y")]);
    check_signing(
        "/dbs/a/colls/b/docs/x%20?y",
        &[("docs", "dbs/a/colls/b/docs/x ?y"), ("docs", "dbs/a/colls/b/docs/x%20?y")],
    );
}

#[test]
fn signing_candidates_by_resource_id() {
    check_signing("/offers", &[("offers", "")]);
    check_signing("/offers/uT2L/", &[("offers", "ut2l"), ("offers", "offers/uT2L")]);
    check_signing(
        "/dbs/ehszAA==/colls/ehszALxRRgA=/pkranges",
        &[("pkranges", "ehszalxrrga="), ("pkranges", "dbs/ehszAA==/colls/ehszALxRRgA=")],
    );
    check_signing(
        "/dbs/ehszAA%3D%3D/colls/ehszALxRRgA%3d",
        &[
            ("colls", "ehszalxrrga="),
            ("colls", "dbs/ehszAA==/colls/ehszALxRRgA="),
            ("colls", "dbs/ehszAA%3D%3D/colls/ehszALxRRgA%3d"),
        ],
    );
}

#[test]
fn resource_ids_are_recognised() {
    for (database, expected) in [
        ("ehszAA==", true),
        ("eh-+AA==", true),
        ("ehszAA%3D%3d", true),
        ("ehszAB==", false),
        ("ehszAAA=", false),
        ("ehszAA=", false),
        ("ehszAA===", false),
        ("eh_zAA==", false),
        ("database", false),
    ] {
        let target = format!("/dbs/{database}/colls");
        assert_eq!(parse(&target).unwrap().looks_like_rid(), expected, "{database}");
    }
    assert!(!parse("/dbs").unwrap().looks_like_rid());
}

#[test]
fn methods() {
    let check = |target: &str, expected: &str| {
        let address = parse(target).unwrap();
        let allowed: Vec<_> = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "get", ""]
            .into_iter()
            .filter(|method| address.allows(method))
            .collect();
        assert_eq!(allowed.join(" "), expected, "{target}");
    };
    check("/", "GET");
    check("/dbs", "GET POST");
    check("/dbs/a", "GET HEAD DELETE");
    check("/dbs/a/colls/b", "GET HEAD PUT DELETE");
    check("/dbs/a/colls/b/docs", "GET POST");
    check("/dbs/a/colls/b/docs/c", "GET HEAD PUT PATCH DELETE");
    check("/dbs/a/colls/b/sprocs/c", "GET POST PUT DELETE");
    check("/dbs/a/colls/b/triggers/c", "GET PUT DELETE");
    check("/dbs/a/colls/b/pkranges", "GET POST");
    check("/dbs/a/colls/b/pkranges/0", "GET");
    check("/dbs/a/colls/b/conflicts/c", "GET DELETE");
    check("/dbs/a/colls/b/operations/partitionkeydelete", "POST");
    check("/dbs/a/colls/b/schemas", "GET");
    check("/dbs/a/clientencryptionkeys/k", "GET PUT");
    check("/offers/x", "GET PUT");
}

fn any_target() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("dbs"),
        Just("colls"),
        Just("docs"),
        Just("operations"),
        Just("partitionkeydelete"),
        Just("offers"),
        Just("users"),
        Just("attachments"),
        Just("ehszAA=="),
        Just("%3D"),
        Just("%FF"),
        Just(""),
        Just("?"),
        Just("é"),
    ];
    let word = prop_oneof![word.prop_map(str::to_owned), "[a-z%?/+.]{0,6}"];
    prop_oneof![
        proptest::collection::vec(word, 0..11).prop_map(|words| format!("/{}", words.join("/"))),
        ".*"
    ]
}

proptest! {
    #[test]
    fn parse_is_total(target in any_target()) {
        if let Ok(address) = parse(&target) {
            prop_assert!(address.ids.len() <= address.kind.depth());
            prop_assert_eq!(address.depth() + usize::from(address.is_feed()), address.kind.depth());
            prop_assert!(address.signing_candidates().count() <= 6);
            prop_assert!(address.name_link().len() <= target.len());
            prop_assert!(address.name_link().starts_with(address.resource_link().as_ref()));
            prop_assert!(address.resource_link().starts_with(&address.owner_link()));
        }
    }

    #[test]
    fn any_id_survives_its_encoding(database in ".{1,8}", container in ".{1,8}", id in ".{1,8}") {
        let encode = percent::encode_component;
        let target = format!("/dbs/{}/colls/{}/docs/{}/", encode(&database), encode(&container), encode(&id));
        let address = Address::parse(&target, None).unwrap();
        prop_assert_eq!(address.name_link(), format!("dbs/{database}/colls/{container}/docs/{id}"));
        prop_assert_eq!(address.ids.as_slice(), &[database, container, id]);
    }
}
