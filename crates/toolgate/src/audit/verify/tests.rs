#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::disallowed_methods,
    reason = "a test may panic"
)]

use serde_json::{Map, json};

use super::*;
use crate::audit::checkpoint::{Checkpoint, PublicKey, SigningKey};
use crate::audit::{Kind, Record};
use crate::call::Ref;
use crate::clock::Millis;

fn chain(length: u64) -> Vec<Sealed> {
    let mut head = Head::empty();
    (0..length)
        .map(|n| {
            let body = Map::from_iter([("n".to_owned(), json!(n))]);
            let sealed = Record::new(Kind::Read, Millis(n), Ref::fresh(), body).seal(head);
            head = head.follow(&sealed).unwrap();
            sealed
        })
        .collect()
}

/// Gives an entry another text, and from it on a chain that holds.
fn rewritten(mut chain: Vec<Sealed>, from: usize) -> Vec<Sealed> {
    chain[from].body = chain[from].body.replace("\"n\":", "\"n\":7");
    for at in from..chain.len() {
        chain[at].previous = at.checked_sub(1).map_or(Head::empty().hash, |before| chain[before].hash);
        chain[at].hash = link(chain[at].seq, chain[at].previous, &chain[at].body);
    }
    chain
}

fn report(verifier: Verifier, chain: &[Sealed]) -> Report {
    let mut verifier = verifier;
    chain.iter().for_each(|sealed| verifier.row(&Row::Sealed(sealed.clone())));
    verifier.end()
}

fn broken(chain: &[Sealed]) -> Option<(u64, Flaw)> {
    report(Verifier::new(), chain).broken.map(|broken| (broken.seq, broken.what))
}

fn key() -> SigningKey {
    SigningKey::in_file(&tempfile::tempdir().unwrap().path().join("checkpoints.key")).unwrap()
}

/// Lines of checkpoints, after each of these numbers of entries.
fn signed(key: &SigningKey, chain: &[Sealed], lengths: &[usize]) -> String {
    let line = |length: &usize| {
        let Sealed { seq, hash, .. } = chain[length - 1];
        format!("{}\n", Checkpoint::sign(key, chain[0].hash, Head { seq, hash }, Millis(seq)))
    };
    lengths.iter().map(line).collect()
}

fn compared(chain: &[Sealed], lines: &str, expected: Option<PublicKey>) -> Compared {
    let checkpoints = Checkpoints::read(lines.as_bytes(), expected).unwrap();
    report(Verifier::new().checkpoints(Some(checkpoints)), chain).checkpoints.unwrap()
}

fn mismatches(chain: &[Sealed], lines: &str, expected: Option<PublicKey>) -> Vec<(u64, Contradiction)> {
    compared(chain, lines, expected).mismatches.into_iter().map(|wrong| (wrong.line, wrong.what)).collect()
}

#[test]
fn an_honest_chain_holds() {
    let report = report(Verifier::new(), &chain(5));
    assert!(report.holds());
    assert_eq!(report.head.seq, 5);
}

#[test]
fn an_edit_is_named_where_it_was_made() {
    let mut edited = chain(5);
    edited[2].body = edited[2].body.replace("\"n\":2", "\"n\":3");
    assert_eq!(broken(&edited), Some((3, Flaw::Altered)));
}

#[test]
fn an_edit_with_a_new_hash_breaks_the_next_link() {
    let mut edited = chain(5);
    edited[2].body = edited[2].body.replace("\"n\":2", "\"n\":3");
    edited[2].hash = link(3, edited[2].previous, &edited[2].body);
    assert_eq!(broken(&edited), Some((4, Flaw::Unlinked)));
}

#[test]
fn an_entry_cannot_be_filed_under_another_attempt() {
    let mut edited = chain(5);
    edited[2].reference = edited[1].reference.clone();
    assert_eq!(broken(&edited), Some((3, Flaw::Altered)));
}

#[test]
fn what_is_missing_is_named_from_its_first_to_its_last() {
    let mut cut = chain(6);
    cut.drain(1..4);
    assert_eq!(broken(&cut), Some((2, Flaw::Gap { last: 4 })));
    let told = report(Verifier::new(), &cut).broken.unwrap().to_string();
    assert_eq!(told, "the entries 2 to 4 are missing");
    assert_eq!(broken(&chain(3)[1..]), Some((1, Flaw::Gap { last: 1 })));
}

