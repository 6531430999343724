//! Who a server is to the others: a certificate that it made when it started, and published in the store.
//!
//! In: certificates of the servers that are alive. Out: TLS on both sides, each showing its own and accepting only the published ones.
//! So whoever may use the store may be a server, and nobody else; no key has to be handed out.
//! Invariant: a certificate counts only byte for byte; names and authorities do not matter.

use crate::PostgresCore;
use parking_lot::RwLock;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig, SignatureScheme};
use std::sync::{Arc, Weak};

/// What this server shows the others.
pub(crate) struct PeerIdentity {
    pub(crate) certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl PeerIdentity {
    /// A new one.
    pub(crate) fn make() -> Result<PeerIdentity, String> {
        let made =
            rcgen::generate_simple_self_signed([PEER_NAME.to_owned()]).map_err(|error| error.to_string())?;
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).map_err(str::to_owned)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        Ok(PeerIdentity { certificate: made.cert.der().clone(), key, provider })
    }

    /// For connections that others open: whoever shows the certificate of a server that is alive.
    pub(crate) fn server_config(&self, core: &Arc<PostgresCore>) -> Result<Arc<ServerConfig>, Error> {
        let verifier = LiveServers { core: Arc::downgrade(core), provider: Arc::clone(&self.provider) };
        let config = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_client_cert_verifier(Arc::new(verifier))
            .with_single_cert(vec![self.certificate.clone()], self.key.clone_key())?;
        Ok(Arc::new(config))
    }

    /// For a connection to a server that shows this certificate.
    pub(crate) fn client_config(&self, expected: &[u8]) -> Result<Arc<ClientConfig>, Error> {
        let verifier = OneServer { expected: expected.to_vec(), provider: Arc::clone(&self.provider) };
        let config = ClientConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_client_auth_cert(vec![self.certificate.clone()], self.key.clone_key())?;
        Ok(Arc::new(config))
    }
}

/// The name in all certificates; nobody looks at it.
pub(crate) const PEER_NAME: &str = "astrarium-server";

/// Holds an identity once the server listens for others.
#[derive(Default)]
pub(crate) struct IdentityPlace(RwLock<Option<Arc<PeerIdentity>>>);

impl IdentityPlace {
    pub(crate) fn get(&self) -> Option<Arc<PeerIdentity>> {
        self.0.read().clone()
    }

    pub(crate) fn set(&self, identity: Arc<PeerIdentity>) {
        *self.0.write() = Some(identity);
    }
}

struct LiveServers {
    core: Weak<PostgresCore>,
    provider: Arc<CryptoProvider>,
}

struct OneServer {
    expected: Vec<u8>,
    provider: Arc<CryptoProvider>,
}

fn unknown() -> Error {
    Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer)
}

impl std::fmt::Debug for LiveServers {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("LiveServers")
    }
}

impl std::fmt::Debug for OneServer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("OneServer")
    }
}

impl ClientCertVerifier for LiveServers {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let core = self.core.upgrade().ok_or_else(unknown)?;
        let alive = core.members.alive();
        let is_one = alive.iter().any(|member| member.description.certificate[..] == certificate[..]);
        if is_one { Ok(ClientCertVerified::assertion()) } else { Err(unknown()) }
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(unknown())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl ServerCertVerifier for OneServer {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.expected[..] == certificate[..] {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(unknown())
        }
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(unknown())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
