//! E0308: what was only admitted cannot be permitted.

use crate::stage::admit::Admitted;
use crate::stage::permit::Permit;

fn skipped(permit: &Permit, admitted: Admitted) {
    let _ = permit.enter(admitted);
}
