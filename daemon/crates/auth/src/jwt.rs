//! Signed assertions (JWT, RFC 7515): how a program proves that it has a private key.

use agentd_http::register_secret;
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, RSA_PKCS1_SHA256, RsaKeyPair},
};
use serde_json::{Map, Value};

/// A signature algorithm of assertions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JwtAlgorithm {
    /// RSA with SHA-256.
    Rs256,
    /// The curve P-256 with SHA-256.
    Es256,
}

impl JwtAlgorithm {
    /// The name in the assertion's header.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
        }
    }
}

/// Why an assertion cannot be signed. No message quotes the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JwtError {
    /// The text is no key that can sign.
    #[error("it is no {} key in PKCS #8 form", match .0 { JwtAlgorithm::Rs256 => "RSA", JwtAlgorithm::Es256 => "P-256" })]
    Key(JwtAlgorithm),
    /// The key cannot sign.
    #[error("it cannot sign")]
    Signature,
}

/// Signs claims by a private key in PEM form (PKCS #8). The key is a secret from here on.
///
/// # Errors
/// [`JwtError`].
pub fn sign_jwt(
    key: &str,
    algorithm: JwtAlgorithm,
    key_id: Option<&str>,
    claims: &Map<String, Value>,
) -> Result<String, JwtError> {
    let lines = key.lines().map(str::trim).filter(|line| !line.starts_with("-----"));
    let encoded: String = lines.inspect(|line| register_secret(line)).collect();
    register_secret(&encoded);
    let der = STANDARD.decode(&encoded).map_err(|_| JwtError::Key(algorithm))?;
    let mut header = Map::from_iter([
        ("alg".to_owned(), Value::from(algorithm.name())),
        ("typ".to_owned(), Value::from("JWT")),
    ]);
    header.extend(key_id.map(|key_id| ("kid".to_owned(), key_id.into())));
    let part =
        |value: &Map<String, Value>| URL_SAFE_NO_PAD.encode(serde_json::to_string(value).unwrap_or_default());
    let signed = format!("{}.{}", part(&header), part(claims));
    let random = SystemRandom::new();
    let signature = match algorithm {
        JwtAlgorithm::Rs256 => {
            let pair = RsaKeyPair::from_pkcs8(&der).map_err(|_| JwtError::Key(algorithm))?;
            let mut signature = vec![0; pair.public().modulus_len()];
            let done = pair.sign(&RSA_PKCS1_SHA256, &random, signed.as_bytes(), &mut signature);
            done.map_err(|_| JwtError::Signature)?;
            signature
        }
        JwtAlgorithm::Es256 => {
            let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der, &random);
            let pair = pair.map_err(|_| JwtError::Key(algorithm))?;
            let signature = pair.sign(&random, signed.as_bytes()).map_err(|_| JwtError::Signature)?;
            signature.as_ref().to_vec()
        }
    };
    Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

#[cfg(test)]
mod tests {
    use ring::signature::{ECDSA_P256_SHA256_FIXED, KeyPair, UnparsedPublicKey};
    use serde_json::json;

    use super::*;

    fn claims() -> Map<String, Value> {
        Map::from_iter([("iss".to_owned(), json!("me"))])
    }

    #[test]
    fn assertions_of_the_curve_can_be_checked() {
        let random = SystemRandom::new();
        let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let pem = format!(
            "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
            STANDARD.encode(der.as_ref())
        );
        let signed = sign_jwt(&pem, JwtAlgorithm::Es256, Some("k1"), &claims()).unwrap();
        let (text, signature) = signed.rsplit_once('.').unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der.as_ref(), &random).unwrap();
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, pair.public_key().as_ref().to_vec());
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        public.verify(text.as_bytes(), &signature).unwrap();
        let (header, payload) = text.split_once('.').unwrap();
        let read =
            |part: &str| serde_json::from_slice::<Value>(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap();
        assert_eq!(read(header), json!({"alg": "ES256", "typ": "JWT", "kid": "k1"}));
        assert_eq!(read(payload), json!({"iss": "me"}));
    }

    #[test]
    fn what_is_no_key_is_not_quoted() {
        for algorithm in [JwtAlgorithm::Rs256, JwtAlgorithm::Es256] {
            for text in ["", "hush hush", "aHVzaC1odXNo"] {
                let error = sign_jwt(text, algorithm, None, &claims()).unwrap_err();
                assert_eq!(error, JwtError::Key(algorithm));
                assert!(!error.to_string().contains("hush") && !error.to_string().contains("aHV"));
            }
        }
    }
}
