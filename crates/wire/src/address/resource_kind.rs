//! The kinds of resource and what the protocol fixes about each: path, feed key, verbs, signed type.
//!
//! One table row for each kind: [`ResourceKind::path`] lists the keywords from the top, and depth, segment and links
//! follow from it. Not here: parsing of a request target (`address`).

/// What a path speaks about, a single resource or the feed of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ResourceKind {
    /// `/`
    Account,
    /// `/dbs`
    Database,
    /// `…/colls`
    Container,
    /// `…/docs`
    Document,
    /// `…/docs/{id}/attachments`, legacy.
    Attachment,
    /// `…/sprocs`; `POST` on a single one executes it.
    StoredProcedure,
    /// `…/triggers`
    Trigger,
    /// `…/udfs`
    UserDefinedFunction,
    /// `…/pkranges`
    PartitionKeyRange,
    /// `…/conflicts`
    Conflict,
    /// `…/schemas`, legacy and always empty.
    Schema,
    /// `…/operations/partitionkeydelete`: deletes one logical partition of the container.
    PartitionKeyDelete,
    /// `/dbs/{id}/users`
    User,
    /// `…/users/{id}/permissions`
    Permission,
    /// `/dbs/{id}/clientencryptionkeys`
    ClientEncryptionKey,
    /// `/offers`, always addressed by resource id.
    Offer,
    /// `/_admin/{name}`: what operators do, not part of the service's protocol.
    Admin,
}

impl ResourceKind {
    /// Every kind, in the order of the enumeration.
    pub const ALL: [ResourceKind; 17] = [
        ResourceKind::Account,
        ResourceKind::Database,
        ResourceKind::Container,
        ResourceKind::Document,
        ResourceKind::Attachment,
        ResourceKind::StoredProcedure,
        ResourceKind::Trigger,
        ResourceKind::UserDefinedFunction,
        ResourceKind::PartitionKeyRange,
        ResourceKind::Conflict,
        ResourceKind::Schema,
        ResourceKind::PartitionKeyDelete,
        ResourceKind::User,
        ResourceKind::Permission,
        ResourceKind::ClientEncryptionKey,
        ResourceKind::Offer,
        ResourceKind::Admin,
    ];

