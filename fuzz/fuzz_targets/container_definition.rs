//! Definitions of catalog resources: any JSON is a definition or is refused; what is shown of one reads back as the same
//! definition, and is shown the same again; a container may be replaced by itself.

use astrarium_catalog::definition::client_encryption_key::ClientEncryptionKeyDefinition;
use astrarium_catalog::definition::container::ContainerDefinition;
use astrarium_catalog::definition::permission::PermissionDefinition;
use serde_json::Value;

pub(crate) fn run(bytes: &[u8]) {
    let Ok(body) = serde_json::from_slice::<Value>(bytes) else { return };
    if let Ok(permission) = PermissionDefinition::from_json(&body) {
        let shown = Value::Object(permission.to_json());
        assert_eq!(PermissionDefinition::from_json(&shown).as_ref(), Ok(&permission));
    }
    if let Ok(key) = ClientEncryptionKeyDefinition::from_json(&body) {
        let shown = Value::Object(key.to_json());
        assert_eq!(ClientEncryptionKeyDefinition::from_json(&shown).as_ref(), Ok(&key));
    }
    let Ok(definition) = ContainerDefinition::from_json(&body) else { return };
    let shown = Value::Object(definition.to_json());
    let again = ContainerDefinition::from_json(&shown).expect("what is shown is a definition");
    assert_eq!(Value::Object(again.to_json()), shown);
    assert_eq!(again, definition);
    definition.check_replacement(&again).expect("a container may stay as it is");
    assert_eq!(definition.replaced(again).as_ref(), Ok(&definition));
}
