//! The list of operations, each with its class, its precision under autocast and what it does with complex
//! inputs, and what is generated from it: the enum [`Op`], its names, and the way to the rules of a class.
//!
//! Complex inputs are `Direct` where the operation moves or counts elements of any dtype, factors matrices of
//! either kind, or has a kernel of its own for them; `Parts` where it runs on the leading axes of the pairs
//! of its first input; `Lowered` where it has a composition of operations on the parts; else `Undefined`.
//! The [`Effect`] follows. One tensor is returned; `-> Tensors` where there are several. Next: `src/bind.rs`.

use super::*;
use crate::ops::{self, complex};

/// The operation as a composition, for operations of class Composite.
#[rustfmt::skip]
macro_rules! decompose {
    (Composite, $op:ident, $x:ident) => { Some(|| Composite::decompose($op, $x)) };
    ($class:ident, $op:ident, $x:ident) => { None::<fn() -> Result<Tensors>> };
}

#[rustfmt::skip]
macro_rules! own {
    (Composite, $op:ident) => { Composite::own($op) };
    ($class:ident, $op:ident) => { Own::ALL };
}

#[rustfmt::skip]
macro_rules! if_linear {
    (Linear, $yes:expr, $no:expr) => { $yes };
    ($class:ident, $yes:expr, $no:expr) => { $no };
}

/// The formulas of an operation's rules, from its class.
macro_rules! formulas {
    (Elementwise, $ty:ty) => {
        ["as its row says", "as its row says, with the tangent for g"].map(String::from)
    };
    (Linear, $ty:ty) => {
        [<$ty as Linear>::TRANSPOSE, "the operation itself, of the tangents"].map(String::from)
    };
    (Bilinear, $ty:ty) => {
        [<$ty as Bilinear>::TRANSPOSES.join("; "), "the operation of (t_x, y), plus that of (x, t_y)".into()]
    };
    (Discrete, $ty:ty) => {
        ["none: piecewise constant", "none: piecewise constant"].map(String::from)
    };
    ($class:ident, $ty:ty) => {
        [<$ty as $class>::VJP, <$ty as $class>::JVP].map(String::from)
    };
}

/// The precision of an operation: that of the list, or of its row.
#[rustfmt::skip]
macro_rules! precision {
    (Row, $op:ident) => { $op.fun.columns().precision };
    ($precision:ident, $op:ident) => { Precision::$precision };
}

/// The effect of an operation: that of the list, or of its row.
#[rustfmt::skip]
macro_rules! effect {
    (Row, $op:ident) => { if $op.divides() { Effect::Fails } else { Effect::Pure } };
    ($effect:ident, $op:ident) => { Effect::$effect };
}

/// What an operation does with complex inputs.
#[rustfmt::skip]
macro_rules! lower {
    (Direct, $op:ident, $x:ident) => { Ok(None) };
    (Parts, $op:ident, $x:ident) => { complex::paired($op.clone(), $x).map(|y| Some(smallvec![y])) };
    (Lowered, $op:ident, $x:ident) => { complex::Lower::lower($op, $x).map(|y| Some(smallvec![y])) };
    (Undefined, $op:ident, $x:ident) => { Err(complex::undefined($op.name(), $x)) };
}

/// The type of what an operation returns.
#[rustfmt::skip]
macro_rules! output { () => { Tensor }; ($out:ident) => { $out }; }

/// What the documentation tells of an entry of the list.
pub struct OpEntry {
    /// The name of its variant.
    pub name: &'static str,
    /// Its documentation.
    pub doc: &'static str,
    /// Its class.
    pub class: Class,
    /// Its precision under autocast.
    pub precision: Precision,
    /// Reverse and forward rule as formulas.
    pub rules: [String; 2],
}

