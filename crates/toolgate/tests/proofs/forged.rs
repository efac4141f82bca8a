//! E0451: a proof is made by its own stage alone, and nowhere else, not even within this crate.

use crate::stage::inform::Informed;
use crate::stage::permit::Permitted;

fn forged(informed: Informed, other: Permitted) -> Permitted {
    Permitted { informed, ..other }
}
