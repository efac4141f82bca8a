//! E0451: what was not run cannot be settled.

use crate::backend::Answer;
use crate::stage::reserve::Reserved;
use crate::stage::run::Ran;

fn forged(reserved: Reserved, answer: Answer) -> Ran {
    Ran { reserved, answer, sent_at: None, _over: None }
}
