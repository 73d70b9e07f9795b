//! Compares the three functions with their definition, for windows of every kind.

use super::*;

/// Images, groups, input and output channels of a group, and a window.
struct Case {
    sizes: [usize; 4],
    window: Window,
}

fn case(sizes: [usize; 4], axes: &[[usize; 5]]) -> Case {
    let mut window = Window { rank: axes.len(), ..Window::POINT };
    for (i, &[input, kernel, stride, padding, dilation]) in axes.iter().enumerate() {
        let a = AXES - axes.len() + i;
        (window.input[a], window.kernel[a], window.stride[a]) = (input, kernel, stride);
        (window.padding[a], window.dilation[a]) = (padding, dilation);
        window.output[a] = (input + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
    }
    Case { sizes, window }
}

fn cases() -> Vec<Case> {
    vec![
        case([2, 1, 3, 5], &[[7, 3, 1, 1, 1], [9, 3, 1, 1, 1]]),
        case([1, 1, 1, 1], &[[5, 1, 1, 0, 1]]),
        case([3, 2, 2, 9], &[[11, 4, 2, 3, 2], [8, 3, 3, 0, 1]]),
        case([2, 4, 1, 1], &[[20, 3, 1, 1, 1], [33, 3, 1, 1, 1]]),
        case([2, 3, 1, 2], &[[20, 5, 2, 2, 1], [6, 2, 4, 0, 3]]),
        case([1, 1, 2, 3], &[[4, 2, 1, 0, 1], [5, 3, 2, 1, 1], [6, 2, 1, 1, 2]]),
        case([2, 1, 4, 17], &[[50, 7, 3, 5, 2]]),
        case([1, 1, 3, 4], &[[3, 2, 5, 4, 1], [4, 1, 3, 2, 1]]),
        case([3, 1, 40, 70], &[[6, 3, 1, 2, 2], [5, 3, 1, 1, 1]]),
        case([1, 1, 2, 3], &[[60, 3, 1, 1, 1], [70, 3, 1, 1, 1]]),
        case([1, 1, 1, 2], &[[3000, 5, 2, 2, 1]]),
        case([20, 1, 3, 8], &[[8, 3, 2, 1, 1], [8, 3, 2, 1, 1]]),
        case([2, 1, 130, 3], &[[4, 3, 1, 1, 1], [4, 3, 1, 1, 1]]),
        case([1, 1, 1, 1], &[[2, 3, 1, 3, 1], [2, 2, 1, 4, 1]]),
    ]
}

/// Calls `f(index in x, in w, in y)` for every product of the form.
fn visit(c: &Case, mut f: impl FnMut(usize, usize, usize)) {
    let ([n, groups, inputs, outputs], w) = (c.sizes, &c.window);
    let flat = |i: [usize; AXES], dims: &[usize; AXES]| (i[0] * dims[1] + i[1]) * dims[2] + i[2];
    let each = |dims: [usize; AXES]| {
        (0..dims[0]).flat_map(move |z| (0..dims[1]).flat_map(move |y| (0..dims[2]).map(move |x| [z, y, x])))
    };
    for p in each(w.output) {
        for k in each(w.kernel) {
            let at: Option<Vec<usize>> = (0..AXES).map(|a| w.at(a, p[a], k[a])).collect();
            let Some(at) = at else { continue };
            for image in 0..n {
                for group in 0..groups {
                    for o in (0..outputs).map(|o| group * outputs + o) {
                        for c in 0..inputs {
                            let x = image * groups * inputs + group * inputs + c;
                            f(
                                x * w.input.iter().product::<usize>() + flat([at[0], at[1], at[2]], &w.input),
                                (o * inputs + c) * w.taps() + flat(k, &w.kernel),
                                (image * groups * outputs + o) * w.positions() + flat(p, &w.output),
                            );
                        }
                    }
                }
            }
        }
    }
}

fn operands(c: &Case, dtype: DType) -> Result<[Array; 3]> {
    let [n, groups, inputs, outputs] = c.sizes;
    let make = |front: &[usize], lengths| sample(&c.window.shape(front, lengths)?.to_vec(), dtype);
    Ok([
        make(&[n, groups * inputs], &c.window.input)?,
        make(&[groups * outputs, inputs], &c.window.kernel)?,
        make(&[n, groups * outputs], &c.window.output)?,
    ])
}

fn close(got: &Array, want: &[f64], tolerance: f64, what: &str, c: &Case) {
    let scale = want.iter().fold(1.0f64, |m, v| m.max(v.abs()));
    for (i, (got, want)) in values(got).iter().zip(want).enumerate() {
        assert!((got - want).abs() <= tolerance * scale, "{what} {:?} at {i}: {got} {want}", c.window);
    }
}

#[test]
fn all_three_agree_with_the_definition() -> Result<()> {
    for (dtype, tolerance) in
        [(DType::F32, 1e-5), (DType::F64, 1e-13), (DType::F16, 2e-3), (DType::BF16, 2e-2)]
    {
        for c in cases() {
            let [x, w, y] = operands(&c, dtype)?;
            let (xs, ws, ys) = (values(&x), values(&w), values(&y));
            let mut want = [vec![0.0; xs.len()], vec![0.0; ws.len()], vec![0.0; ys.len()]];
            visit(&c, |i, j, k| {
                want[0][i] += ws[j] * ys[k];
                want[1][j] += xs[i] * ys[k];
                want[2][k] += xs[i] * ws[j];
            });
            let groups = c.sizes[1];
            let got = same_for_any_threads(|| forward(&x, &w, &c.window, groups))?;
            close(&got, &want[2], tolerance, "forward", &c);
            let got = same_for_any_threads(|| input(&y, &w, &c.window, groups))?;
            close(&got, &want[0], tolerance, "input", &c);
            let got = same_for_any_threads(|| weight(&x, &y, &c.window, groups))?;
            close(&got, &want[1], tolerance, "weight", &c);
        }
    }
    Ok(())
}

#[test]
fn nothing_to_sum_gives_zeros() -> Result<()> {
    let window = case([1, 1, 1, 1], &[[3, 2, 1, 0, 1]]).window;
    let (x, w) = (
        Array::full(Shape::new(&[2, 0, 3])?, 0.0, DType::F32)?,
        Array::full(Shape::new(&[4, 0, 2])?, 0.0, DType::F32)?,
    );
    assert_eq!(values(&forward(&x, &w, &window, 1)?), vec![0.0; 16]);
    assert_eq!(input(&Array::full(Shape::new(&[2, 4, 2])?, 1.0, DType::F32)?, &w, &window, 1)?.numel(), 0);
    Ok(())
}
