//! What is told of an approval, and how it is signed: as the Standard Webhooks have it. INVARIANT (no arguments): neither
//! the arguments of the call nor anything secret is in it; whoever wants to see them asks the gate.

use std::fmt;

use data_encoding::BASE64;
use ring::hmac;
use serde_json::{Value, json};
use toolgate::approval::Approval;
use toolgate::clock::Millis;
use ureq::Agent;
use ureq::http::Uri;

use crate::checkpoints::agent;
use crate::config::Secret;

/// Where requests go, and what they are signed with.
pub(super) struct Desk {
    agent: Agent,
    url: Uri,
    key: hmac::Key,
}

impl Desk {
    pub(super) fn new(url: &Uri, secret: &Secret) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.bytes());
        Self { agent: agent(url), url: url.clone(), key }
    }

    /// Tells of it. The id is the same at each try, so that whoever hears it twice knows.
    pub(super) fn tell(&self, approval: &Approval, now: Millis) -> Result<(), String> {
        let (id, seconds) = (format!("msg_{}", approval.id), now.0 / 1000);
        let body = body(approval).to_string();
        let request = self
            .agent
            .post(&self.url)
            .header("content-type", "application/json")
            .header("webhook-id", &id)
            .header("webhook-timestamp", seconds.to_string())
            .header("webhook-signature", self.signature(&id, seconds, &body));
        let answer = request.send(body).map_err(|error| error.to_string())?;
        match answer.status().is_success() {
            true => Ok(()),
            false => Err(format!("it answered with status {}", answer.status().as_u16())),
        }
    }

    fn signature(&self, id: &str, seconds: u64, body: &str) -> String {
        let signed = hmac::sign(&self.key, format!("{id}.{seconds}.{body}").as_bytes());
        format!("v1,{}", BASE64.encode(signed.as_ref()))
    }
}

impl fmt::Display for Desk {
    /// Without what stands behind the host, which may be meant for it alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.url.authority().map(|authority| authority.as_str()).unwrap_or_default();
        write!(f, "{}://{host}", self.url.scheme_str().unwrap_or_default())
    }
}

fn body(approval: &Approval) -> Value {
    let reasons = approval
        .reasons
        .iter()
        .filter(|reason| reason.approved_by.is_none())
        .map(|reason| json!({ "rule": reason.rule, "message": reason.message, "approvers": reason.approvers }));
    let mut data = json!({
        "id": approval.id,
        "tool": approval.tool,
        "tenant": approval.tenant,
        "requester": approval.requester,
        "reasons": reasons.collect::<Vec<Value>>(),
        "created_at": approval.created_at.to_string(),
        "expires_at": approval.expires_at.to_string(),
    });
    // Where the contract has no words for it, the preview is made of the arguments.
    if approval.worded {
        data = crate::shown::with(data, "preview", approval.preview.as_str());
    }
    json!({ "type": "approval.pending", "timestamp": approval.created_at.to_string(), "data": data })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification.
    #[test]
    fn a_request_is_signed_as_the_standard_webhooks_have_it() {
        let key = BASE64.decode(b"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap_or_default();
        let desk = Desk {
            agent: Agent::new_with_defaults(),
            url: Uri::from_static("https://a.example/x"),
            key: hmac::Key::new(hmac::HMAC_SHA256, &key),
        };
        let signed = desk.signature("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }
}
