//! A day of the people whom issuers vouch for.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::disallowed_methods,
    reason = "a test may panic"
)]

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use data_encoding::BASE64URL_NOPAD;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolgate::clock::ManualClock;

use super::forge::{Signer, message};
use super::*;

pub(super) const NOW: Millis = Millis(1_796_000_000_000);
pub(super) const ISSUER: &str = "https://id.example.com";

/// A folder that trusts issuers, and the issuers.
pub(super) struct House {
    folder: TempDir,
    pub(super) clock: Arc<ManualClock>,
    told: Arc<Mutex<Vec<String>>>,
}

impl House {
    pub(super) fn new() -> Self {
        let (folder, clock) = (tempfile::tempdir().unwrap(), Arc::new(ManualClock::at(NOW)));
        Self { folder, clock, told: Arc::default() }
    }

    /// Writes a set of keys into the folder, as an editor does.
    pub(super) fn publish(&self, file: &str, keys: &[Value]) {
        let beside = self.folder.path().join("draft");
        std::fs::write(&beside, json!({ "keys": keys }).to_string()).unwrap();
        std::fs::rename(beside, self.folder.path().join(file)).unwrap();
    }

    /// The folder with this `[identity]`, and what is wrong with it.
    pub(super) fn load(&self, table: &Value) -> (Jwt, Vec<String>) {
        let mut problems = Problems::default();
        let mut fields = Fields::of(table.as_object().unwrap(), "/identity");
        fields.raw("kind");
        let told = Arc::clone(&self.told);
        let say: Say = Arc::new(move |said| told.lock().unwrap().push(said.text().to_owned()));
        let jwt = Jwt::made(self.folder.path(), fields, &mut problems, &say, Arc::clone(&self.clock) as _);
        (jwt, problems.0.into_iter().map(|problem| format!("{} {}", problem.at, problem.code)).collect())
    }

    pub(super) fn jwt(&self, issuers: &[Value]) -> Jwt {
        let (jwt, problems) = self.load(&json!({ "kind": "jwt", "issuer": issuers }));
        assert_eq!(problems, [""; 0]);
        jwt
    }

    fn told(&self) -> String {
        self.told.lock().unwrap().join("\n")
    }
}

/// An issuer whose keys are in `keys.json`, and which says everything.
pub(super) fn issuer() -> Value {
    json!({
        "issuer": ISSUER, "audience": "toolgate", "jwks": "keys.json", "tenant": "/org", "roles": "/roles",
        "scopes": "/scope",
    })
}

pub(super) fn with(mut value: Value, change: Value) -> Value {
    for (name, new) in change.as_object().unwrap() {
        match new {
            Value::Null => drop(value.as_object_mut().unwrap().remove(name)),
            new => value[name] = new.clone(),
        }
    }
    value
}

/// What the issuer says of somebody who has an hour left.
pub(super) fn claims() -> Value {
    let now = NOW.0 / 1000;
    json!({
        "iss": ISSUER, "aud": ["toolgate", "other"], "sub": "u_1", "exp": now + 3600, "nbf": now - 10, "iat": now - 10,
        "org": "acme", "roles": ["support"], "scope": "openid calls ledger",
    })
}

pub(super) fn header(algorithm: &str, key: &str) -> Value {
    json!({ "alg": algorithm, "typ": "at+jwt", "kid": key })
}

