//! Tests of the device layer: errors, threads and memory.

use super::kernels::tests::{up, values};
use super::runtime::device::gpu;
use super::runtime::pipeline::Signature;
use super::runtime::profile::Work;
use super::{Flow, Variant, alloc, empty_cache, kernel, launch, merging, scalar, stats, synchronize, texts};
use crate::array::dtype::DType;
use crate::array::shape::Shape;
use crate::error::{Error, Kind, Result};
use crate::math::real::{Integer, PointwiseInt};
use crate::process::sync::lock;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn failure<T>(result: Result<T>) -> (Option<Kind>, String) {
    result.err().map_or((None, String::new()), |e: Error| (Some(e.kind()), e.to_string()))
}

gpu_test!(a_tensor_beyond_the_limit_names_it, {
    let (kind, text) = failure(alloc(0, &Shape::new(&[1 << 20, 1 << 13])?, DType::F32));
    assert_eq!(kind, Some(Kind::Memory));
    assert!(text.starts_with(
        "gpu:0: a float32 tensor of shape (1048576, 8192), 34359738368 bytes: one buffer holds"
    ));
    assert!(text.ends_with("(max_buffer_size); split the tensor"), "{text}");
});

gpu_test!(a_broken_kernel_is_an_error_and_leaves_the_device_usable, {
    let text = "@group(0) @binding(0) var<storage, read_write> x: array<u32>;\n\
                @compute @workgroup_size(64) fn main() { nonsense(); }";
    let broken = || {
        let variant = Variant { entry: "main", parts: Default::default(), aliased: Default::default() };
        let signature = Signature { writable: &[true], words: 1 };
        kernel(gpu(0)?, "broken", variant, signature, || Ok(text.to_string()))
    };
    let is_it = |(kind, text): (Option<Kind>, String)| {
        assert_eq!(kind, Some(Kind::Device));
        assert!(
            text.starts_with("gpu:0: kernel broken does not compile: ") && text.contains("nonsense"),
            "{text}"
        );
    };
    let made = stats(0)?.pipelines_created;
    let x = up(&[2.5f32, -1.0], &[2])?;
    let before = super::kernels::copy::convert(&x, DType::I32)?;
    launch(gpu(0)?, &broken()?, &[x.buffer()], &[0], 1, Flow::default(), Work::default())?;
    let behind = super::kernels::copy::convert(&x, DType::I32)?;
    // The work is submitted without it, and raises once.
    is_it(failure(synchronize(0)));
    assert_eq!([values::<i32>(&before)?, values::<i32>(&behind)?], [[2, -1], [2, -1]]);
    // From then on it is known.
    let compiled = stats(0)?.pipelines_created;
    assert!(compiled > made);
    is_it(failure(broken()));
    assert_eq!(stats(0)?.pipelines_created, compiled);
    assert!(texts(0)?.iter().all(|(name, ..)| name != "broken"));
    assert_eq!(values::<f32>(&scalar(0, 2.5, DType::F32)?)?, [2.5]);
});

gpu_test!(kernels_that_do_not_compile_as_one_run_apart, {
    // What gives each thread its number is not among what a merged text has.
    let named = |value: u32| {
        let text = format!(
            "@group(0) @binding(0) var<storage, read_write> x: array<f32>;\n\
             @compute @workgroup_size(256) fn main(@builtin(global_invocation_id) id: vec3<u32>) {{ \
             if (id.x < 2u) {{ x[id.x] = {value}.5; }} }}"
        );
        let variant = Variant {
            entry: "main",
            parts: [u64::from(value)].into_iter().collect(),
            aliased: Default::default(),
        };
        let signature = Signature { writable: &[true], words: 1 };
        kernel(gpu(0)?, "numbered", variant, signature, || Ok(text))
    };
    for made in [2, 1, 0] {
        let [x, y] = [up(&[0.0f32; 2], &[2])?, up(&[0.0f32; 2], &[2])?];
        let before = stats(0)?;
        merging(|| {
            [(&x, 1), (&y, 2)].into_iter().try_for_each(|(x, value)| {
                let (flow, work) = (Flow::default(), Work::default());
                launch(gpu(0)?, &named(value)?, &[x.buffer()], &[0], 1, flow, work)
            })
        })?;
        let after = stats(0)?;
        assert_eq!(after.dispatches, before.dispatches + 2);
        assert_eq!(after.pipelines_created, before.pipelines_created + made);
        assert_eq!([values::<f32>(&x)?, values::<f32>(&y)?], [[1.5; 2], [2.5; 2]]);
    }
});

