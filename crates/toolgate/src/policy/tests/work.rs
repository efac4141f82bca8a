use super::*;

fn during<T>(work: impl FnOnce() -> T) -> (T, usize) {
    crate::counted::during("evaluation", work)
}

#[test]
fn what_needs_approval_is_evaluated_twice_and_what_is_permitted_once() {
    let policies = shop();
    let (judgement, asked) = during(|| refund(&policies, &alice(), 8000, 10_000));
    assert!(matches!(judgement, Judgement::NeedsApproval { .. }), "{judgement:?}");
    assert_eq!(asked, 2);
    let (judgement, asked) = during(|| refund(&policies, &alice(), 1500, 2000));
    assert!(matches!(judgement, Judgement::Permitted { .. }), "{judgement:?}");
    assert_eq!(asked, 1);
}

#[test]
fn two_reasons_for_approval_cost_no_more_than_one() {
    let more = r#"@id("b.confirm") @approvers("self") forbid (principal, action in Action::"write", resource)
        unless { context.approved };"#;
    let policies = compile(&format!("{REFUNDS}{more}"), &[get_order(), create_refund()]).unwrap();
    let (judgement, asked) = during(|| refund(&policies, &alice(), 8000, 10_000));
    assert!(matches!(judgement, Judgement::NeedsApproval { reasons, .. } if reasons.len() == 2));
    assert_eq!(asked, 2);
}

#[test]
fn a_refusal_takes_the_same_work_whoever_it_is_that_no_policy_permits() {
    let policies = shop();
    let work = |who: &Session| during(|| refund(&policies, who, 1500, 2000));
    let (guest, of_a_guest) = work(&person("eve", &["guest"]));
    let (nobody, of_nobody) = work(&person("nobody", &[]));
    assert_eq!((guest, nobody), (Judgement::Forbidden(Why::NoPermit), Judgement::Forbidden(Why::NoPermit)));
    assert_eq!(of_a_guest, of_nobody);
}