#[test]
fn whoever_an_issuer_vouches_for_is_known_by_issuer_and_subject_until_the_token_ends() {
    let house = House::new();
    let key = Signer::ed25519();
    house.publish("keys.json", &[key.jwk("a")]);
    let jwt = house.jwt(&[issuer()]);
    let token = key.token(&header("EdDSA", "a"), &claims().to_string());
    let caller = jwt.admit(&token).unwrap();
    assert_eq!(caller.session.principal(), &Principal::new(ISSUER, "u_1"));
    assert_eq!((caller.session.tenant(), caller.session.roles().len()), ("acme", 1));
    assert_eq!(caller.scopes, BTreeSet::from([Scope::Calls, Scope::Ledger]), "openid is nothing here");
    let hour = Duration::from_secs(3600);
    assert_eq!(caller.left, Some(hour + Duration::from_secs(30)));
    // The gate's own time may be another than the one on the wall.
    let session = caller.session_from(Millis(7));
    assert!(!session.has_ended(Millis(3_630_006)) && session.has_ended(Millis(3_630_007)));
    house.clock.advance(hour + Duration::from_millis(29_999));
    assert!(jwt.admit(&token).is_ok());
    house.clock.advance(Duration::from_millis(1));
    assert_eq!(jwt.admit(&token).unwrap_err(), NotAdmitted::Unauthenticated);
}

#[test]
fn every_kind_of_key_verifies_what_it_signed_and_nothing_under_another_name() {
    let all = [
        ("EdDSA", Signer::ed25519(), json!({})),
        ("ES256", Signer::p256(), json!({ "alg": "ES256" })),
        ("ES384", Signer::p384(), json!({ "key_ops": ["verify"] })),
        ("RS256", Signer::rsa(), json!({})),
        ("PS512", Signer::pss(), json!({ "alg": "PS512" })),
    ];
    for (algorithm, key, more) in &all {
        let house = House::new();
        house.publish("keys.json", &[with(key.jwk("a"), more.clone())]);
        let jwt = house.jwt(&[issuer()]);
        let token = |named: &str| key.token(&header(named, "a"), &claims().to_string());
        assert!(jwt.admit(&token(algorithm)).is_ok(), "{algorithm}");
        for other in ["RS256", "RS512", "PS512", "ES256", "ES384", "EdDSA", "HS256", "none"] {
            assert_eq!(jwt.admit(&token(other)).is_ok(), other == *algorithm, "{other} with a key of {algorithm}");
        }
        let without_id = key.token(&json!({ "alg": algorithm }), &claims().to_string());
        assert!(jwt.admit(&without_id).is_ok(), "{algorithm}: a header need not name the key");
        let changed = message(&header(algorithm, "a"), &with(claims(), json!({ "sub": "u_2" })).to_string());
        let forged = format!("{changed}.{}", token(algorithm).rsplit_once('.').unwrap().1);
        assert_eq!(jwt.admit(&forged).unwrap_err(), NotAdmitted::Unauthenticated, "{algorithm}");
    }
}

#[test]
fn a_key_that_is_for_something_else_or_given_away_verifies_nothing() {
    let house = House::new();
    let (key, other) = (Signer::p256(), Signer::ed25519());
    let secret = json!({ "kty": "oct", "k": BASE64URL_NOPAD.encode(b"secret of both sides"), "kid": "a" });
    for change in [
        json!({ "use": "enc" }),
        json!({ "use": 7 }),
        json!({ "key_ops": ["encrypt"] }),
        json!({ "alg": "ES384" }),
        json!({ "alg": null, "crv": "P-521" }),
        json!({ "d": "AAAA" }),
        json!({ "kid": 7 }),
        json!({ "x": "AAAA" }),
    ] {
        house.publish("keys.json", &[with(key.jwk("a"), change.clone()), secret.clone(), other.jwk("b")]);
        let jwt = house.jwt(&[issuer()]);
        assert_eq!(jwt.faults().len(), 0, "one of them is sound");
        let token = key.token(&header("ES256", "a"), &claims().to_string());
        assert_eq!(jwt.admit(&token).unwrap_err(), NotAdmitted::Unauthenticated, "{change}");
    }
    house.publish("keys.json", &[secret]);
    assert_eq!(house.jwt(&[issuer()]).faults().len(), 1, "nothing is left of it");
}

