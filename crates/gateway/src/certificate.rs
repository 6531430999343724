//! The local certificate authority and the server's certificate, made once and kept in the data folder.
//!
//! A client that trusts the authority (offered at `/_explorer/emulator.pem`) can verify every certificate that this
//! data folder ever gets. Files: `tls/authority.pem`, `tls/authority.key`, `tls/server.pem`, `tls/server.key`.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::Path;
use std::sync::Arc;

/// What the server needs for TLS.
pub struct Certificate {
    /// For the listener.
    pub config: Arc<ServerConfig>,
    /// The authority, as PEM, for clients to trust.
    pub authority_pem: String,
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file of the folder cannot be read or written. The operator's to mend.
    #[error("the certificate folder cannot be used: {0}")]
    File(#[from] std::io::Error),
    /// A certificate cannot be made.
    #[error("no certificate can be made: {0}")]
    Generate(#[from] rcgen::Error),
    /// The files hold no usable certificate. Remove the folder to have a new one made.
    #[error("the certificate files cannot be used ({0}); remove the tls folder to have new ones made")]
    Unusable(String),
}

struct Files {
    authority_pem: String,
    authority_key: String,
    server_pem: String,
    server_key: String,
}

impl Certificate {
    /// Loads the certificate of a data folder, or makes one; without a folder it lives in memory only.
    pub fn load_or_make(
        folder: Option<&Path>,
        host_names: &[String],
    ) -> Result<Certificate, CertificateError> {
        let files = match folder {
            None => make(host_names)?,
            Some(folder) => {
                if let Some(files) = load(folder)? {
                    files
                } else {
                    let files = make(host_names)?;
                    save(folder, &files)?;
                    files
                }
            }
        };
        let config = config(&files.server_pem, &files.server_key)?;
        Ok(Certificate { config: Arc::new(config), authority_pem: files.authority_pem })
    }
}

/// The names that the certificate is good for, whatever else is asked.
const NAMES: [&str; 4] = ["localhost", "127.0.0.1", "::1", "host.docker.internal"];

fn make(host_names: &[String]) -> Result<Files, CertificateError> {
    let authority_key = KeyPair::generate()?;
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.distinguished_name.push(DnType::CommonName, "Astrarium local authority");
    let authority_pem = params.self_signed(&authority_key)?.pem();
    let issuer = Issuer::new(params, &authority_key);
    let mut names: Vec<String> = NAMES.map(str::to_owned).to_vec();
    names.extend(host_names.iter().filter(|name| !NAMES.contains(&name.as_str())).cloned());
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, "localhost");
    let server_key = KeyPair::generate()?;
    let server_pem = params.signed_by(&server_key, &issuer)?.pem();
    Ok(Files {
        // Clients that do not know the authority can still follow the chain to it.
        server_pem: format!("{server_pem}{authority_pem}"),
        authority_pem,
        authority_key: authority_key.serialize_pem(),
        server_key: server_key.serialize_pem(),
    })
}

fn load(folder: &Path) -> Result<Option<Files>, CertificateError> {
    let read = |name: &str| match std::fs::read_to_string(folder.join(name)) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    let files = (read("authority.pem")?, read("authority.key")?, read("server.pem")?, read("server.key")?);
    Ok(match files {
        (Some(authority_pem), Some(authority_key), Some(server_pem), Some(server_key)) => {
            Some(Files { authority_pem, authority_key, server_pem, server_key })
        }
        _ => None,
    })
}

fn save(folder: &Path, files: &Files) -> Result<(), CertificateError> {
    std::fs::create_dir_all(folder)?;
    let public = [("authority.pem", &files.authority_pem), ("server.pem", &files.server_pem)];
    for (name, text) in public {
        std::fs::write(folder.join(name), text)?;
    }
    for (name, text) in [("authority.key", &files.authority_key), ("server.key", &files.server_key)] {
        write_secret(&folder.join(name), text)?;
    }
    Ok(())
}

/// Writes a file that only its owner may read, from the first byte on.
fn write_secret(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options.open(path)?.write_all(text.as_bytes())
}

fn config(pem: &str, key: &str) -> Result<ServerConfig, CertificateError> {
    let unusable = |error: &dyn std::fmt::Display| CertificateError::Unusable(error.to_string());
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|error| unusable(&error))?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|error| unusable(&error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&error))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| unusable(&error))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