#[test]
fn entries_that_changed_places_are_named_with_both() {
    let mut swapped = chain(5);
    swapped.swap(1, 3);
    (swapped[1].seq, swapped[3].seq) = (2, 4);
    assert_eq!(broken(&swapped), Some((2, Flaw::Swapped { with: 4 })));
}

#[test]
fn an_entry_that_stands_twice_is_named() {
    let mut doubled = chain(4);
    doubled.insert(2, doubled[1].clone());
    assert_eq!(broken(&doubled), Some((2, Flaw::Again)));
}

#[test]
fn a_row_that_holds_no_entry_is_named_and_what_is_missing_before_it_first() {
    let shown = |before: usize, place, part| {
        let mut verifier = Verifier::new();
        chain(5)[..before].iter().for_each(|sealed| verifier.row(&Row::Sealed(sealed.clone())));
        verifier.row(&Row::Unreadable { place, part });
        verifier.end().broken.map(|broken| (broken.seq, broken.what)).unwrap()
    };
    assert_eq!(shown(2, 3, Part::Body), (3, Flaw::Unreadable { place: 3, part: Part::Body }));
    assert_eq!(shown(0, -4, Part::Place), (0, Flaw::Unreadable { place: -4, part: Part::Place }));
    assert_eq!(shown(2, 5, Part::Body), (3, Flaw::Gap { last: 4 }));
}

#[test]
fn a_forged_entry_of_a_part_of_a_record_is_not_vouched_for() {
    let (whole, key) = (chain(8), key());
    // Entries 2, 4, 5 and 7, of which the fourth and the fifth are linked.
    let mut part: Vec<Sealed> = [1, 3, 4, 6].map(|at| whole[at].clone()).to_vec();
    let told = |part: &[Sealed], verifier: Verifier| {
        let report = report(verifier.partial(true), part);
        assert!(report.holds(), "{report:?}");
        (report.seen, report.unvouched)
    };
    let checkpoints = |at: &[usize]| Checkpoints::read(signed(&key, &whole, at).as_bytes(), None).unwrap();
    assert_eq!(told(&part, Verifier::new()), (4, 4), "nothing was kept elsewhere");
    assert_eq!(told(&part, Verifier::new().checkpoints(Some(checkpoints(&[4])))), (4, 3), "the fifth follows it");
    assert_eq!(told(&part, Verifier::new().checkpoints(Some(checkpoints(&[5])))), (4, 2), "it is linked to the fourth");
    assert_eq!(told(&part, Verifier::new().kept(Some(whole[6].hash))), (4, 3));
    assert_eq!(told(&whole, Verifier::new().checkpoints(Some(checkpoints(&[3, 6])))), (8, 2));

    part[3].body = part[3].body.replace("\"n\":", "\"n\":7");
    part[3].hash = link(7, part[3].previous, &part[3].body);
    let forged = told(&part, Verifier::new().checkpoints(Some(checkpoints(&[5]))));
    assert_eq!(forged, (4, 2), "it passes, and counts among those that nothing vouches for");
}

#[test]
fn a_part_of_a_record_holds_entry_by_entry() {
    let whole = chain(6);
    let part: Vec<Sealed> = [1, 3, 4].map(|at| whole[at].clone()).to_vec();
    assert!(report(Verifier::new().partial(true), &part).holds());
    let mut edited = part.clone();
    edited[2].previous = whole[0].hash;
    edited[2].hash = link(5, edited[2].previous, &edited[2].body);
    let found = report(Verifier::new().partial(true), &edited).broken.unwrap();
    assert_eq!((found.seq, found.what), (5, Flaw::Unlinked));
    let key = key();
    let checkpoints = Checkpoints::read(signed(&key, &whole, &[2, 3]).as_bytes(), None).unwrap();
    let report = report(Verifier::new().partial(true).checkpoints(Some(checkpoints)), &part);
    assert!(report.holds(), "what is not in the part is no contradiction: {report:?}");
    assert_eq!(report.checkpoints.unwrap().agreed, 1);
}

