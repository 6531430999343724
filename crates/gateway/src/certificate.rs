//! The certificate of the server: one of the operator's own, or one that a local authority issues, made once and kept in the
//! data folder.
//!
//! A client that trusts the authority (offered at `/_explorer/emulator.pem`) can verify every certificate that this
//! data folder ever gets. Files: `tls/authority.pem`, `tls/authority.key`, `tls/server.pem`, `tls/server.key`.
//! Invariants
//! - A file of ours is there wholly or not at all, and after a crash too. What is damaged all the same is made anew; as long
//!   as the authority is good, only the server's certificate is.
//! - A certificate that lacks a name it is to have is issued anew, by the same authority: clients notice nothing.
//! - What cannot be read, and what the operator gave, is not replaced but refused, by its name.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file that the operator gave, and what it holds.
#[derive(Debug, Clone, Copy)]
pub struct GivenFile<'a> {
    /// Where it is, for messages.
    pub path: &'a Path,
    /// Its content.
    pub content: &'a [u8],
}

/// What the server needs for TLS.
pub struct Certificate {
    /// For the listener.
    pub config: Arc<ServerConfig>,
    /// What clients may trust, as PEM: the authority, or the operator's own certificates.
    pub authority_pem: String,
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read or written. The operator's to mend.
    #[error("{} cannot be {verb}: {error}. Give the server access to it, or move it away to have a new one made", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// What was tried.
        verb: &'static str,
        /// What the system says.
        error: io::Error,
    },
    /// A file that the operator gave does not hold what it should. Theirs to mend.
    #[error("{} {what}", path.display())]
    Unusable {
        /// Which one.
        path: PathBuf,
        /// What is wrong, and what should be there.
        what: String,
    },
    /// A certificate cannot be made.
    #[error("no certificate can be made: {0}")]
    Generate(#[from] rcgen::Error),
    /// A certificate just made cannot be used.
    #[error("the certificate that was made cannot be used: {0}")]
    Made(#[from] rustls::Error),
}

/// A certificate and its key, as PEM.
#[derive(Debug, Clone)]
struct Pair {
    pem: String,
    key: String,
}

impl Certificate {
    /// Loads the certificate of a data folder, or makes one; without a folder it lives in memory only.
    pub fn load_or_make(
        folder: Option<&Path>,
        host_names: &[String],
    ) -> Result<Certificate, CertificateError> {
        let Some(folder) = folder else {
            let (authority, key) = make_authority()?;
            return Certificate::of(&authority, &issue(&authority, &key, host_names)?);
        };
        let (stored, usable) = load(folder, "authority")?;
        let authority = usable.and_then(|pair| Some((authority_key(&pair)?, pair)));
        let is_kept = authority.is_some();
        let (authority, key) = match authority {
            Some((key, pair)) => (pair, key),
            None => make_authority()?,
        };
        if !is_kept {
            if stored {
                tracing::warn!(
                    folder = %folder.display(),
                    "the certificate authority was damaged and is made anew; clients have to trust the new one"
                );
            }
            save(folder, "authority", &authority)?;
        }
        let (stored, usable) = load(folder, "server")?;
        let usable = usable.filter(|server| is_kept && config_of(server).is_some());
        if let Some(server) = usable.as_ref().filter(|server| covers(server, host_names)) {
            return Certificate::of(&authority, server);
        }
        if usable.is_some() {
            tracing::info!(folder = %folder.display(), "the server's certificate is issued anew, for further names");
        } else if stored && is_kept {
            tracing::warn!(folder = %folder.display(), "the server's certificate was damaged and is made anew");
        }
        let server = issue(&authority, &key, host_names)?;
        save(folder, "server", &server)?;
        Certificate::of(&authority, &server)
    }

    /// The operator's own certificate, with those that it was issued by, and its key.
    pub fn from_files(
        certificate: GivenFile<'_>,
        key: GivenFile<'_>,
    ) -> Result<Certificate, CertificateError> {
        let unusable = |path: &Path, what: String| CertificateError::Unusable { path: path.to_owned(), what };
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificate.content)
            .collect::<Result<_, _>>()
            .map_err(|error| unusable(certificate.path, format!("is no certificate in PEM form: {error}")))?;
        if chain.is_empty() {
            let what = "holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)";
            return Err(unusable(certificate.path, what.to_owned()));
        }
        let private = PrivateKeyDer::from_pem_slice(key.content)
            .map_err(|error| unusable(key.path, format!("holds no private key in PEM form: {error}")))?;
        // Only the certificates are shown: some people keep the key in the same file.
        let authority_pem = chain.iter().map(pem_text).collect();
        let config = config(chain, private).map_err(|error| {
            let what = format!("cannot be used with the key of {}: {error}", key.path.display());
            unusable(certificate.path, what)
        })?;
        Ok(Certificate { config: Arc::new(config), authority_pem })
    }

    fn of(authority: &Pair, server: &Pair) -> Result<Certificate, CertificateError> {
        let config = config_of(server).ok_or(rustls::Error::General("it does not fit its key".to_owned()))?;
        Ok(Certificate { config: Arc::new(config), authority_pem: authority.pem.clone() })
    }
}

