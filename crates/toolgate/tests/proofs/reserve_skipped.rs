//! E0308: what is not on the record cannot be run.

use tokio_util::sync::CancellationToken;

use crate::stage::permit::Permitted;
use crate::stage::run::Run;

async fn skipped(run: &Run, permitted: Permitted) {
    run.enter(permitted, CancellationToken::new()).await;
}
