//! What a plan keeps of a script, and in which order: the steps that somebody reads, the memory that outlasts
//! a run, and writes to memory of outside behind what may stop the run.

use super::Refusal;
use crate::watch::script::{Origin, Script, Step, View};

/// Whether memory is that of one run alone.
pub fn is_inner(origin: &Origin) -> bool {
    matches!(origin, Origin::Made(_) | Origin::Constant(..))
}

/// Which memory outlasts a run: that of results and of gradients.
pub fn outlasting(script: &Script, outputs: &[View]) -> Vec<bool> {
    let mut outlasts = vec![false; script.memory.len()];
    outputs.iter().for_each(|view| outlasts[view.memory] = true);
    for step in &script.steps {
        if let Step::Gradient { value: Some(view), .. } = step {
            outlasts[view.memory] = true;
        }
    }
    outlasts
}

/// Which memory of a run alone is written by nobody but the operation that makes it.
pub fn unwritten(script: &Script, outlasts: &[bool]) -> Vec<bool> {
    let made = |(origin, &outlasts): (&Origin, &bool)| !outlasts && matches!(origin, Origin::Made(_));
    let mut stays: Vec<bool> = script.memory.iter().zip(outlasts).map(made).collect();
    for step in &script.steps {
        if let Step::Ran { outputs, into: true, .. } = step {
            outputs.iter().for_each(|view| stays[view.memory] = false);
        }
    }
    stays
}

/// Raises if memory that the region made is still there although it should not outlast it: a program could
/// not put other memory where it is kept. The gradients `own` of leaves that the region made go with these.
pub fn survivors(script: &Script, outlasts: &[bool], own: &[usize]) -> std::result::Result<(), Refusal> {
    let kept = |(memory, origin): (usize, &Origin)| {
        matches!(origin, Origin::Made(true)) && !outlasts[memory] && !own.contains(&memory)
    };
    match script.memory.iter().enumerate().any(kept) {
        true => Err(("a tensor that is kept elsewhere than in the result; return it".into(), None)),
        false => Ok(()),
    }
}

/// Which steps somebody reads, or sees outside, where the memory that `read` names is read in the end.
pub fn needed(script: &Script, mut read: Vec<bool>) -> Vec<bool> {
    let inner = |view: &View| is_inner(&script.memory[view.memory]);
    let mut needed = vec![true; script.steps.len()];
    for (step, needed) in script.steps.iter().zip(&mut needed).rev() {
        match step {
            Step::Ran { op, inputs, outputs, .. } => {
                // An error is seen, too.
                *needed = op.may_fail() || outputs.iter().any(|view| !inner(view) || read[view.memory]);
                if *needed {
                    inputs.iter().for_each(|view| read[view.memory] = true);
                }
            }
            Step::Looked { at, .. } => read[at.memory] = true,
            Step::Gradient { .. } | Step::Called(_) => {}
        }
    }
    needed
}

/// Moves writes to memory of outside behind the last step that may stop a run, where nothing in between reads
/// or writes that memory: until then, all can be undone. A function of the host finds everything written.
pub fn postpone(script: &mut Script) {
    let count = script.memory.len();
    // Which memory the steps that stay, from here to the last one that may stop the run, read or write.
    let (mut read, mut written) = (vec![false; count], vec![false; count]);
    let mut last = None;
    let mut behind: Vec<Option<usize>> = vec![None; script.steps.len()];
    for (i, step) in script.steps.iter().enumerate().rev() {
        match step {
            Step::Called(_) => {
                last = None;
                (read, written) = (vec![false; count], vec![false; count]);
            }
            Step::Looked { at, .. } => {
                last.get_or_insert(i);
                read[at.memory] = true;
            }
            Step::Gradient { .. } => {}
            Step::Ran { op, inputs, outputs, into } => {
                if op.may_fail() {
                    last.get_or_insert(i);
                }
                let outside = |view: &View| !is_inner(&script.memory[view.memory]);
                let free = |view: &View| !read[view.memory] && !written[view.memory];
                let moves = *into
                    && !op.may_fail()
                    && outputs.iter().all(|view| outside(view) && free(view))
                    && inputs.iter().all(|view| !written[view.memory]);
                if moves {
                    behind[i] = last;
                } else if last.is_some() {
                    inputs.iter().for_each(|view| read[view.memory] = true);
                    if *into {
                        outputs.iter().for_each(|view| written[view.memory] = true);
                    }
                }
            }
        }
    }
    if behind.iter().all(Option::is_none) {
        return;
    }
    let mut order: Vec<usize> = (0..behind.len()).collect();
    // A step and those behind it, in their order.
    order.sort_by_key(|&i| (behind[i].unwrap_or(i), i != behind[i].unwrap_or(i), i));
    let mut steps: Vec<Option<Step>> = std::mem::take(&mut script.steps).into_iter().map(Some).collect();
    script.steps = order.iter().filter_map(|&i| steps[i].take()).collect();
    let mut facts = std::mem::take(&mut script.facts);
    script.facts =
        order.iter().enumerate().filter_map(|(new, old)| Some((new, facts.remove(old)?))).collect();
}