#[test]
fn a_kept_head_that_is_gone_is_a_cut() {
    let (whole, key) = (chain(5), Digest::of(b"elsewhere"));
    assert!(report(Verifier::new().kept(Some(whole[2].hash)), &whole).holds());
    let found = report(Verifier::new().kept(Some(key)), &whole).broken.unwrap();
    assert_eq!((found.seq, found.what), (6, Flaw::Cut));
}

#[test]
fn a_record_agrees_with_its_checkpoints() {
    let (chain, key) = (chain(6), key());
    let lines = format!("{}\n", signed(&key, &chain, &[2, 5, 2]));
    let compared = compared(&chain, &lines, Some(key.public()));
    assert_eq!(compared.mismatches, []);
    assert_eq!((compared.agreed, compared.others), (3, 0));
    assert_eq!(compared.last.unwrap().0.seq, 5);
}

#[test]
fn a_cut_is_named_with_how_much_is_gone() {
    let (chain, key) = (chain(6), key());
    let lines = signed(&key, &chain, &[2, 5, 6]);
    let cut = Contradiction::Missing { seq: 6, last: 3 };
    assert_eq!(mismatches(&chain[..3], &lines, None), [(3, cut)]);
    let told = Mismatch { line: 3, what: cut }.to_string();
    assert!(told.contains("ends with entry 3") && told.contains("at least 3"), "{told}");
    assert_eq!(mismatches(&[], &lines, None), [(3, Contradiction::Missing { seq: 6, last: 0 })]);
}

#[test]
fn what_was_made_anew_is_named_between_the_checkpoint_before_and_the_one_that_differs() {
    let (chain, key) = (chain(9), key());
    let lines = signed(&key, &chain, &[2, 4, 8, 9]);
    let anew = rewritten(chain.clone(), 5);
    assert_eq!(broken(&anew), None, "the chain alone does not tell");
    assert_eq!(mismatches(&anew, &lines, None), [(3, Contradiction::Rewritten { from: 5, seq: 8 })]);
}

#[test]
fn a_record_that_was_made_anew_as_a_whole_has_no_checkpoint_of_its_own() {
    let (chain, key) = (chain(4), key());
    let lines = signed(&key, &chain, &[2, 4]);
    let anew = rewritten(chain, 0);
    assert_eq!(mismatches(&anew, &lines, None), [(0, Contradiction::None)]);
    // The gate would sign on; its key signs for one record.
    let lines = lines + &signed(&key, &anew, &[4]);
    assert_eq!(mismatches(&anew, &lines, None), [(1, Contradiction::OtherRecord)]);
}

#[test]
fn lines_of_other_stores_are_no_concern_and_of_other_keys_are() {
    let (own, other) = (chain(4), chain(7));
    let (key, theirs) = (key(), key());
    let lines = signed(&theirs, &other, &[5]) + &signed(&key, &own, &[3]);
    for expected in [None, Some(key.public())] {
        let compared = compared(&own, &lines, expected);
        assert_eq!((compared.mismatches, compared.others, compared.agreed), (vec![], 1, 1));
    }
    let lines = signed(&key, &own, &[2]) + &signed(&theirs, &own, &[3]);
    assert_eq!(mismatches(&own, &lines, None), [(2, Contradiction::OtherKey)]);
    assert_eq!(
        mismatches(&own, &lines, Some(theirs.public())),
        [(1, Contradiction::OtherKey)],
        "who says the key is believed"
    );
    assert_eq!(mismatches(&own, "", None), [(0, Contradiction::None)]);
}

#[test]
fn a_line_that_cannot_be_read_or_was_forged_is_named() {
    let (chain, key) = (chain(4), key());
    let good = signed(&key, &chain, &[2]);
    let forged = good.replace("\"seq\":2", "\"seq\":3");
    let long = "x".repeat(crate::audit::checkpoint::LONGEST_LINE * 3);
    let lines = format!("{good}half a li\n{forged}{long}\n{good}\u{0}");
    let found = mismatches(&chain, &lines, None);
    let lines: Vec<(u64, &str)> = found.iter().map(|(line, what)| (*line, what.code())).collect();
    let unreadable = "line_unreadable";
    assert_eq!(lines, [(2, unreadable), (3, "bad_signature"), (4, unreadable), (6, unreadable)]);
}
