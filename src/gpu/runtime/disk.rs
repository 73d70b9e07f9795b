//! Compiled pipelines kept on disk, so that a process need not compile what one before it has.
//!
//! They are files of the folder that `WENGERT_CACHE_DIR` names, else of `wengert` in the user's folder of
//! caches; with the variable empty there are none. A file is of one adapter, driver and version of this
//! crate. It is written under another name and then renamed, so that none is ever half written, and one that
//! does not have its checksum is ignored, as is every error: the worst is that a kernel is compiled.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::process::sync::lock;

/// What a file begins with; its checksum follows.
const MARK: &[u8; 8] = b"wengert1";
/// More bytes are not kept.
const MOST: usize = 256 << 20;
/// The pipelines of a process are saved when it has compiled so many, twice as many, and so on; and at its
/// end.
const FIRST: u64 = 16;

/// The compiled pipelines of a GPU.
pub struct DiskCache {
    pub(crate) raw: wgpu::PipelineCache,
    path: PathBuf,
    /// Pipelines compiled, and of these saved.
    counts: Mutex<(u64, u64)>,
}

impl DiskCache {
    /// The cache of an adapter; none where it cannot have one, or shall not.
    pub(crate) fn open(device: &wgpu::Device, info: &wgpu::AdapterInfo) -> Option<DiskCache> {
        if !device.features().contains(wgpu::Features::PIPELINE_CACHE) {
            return None;
        }
        let path = folder(|name| std::env::var_os(name))?.join(file_name(info));
        let stored = std::fs::read(&path).ok();
        let desc = wgpu::PipelineCacheDescriptor {
            label: None,
            data: stored.as_deref().and_then(unsealed),
            fallback: true,
        };
        // SAFETY: the data are what a cache of such a device gave, as the name and the checksum of the file
        // say, in a folder of the user's; wgpu and the driver check that they are of this device.
        let raw = unsafe { device.create_pipeline_cache(&desc) };
        Some(DiskCache { raw, path, counts: Mutex::default() })
    }

    /// Counts a pipeline; saves them once in a while.
    pub(crate) fn compiled(&self) {
        let count = {
            let mut counts = lock(&self.counts);
            counts.0 += 1;
            counts.0
        };
        if count >= FIRST && count.is_power_of_two() {
            self.save();
        }
    }

    /// Writes the pipelines to disk if there are new ones.
    pub(crate) fn save(&self) {
        let mut counts = lock(&self.counts);
        if counts.0 > counts.1 {
            counts.1 = counts.0;
            if let Some(data) = self.raw.get_data().filter(|data| data.len() <= MOST) {
                // Without a place to write to the next process compiles again.
                let _ = write(&self.path, &data);
            }
        }
    }
}

/// The folder of the files, given the variables of the environment.
fn folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    if let Some(own) = variable("WENGERT_CACHE_DIR") {
        return (!own.is_empty()).then(|| own.into());
    }
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = if cfg!(windows) {
        absolute("LOCALAPPDATA")
    } else {
        absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))
    };
    Some(base?.join("wengert"))
}

/// The name of an adapter's file.
fn file_name(info: &wgpu::AdapterInfo) -> String {
    let (own, driver, details) = (env!("CARGO_PKG_VERSION"), &info.driver, &info.driver_info);
    let version = format!("{own}\n{}\n{driver}\n{details}", info.name);
    let (backend, vendor, device) = (info.backend.to_str(), info.vendor, info.device);
    format!("{backend}-{vendor:x}-{device:x}-{:016x}.pipelines", checksum(version.as_bytes()))
}

/// The 64 bits of Fowler, Noll and Vo (FNV-1a).
fn checksum(bytes: &[u8]) -> u64 {
    let step = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// The data of a file that is whole.
fn unsealed(file: &[u8]) -> Option<&[u8]> {
    let (sum, data) = file.strip_prefix(MARK)?.split_at_checked(8)?;
    (sum == checksum(data).to_le_bytes()).then_some(data)
}

fn write(path: &Path, data: &[u8]) -> std::io::Result<()> {
    let Some(folder) = path.parent() else { return Ok(()) };
    std::fs::create_dir_all(folder)?;
    let other = path.with_extension(format!("{}.new", std::process::id()));
    let file = [&MARK[..], &checksum(data).to_le_bytes(), data].concat();
    let written = std::fs::write(&other, file).and_then(|()| std::fs::rename(&other, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&other);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::{MARK, checksum, folder, unsealed};
    use std::ffi::OsString;
    use std::path::PathBuf;

    #[test]
    fn files_that_are_not_whole_are_ignored() {
        let file = [&MARK[..], &checksum(b"pipelines").to_le_bytes(), b"pipelines"].concat();
        assert_eq!(unsealed(&file), Some(&b"pipelines"[..]));
        for cut in 0..file.len() {
            assert_eq!(unsealed(&file[..cut]), None, "{cut}");
            let mut wrong = file.clone();
            wrong[cut] ^= 1;
            assert_eq!(unsealed(&wrong), None, "{cut}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn the_folder_is_the_variable_or_the_users() {
        let found = |pairs: &[(&str, &str)]| {
            folder(|name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value)))
        };
        let own = [("WENGERT_CACHE_DIR", "/a"), ("XDG_CACHE_HOME", "/b"), ("HOME", "/c")];
        assert_eq!(found(&own), Some(PathBuf::from("/a")));
        assert_eq!(found(&own[1..]), Some(PathBuf::from("/b/wengert")));
        assert_eq!(found(&own[2..]), Some(PathBuf::from("/c/.cache/wengert")));
        assert_eq!(found(&[("WENGERT_CACHE_DIR", ""), own[2]]), None);
        assert_eq!(found(&[("XDG_CACHE_HOME", "relative")]), None);
        assert_eq!(found(&[]), None);
    }
}
