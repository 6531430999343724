//! Documents as clients send them: any bytes are stored or refused; what is stored is accepted again and is stored the
//! same.

use astrarium_catalog::definition::container::ContainerDefinition;
use astrarium_store::Incoming;
use astrarium_value::json::Text;
use serde_json::json;

pub(crate) fn run(bytes: &[u8]) {
    let definition = json!({"id": "c", "partitionKey": {"paths": ["/a/b"], "kind": "Hash", "version": 2}});
    let definition = ContainerDefinition::from_json(&definition).expect("a container");
    let Ok(incoming) = Incoming::parse(&definition, bytes) else { return };
    let mut minimal = Vec::new();
    let text = Text::parse(bytes).expect("what is stored is JSON");
    text.write_minimal(&astrarium_value::system_properties::ALL, &mut minimal);
    assert_eq!(incoming.text_length(), minimal.len());
    let again = Incoming::parse(&definition, &minimal).expect("what is stored may be stored");
    assert_eq!((&again.id, &again.partition, again.ttl), (&incoming.id, &incoming.partition, incoming.ttl));
    assert_eq!(again.text_length(), incoming.text_length());
}
