//! E0382: what was given up for a proof is gone.

use crate::stage::inform::Informed;
use crate::stage::permit::Permit;

fn twice(permit: &Permit, informed: Informed) {
    let _ = permit.enter(informed);
    let _ = permit.enter(informed);
}