#[test]
fn a_claim_that_is_not_as_it_must_be_admits_nobody() {
    let house = House::new();
    let key = Signer::ed25519();
    house.publish("keys.json", &[key.jwk("a")]);
    let jwt = house.jwt(&[issuer()]);
    let admits = |claims: Value| jwt.admit(&key.token(&header("EdDSA", "a"), &claims.to_string())).is_ok();
    let now = NOW.0 / 1000;
    for fine in [
        json!({ "aud": "toolgate" }),
        json!({ "exp": now - 29 }),
        json!({ "nbf": now + 30, "iat": now + 30 }),
        json!({ "nbf": null, "iat": null }),
        json!({ "exp": now as f64 + 0.5 }),
        json!({ "roles": "support manager" }),
        json!({ "roles": null }),
        json!({ "email": "u_1@example.com", "email_verified": 1 }),
    ] {
        assert!(admits(with(claims(), fine.clone())), "{fine}");
    }
    for bad in [
        json!({ "exp": null }),
        json!({ "exp": now - 30 }),
        json!({ "nbf": now + 31 }),
        json!({ "iat": now + 31 }),
        json!({ "iat": "yesterday" }),
        json!({ "sub": null }),
        json!({ "sub": "" }),
        json!({ "sub": 7 }),
        json!({ "sub": "u\u{0}1" }),
        json!({ "aud": null }),
        json!({ "aud": "toolgate2" }),
        json!({ "aud": [] }),
        json!({ "aud": ["toolgate", 7] }),
        json!({ "aud": { "toolgate": true } }),
        json!({ "iss": "https://id.example.com/" }),
        json!({ "org": null }),
        json!({ "org": ["acme"] }),
        json!({ "org": "Acme" }),
        json!({ "org": "../acme" }),
        json!({ "org": "" }),
        json!({ "roles": 7 }),
        json!({ "roles": ["support", 7] }),
        json!({ "roles": ["a\u{7}"] }),
        json!({ "scope": { "calls": true } }),
    ] {
        assert!(!admits(with(claims(), bad.clone())), "{bad}");
    }
}

#[test]
fn a_header_that_wants_something_of_its_reader_admits_nobody() {
    let house = House::new();
    let (key, other) = (Signer::ed25519(), Signer::ed25519());
    house.publish("keys.json", &[key.jwk("a")]);
    let jwt = house.jwt(&[issuer()]);
    let token = |header: Value| key.token(&header, &claims().to_string());
    for header in [
        json!({ "alg": "EdDSA", "kid": "a", "crit": ["exp"] }),
        json!({ "alg": "EdDSA", "kid": "a", "typ": "logout+jwt" }),
        json!({ "alg": "EdDSA", "kid": "b" }),
        json!({ "alg": "EdDSA", "kid": 7 }),
        json!({ "alg": ["EdDSA"], "kid": "a" }),
        json!({ "kid": "a" }),
        json!([]),
    ] {
        assert!(jwt.admit(&token(header.clone())).is_err(), "{header}");
    }
    let brings_its_key =
        json!({ "alg": "EdDSA", "kid": "a", "jwk": other.jwk("a"), "jku": "https://evil.example/keys" });
    assert!(jwt.admit(&token(brings_its_key.clone())).is_ok(), "what it brings is not looked at");
    assert!(jwt.admit(&other.token(&brings_its_key, &claims().to_string())).is_err());
    let sound = token(header("EdDSA", "a"));
    let (message, signature) = sound.rsplit_once('.').unwrap();
    for broken in [
        message.to_owned(),
        format!("{message}."),
        format!("{sound}="),
        format!("{sound}.{signature}"),
        format!("{message}.{}", signature.replace(&signature[..1], "!")),
        sound.replace('.', ""),
        String::new(),
        "a".repeat(20_000),
    ] {
        assert_eq!(jwt.admit(&broken).unwrap_err(), NotAdmitted::Unauthenticated, "{broken}");
    }
}