/// The names that the certificate is good for, whatever else is asked.
const NAMES: [&str; 4] = ["localhost", "127.0.0.1", "::1", "host.docker.internal"];

/// What every authority of ours is, whichever key it has.
fn authority_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.distinguished_name.push(DnType::CommonName, "Astrarium local authority");
    params
}

fn make_authority() -> Result<(Pair, KeyPair), CertificateError> {
    let key = KeyPair::generate()?;
    let pem = authority_params().self_signed(&key)?.pem();
    Ok((Pair { pem, key: key.serialize_pem() }, key))
}

/// The key of a stored authority, if it is that of its certificate.
fn authority_key(authority: &Pair) -> Option<KeyPair> {
    let key = KeyPair::from_pem(&authority.key).ok()?;
    let certificate = CertificateDer::from_pem_slice(authority.pem.as_bytes()).ok()?;
    memchr::memmem::find(&certificate, key.public_key_raw()).map(|_| key)
}

/// Makes the server's certificate and key.
fn issue(authority: &Pair, key: &KeyPair, host_names: &[String]) -> Result<Pair, CertificateError> {
    let issuer = Issuer::new(authority_params(), key);
    let mut names: Vec<String> = NAMES.map(str::to_owned).to_vec();
    names.extend(host_names.iter().filter(|name| !NAMES.contains(&name.as_str())).cloned());
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, "localhost");
    let own = KeyPair::generate()?;
    let pem = params.signed_by(&own, &issuer)?.pem();
    // Clients that do not know the authority can still follow the chain to it.
    Ok(Pair { pem: pem + &authority.pem, key: own.serialize_pem() })
}

/// Whether a stored certificate is good for all these names. They stand in it as they are, each after its tag and length.
fn covers(server: &Pair, host_names: &[String]) -> bool {
    let Ok(certificate) = CertificateDer::from_pem_slice(server.pem.as_bytes()) else { return false };
    host_names.iter().all(|name| {
        let (tag, bytes) = match name.parse() {
            Ok(IpAddr::V4(address)) => (0x87, address.octets().to_vec()),
            Ok(IpAddr::V6(address)) => (0x87, address.octets().to_vec()),
            Err(_) => (0x82, name.as_bytes().to_vec()),
        };
        // No name has more than 253 bytes; a length above 127 has a byte before it.
        let length = u8::try_from(bytes.len()).unwrap_or(u8::MAX);
        let head = if length > 127 { vec![tag, 0x81, length] } else { vec![tag, length] };
        let entry = [&head[..], &bytes].concat();
        memchr::memmem::find(&certificate, &entry).is_some()
    })
}

/// Reads `name.pem` and `name.key`: whether there is anything, and the pair if both are texts.
fn load(folder: &Path, name: &str) -> Result<(bool, Option<Pair>), CertificateError> {
    let read = |ending: &str| {
        let path = folder.join(format!("{name}.{ending}"));
        match read_plain(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(CertificateError::File { path, verb: "read", error }),
        }
    };
    let (pem, key) = (read("pem")?, read("key")?);
    let is_stored = pem.is_some() || key.is_some();
    let text = |bytes: Option<Vec<u8>>| String::from_utf8(bytes?).ok();
    Ok((is_stored, text(pem).and_then(|pem| Some(Pair { pem, key: text(key)? }))))
}

/// Reads a file that must be a plain one: opening a pipe would wait for its writer.
fn read_plain(path: &Path) -> io::Result<Vec<u8>> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file"));
    }
    std::fs::read(path)
}

fn save(folder: &Path, name: &str, pair: &Pair) -> Result<(), CertificateError> {
    let failed =
        |path: &Path, error| CertificateError::File { path: path.to_owned(), verb: "written", error };
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    // The key first: a certificate without its key is made anew, a key without a certificate too.
    for (ending, text) in [("key", &pair.key), ("pem", &pair.pem)] {
        let path = folder.join(format!("{name}.{ending}"));
        write_whole(&path, text).map_err(|error| failed(&path, error))?;
    }
    // Entries of a folder are stable once the folder is, and the folder's own once its parent is.
    for folder in [Some(folder), folder.parent().filter(|parent| !parent.as_os_str().is_empty())] {
        let Some(folder) = folder else { continue };
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| failed(folder, error))?;
    }
    Ok(())
}

/// Puts a file in its place when all of it is on the disk. Only its owner may read it, from the first byte on.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let new = path.with_extension("new");
    // What a crash left behind may have other rights.
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let mut file = options.open(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&new, path)
}

/// A certificate in PEM form.
fn pem_text(certificate: &CertificateDer<'_>) -> String {
    let text = STANDARD.encode(certificate);
    let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
    for line in text.as_bytes().chunks(64) {
        pem.extend(line.iter().map(|byte| char::from(*byte)));
        pem.push('\n');
    }
    pem + "-----END CERTIFICATE-----\n"
}

/// What the listener needs of a stored pair; nothing if it is damaged.
fn config_of(pair: &Pair) -> Option<ServerConfig> {
    let chain = CertificateDer::pem_slice_iter(pair.pem.as_bytes()).collect::<Result<_, _>>().ok()?;
    config(chain, PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).ok()?).ok()
}

fn config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ServerConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

#[cfg(test)]
mod tests;
