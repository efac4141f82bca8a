//! The operator: whoever the operating system says is at the command line.

use std::os::unix::fs::MetadataExt;

use toolgate::session::{Principal, Session};

use super::{TENANT, Unlisted, is_tenant};

/// Who vouches for the operator.
pub(super) const ISSUER: &str = "os";

/// The session of the operating-system user in a tenant. INVARIANT (no borrowed role): a folder says nothing of them, so
/// they have no roles.
pub(super) fn session(tenant: Option<&str>) -> Result<Session, Unlisted> {
    let Some(tenant) = tenant else {
        return Err(Unlisted::new("whose approvals? the folder lists no users to tell the tenant by")
            .hint("say --tenant TENANT"));
    };
    if !is_tenant(tenant) {
        return Err(Unlisted::new(format!("this names no tenant: {TENANT}")));
    }
    Ok(Session::new(principal()?, tenant))
}

/// The operating-system user.
pub(super) fn principal() -> Result<Principal, Unlisted> {
    let uid = std::fs::metadata("/proc/self").map_err(|error| {
        Unlisted::new(format!("the operating system does not tell who is asking: /proc/self: {}", error.kind()))
    })?;
    Ok(Principal::new(ISSUER, format!("operator#{}", uid.uid())))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn the_operator_has_the_number_of_the_system_and_no_roles() {
        let session = session(Some("acme")).unwrap();
        let subject = &session.principal().subject;
        assert!(subject.strip_prefix("operator#").is_some_and(|uid| uid.parse::<u32>().is_ok()), "{subject}");
        assert_eq!((session.principal().issuer.as_str(), session.tenant()), ("os", "acme"));
        assert!(session.roles().is_empty());
    }

    #[test]
    fn without_a_tenant_there_is_nothing_to_see() {
        assert!(session(None).unwrap_err().hint.is_some_and(|hint| hint.contains("--tenant")));
        assert!(session(Some("a b")).is_err());
        assert!(session(Some("")).is_err());
    }
}