#[test]
fn an_issuer_speaks_for_its_tenants_alone_and_with_its_own_keys() {
    let house = House::new();
    let (a, b) = (Signer::ed25519(), Signer::ed25519());
    house.publish("a.json", &[a.jwk("k")]);
    house.publish("b.json", &[b.jwk("k")]);
    let of = |name: &str, tenant: &str| {
        json!({
            "issuer": format!("https://{name}.example.com"), "audience": "toolgate", "jwks": format!("{name}.json"),
            "tenant": "/org", "tenants": [tenant],
        })
    };
    let jwt = house.jwt(&[of("a", "t_a"), of("b", "t_b")]);
    let token = |signer: &Signer, name: &str, org: Value| {
        let claims = with(claims(), json!({ "iss": format!("https://{name}.example.com"), "org": org }));
        signer.token(&header("EdDSA", "k"), &claims.to_string())
    };
    assert_eq!(jwt.admit(&token(&b, "b", json!("t_b"))).unwrap().session.tenant(), "t_b");
    assert_eq!(jwt.admit(&token(&b, "b", Value::Null)).unwrap().session.tenant(), "t_b", "it speaks for one");
    for refused in [
        token(&b, "b", json!("t_a")),
        token(&b, "a", json!("t_a")),
        token(&a, "b", json!("t_b")),
        token(&a, "a.example.com.evil", json!("t_a")),
    ] {
        assert_eq!(jwt.admit(&refused).unwrap_err(), NotAdmitted::Unauthenticated);
    }
    let caller = jwt.admit(&token(&a, "a", json!("t_a"))).unwrap();
    assert_eq!(caller.scopes, BTreeSet::from([Scope::Calls]), "no claim says scopes, so they are calls alone");
}

