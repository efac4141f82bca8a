//! A day of the people who are known by tokens.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;
use toolgate::clock::ManualClock;

use super::*;
use crate::identity::Doorkeeper;

/// A folder, and the tokens of it under a clock that stands still.
struct House {
    folder: TempDir,
    clock: Arc<ManualClock>,
}

const MORNING: Millis = Millis(1_796_000_000_000);
const HOUR: Duration = Duration::from_secs(3600);

impl House {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), clock: Arc::new(ManualClock::at(MORNING)) }
    }

    /// Like another process: it knows nothing of what others have read.
    fn tokens(&self) -> Tokens {
        Tokens::at(self.folder.path(), Path::new(DEFAULT_FILE), Arc::clone(&self.clock) as Arc<dyn Clock>)
    }

    fn door(&self) -> Doorkeeper {
        Doorkeeper::Tokens(self.tokens())
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join(DEFAULT_FILE)
    }

    fn text(&self) -> String {
        fs::read_to_string(self.path()).unwrap()
    }

    /// Replaces the file as an editor does: the new one is written beside it first.
    fn rewrite(&self, text: &str) {
        let beside = self.path().with_extension("edited");
        fs::write(&beside, text).unwrap();
        fs::rename(beside, self.path()).unwrap();
    }
}

fn grant(user: &str, roles: &[&str]) -> Grant {
    Grant {
        user: user.into(),
        tenant: "acme".into(),
        roles: roles.iter().map(|role| (*role).to_owned()).collect(),
        scopes: BTreeSet::from([Scope::Calls]),
        tags: None,
        lasts: None,
    }
}

fn findings(not: NotChanged) -> Vec<String> {
    match not {
        NotChanged::Faults(findings) => findings.iter().map(ToString::to_string).collect(),
        NotChanged::Unwritable { .. } | NotChanged::NoRandom => panic!("{not:?}"),
    }
}

#[test]
fn a_token_admits_whom_it_was_given_to_with_its_roles_and_its_scopes() {
    let house = House::new();
    let scopes = BTreeSet::from([Scope::Calls, Scope::Approve]);
    let wanted = Grant { scopes: scopes.clone(), lasts: Some(HOUR), ..grant("alice", &["support", "manager"]) };
    let (shown, token) = house.tokens().issue(wanted).unwrap();
    let caller = house.door().admit(Some(&shown)).unwrap();
    assert_eq!(caller.session.principal(), &Principal::new("tokens", "alice"));
    assert_eq!(caller.session.tenant(), "acme");
    assert_eq!(caller.session.roles().iter().collect::<Vec<_>>(), ["manager", "support"]);
    assert_eq!(caller.scopes, scopes);
    assert_eq!((token.created_at, token.expires_at), (MORNING, Some(MORNING.after(HOUR))));
    assert!(shown.starts_with(&format!("tg_{}_", token.id)));
    assert_eq!(shown.len(), "tg_".len() + ID_LENGTH + 1 + 52, "256 bits in base 32");
}

#[test]
fn the_session_of_a_token_ends_with_it_whatever_time_it_is_for_the_gate() {
    let house = House::new();
    let (shown, _) = house.tokens().issue(Grant { lasts: Some(HOUR), ..grant("alice", &[]) }).unwrap();
    house.clock.advance(HOUR / 4);
    let caller = house.door().admit(Some(&shown)).unwrap();
    let (now, left) = (Millis(5), HOUR / 4 * 3);
    let session = caller.session_from(now);
    let end = now.after(left);
    assert!(!session.has_ended(Millis(end.0 - 1)) && session.has_ended(end));
    let (endless, _) = house.tokens().issue(grant("bob", &[])).unwrap();
    assert!(!house.door().admit(Some(&endless)).unwrap().session_from(now).has_ended(Millis(u64::MAX)));
}

#[test]
fn a_token_keeps_its_tags_and_one_without_any_says_nothing_of_them() {
    let house = House::new();
    let tags = Tags::of("refunds").unwrap().or(Tags::of("orders").unwrap());
    let (shown, _) = house.tokens().issue(Grant { tags: Some(tags.clone()), ..grant("alice", &[]) }).unwrap();
    let session = house.door().admit(Some(&shown)).unwrap().session;
    assert_eq!(session.bounds().collect::<Vec<_>>(), [&tags]);
    assert!(house.text().contains("\ntags = [\"orders\", \"refunds\"]\n"), "{}", house.text());
    let (shown, _) = house.tokens().issue(grant("bob", &[])).unwrap();
    assert_eq!(house.door().admit(Some(&shown)).unwrap().session.bounds().len(), 0);
    assert_eq!(house.text().matches("tags").count(), 1);
}

