//! What compiles the pipelines of a GPU: threads, several pipelines at once, while the host records work that
//! needs them.
//!
//! A pipeline is used as soon as its layout is known, and compiled by the first that asks for the compiled
//! object: one of these threads, or the host, at the latest when it encodes the commands. So none is compiled
//! twice, and there need be no threads. They end when nothing is left to do, and are waited for before
//! the process or the use of the GPU ends, so that none is inside of a driver then.

use super::device;
use super::disk::DiskCache;
use crate::process::on_drop::OnDrop;
use crate::process::sync::lock;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle, available_parallelism};

/// The most threads.
const MOST: usize = 16;
/// Bytes of the stack of one, as much as a program has: texts are parsed by recursion.
const STACK: usize = 8 << 20;

/// What a pipeline of a GPU is compiled with.
pub struct Compiler {
    /// The GPU.
    pub(crate) index: u8,
    pub(crate) device: wgpu::Device,
    /// Compiled pipelines on disk.
    pub(crate) disk: Option<DiskCache>,
    pub(crate) threads: Arc<Threads>,
    /// The pipelines that are being compiled, and the most of them so far.
    running: AtomicU64,
    most: AtomicU64,
}

impl Compiler {
    pub(crate) fn new(index: u8, device: wgpu::Device, disk: Option<DiskCache>) -> Compiler {
        let threads = Threads::new(available_parallelism().map_or(1, |n| n.get().min(MOST)));
        Compiler { index, device, disk, threads, running: AtomicU64::new(0), most: AtomicU64::new(0) }
    }

    /// The most pipelines that were compiled at once.
    pub(crate) fn most(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }

    /// Compiles one entry point of a module.
    pub(crate) fn pipeline(
        &self, (name, entry): (&str, &str), layout: &wgpu::PipelineLayout, module: &wgpu::ShaderModule,
        constants: &[(&str, f64)], zero_initialize_workgroup_memory: bool,
    ) -> wgpu::ComputePipeline {
        self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(name),
            layout: Some(layout),
            module,
            entry_point: Some(entry),
            compilation_options: wgpu::PipelineCompilationOptions {
                constants,
                zero_initialize_workgroup_memory,
            },
            cache: self.disk.as_ref().map(|disk| &disk.raw),
        })
    }

    /// Calls what compiles a pipeline, and counts it.
    pub(crate) fn counted<T>(&self, compile: impl FnOnce() -> T) -> T {
        self.most.fetch_max(self.running.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        let _end = OnDrop(|| {
            self.running.fetch_sub(1, Ordering::Relaxed);
        });
        let made = compile();
        self.disk.iter().for_each(DiskCache::compiled);
        made
    }
}

/// What a thread does.
type Job = Box<dyn FnOnce() + Send>;

/// Threads that take jobs in their order, as many as there are jobs for.
pub(crate) struct Threads {
    most: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// The threads that still look for jobs.
    looking: usize,
    handles: Vec<JoinHandle<()>>,
    stopped: bool,
}

impl Threads {
    fn new(most: usize) -> Arc<Threads> {
        Arc::new(Threads { most, state: Mutex::default() })
    }

    /// Has a thread do this, which may never happen: threads may have been stopped.
    pub(crate) fn run(self: &Arc<Self>, job: impl FnOnce() + Send + 'static) {
        let mut state = lock(&self.state);
        if state.stopped {
            return;
        }
        state.jobs.push_back(Box::new(job));
        if state.looking < self.most {
            stop_at_exit();
            state.handles.retain(|thread| !thread.is_finished());
            let own = self.clone();
            let builder = Builder::new().name("wengert-gpu".to_string()).stack_size(STACK);
            if let Ok(thread) = builder.spawn(move || own.work()) {
                state.looking += 1;
                state.handles.push(thread);
            }
        }
    }

    fn work(&self) {
        loop {
            let job = {
                let mut state = lock(&self.state);
                let Some(job) = state.jobs.pop_front() else {
                    state.looking -= 1;
                    return;
                };
                job
            };
            // A driver that panics does so again for whoever needs the result.
            let _ = catch_unwind(AssertUnwindSafe(job));
        }
    }

    /// Drops the jobs that no thread has begun, and waits for the threads. There are none from then on.
    pub(crate) fn stop(&self) {
        let (jobs, threads) = {
            let mut state = lock(&self.state);
            state.stopped = true;
            (std::mem::take(&mut state.jobs), std::mem::take(&mut state.handles))
        };
        drop(jobs);
        let own = std::thread::current().id();
        // A driver may end the process on one of them.
        for thread in threads.into_iter().filter(|thread| thread.thread().id() != own) {
            let _ = thread.join();
        }
    }
}

/// Stops all threads when the process ends, before the driver's destructors run.
#[cfg(unix)]
fn stop_at_exit() {
    extern "C" fn stop() {
        device::stop_compiling();
    }
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler has the signature that `atexit` expects, and this library is never unloaded.
        unsafe { libc::atexit(stop) };
    });
}

/// Does nothing: other systems end threads first.
#[cfg(not(unix))]
fn stop_at_exit() {}

#[cfg(test)]
mod tests {
    use super::Threads;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    /// Nothing here takes so long.
    const LONG: Duration = Duration::from_secs(30);

    /// A job that ends when its partner has begun.
    fn meet(to: Sender<()>, from: Receiver<()>, done: Sender<bool>) -> impl FnOnce() + Send {
        move || {
            let met = to.send(()).is_ok() && from.recv_timeout(LONG).is_ok();
            done.send(met).unwrap_or_default();
        }
    }

    #[test]
    fn jobs_run_at_once_also_after_one_that_panics() {
        let threads = Threads::new(2);
        let (done, results) = channel();
        for _ in 0..3 {
            let ((a, b), (c, d)) = (channel(), channel());
            threads.run(|| panic!("a driver that panics"));
            threads.run(meet(a, d, done.clone()));
            threads.run(meet(c, b, done.clone()));
            let met = || results.recv_timeout(LONG);
            assert_eq!([met(), met()], [Ok(true), Ok(true)]);
        }
    }

    #[test]
    fn stopping_waits_for_what_runs_and_drops_the_rest() {
        let threads = Threads::new(1);
        let (sender, receiver) = channel();
        let (begun, begins) = channel();
        let (more, go) = channel::<()>();
        let (first, second) = (sender.clone(), sender);
        threads.run(move || {
            begun.send(()).unwrap_or_default();
            go.recv().unwrap_or_default();
            first.send(1).unwrap_or_default();
        });
        threads.run(move || second.send(2).unwrap_or_default());
        assert_eq!(begins.recv(), Ok(()));
        let other = threads.clone();
        let stopping = std::thread::spawn(move || other.stop());
        while !super::lock(&threads.state).stopped {
            std::thread::yield_now();
        }
        (0..1000).for_each(|_| std::thread::yield_now());
        assert!(!stopping.is_finished());
        more.send(()).unwrap_or_default();
        assert!(stopping.join().is_ok());
        assert_eq!(receiver.iter().collect::<Vec<_>>(), [1]);
        let (sender, receiver) = channel::<()>();
        threads.run(move || sender.send(()).unwrap_or_default());
        assert!(receiver.recv().is_err());
    }
}