#[test]
fn who_is_revoked_is_out_at_once_and_has_no_standing() {
    let house = House::new();
    let key = Signer::ed25519();
    house.publish("keys.json", &[key.jwk("a")]);
    let jwt = house.jwt(&[issuer()]);
    let token = key.token(&header("EdDSA", "a"), &claims().to_string());
    let u_1 = jwt.principal(None, "u_1").unwrap();
    assert!(jwt.admit(&token).is_ok());
    assert_eq!(jwt.roles(&u_1, "acme"), None, "what the issuer says of them today is not known");
    // Another process does it.
    assert_eq!(house.jwt(&[issuer()]).revoke(u_1.clone()).unwrap(), NOW);
    assert_eq!(jwt.admit(&token).unwrap_err(), NotAdmitted::Unauthenticated);
    assert_eq!(jwt.roles(&u_1, "acme"), Some(BTreeSet::new()));
    assert_eq!(jwt.roles(&Principal::new(ISSUER, "u_2"), "acme"), None);
    assert_eq!(jwt.roles(&Principal::new("https://gone.example", "u_2"), "acme"), Some(BTreeSet::new()));
    assert_eq!(jwt.roles(&Principal::new("os", "operator#0"), "acme"), None);
    house.clock.advance(Duration::from_secs(1));
    assert_eq!(jwt.revoke(u_1.clone()).unwrap(), NOW, "it stays as it was");
    assert_eq!(jwt.revoked().unwrap(), [(u_1.clone(), NOW)]);
    // A file that cannot be read admits nobody at all, and says so.
    let file = house.folder.path().join("state/revoked.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("subject", "subjcet")).unwrap();
    let other = key.token(&header("EdDSA", "a"), &with(claims(), json!({ "sub": "u_2" })).to_string());
    assert_eq!(jwt.admit(&other).unwrap_err(), NotAdmitted::Unknowable);
    assert_eq!(jwt.roles(&Principal::new(ISSUER, "u_2"), "acme"), Some(BTreeSet::new()));
    assert!(house.told().contains("who was revoked cannot be read"), "{}", house.told());
    assert!(!jwt.faults().is_empty());
    std::fs::write(&file, text).unwrap();
    assert!(jwt.admit(&other).is_ok() && jwt.admit(&token).is_err());
}

#[test]
fn keys_in_a_file_are_those_that_stand_there_now() {
    let house = House::new();
    let (old, new) = (Signer::ed25519(), Signer::p256());
    house.publish("keys.json", &[old.jwk("old")]);
    let jwt = house.jwt(&[issuer()]);
    let [first, second] = [(&old, "EdDSA", "old"), (&new, "ES256", "new")]
        .map(|(key, algorithm, id)| key.token(&header(algorithm, id), &claims().to_string()));
    assert!(jwt.admit(&first).is_ok() && jwt.admit(&second).is_err());
    house.publish("keys.json", &[new.jwk("new")]);
    assert!(jwt.admit(&first).is_err() && jwt.admit(&second).is_ok());
    std::fs::remove_file(house.folder.path().join("keys.json")).unwrap();
    assert_eq!(jwt.admit(&second).unwrap_err(), NotAdmitted::Unknowable);
    assert!(house.told().contains("nobody is admitted by the tokens of an issuer"), "{}", house.told());
    assert_eq!(jwt.faults().len(), 1);
}

/// A server of keys that counts how often it is asked, and may be told what to answer.
struct KeyServer {
    url: String,
    asked: Arc<AtomicUsize>,
    answer: Arc<Mutex<(u16, String)>>,
}

impl KeyServer {
    fn start(answer: (u16, String)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/keys", listener.local_addr().unwrap());
        let (asked, answer) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(answer)));
        let (count, told) = (Arc::clone(&asked), Arc::clone(&answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().map(Result::unwrap) {
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
                count.fetch_add(1, Ordering::SeqCst);
                let (status, body) = told.lock().unwrap().clone();
                let head = format!(
                    "HTTP/1.1 {status} X\r\nlocation: /other\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                    body.len()
                );
                let _ = (&stream).write_all(format!("{head}{body}").as_bytes());
            }
        });
        Self { url, asked, answer }
    }

    fn says(&self, status: u16, keys: &[Value]) {
        *self.answer.lock().unwrap() = (status, json!({ "keys": keys }).to_string());
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// A folder that trusts it, on this machine and without TLS.
    fn trusted(&self, house: &House) -> Jwt {
        let issuer = with(issuer(), json!({ "issuer": self.issuer(), "jwks": self.url }));
        let (jwt, problems) = house.load(&json!({ "kind": "jwt", "development": true, "issuer": [issuer] }));
        assert_eq!(problems, [""; 0]);
        jwt
    }

    fn issuer(&self) -> &str {
        self.url.strip_suffix("/keys").unwrap()
    }

    fn token(&self, key: &Signer, id: &str) -> String {
        key.token(&header("EdDSA", id), &with(claims(), json!({ "iss": self.issuer() })).to_string())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_are_fetched_once_for_all_who_wait_and_not_again_for_each_unknown_one() {
    let house = House::new();
    let (key, other) = (Signer::ed25519(), Signer::ed25519());
    let server = KeyServer::start((200, json!({ "keys": [key.jwk("a")] }).to_string()));
    let jwt = server.trusted(&house);
    let token = server.token(&key, "a");
    assert_eq!(jwt.admit(&token).unwrap_err(), NotAdmitted::Unknowable, "nothing is at hand, and nobody waited");
    assert_eq!(server.asked(), 0);
    futures_util::future::join_all((0..20).map(|_| jwt.prepare(&token))).await;
    assert!(jwt.admit(&token).is_ok());
    assert_eq!(server.asked(), 1);
    // The issuer has a new key. Whoever shows unknown ones cannot make the gate ask for each.
    server.says(200, &[key.jwk("a"), other.jwk("b")]);
    for id in ["b", "c", "d", "b"] {
        let token = server.token(&other, id);
        jwt.prepare(&token).await;
        assert_eq!(jwt.admit(&token).unwrap_err(), NotAdmitted::Unauthenticated);
    }
    assert_eq!((server.asked(), house.told().as_str()), (1, ""));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_that_cannot_be_fetched_admit_nobody_and_the_operator_hears_of_it_once() {
    let key = Signer::ed25519();
    let large = format!("{{\"keys\": [{}], \"pad\": \"{}\"}}", key.jwk("a"), "x".repeat(300_000));
    let doubled = format!("{{\"keys\": [], \"keys\": [{}]}}", key.jwk("a"));
    for (answer, why) in [
        ((500, String::new()), "status 500"),
        ((302, String::new()), "status 302"),
        ((200, "<html>".to_owned()), "line 1"),
        ((200, json!({ "keys": [] }).to_string()), "no key that verifies"),
        ((200, doubled), "line 1"),
        ((200, large), "limit"),
    ] {
        let house = House::new();
        let server = KeyServer::start(answer);
        let jwt = server.trusted(&house);
        let token = server.token(&key, "a");
        for _ in 0..3 {
            jwt.prepare(&token).await;
            assert_eq!(jwt.admit(&token).unwrap_err(), NotAdmitted::Unknowable, "{why}");
        }
        assert_eq!(server.asked(), 1, "{why}: a failure is not asked for again at once");
        let told = house.told();
        assert!(told.contains("cannot be fetched") && told.contains(why) && told.lines().count() == 1, "{why}: {told}");
    }
}

#[test]
fn what_would_weaken_the_check_is_a_fault_of_the_folder() {
    let house = House::new();
    house.publish("keys.json", &[Signer::ed25519().jwk("a")]);
    let faults = |change: Value| house.load(&json!({ "kind": "jwt", "issuer": [with(issuer(), change)] })).1;
    assert_eq!(faults(json!({})), [""; 0]);
    for (change, fault) in [
        (json!({ "issuer": "http://id.example.com" }), "issuer format"),
        (json!({ "issuer": "http://127.0.0.1:9000" }), "issuer format"),
        (json!({ "issuer": "id.example.com" }), "issuer format"),
        (json!({ "issuer": "https://id.example.com?x=1" }), "issuer format"),
        (json!({ "jwks": "http://id.example.com/keys" }), "jwks format"),
        (json!({ "jwks": "ftp://id.example.com/keys" }), "jwks format"),
        (json!({ "jwks": "https://me:pw@id.example.com/keys" }), "jwks format"),
        (json!({ "audience": null }), "audience required"),
        (json!({ "audience": "" }), "audience min_length"),
        (json!({ "audience": [] }), "audience min_length"),
        (json!({ "tls_verify": false }), "tls_verify unknown_key"),
        (json!({ "algorithms": ["none"] }), "algorithms unknown_key"),
        (json!({ "leeway": "301s" }), "leeway maximum"),
        (json!({ "tenant": "org" }), "tenant pattern"),
        (json!({ "tenant": null }), "tenant required"),
        (json!({ "tenant": null, "tenants": ["a", "b"] }), "tenants ambiguous"),
        (json!({ "tenants": ["T_A"] }), "tenants/0 pattern"),
        (json!({ "tenants": [] }), "tenants min_items"),
    ] {
        let found = faults(change.clone());
        assert_eq!(found, [format!("/identity/issuer/0/{fault}")], "{change}");
    }
    let both = json!([issuer(), with(issuer(), json!({ "issuer": "https://b.example.com", "tenants": ["b"] }))]);
    assert_eq!(house.load(&json!({ "kind": "jwt", "issuer": both })).1, ["/identity/issuer/0/tenants unbound"]);
    for table in [json!({ "kind": "jwt" }), json!({ "kind": "jwt", "issuer": [] })] {
        assert_eq!(house.load(&table).1.len(), 1, "{table}");
    }
    // Without TLS on this machine, where it is said; but never for an issuer that is elsewhere.
    let dev = |issuer: Value| house.load(&json!({ "kind": "jwt", "development": true, "issuer": [issuer] }));
    let here = json!({ "issuer": "http://localhost:9000", "jwks": "http://[::1]:9000/keys" });
    let (jwt, problems) = dev(with(issuer(), here));
    assert_eq!((problems.len(), jwt.warning().is_some()), (0, true));
    assert_eq!(dev(with(issuer(), json!({ "jwks": "http://localhost:9000/keys" }))).1.len(), 1, "unmarked on record");
    assert_eq!(dev(with(issuer(), json!({ "issuer": "http://10.0.0.1" }))).1.len(), 1);
}