#[test]
fn tags_that_say_nothing_are_a_fault_and_never_all_tools() {
    let house = House::new();
    let (shown, _) = house.tokens().issue(Grant { tags: Tags::of("refunds").ok(), ..grant("alice", &[]) }).unwrap();
    let text = house.text();
    for (tags, code) in [("[]", "min_items"), ("[\"a b\"]", "pattern"), ("\"refunds\"", "type"), ("[1]", "type")] {
        house.rewrite(&text.replace("tags = [\"refunds\"]", &format!("tags = {tags}")));
        assert!(house.door().admit(Some(&shown)).is_err(), "{tags}");
        let told: Vec<String> = house.tokens().faults().into_iter().map(|finding| finding.code.into_owned()).collect();
        assert_eq!(told, [code], "{tags}");
    }
}

#[test]
fn all_that_is_wrong_with_a_token_has_one_answer() {
    let house = House::new();
    let door = house.door();
    assert_eq!(
        door.admit(Some("tg_000000000000_a")).unwrap_err(),
        NotAdmitted::Unauthenticated,
        "before there is a file"
    );
    let (alices, alice) = house.tokens().issue(grant("alice", &[])).unwrap();
    let (bobs, bob) = house.tokens().issue(Grant { lasts: Some(HOUR), ..grant("bob", &[]) }).unwrap();
    let (revoked, carol) = house.tokens().issue(grant("carol", &[])).unwrap();
    house.tokens().revoke(&carol.id).unwrap();
    assert!(door.admit(Some(&bobs)).is_ok());
    house.clock.advance(HOUR);
    let secret_of_bob = bobs.rsplit('_').next().unwrap();
    let wrong = [
        format!("tg_{}_{secret_of_bob}", alice.id),
        format!("tg_{}_", alice.id),
        format!("tg_{}", alice.id),
        format!("tg_{}_{}", bob.id, alices.rsplit('_').next().unwrap()),
        format!("{alices}a"),
        format!("{alices} "),
        format!(" {alices}"),
        alices.to_uppercase(),
        alices[..alices.len() - 1].to_owned(),
        alices.replacen("tg_", "", 1),
        alice.digest.hex(),
        format!("tg_{}_{}", alice.id, alice.digest.hex()),
        "x".repeat(1 << 20),
        String::new(),
        bobs,
        revoked,
    ];
    for token in wrong {
        assert_eq!(door.admit(Some(&token)).unwrap_err(), NotAdmitted::Unauthenticated, "{token}");
    }
    assert_eq!(door.admit(None).unwrap_err(), NotAdmitted::Unauthenticated);
    assert!(door.admit(Some(&alices)).is_ok());
}

#[test]
fn a_running_door_goes_by_new_and_by_revoked_tokens_at_once() {
    let house = House::new();
    let door = house.door();
    for user in ["alice", "bob", "carol", "dora"] {
        let (shown, token) = house.tokens().issue(grant(user, &[])).unwrap();
        assert!(door.admit(Some(&shown)).is_ok(), "{user} comes");
        assert!(door.admit(Some(&shown)).is_ok(), "{user} stays");
        let revoked = house.tokens().revoke(&token.id).unwrap().unwrap();
        assert_eq!(revoked.revoked_at, Some(MORNING));
        assert_eq!(door.admit(Some(&shown)).unwrap_err(), NotAdmitted::Unauthenticated, "{user} goes");
    }
}

#[test]
fn a_file_of_the_same_length_in_its_place_is_another_file() {
    let house = House::new();
    let (alices, alice) = house.tokens().issue(grant("alice", &[])).unwrap();
    let (bobs, bob) = house.tokens().issue(grant("bobby", &[])).unwrap();
    let door = house.door();
    assert!(door.admit(Some(&alices)).is_ok());
    let (of_alice, of_bob, text) = (alice.digest.hex(), bob.digest.hex(), house.text());
    house.rewrite(&text.replace(&of_alice, "-").replace(&of_bob, &of_alice).replace("\"-\"", &format!("\"{of_bob}\"")));
    assert_eq!(house.text().len(), text.len());
    assert_ne!(house.text(), text);
    assert_eq!(door.admit(Some(&alices)).unwrap_err(), NotAdmitted::Unauthenticated);
    assert_eq!(door.admit(Some(&bobs)).unwrap_err(), NotAdmitted::Unauthenticated);
}

#[test]
fn revoking_twice_keeps_the_first_moment_and_an_unknown_id_changes_nothing() {
    let house = House::new();
    let (_, token) = house.tokens().issue(grant("alice", &[])).unwrap();
    house.tokens().revoke(&token.id).unwrap();
    house.clock.advance(HOUR);
    let before = house.text();
    assert_eq!(house.tokens().revoke(&token.id).unwrap().unwrap().revoked_at, Some(MORNING));
    assert_eq!(house.tokens().revoke("ffffffffffff").unwrap(), None);
    assert_eq!(house.text(), before);
}