    /// The keywords of the path from the top, each followed by an id.
    pub const fn path(self) -> &'static [&'static str] {
        match self {
            ResourceKind::Account => &[],
            ResourceKind::Database => &["dbs"],
            ResourceKind::Container | ResourceKind::PartitionKeyDelete => &["dbs", "colls"],
            ResourceKind::Document => &["dbs", "colls", "docs"],
            ResourceKind::Attachment => &["dbs", "colls", "docs", "attachments"],
            ResourceKind::StoredProcedure => &["dbs", "colls", "sprocs"],
            ResourceKind::Trigger => &["dbs", "colls", "triggers"],
            ResourceKind::UserDefinedFunction => &["dbs", "colls", "udfs"],
            ResourceKind::PartitionKeyRange => &["dbs", "colls", "pkranges"],
            ResourceKind::Conflict => &["dbs", "colls", "conflicts"],
            ResourceKind::Schema => &["dbs", "colls", "schemas"],
            ResourceKind::User => &["dbs", "users"],
            ResourceKind::Permission => &["dbs", "users", "permissions"],
            ResourceKind::ClientEncryptionKey => &["dbs", "clientencryptionkeys"],
            ResourceKind::Offer => &["offers"],
            ResourceKind::Admin => &["_admin"],
        }
    }

    /// What error messages of the service call it; empty for what is not the service's.
    pub const fn resource_type(self) -> &'static str {
        match self {
            ResourceKind::Account => "DatabaseAccount",
            ResourceKind::Database => "Database",
            ResourceKind::Container => "Collection",
            ResourceKind::Document => "Document",
            ResourceKind::Attachment => "Attachment",
            ResourceKind::StoredProcedure => "StoredProcedure",
            ResourceKind::Trigger => "Trigger",
            ResourceKind::UserDefinedFunction => "UserDefinedFunction",
            ResourceKind::PartitionKeyRange => "PartitionKeyRange",
            ResourceKind::Conflict => "Conflict",
            ResourceKind::Schema => "Schema",
            ResourceKind::PartitionKeyDelete => "PartitionKey",
            ResourceKind::User => "User",
            ResourceKind::Permission => "Permission",
            ResourceKind::ClientEncryptionKey => "ClientEncryptionKey",
            ResourceKind::Offer => "Offer",
            ResourceKind::Admin => "",
        }
    }

    /// The same of the resource that it is in.
    pub const fn owner_type(self) -> &'static str {
        match self {
            ResourceKind::Account | ResourceKind::Database | ResourceKind::Offer | ResourceKind::Admin => "",
            ResourceKind::Container | ResourceKind::User | ResourceKind::ClientEncryptionKey => "Database",
            ResourceKind::Permission => "User",
            _ => "Collection",
        }
    }

    /// How many ids name a single resource of this kind, 0 to 4.
    pub const fn depth(self) -> usize {
        self.path().len()
    }

    /// The last keyword of the path, empty for the account.
    pub const fn segment(self) -> &'static str {
        match self.path().last() {
            Some(segment) => segment,
            None => "",
        }
    }

    /// The property of a feed's body that holds the resources; empty where no feed exists.
    pub const fn feed_key(self) -> &'static str {
        match self {
            ResourceKind::Account | ResourceKind::PartitionKeyDelete | ResourceKind::Admin => "",
            ResourceKind::Database => "Databases",
            ResourceKind::Container => "DocumentCollections",
            ResourceKind::Document => "Documents",
            ResourceKind::Attachment => "Attachments",
            ResourceKind::StoredProcedure => "StoredProcedures",
            ResourceKind::Trigger => "Triggers",
            ResourceKind::UserDefinedFunction => "UserDefinedFunctions",
            ResourceKind::PartitionKeyRange => "PartitionKeyRanges",
            ResourceKind::Conflict => "Conflicts",
            ResourceKind::Schema => "Schemas",
            ResourceKind::User => "Users",
            ResourceKind::Permission => "Permissions",
            ResourceKind::ClientEncryptionKey => "ClientEncryptionKeys",
            ResourceKind::Offer => "Offers",
        }
    }

    /// The resource types that clients sign for this kind, the most common first.
    ///
    /// Only the delete of a logical partition has two: the Python client signs it as a request to the container.
    pub(super) const fn signed_types(self) -> &'static [&'static str] {
        match (self, self.path().last_chunk::<1>()) {
            (ResourceKind::PartitionKeyDelete, _) => &["partitionkey", "colls"],
            (_, Some(keyword)) => keyword,
            (_, None) => &[""],
        }
    }

    /// The methods that the feed of this kind answers; `POST` creates or queries.
    pub const fn feed_methods(self) -> &'static [&'static str] {
        match self {
            ResourceKind::Account | ResourceKind::PartitionKeyDelete | ResourceKind::Admin => &[],
            ResourceKind::Schema => &["GET"],
            _ => &["GET", "POST"],
        }
    }

    /// The methods that a single resource of this kind answers.
    pub const fn resource_methods(self) -> &'static [&'static str] {
        match self {
            ResourceKind::Account | ResourceKind::PartitionKeyRange | ResourceKind::Schema => &["GET"],
            ResourceKind::Database => &["GET", "HEAD", "DELETE"],
            ResourceKind::Container => &["GET", "HEAD", "PUT", "DELETE"],
            ResourceKind::Document => &["GET", "HEAD", "PUT", "PATCH", "DELETE"],
            ResourceKind::StoredProcedure => &["GET", "PUT", "DELETE", "POST"],
            ResourceKind::Attachment
            | ResourceKind::Trigger
            | ResourceKind::UserDefinedFunction
            | ResourceKind::User
            | ResourceKind::Permission => &["GET", "PUT", "DELETE"],
            ResourceKind::Conflict => &["GET", "DELETE"],
            ResourceKind::PartitionKeyDelete => &["POST"],
            ResourceKind::Admin => &["GET", "POST"],
            ResourceKind::ClientEncryptionKey | ResourceKind::Offer => &["GET", "PUT"],
        }
    }
}
