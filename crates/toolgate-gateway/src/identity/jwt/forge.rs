//! Keys of issuers that there are not, and what is signed with them.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use data_encoding::{BASE64_MIME_PERMISSIVE, BASE64URL_NOPAD};
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm,
    Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RSA_PSS_SHA512, RsaEncoding, RsaKeyPair,
};
use serde_json::{Value, json};

/// A key that signs.
pub(super) enum Signer {
    Ed25519(Ed25519KeyPair),
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    Rsa(RsaKeyPair, &'static dyn RsaEncoding),
}

impl Signer {
    pub(super) fn ed25519() -> Self {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::Ed25519(Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap())
    }

    pub(super) fn p256() -> Self {
        Self::P256(ecdsa(&ECDSA_P256_SHA256_FIXED_SIGNING))
    }

    pub(super) fn p384() -> Self {
        Self::P384(ecdsa(&ECDSA_P384_SHA384_FIXED_SIGNING))
    }

    pub(super) fn rsa() -> Self {
        Self::Rsa(rsa(), &RSA_PKCS1_SHA256)
    }

    pub(super) fn pss() -> Self {
        Self::Rsa(rsa(), &RSA_PSS_SHA512)
    }

    pub(super) fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::Ed25519(key) => key.sign(message).as_ref().to_vec(),
            Self::P256(key) | Self::P384(key) => key.sign(&random, message).unwrap().as_ref().to_vec(),
            Self::Rsa(key, padding) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(*padding, &random, message, &mut signature).unwrap();
                signature
            }
        }
    }

    /// The public key, as a set shows it.
    pub(super) fn jwk(&self, id: &str) -> Value {
        let text = |bytes: &[u8]| BASE64URL_NOPAD.encode(bytes);
        let on_curve = |curve: &str, point: &[u8]| {
            let (x, y) = point.split_first().unwrap().1.split_at((point.len() - 1) / 2);
            json!({"kty": "EC", "crv": curve, "x": text(x), "y": text(y), "kid": id, "use": "sig"})
        };
        match self {
            Self::Ed25519(key) => {
                json!({"kty": "OKP", "crv": "Ed25519", "x": text(key.public_key().as_ref()), "kid": id})
            }
            Self::P256(key) => on_curve("P-256", key.public_key().as_ref()),
            Self::P384(key) => on_curve("P-384", key.public_key().as_ref()),
            Self::Rsa(key, _) => {
                let PublicKeyComponents::<Vec<u8>> { n, e } = key.public().into();
                json!({"kty": "RSA", "n": text(&n), "e": text(&e), "kid": id, "use": "sig"})
            }
        }
    }

    /// The modulus of an RSA key, as whoever takes a public key for a secret would use it.
    pub(super) fn public_bytes(&self) -> Vec<u8> {
        match self {
            Self::Ed25519(key) => key.public_key().as_ref().to_vec(),
            Self::P256(key) | Self::P384(key) => key.public_key().as_ref().to_vec(),
            Self::Rsa(key, _) => key.public().as_ref().to_vec(),
        }
    }

    /// A token with this header and these claims, as their texts stand.
    pub(super) fn token(&self, header: &Value, claims: &str) -> String {
        let message = message(header, claims);
        let signature = self.sign(message.as_bytes());
        format!("{message}.{}", BASE64URL_NOPAD.encode(&signature))
    }
}

/// What of a token is signed.
pub(super) fn message(header: &Value, claims: &str) -> String {
    let part = |text: &str| BASE64URL_NOPAD.encode(text.as_bytes());
    format!("{}.{}", part(&header.to_string()), part(claims))
}

fn ecdsa(algorithm: &'static EcdsaSigningAlgorithm) -> EcdsaKeyPair {
    let random = SystemRandom::new();
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
    EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random).unwrap()
}

/// It guards nothing: it was made for these tests.
fn rsa() -> RsaKeyPair {
    let text = include_str!("rsa_of_tests.txt");
    RsaKeyPair::from_pkcs8(&BASE64_MIME_PERMISSIVE.decode(text.as_bytes()).unwrap()).unwrap()
}
