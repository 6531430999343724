//! The address of a store: `postgres://user:password@host:port,host:port/database?schema=name&sslmode=require&sslrootcert=file`.
//!
//! What PostgreSQL's own tools understand is left to the client library. Ours are `schema` (default `astrarium`), so that several
//! accounts share a database, and `sslrootcert`, the file of an authority that the store's certificate is checked against.
//! Invariant: with `sslmode=require` or `sslrootcert` nothing is sent to a server whose certificate was not checked.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use std::path::Path;
use std::sync::Arc;
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

const DEFAULT_SCHEMA: &str = "astrarium";
/// A file that is larger holds something else than authorities.
const AUTHORITY_BYTES_MAX: usize = 1 << 20;

/// An address that was understood.
#[derive(Clone)]
pub struct StoreUrl {
    pub(crate) config: Config,
    pub(crate) schema: String,
    pub(crate) tls: Option<MakeRustlsConnect>,
    /// As it was given.
    text: String,
}

/// Why an address is of no use.
#[derive(Debug, thiserror::Error)]
pub enum UrlError {
    /// It is not of the form.
    #[error("{0} is not the address of a store; it should be like postgres://user@host:5432/database")]
    Form(String),
    /// The library does not understand it.
    #[error("the address of the store is not understood: {0}")]
    Content(#[from] tokio_postgres::Error),
    /// The schema's name would need quoting.
    #[error("a schema's name has lower-case letters, digits and underscores: {0} has others")]
    Schema(String),
    /// The authority's certificate cannot be used.
    #[error("the certificate of sslrootcert cannot be read: {0}")]
    Authority(String),
}

impl StoreUrl {
    /// Understands an address.
    pub fn parse(text: &str) -> Result<StoreUrl, UrlError> {
        let form = || UrlError::Form(without_password(text));
        if !text.starts_with("postgres://") && !text.starts_with("postgresql://") {
            return Err(form());
        }
        let (base, parameters) = text.split_once('?').unwrap_or((text, ""));
        let (mut schema, mut authority, mut rest) = (DEFAULT_SCHEMA.to_owned(), None, Vec::new());
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=').ok_or_else(form)? {
                ("schema", name) => name.clone_into(&mut schema),
                ("sslrootcert", file) => authority = Some(file.to_owned()),
                _ => rest.push(parameter),
            }
        }
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if schema.is_empty() || !schema.bytes().all(is_plain) || schema.as_bytes()[0].is_ascii_digit() {
            return Err(UrlError::Schema(schema));
        }
        let known = if rest.is_empty() { base.to_owned() } else { format!("{base}?{}", rest.join("&")) };
        let mut config: Config = known.parse()?;
        let is_required = config.get_ssl_mode() == SslMode::Require || authority.is_some();
        let tls =
            if is_required { Some(MakeRustlsConnect::new(tls_config(authority.as_deref())?)) } else { None };
        config.ssl_mode(if is_required { SslMode::Require } else { SslMode::Disable });
        Ok(StoreUrl { config, schema, tls, text: text.to_owned() })
    }

    /// As it was given, password and all: for what is stored, never for people.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// For people: without the password.
    pub fn shown(&self) -> String {
        without_password(&self.text)
    }
}

impl std::fmt::Debug for StoreUrl {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.shown())
    }
}

/// An address as people may see it.
fn without_password(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return "(an address)".to_owned() };
    let shown = match rest.rsplit_once('@') {
        Some((user, place)) => {
            let user = user.split_once(':').map_or(user, |(user, _)| user);
            format!("{scheme}://{user}@{place}")
        }
        None => text.to_owned(),
    };
    let Some((base, parameters)) = shown.split_once('?') else { return shown };
    let is_shown = |parameter: &&str| !parameter.starts_with("password=");
    let parameters: Vec<&str> = parameters.split('&').filter(is_shown).collect();
    if parameters.is_empty() { base.to_owned() } else { format!("{base}?{}", parameters.join("&")) }
}

fn tls_config(authority: Option<&str>) -> Result<ClientConfig, UrlError> {
    let failed = |what: String| UrlError::Authority(what);
    let mut roots = RootCertStore::empty();
    match authority {
        Some(file) => {
            let pem = astrarium_env::read_file(Path::new(file), AUTHORITY_BYTES_MAX)
                .map_err(|error| failed(format!("{file}: {error}")))?;
            for certificate in CertificateDer::pem_slice_iter(&pem) {
                let certificate = certificate.map_err(|error| failed(format!("{file}: {error}")))?;
                roots.add(certificate).map_err(|error| failed(format!("{file}: {error}")))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(error.to_string()))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_understood() {
        let url = StoreUrl::parse("postgres://ada:secret@one:5432,two:5433/db?schema=mine&connect_timeout=3")
            .unwrap();
        assert_eq!((url.schema.as_str(), url.config.get_hosts().len()), ("mine", 2));
        assert_eq!(url.shown(), "postgres://ada@one:5432,two:5433/db?schema=mine&connect_timeout=3");
        assert!(!format!("{url:?}").contains("secret"));
        let url = StoreUrl::parse("postgres://one/db?password=secret&schema=mine").unwrap();
        assert_eq!(url.shown(), "postgres://one/db?schema=mine");
        assert_eq!(StoreUrl::parse("postgresql://localhost/db").unwrap().schema, "astrarium");
        for wrong in [
            "localhost:5432",
            "mysql://localhost/db",
            "postgres://localhost/db?schema=",
            "postgres://localhost/db?schema=a;drop",
            "postgres://localhost/db?schema=1a",
            "postgres://localhost/db?nonsense=1",
            "postgres://localhost/db?sslrootcert=not-there.pem",
        ] {
            let error = StoreUrl::parse(wrong).expect_err(wrong);
            assert!(!error.to_string().contains("secret"));
        }
    }
}
