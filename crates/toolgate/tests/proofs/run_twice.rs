//! E0382: a reservation is used up by its run.

use tokio_util::sync::CancellationToken;

use crate::stage::reserve::Reserved;
use crate::stage::run::Run;

async fn twice(run: &Run, reserved: Reserved) {
    run.enter(reserved, CancellationToken::new()).await;
    run.enter(reserved, CancellationToken::new()).await;
}