gpu_test!(threads_that_ask_for_a_kernel_get_one, {
    let text = "@group(0) @binding(0) var<storage, read_write> x: array<u32>;\n\
                @compute @workgroup_size(64) fn main() { x[0] = 1u; }";
    let (made, start) = (stats(0)?.pipelines_created, std::sync::Barrier::new(4));
    let ask = || {
        let variant = Variant { entry: "main", parts: Default::default(), aliased: Default::default() };
        let signature = Signature { writable: &[true], words: 1 };
        // All have found that there is none before one makes it.
        let build = || {
            start.wait();
            Ok(text.to_string())
        };
        kernel(gpu(0)?, "asked for by many", variant, signature, build)
    };
    let all: Vec<_> = std::thread::scope(|s| {
        let threads: Vec<_> = (0..4).map(|_| s.spawn(ask)).collect();
        threads
            .into_iter()
            .map(|t| t.join().unwrap_or_else(|_| Err(Error::device("a thread panicked"))))
            .collect::<Result<_>>()
    })?;
    assert!(all.iter().all(|kernel| Arc::ptr_eq(kernel, &all[0])));
    assert_eq!(stats(0)?.pipelines_created, made + 1);
});

gpu_test!(threads_share_a_device, {
    let work = |n: usize| -> Result<()> {
        for i in 0..20 {
            let x = up(&vec![(n * 100 + i) as f32; 300], &[300])?;
            let y = super::kernels::copy::convert(&x, DType::I32)?;
            assert_eq!(values::<i32>(&y)?, vec![(n * 100 + i) as i32; 300]);
        }
        Ok(())
    };
    std::thread::scope(|s| {
        let threads: Vec<_> = (0..4).map(|n| s.spawn(move || work(n))).collect();
        threads
            .into_iter()
            .try_for_each(|t| t.join().unwrap_or_else(|_| Err(Error::device("a thread panicked"))))
    })?;
});

gpu_test!(a_repeated_step_needs_nothing_new, {
    let x = up(&vec![1.0f32; 4096], &[64, 64])?;
    let step = || -> Result<()> {
        let y = super::kernels::matmul::matmul(&x, &x)?;
        let s = super::kernels::reduce::sum(&y, crate::array::shape::Axes::first(2), false)?;
        assert_eq!(values::<f32>(&s)?, [64.0 * 4096.0]);
        Ok(())
    };
    step()?;
    step()?;
    let before = stats(0)?;
    for _ in 0..50 {
        step()?;
    }
    let after = stats(0)?;
    assert_eq!(after.buffers_created, before.buffers_created);
    assert_eq!(after.pipelines_created, before.pipelines_created);
    assert_eq!(after.bind_groups_created, before.bind_groups_created);
    assert_eq!(after.live_bytes, before.live_bytes);
    empty_cache(0)?;
});

gpu_test!(a_rule_for_integers_is_written_once, {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    #[derive(Clone, Copy)]
    struct Counted;
    impl PointwiseInt<1> for Counted {
        fn apply<I: Integer>(&self, [x]: [I; 1]) -> I {
            CALLS.fetch_add(1, Ordering::Relaxed);
            x.add(x)
        }
    }
    let x = up(&[1i32, -2], &[2])?;
    for _ in 0..3 {
        assert_eq!(
            values::<i32>(&super::kernels::map::pointwise_int("counted", 0, [&x], Counted)?)?,
            [2, -4]
        );
    }
    assert_eq!(CALLS.load(Ordering::Relaxed), 1);
});

gpu_test!(long_uploads_go_through_two_buffers, {
    // Two and a half pieces, and half a word.
    let n = (40 << 20) / 2 + 1;
    let numbers: Vec<u16> = (0..n).map(|i| (i as u32).wrapping_mul(40_503) as u16).collect();
    let halves: Vec<half::f16> = numbers.iter().map(|&bits| half::f16::from_bits(bits)).collect();
    empty_cache(0)?;
    for _ in 0..2 {
        let back = values::<half::f16>(&up(&halves, &[n])?)?;
        assert!(back.iter().zip(&numbers).all(|(x, &bits)| x.to_bits() == bits));
        assert_eq!(lock(&gpu(0)?.uploads).made, 2);
    }
    empty_cache(0)?;
});
