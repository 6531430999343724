//! Which certificates a client believes.
//!
//! Those of the system's authorities, or of one that is given. A server at a loopback address is believed with any certificate, since
//! nobody but this machine can answer there and local servers make their own; `--insecure` says the same of others.

use crate::endpoint::Endpoint;
use crate::error::ClientError;
use crate::options::ClientOptions;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::sync::Arc;

/// A file that is larger holds something else than authorities; all that a system trusts is a quarter of it.
const AUTHORITY_BYTES_MAX: usize = 1 << 20;

/// The settings of encrypted connections.
pub(crate) fn config(options: &ClientOptions, endpoint: &Endpoint) -> Result<Arc<ClientConfig>, ClientError> {
    let failed = |what: String| ClientError::Settings(format!("prepare TLS: {what}"));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(error.to_string()))?;
    let believes_all = options.insecure || (options.authority.is_none() && endpoint.is_loopback());
    if believes_all {
        let verifier = Arc::new(AnyCertificate { provider });
        return Ok(Arc::new(
            builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth(),
        ));
    }
    let mut roots = RootCertStore::empty();
    match &options.authority {
        Some(file) => {
            let told = |what: String| failed(format!("{}: {what}", file.display()));
            let pem = astrarium_env::read_file(file, AUTHORITY_BYTES_MAX)
                .map_err(|error| told(error.to_string()))?;
            for certificate in CertificateDer::pem_slice_iter(&pem) {
                let certificate = certificate.map_err(|error| told(error.to_string()))?;
                roots.add(certificate).map_err(|error| told(error.to_string()))?;
            }
            if roots.is_empty() {
                return Err(told(
                    "there is no certificate in PEM form (-----BEGIN CERTIFICATE-----) in it".to_owned(),
                ));
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

/// Believes whoever answers; signatures of the handshake are checked all the same.
#[derive(Debug)]
struct AnyCertificate {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
