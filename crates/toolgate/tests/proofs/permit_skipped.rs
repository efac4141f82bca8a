//! E0308: what nobody permitted cannot be reserved.

use crate::stage::inform::Informed;
use crate::stage::reserve::Reserve;

async fn skipped(reserve: &Reserve, informed: Informed) {
    let _ = reserve.enter(informed, |_| unreachable!()).await;
}
