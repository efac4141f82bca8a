//! E0451: admission cannot be made up.

use crate::stage::admit::Admitted;

fn forged(admitted: Admitted, other: Admitted) -> Admitted {
    Admitted { call_digest: other.call_digest(), ..admitted }
}
