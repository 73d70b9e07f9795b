//! Concatenation, stacking and splitting of tensors.

use crate::array::shape::normalize_axis;
use crate::error::Named;
use crate::ops::prelude::*;
use crate::ops::views::region::Region;

/// Concatenation of the inputs along an axis.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Cat {
    /// The axis.
    pub axis: u8,
    /// The length of each input along it.
    pub lengths: SmallVec<[usize; 2]>,
}

/// The most inputs of one operation; more are concatenated in groups.
const CAT_INPUTS: usize = 32;

kernel! {
    Cat, "cat", |self, x| {
        let axis = self.axis as usize;
        let total = x.iter().map(|a| a.dim(axis)).sum();
        let shape = x[0].shape().removed(axis).inserted(axis, total)?;
        let out = Array::empty(shape, x[0].dtype(), x[0].device())?;
        let mut region = Region::whole(&out.shape());
        for part in x {
            region.lengths = part.shape();
            let target = region.view(&out)?;
            target.assign(part)?;
            region.starts[axis] += part.dim(axis);
        }
        Ok(out)
    }
}

impl Linear for Cat {
    const TRANSPOSE: &'static str = "the parts of g";

    fn transpose(&self, wrt: usize, g: &Tensor, _c: &Vjp) -> Result<Tensor> {
        g.narrow(self.axis as i64, self.lengths[..wrt].iter().sum(), self.lengths[wrt])
    }
    batch!(in_front: |self| Cat { axis: self.axis + 1, ..self.clone() });
}

/// Concatenates tensors along an existing axis; all other axes must agree. Empty vectors (shape `[0]`) fit
/// any tensors and only take part in dtype promotion.
pub fn cat(parts: &[Tensor], axis: i64) -> Result<Tensor> {
    let Some(first) = parts.first() else {
        return Err(Error::value("cat: at least one tensor expected, got none"));
    };
    let dtype = parts.iter().fold(first.dtype(), |d, p| d.promote(p.dtype()));
    let is_nothing = |x: &Tensor| x.rank() == 1 && x.numel() == 0;
    // An empty vector fits tensors of any rank; empty vectors alone are concatenated whatever the axis.
    if parts.iter().any(is_nothing)
        && let Some(like) = parts.iter().find(|x| x.rank() != 1)
    {
        let nothing = like.shape().with(like.shape().axis(axis, "cat")?, 0);
        let fitted = parts.iter().map(|x| if is_nothing(x) { x.reshape(&nothing) } else { Ok(x.clone()) });
        return cat(&fitted.collect::<Result<Vec<Tensor>>>()?, axis);
    }
    let i = first.shape().axis(if parts.iter().all(is_nothing) { 0 } else { axis }, "cat")?;
    for (k, part) in parts.iter().enumerate() {
        let same = part.rank() == first.rank() && part.shape().with(i, first.shape().at(i)) == first.shape();
        if !same {
            return Err(Error::shape(format!(
                "cat: tensor {k} has shape {}, expected {} except along axis {i}",
                part.shape(),
                first.shape()
            )));
        }
    }
    let mut joined = first.shape().to_vec();
    joined[i] = parts.iter().map(|p| p.shape().at(i)).sum();
    Shape::new(&joined)?;
    let parts = parts.iter().map(|p| p.cast(dtype)).collect::<Result<Vec<Tensor>>>()?;
    if parts.len() > CAT_INPUTS {
        let groups = parts
            .chunks(parts.len().div_ceil(CAT_INPUTS))
            .map(|p| cat(p, axis))
            .collect::<Result<Vec<_>>>()?;
        return cat(&groups, axis);
    }
    let lengths = parts.iter().map(|p| p.shape().at(i)).collect();
    let refs: Vec<&Tensor> = parts.iter().collect();
    bind(Cat { axis: i as u8, lengths }, &refs)
}

/// Stacks tensors of one shape along a new axis.
pub fn stack(parts: &[Tensor], axis: i64) -> Result<Tensor> {
    let Some(first) = parts.first() else {
        return Err(Error::value("stack: at least one tensor expected, got none"));
    };
    if let Some((k, part)) = parts.iter().enumerate().find(|(_, p)| p.shape() != first.shape()) {
        return Err(Error::shape(format!(
            "stack: tensor {k} has shape {}, expected {} as the first",
            part.shape(),
            first.shape()
        )));
    }
    let at = normalize_axis(axis, first.rank() + 1, "stack")? as i64;
    let parts = parts.iter().map(|p| p.unsqueeze(at)).collect::<Result<Vec<Tensor>>>()?;
    cat(&parts, at).named("stack")
}

/// Splits a tensor along `axis` into views of these lengths.
pub fn split(x: &Tensor, lengths: &[usize], axis: i64) -> Result<Vec<Tensor>> {
    let i = x.shape().axis(axis, "split")?;
    let total: u128 = lengths.iter().map(|&n| n as u128).sum();
    if total != x.shape().at(i) as u128 {
        return Err(Error::shape(format!(
            "split: lengths {lengths:?} add up to {total}, expected {} as axis {i}",
            x.shape().at(i)
        )));
    }
    let mut start = 0;
    lengths
        .iter()
        .map(|&n| {
            let part = x.narrow(i as i64, start, n);
            start += n;
            part
        })
        .collect()
}
