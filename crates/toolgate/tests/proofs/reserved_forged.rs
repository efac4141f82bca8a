//! E0451: a reservation is made by its stage alone.

use crate::stage::permit::Permitted;
use crate::stage::reserve::Reserved;

fn forged(permitted: Permitted) -> Reserved {
    Reserved { permitted, entry: None }
}