macro_rules! ops {
    ($($(#[doc = $doc:literal])* $name:ident($ty:ty): $class:ident, $precision:ident, $complex:ident,
        $effect:ident $(-> $out:ident)?;)*) => {
        /// An operation with its attributes. Its inputs stand outside.
        #[derive(Clone, PartialEq, Eq, Hash, Debug)]
        pub enum Op { $($(#[doc = $doc])* $name($ty),)* }

        $(impl From<$ty> for Op {
            #[inline(always)]
            fn from(op: $ty) -> Op { Op::$name(op) }
        })*

        $(impl Operation for $ty { type Out = output!($($out)?); })*
        impl Operation for Op { type Out = Tensors; }

        impl Op {
            /// The public name.
            pub fn name(&self) -> &'static str {
                match self { $(Op::$name(op) => op.name(),)* }
            }
            /// The name of its kind in the list.
            pub fn kind(&self) -> &'static str {
                match self { $(Op::$name(_) => stringify!($name),)* }
            }
            /// The class.
            #[inline]
            pub fn class(&self) -> Class {
                match self { $(Op::$name(_) => Class::$class,)* }
            }
            /// The precision under autocast.
            pub fn precision(&self) -> Precision {
                match self { $(Op::$name(_op) => precision!($precision, _op),)* }
            }
            /// What it does beside computing.
            #[inline]
            pub fn effect(&self) -> Effect {
                match self { $(Op::$name(_op) => effect!($effect, _op),)* }
            }
            /// What the tape keeps.
            #[inline]
            pub fn saves(&self, needs: Needs, inputs: usize) -> Saves {
                match self { $(Op::$name(op) => $class::saves(op, needs, inputs),)* }
            }
            /// Reverse rule.
            pub fn vjp(&self, c: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
                match self { $(Op::$name(op) => $class::vjp(op, c, g),)* }
            }
            /// [`Linear::add_transpose`]; false for the other classes.
            pub fn add_transpose(&self, total: &Array, g: &Array, c: &Vjp) -> Result<bool> {
                match self {
                    $(Op::$name(_op) => {
                        if_linear!($class, Linear::add_transpose(_op, total, g, c), Ok(false))
                    })*
                }
            }
            /// Whether [`Op::add_transpose`] may do so.
            #[inline]
            pub fn selects(&self) -> bool {
                match self { $(Op::$name(_) => if_linear!($class, <$ty as Linear>::SELECTS, false),)* }
            }
            /// Forward rule.
            pub fn jvp(&self, x: &[&Tensor], y: &[Tensor], t: &[Option<Tensor>]) -> Result<Grads> {
                match self { $(Op::$name(op) => $class::jvp(op, x, y, t),)* }
            }
            /// Batching rule.
            pub fn batch(&self, x: &[Batched], size: usize) -> Result<BatchedOutputs> {
                match self { $(Op::$name(op) => $class::batch(op, x, size),)* }
            }
            /// Which rules are the operation's own; the others come from its decomposition.
            pub fn own(&self) -> Own {
                match self { $(Op::$name(_op) => own!($class, _op),)* }
            }
            /// The same function by other operations, for class Composite.
            pub fn decompose(&self, x: &[&Tensor]) -> Option<Result<Tensors>> {
                match self { $(Op::$name(_op) => decompose!($class, _op, x).map(|f| f()),)* }
            }
            /// The operation on complex inputs by operations on their parts; `None` where it has them itself.
            pub fn lower(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
                match self { $(Op::$name(_op) => lower!($complex, _op, x),)* }
            }
            /// What the documentation tells of every kind of operation, in the order of the list.
            pub fn entries() -> Vec<OpEntry> {
                vec![$(OpEntry {
                    name: stringify!($name),
                    doc: concat!($($doc, "\n"),*).trim_ascii(),
                    class: Class::$class,
                    precision: Precision::$precision,
                    rules: formulas!($class, $ty),
                },)*]
            }
        }

        impl Kernel for Op {
            fn name(&self) -> &'static str {
                Op::name(self)
            }
            #[inline]
            fn eval(&self, x: &[&Array]) -> Result<Arrays> {
                match self { $(Op::$name(op) => op.eval(x),)* }
            }
            fn flops(&self, x: &[&Array], y: &[Array]) -> u64 {
                match self { $(Op::$name(op) => op.flops(x, y),)* }
            }
            #[inline]
            fn eval_one(&self, x: &[&Array]) -> Result<Array> {
                match self { $(Op::$name(op) => op.eval_one(x),)* }
            }
            fn eval_into(&self, x: &[&Array], out: &[&Array]) -> Result<()> {
                match self { $(Op::$name(op) => op.eval_into(x, out),)* }
            }
            fn element_fn(&self, dtypes: &[DType]) -> Option<ElementFn> {
                match self { $(Op::$name(op) => op.element_fn(dtypes),)* }
            }
            fn random_state(&mut self) -> Option<&mut State> {
                match self { $(Op::$name(op) => op.random_state(),)* }
            }
        }
    };
}

ops! {
    /// A row of the tables of unary and binary functions.
    Map(ops::pointwise::elementwise::Map): Elementwise, Row, Lowered, Row;
    /// `g * d out / d x_i` of a row, in one pass.
    MapVjp(ops::pointwise::elementwise::MapVjp): Composite, Any, Undefined, Pure;
    /// How a `MapVjp` changes with the values that it reads, in one pass.
    MapVjpJvp(ops::pointwise::elementwise::MapVjpJvp): Composite, Any, Undefined, Pure;
    /// Comparison, to bool.
    Compare(ops::pointwise::compare::Compare): Discrete, Any, Lowered, Pure;
    /// Logical and, or, xor, not.
    Logical(ops::pointwise::compare::Logical): Discrete, Any, Undefined, Pure;
    /// Functions of two integers: their bits, their common divisor.
    Bitwise(ops::pointwise::bitwise::Bitwise): Discrete, Any, Undefined, Pure;
    /// The next floating point number towards another.
    NextAfter(ops::pointwise::bitwise::NextAfter): Discrete, Any, Undefined, Pure;
    /// `where(mask, x, y)`.
    Select(ops::pointwise::compare::Select): Linear, Any, Lowered, Pure;
    /// Conversion to another dtype.
    Cast(ops::views::cast::Cast): Linear, Any, Lowered, Pure;
    /// The same bytes as another dtype.
    Bitcast(ops::views::cast::Bitcast): Discrete, Any, Direct, View;
    /// Copy to another device.
    Transfer(ops::views::cast::Transfer): Linear, Any, Direct, Pure;
    /// A copy in row-major order.
    Contiguous(ops::views::cast::Contiguous): Linear, Any, Direct, Pure;
    /// Complex numbers as pairs of real ones.
    ViewAsReal(ops::complex::ViewAsReal): Linear, Any, Direct, View;
    /// Pairs of real numbers as complex ones.
    ViewAsComplex(ops::complex::ViewAsComplex): Linear, Any, Undefined, View;
    /// Product of complex numbers.
    ComplexProduct(ops::complex::ComplexProduct): Bilinear, Any, Direct, Pure;
    /// Copies of several tensors, as one entry of the tape.
    Bundle(ops::views::bundle::Bundle): General, Any, Direct, Pure -> Tensors;
    /// Sum over axes.
    Sum(ops::reduce::Sum): Linear, F32, Parts, Pure;
    /// Arithmetic mean over axes.
    Mean(ops::reduce::mean::Mean): Linear, F32, Parts, Pure;
    /// The transpose of a sum or a mean: a reduced tensor over the axes that it lost.
    Spread(ops::reduce::mean::Spread): Linear, Any, Lowered, Pure;
    /// Product over axes.
    Prod(ops::reduce::Prod): Composite, F32, Lowered, Pure;
    /// Maximum or minimum over axes.
    Extremum(ops::reduce::Extremum): General, Any, Undefined, Pure;
    /// Number of elements that are not zero over axes.
    CountNonzero(ops::reduce::truth::CountNonzero): Discrete, Any, Direct, Pure;
    /// The places of elements that are not zero.
    Nonzero(ops::indexing::Nonzero): Discrete, Any, Undefined, Pure;
    /// Index of the first maximum or minimum along an axis.
    ArgExtremum(ops::reduce::ArgExtremum): Discrete, Any, Undefined, Pure;
    /// The order of the elements along an axis.
    ArgSort(ops::reduce::sort::ArgSort): Discrete, Any, Undefined, Pure;
    /// Cumulative sum along an axis.
    CumSum(ops::reduce::scan::CumSum): Linear, F32, Parts, Pure;
    /// Cumulative product along an axis.
    CumProd(ops::reduce::scan::CumProd): Composite, F32, Lowered, Pure;
    /// Running index of the maximum or minimum along an axis.
    ArgScan(ops::reduce::scan::ArgScan): Discrete, Any, Undefined, Pure;
    /// First-order recurrence along an axis.
    Recurrence(ops::reduce::scan::Recurrence): General, F32, Undefined, Pure;
    /// Where values belong in a sorted sequence.
    SearchSorted(ops::reduce::search::SearchSorted): Discrete, Any, Undefined, Pure;
    /// Which of the elements written to a place comes last.
    ScatterLast(ops::reduce::search::ScatterLast): Discrete, Any, Undefined, Pure;
    /// The extreme of the elements written to a place.
    ScatterExtreme(ops::reduce::search::ScatterExtreme): Discrete, Any, Undefined, Pure;
    /// The cross product of vectors of length 3.
    Cross(ops::contract::cross::Cross): Bilinear, Any, Undefined, Pure;
    /// Matrix product.
    Matmul(ops::contract::matmul::Matmul): Bilinear, Low, Lowered, Pure;
    /// `act(x W' + b)`: a layer.
    Affine(ops::contract::linear::Affine): Composite, Low, Undefined, Pure -> Tensors;
    /// The gradients of a layer's input, weight and bias.
    AffineVjp(ops::contract::linear::AffineVjp): Composite, Low, Undefined, Pure -> Tensors;
    /// Convolution, and the two functions that it is transposed to.
    Conv(ops::contract::conv::Conv): Bilinear, Low, Lowered, Pure;
    /// Convolution plus a number for each output channel.
    ConvBias(ops::contract::conv::ConvBias): Composite, Low, Lowered, Pure;
    /// Maximum of every window, and its place.
    MaxPool(ops::contract::pool::MaxPool): General, Any, Undefined, Pure -> Tensors;
    /// Elements at the places of maxima, and the transpose: elements added there.
    Maxima(ops::contract::pool::Maxima): Linear, Any, Undefined, Pure;
    /// Same elements, other shape.
    Reshape(ops::views::view::Reshape): Linear, Any, Direct, View;
    /// Axes in another order.
    Permute(ops::views::view::Permute): Linear, Any, Direct, View;
    /// Broadcast to a larger shape.
    Expand(ops::views::view::Expand): Linear, Any, Direct, View;
    /// `start + step * i` along every axis.
    Slice(ops::views::region::Slice): Linear, Any, Direct, View;
    /// The transpose of a slice: elements placed among a fill value.
    Unslice(ops::views::region::Unslice): Linear, Any, Direct, Pure;
    /// A strided part of the elements in row-major order.
    AsStrided(ops::views::strided::AsStrided): Linear, Any, Direct, View;
    /// The main diagonal of the last two axes.
    Diagonal(ops::views::strided::Diagonal): Linear, Any, Direct, View;
    /// The transpose of `AsStrided`.
    AsStridedTranspose(ops::views::strided::AsStridedTranspose): Linear, Any, Direct, Pure;
    /// A tensor with a strided part replaced by another.
    Put(ops::views::strided::Put): Linear, Any, Direct, Pure;
    /// A tensor with rows replaced by others, or with these added.
    PutRows(ops::writes::rows::PutRows): Linear, Any, Direct, Fails;
    /// Which elements are the last of their value.
    IsLast(ops::writes::rows::IsLast): Discrete, Any, Undefined, Pure;
    /// Lower or upper triangle.
    Triangle(ops::views::region::Triangle): Linear, Any, Direct, Pure;
    /// Joined along an axis.
    Cat(ops::views::join::Cat): Linear, Any, Direct, Pure;
    /// Rows of an axis picked by an index tensor.
    Take(ops::indexing::index::Take): Linear, Any, Direct, Fails;
    /// The transpose of take.
    TakeAdd(ops::indexing::index::TakeAdd): Linear, Any, Lowered, Fails;
    /// Elements picked along an axis, one index each.
    Gather(ops::indexing::index::Gather): Linear, Any, Direct, Fails;
    /// The transpose of gather.
    ScatterAdd(ops::indexing::index::ScatterAdd): Linear, Any, Lowered, Fails;
    /// Softmax or log-softmax along the last axis.
    Softmax(ops::nn::norm::Softmax): General, F32, Undefined, Pure;
    /// The VJP (and JVP) of softmax in one pass.
    SoftmaxVjp(ops::nn::norm::SoftmaxVjp): Composite, F32, Undefined, Pure;
    /// Layer or RMS normalisation over trailing axes.
    LayerNorm(ops::nn::norm::LayerNorm): Composite, F32, Undefined, Pure -> Tensors;
    /// The VJP of layer or RMS normalisation.
    LayerNormVjp(ops::nn::norm::LayerNormVjp): Composite, F32, Undefined, Pure -> Tensors;
    /// Scaled dot product attention.
    Attention(ops::nn::attention::Attention): Composite, Low, Undefined, Pure -> Tensors;
    /// The gradients of attention, of first or second order.
    AttentionVjp(ops::nn::attention::AttentionVjp): Composite, Any, Undefined, Pure -> Tensors;
    /// The tangent of attention.
    AttentionJvp(ops::nn::attention::AttentionJvp): Composite, Any, Undefined, Pure -> Tensors;
    /// Cross-entropy of logits and class indices, per row.
    CrossEntropy(ops::nn::loss::CrossEntropy): Composite, F32, Undefined, Fails -> Tensors;
    /// Softmax minus target, times the row's cotangent.
    CrossEntropyVjp(ops::nn::loss::CrossEntropyVjp): Composite, F32, Undefined, Pure;
    /// A step of a recurrent cell.
    Cell(ops::nn::cell::Cell): Composite, Low, Undefined, Pure -> Tensors;
    /// The gradients of its gates.
    CellVjp(ops::nn::cell::CellVjp): Composite, Any, Undefined, Pure -> Tensors;
    /// All steps of a recurrent layer in one direction.
    Recurrent(ops::nn::recurrent::Recurrent): Composite, Low, Undefined, Pure -> Tensors;
    /// The gradients of all its steps.
    RecurrentVjp(ops::nn::recurrent::RecurrentVjp): Composite, Any, Undefined, Pure -> Tensors;
    /// The Cholesky factor of self-adjoint matrices.
    Cholesky(ops::linalg::triangular::Cholesky): General, F32, Direct, Fails;
    /// Systems of equations with a triangular matrix.
    TriangularSolve(ops::linalg::triangular::TriangularSolve): General, F32, Direct, Fails;
    /// LU factorisation with row exchanges.
    Lu(ops::linalg::lu::Lu): General, F32, Direct, Fails -> Tensors;
    /// Systems of equations, from the factors of their matrix.
    Solve(ops::linalg::lu::Solve): General, F32, Direct, Fails;
    /// QR factorisation.
    Qr(ops::linalg::qr::Qr): General, F32, Direct, Pure -> Tensors;
    /// Eigenvalues and eigenvectors of self-adjoint matrices.
    Eigh(ops::linalg::spectral::Eigh): General, F32, Direct, Fails -> Tensors;
    /// Eigenvalues and eigenvectors of any square matrices.
    Eig(ops::linalg::eig::Eig): General, F32, Direct, Fails -> Tensors;
    /// Singular values and vectors.
    Svd(ops::linalg::spectral::Svd): General, F32, Direct, Fails -> Tensors;
    /// The determinant.
    Det(ops::linalg::functions::Det): General, F32, Direct, Pure;
    /// The matrix of cofactors: the gradient of the determinant.
    Cofactor(ops::linalg::functions::Cofactor): General, F32, Direct, Pure;
    /// The Moore-Penrose inverse.
    Pinv(ops::linalg::functions::Pinv): General, F32, Direct, Fails;
    /// The exponential of matrices.
    MatrixExp(ops::linalg::functions::MatrixExp): General, F32, Direct, Pure;
    /// The discrete Fourier transform of pairs.
    Fft(ops::fft::Fft): Linear, F32, Undefined, Pure;
    /// The discrete Fourier transform of real numbers, and back.
    RealFft(ops::fft::RealFft): Linear, F32, Undefined, Pure;
    /// Random numbers from a seed and a position in its stream.
    Random(ops::random::Random): Discrete, Any, Undefined, Pure;
    /// A new tensor: one number, a range, an identity.
    Create(ops::create::Create): Discrete, Any, Direct, Pure;
    /// A step of an optimiser on many parameters.
    Update(ops::updates::Update): Discrete, Any, Undefined, Writes -> Tensors;
    /// Gradients times a number, and whether one was not finite.
    Unscale(ops::updates::Unscale): Discrete, Any, Undefined, Writes -> Tensors;
    /// Tensors times a number that lies on their device.
    Rescale(ops::updates::Rescale): Discrete, Any, Undefined, Pure -> Tensors;
    /// The norm of all elements of several tensors.
    TotalNorm(ops::updates::TotalNorm): Discrete, Any, Undefined, Pure;
    /// What the members of a named axis do together.
    Collective(ops::collective::Collective): Linear, Any, Parts, Exchanges;
    /// The extremum of what the members of a named axis have.
    CollectiveExtremum(ops::collective::CollectiveExtremum): Composite, Any, Undefined, Exchanges;
    /// A function with rules of the user's own.
    Custom(ops::custom::Custom): General, Any, Direct, Calls -> Tensors;
}