#[test]
fn writers_at_the_same_moment_lose_nothing() {
    let house = House::new();
    let start = std::sync::Barrier::new(8);
    let mut shown: Vec<String> = std::thread::scope(|scope| {
        let writer = |number: usize| {
            let (house, start) = (&house, &start);
            move || {
                start.wait();
                let tokens = house.tokens();
                let one = |round| {
                    let (shown, token) = tokens.issue(grant(&format!("user-{number}-{round}"), &["support"])).unwrap();
                    let (_, thrown_away) = tokens.issue(grant("nobody", &[])).unwrap();
                    tokens.revoke(&thrown_away.id).unwrap().unwrap();
                    assert_ne!(token.id, thrown_away.id);
                    shown
                };
                (0..5).map(one).collect::<Vec<String>>()
            }
        };
        let writers: Vec<_> = (0..8).map(|number| scope.spawn(writer(number))).collect();
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    let door = house.door();
    assert!(shown.iter().all(|token| door.admit(Some(token)).is_ok()));
    shown.sort();
    shown.dedup();
    let (all, now) = house.tokens().all().unwrap();
    assert_eq!((shown.len(), all.len()), (40, 80));
    assert_eq!(all.iter().filter(|token| token.state_at(now) == State::Revoked).count(), 40);
    let folder = fs::read_dir(house.path().parent().unwrap()).unwrap();
    let mut left: Vec<_> = folder.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    left.sort();
    assert_eq!(left, ["tokens.toml", "tokens.toml.lock"]);
}

#[test]
fn nothing_that_a_holder_shows_is_in_the_file_and_only_its_owner_reads_it() {
    let house = House::new();
    let (shown, token) = house.tokens().issue(grant("alice", &["a \"role\" \\ of ✓"])).unwrap();
    let text = house.text();
    let secret = shown.rsplit('_').next().unwrap();
    assert!(!text.contains(secret) && text.contains(&Digest::of(shown.as_bytes()).hex()));
    assert!(!format!("{token:?} {:?}", house.door()).contains(secret));
    assert_eq!(fs::metadata(house.path()).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(house.tokens().all().unwrap().0, [token], "the file says what was meant");
}

#[test]
fn a_file_that_cannot_be_read_admits_nobody_until_it_is_mended() {
    let house = House::new();
    let (shown, token) = house.tokens().issue(grant("alice", &["support"])).unwrap();
    let whole = house.text();
    let door = house.door();
    let tokens = house.tokens();
    let alice = token.principal();
    let broken = [
        format!("{whole}[[token"),
        whole.replace("[[token]]", "[[tokne]]"),
        whole.replace("sha256", "sha265"),
        whole.replace("\"calls\"", "\"calling\""),
        whole.replace("tenant = \"acme\"", "tenant = \"\""),
        whole.replace("created_at", "created_at = \"2026-01-01T00:00:00Z\"\nexpires_at = \"soon\"\nrevoked_at"),
        format!("{whole}{}", whole.replace("user = \"alice\"", "user = \"bob\"")),
        "token = 1".into(),
    ];
    for broken in broken {
        assert!(door.admit(Some(&shown)).is_ok());
        assert_eq!(tokens.roles(&alice, "acme"), Some(BTreeSet::from(["support".to_owned()])));
        house.rewrite(&broken);
        assert_eq!(door.admit(Some(&shown)).unwrap_err(), NotAdmitted::Unauthenticated, "{broken}");
        assert_eq!(tokens.roles(&alice, "acme"), Some(BTreeSet::new()), "nobody's approval counts");
        let told = findings(house.tokens().issue(grant("bob", &[])).unwrap_err());
        assert!(told[0].starts_with("state/tokens.toml:"), "{told:?}");
        assert!(!told.iter().any(|finding| finding.contains(&token.digest.hex())), "{told:?}");
        assert_eq!(house.text(), broken, "what cannot be read is not written over");
        house.rewrite(&whole);
    }
    fs::write(house.path(), [0xff, 0xfe]).unwrap();
    assert_eq!(door.admit(Some(&shown)).unwrap_err(), NotAdmitted::Unauthenticated);
    fs::remove_file(house.path()).unwrap();
    for _ in 0..2 {
        assert_eq!(door.admit(Some(&shown)).unwrap_err(), NotAdmitted::Unauthenticated);
    }
    fs::create_dir(house.path()).unwrap();
    assert_eq!(door.admit(Some(&shown)).unwrap_err(), NotAdmitted::Unauthenticated);
    fs::remove_dir(house.path()).unwrap();
    house.rewrite(&whole);
    assert!(door.admit(Some(&shown)).is_ok());
}

#[test]
fn the_faults_of_the_file_are_told_with_their_place() {
    let house = House::new();
    fs::create_dir(house.path().parent().unwrap()).unwrap();
    house.rewrite(
        "[[token]]\nid = \"xyz\"\nuser = \"a b\"\ntenant = \"acme\"\nroles = [\"\"]\nscopes = [\"call\"]\n\
         sha256 = \"00\"\ncreated_at = \"2026-02-30T00:00:00Z\"\nowner = \"me\"\n",
    );
    let told: Vec<String> = house.tokens().faults().iter().map(ToString::to_string).collect();
    for start in [
        "state/tokens.toml:2:1: pattern: token.0.id: expected 12 hexadecimal digits",
        "state/tokens.toml:3:1: pattern: token.0.user: ",
        "state/tokens.toml:5:1: pattern: token.0.roles: ",
        "state/tokens.toml:6:1: enum: token.0.scopes: there is no such scope\n  hint: did you mean calls?",
        "state/tokens.toml:7:1: format: token.0.sha256: ",
        "state/tokens.toml:8:1: format: token.0.created_at: ",
        "state/tokens.toml:9:1: unknown_key: token.0.owner: unknown key",
    ] {
        assert!(told.iter().any(|finding| finding.starts_with(start)), "{start}\nin {told:#?}");
    }
    assert_eq!(told.len(), 7, "{told:#?}");
}

#[test]
fn a_link_to_the_file_stays_a_link() {
    let house = House::new();
    let elsewhere = tempfile::tempdir().unwrap();
    let real = elsewhere.path().join("real.toml");
    house.tokens().issue(grant("alice", &[])).unwrap();
    fs::rename(house.path(), &real).unwrap();
    std::os::unix::fs::symlink(&real, house.path()).unwrap();
    let (shown, _) = house.tokens().issue(grant("bob", &[])).unwrap();
    assert!(house.door().admit(Some(&shown)).is_ok());
    assert!(fs::symlink_metadata(house.path()).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(real).unwrap().matches("[[token]]").count(), 2);
}

#[test]
fn a_persons_standing_is_what_their_good_tokens_list_now() {
    let house = House::new();
    let alice = Principal::new(ISSUER, "alice");
    let tokens = house.tokens();
    let standing = |tenant: &str| tokens.roles(&alice, tenant).map(|roles| roles.into_iter().collect::<Vec<_>>());
    assert_eq!(standing("acme"), Some(vec![]));
    let (_, first) = tokens.issue(grant("alice", &["support"])).unwrap();
    tokens.issue(Grant { lasts: Some(HOUR), ..grant("alice", &["manager"]) }).unwrap();
    tokens.issue(Grant { tenant: "globex".into(), ..grant("alice", &["owner"]) }).unwrap();
    tokens.issue(grant("bob", &["auditor"])).unwrap();
    assert_eq!(standing("acme"), Some(vec!["manager".to_owned(), "support".to_owned()]));
    tokens.revoke(&first.id).unwrap();
    assert_eq!(standing("acme"), Some(vec!["manager".to_owned()]));
    house.clock.advance(HOUR);
    assert_eq!(standing("acme"), Some(vec![]));
    assert_eq!(standing("globex"), Some(vec!["owner".to_owned()]));
    assert_eq!(tokens.roles(&Principal::new("os", "operator#0"), "acme"), None, "another source's people");
}

#[test]
fn at_the_command_line_the_environment_says_who_is_asking() {
    let house = House::new();
    let tokens = house.tokens();
    let (calls, token) = tokens.issue(grant("alice", &["support"])).unwrap();
    let (audits, _) =
        tokens.issue(Grant { scopes: BTreeSet::from([Scope::Audit]), ..grant("carol", &["support"]) }).unwrap();
    let session = tokens.caller(None, Some(&calls)).unwrap().session;
    assert_eq!((session.principal(), session.tenant()), (&token.principal(), "acme"));
    let hint = |named, shown| tokens.caller(named, shown).unwrap_err().hint.unwrap();
    assert!(hint(None, None).contains("TOOLGATE_TOKEN"));
    assert!(hint(None, Some("tg_nobody_x")).contains("TOOLGATE_TOKEN"));
    assert!(hint(None, Some(&audits)).contains("--scope calls"));
    assert!(hint(Some("alice@acme"), Some(&calls)).contains("--as"));
    assert_eq!(tokens.person("alice@acme").unwrap().roles().len(), 1);
    for nobody in ["alice@globex", "bob@acme", "alice", "@acme", "alice@acme@acme", ""] {
        assert!(tokens.person(nobody).is_err(), "{nobody}");
    }
    tokens.revoke(&token.id).unwrap();
    assert!(tokens.person("alice@acme").is_err());
}
