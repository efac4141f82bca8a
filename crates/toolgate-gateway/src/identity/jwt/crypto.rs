//! The one crypto library of the house, as `jsonwebtoken` asks for it. It verifies and signs nothing.

use std::sync::Once;

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind, Result};
use jsonwebtoken::signature::{Error as NotVerified, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::signature::{
    self as schemes, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};

/// A key, and how signatures are held against it.
struct Verifying {
    algorithm: Algorithm,
    means: Means,
    key: DecodingKey,
}

enum Means {
    Rsa(&'static RsaParameters),
    Bytes(&'static dyn VerificationAlgorithm),
}

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: no_signer,
    verifier_factory: verifier,
    // They make keys out of others and thumbprints, which nothing here asks for.
    key_utils: KeyUtils {
        rsa_pub_components_from_private_key: |_| Err(unsupported()),
        rsa_pub_components_from_public_key: |_| Err(unsupported()),
        ec_pub_components_from_private_key: |_, _| Err(unsupported()),
        ed_pub_components_from_private_key: |_, _| Err(unsupported()),
        compute_digest: |_, _| Err(unsupported()),
    },
};

/// Whether `signature` is what the holder of the key made of `message`.
pub(super) fn is_signed(message: &[u8], signature: &str, key: &DecodingKey, algorithm: Algorithm) -> bool {
    static INSTALLED: Once = Once::new();
    // Where there is another one already, it is of this process too.
    INSTALLED.call_once(|| {
        let _ = PROVIDER.install_default();
    });
    jsonwebtoken::crypto::verify(signature, message, key, algorithm).unwrap_or(false)
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    use Algorithm as A;
    let means = match algorithm {
        A::RS256 => Means::Rsa(&schemes::RSA_PKCS1_2048_8192_SHA256),
        A::RS384 => Means::Rsa(&schemes::RSA_PKCS1_2048_8192_SHA384),
        A::RS512 => Means::Rsa(&schemes::RSA_PKCS1_2048_8192_SHA512),
        A::PS256 => Means::Rsa(&schemes::RSA_PSS_2048_8192_SHA256),
        A::PS384 => Means::Rsa(&schemes::RSA_PSS_2048_8192_SHA384),
        A::PS512 => Means::Rsa(&schemes::RSA_PSS_2048_8192_SHA512),
        A::ES256 => Means::Bytes(&schemes::ECDSA_P256_SHA256_FIXED),
        A::ES384 => Means::Bytes(&schemes::ECDSA_P384_SHA384_FIXED),
        A::EdDSA => Means::Bytes(&schemes::ED25519),
        // A secret that both sides share (HS256 and its like) is no proof of who signed, and what is new is not known.
        _ => return Err(unsupported()),
    };
    if key.family() != algorithm.family() {
        return Err(ErrorKind::InvalidKeyFormat.into());
    }
    Ok(Box::new(Verifying { algorithm: *algorithm, means, key: key.clone() }))
}

impl Verifier<Vec<u8>> for Verifying {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), NotVerified> {
        let verified = match (&self.means, self.key.kind()) {
            (Means::Rsa(parameters), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            (Means::Bytes(algorithm), DecodingKeyKind::SecretOrDer(key)) => {
                UnparsedPublicKey::new(*algorithm, key).verify(message, signature)
            }
            (Means::Rsa(_), DecodingKeyKind::SecretOrDer(_))
            | (Means::Bytes(_), DecodingKeyKind::RsaModulusExponent { .. }) => return Err(NotVerified::new()),
        };
        verified.map_err(|_| NotVerified::new())
    }
}

impl JwtVerifier for Verifying {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

fn no_signer(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    Err(unsupported())
}

fn unsupported() -> Error {
    ErrorKind::UnsupportedAlgorithm.into()
}
