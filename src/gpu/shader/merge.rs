//! Several kernels as one text: side by side, each in workgroups of its own of one dispatch (horizontal
//! fusion), or one behind the other, on the elements that a thread has just computed (vertical fusion).
//!
//! The names that a text declares are told apart by a suffix. What does not depend on bindings or parameters
//! stands there once for all kernels of one text, the rest once for each. Workgroup memory is shared, as a
//! workgroup runs one of them: the first array of a type of one is the first of that type of all. The bodies
//! of entry points become branches of one, in which the number of the workgroup counts from 0.

mod items;

use items::{Item, Items, parameter};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt::Write;
use wgpu::naga::{AddressSpace, Module, ScalarKind, TypeInner, front, proc::Layouter};

/// What a text needs.
pub struct Needs {
    /// The arrays in workgroup memory that the entry point uses: name, type and number of elements, and the
    /// bytes of one.
    shared: Vec<(String, String, u32, u32)>,
    /// Bytes of parameters.
    parameters: u32,
    /// Whether it can follow others.
    pub follows: bool,
    /// The bindings whose elements others can take as they are stored, one bit each.
    pub gives: u64,
}

/// The bit of a binding; none of those for which there is no bit.
pub fn bit(binding: usize) -> u64 {
    1u64.checked_shl(binding as u32).unwrap_or(0)
}

/// Where a kernel that follows another takes its elements from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// The number of the other among the members.
    pub member: usize,
    /// The binding that it stores them to.
    pub binding: usize,
    /// The bindings that they stand for, one bit each.
    pub takes: u64,
}

/// A kernel to be merged.
#[derive(Clone, Copy)]
pub struct Member<'a> {
    /// Its text.
    pub text: &'a str,
    /// Its entry point.
    pub entry: &'a str,
    /// What it needs.
    pub needs: &'a Needs,
    /// The number of its bindings.
    pub bindings: usize,
    /// What it follows, if it does.
    pub link: Option<Link>,
    /// The bindings to which nothing need be stored, one bit each.
    pub unread: u64,
}

impl Member<'_> {
    /// Whether a binding is one of the merged text.
    pub fn binds(&self, binding: usize) -> bool {
        (self.unread | self.link.map_or(0, |link| link.takes)) & bit(binding) == 0
    }

    /// What is reached first.
    fn root(&self) -> &str {
        if self.link.is_some() { "make_four" } else { self.entry }
    }
}

/// The type of an element of workgroup memory and its size, if it is one of numbers.
fn element(inner: &TypeInner) -> Option<String> {
    let of = |scalar: wgpu::naga::Scalar| match (scalar.kind, scalar.width) {
        (ScalarKind::Float, 4) => Some("f32"),
        (ScalarKind::Float, 2) => Some("f16"),
        (ScalarKind::Uint, 4) => Some("u32"),
        (ScalarKind::Sint, 4) => Some("i32"),
        _ => None,
    };
    Some(match *inner {
        TypeInner::Scalar(scalar) => of(scalar)?.to_string(),
        TypeInner::Vector { size, scalar } => format!("vec{}<{}>", size as u32, of(scalar)?),
        TypeInner::Atomic(scalar) => format!("atomic<{}>", of(scalar)?),
        _ => return None,
    })
}

impl Needs {
    /// What `entry` of `text` needs; `None` if it cannot be merged.
    pub fn of(text: &str, entry: &str) -> Option<Needs> {
        let module: Module = front::wgsl::parse_str(text).ok()?;
        let mut layouter = Layouter::default();
        layouter.update(module.to_ctx()).ok()?;
        let items = Items::of(text);
        let reached = items.reached(entry);
        let (mut shared, mut parameters) = (Vec::new(), 0);
        for (_, variable) in module.global_variables.iter() {
            let (name, ty) = (variable.name.clone()?, variable.ty);
            match variable.space {
                AddressSpace::WorkGroup if !reached.contains(name.as_str()) => {}
                AddressSpace::WorkGroup => {
                    let TypeInner::Array { base, stride, .. } = module.types[ty].inner else { return None };
                    let bytes = layouter[ty].size;
                    shared.push((name, element(&module.types[base].inner)?, bytes / stride, stride));
                }
                AddressSpace::Uniform if name == "p" => parameters = layouter[ty].size,
                AddressSpace::Storage { .. } => {}
                _ => return None,
            }
        }
        let gives = items.all.iter().filter(|item| items.store_of(&reached, item.name).is_some());
        let gives = gives.filter_map(Item::binding).fold(0, |bits, k| bits | bit(k));
        Some(Needs { shared, parameters, follows: items.find("make_four").is_some(), gives })
    }

    /// The arrays that several need: type, number of elements, and bytes of one.
    fn together<'a>(all: impl Iterator<Item = &'a Needs>) -> Vec<(&'a str, u32, u32)> {
        let mut arrays: Vec<(&str, u32, u32)> = Vec::new();
        for needs in all {
            for (place, (_, ty, count, bytes)) in needs.places().zip(&needs.shared) {
                match arrays.iter_mut().filter(|array| array.0 == ty).nth(place) {
                    Some(array) => array.1 = array.1.max(*count),
                    None => arrays.push((ty, *count, *bytes)),
                }
            }
        }
        arrays
    }

    /// Words of parameters, in fours.
    pub fn words(&self) -> usize {
        self.parameters.div_ceil(16) as usize * 4
    }

    /// Which array of its type each is.
    fn places(&self) -> impl Iterator<Item = usize> + '_ {
        let before = |i: usize| self.shared[..i].iter().filter(|array| array.1 == self.shared[i].1).count();
        (0..self.shared.len()).map(before)
    }

    /// Bytes of workgroup memory that several need.
    pub fn memory<'a>(all: impl Iterator<Item = &'a Needs>) -> u32 {
        let bytes = |(_, count, bytes): (&str, u32, u32)| (count * bytes).next_multiple_of(16);
        Needs::together(all).into_iter().map(bytes).sum()
    }
}

/// The words of the parameters of a merged text: where the workgroups of its members end, then theirs.
pub fn words<'a>(all: impl Iterator<Item = &'a Needs>) -> usize {
    let (mut words, mut members) = (0, 0);
    all.for_each(|needs| {
        words += needs.words();
        members += 1;
    });
    words + ends(members)
}

/// How many of these say where workgroups end.
pub fn ends(members: usize) -> usize {
    members.next_multiple_of(4)
}

/// The text of a kernel that stands for these, with entry point `main`, whose bindings follow one another.
pub fn merged(members: &[Member]) -> Option<String> {
    let arrays = Needs::together(members.iter().map(|member| member.needs));
    let mut text = Text::default();
    for (k, (ty, count, _)) in arrays.iter().enumerate() {
        writeln!(text.out, "var<workgroup> shared_{k}: array<{ty}, {count}>;").ok()?;
    }
    let mut known = FxHashMap::default();
    for (i, member) in members.iter().enumerate() {
        let count = known.len();
        let number = *known.entry((member.text, member.root())).or_insert(count);
        let part = Part::new(members, i, number, &arrays)?;
        part.items.all.iter().try_for_each(|item| part.write(item, number < count, &mut text))?;
        text.bindings += (0..member.bindings).filter(|&k| member.binds(k)).count();
    }
    let Text { out, mut enables, branches, fields, bindings } = text;
    enables.sort();
    enables.dedup();
    let main = shader!("lib/together")
        .replace("const ENDS: u32 = 1u;", &format!("const ENDS: u32 = {}u;", ends(members.len()) / 4))
        .replace("//@ fields", &fields)
        .replace("//@ kernels", &branches)
        .replace("@binding(0)", &format!("@binding({bindings})"));
    Some(format!("{}\n{out}{main}", enables.join("\n")))
}

/// A merged text in the making.
#[derive(Default)]
struct Text {
    out: String,
    enables: Vec<String>,
    branches: String,
    /// The parameters of the members.
    fields: String,
    bindings: usize,
}

/// A function that stores elements which other members take.
struct Giver<'a> {
    name: &'a str,
    /// Whether it still stores them.
    stores: bool,
    takers: Vec<usize>,
}

/// A member as a part of a merged text.
struct Part<'a> {
    i: usize,
    member: &'a Member<'a>,
    items: Items<'a>,
    reached: FxHashSet<&'a str>,
    /// The names that are its own, not those of all members of its text.
    own: FxHashSet<&'a str>,
    names: FxHashMap<&'a str, String>,
    /// The bindings in whose place elements of others stand, and whether these are vectors of four.
    taken: Vec<(&'a str, bool)>,
    givers: Vec<Giver<'a>>,
}

impl<'a> Part<'a> {
    /// Member `i`, whose text has this number.
    fn new(members: &'a [Member], i: usize, text: usize, arrays: &[(&str, u32, u32)]) -> Option<Part<'a>> {
        let member = &members[i];
        let items = Items::of(member.text);
        let (reached, own) = (items.reached(member.root()), items.bound());
        let mut names: FxHashMap<&str, String> = FxHashMap::default();
        for item in &items.all {
            let name = item.name;
            let new = if own.contains(name) { format!("{name}_k{i}") } else { format!("{name}_t{text}") };
            names.insert(name, if item.is_in("uniform") { format!("p.k{i}") } else { new });
        }
        for (place, (name, ty, ..)) in member.needs.places().zip(&member.needs.shared) {
            let same = arrays.iter().enumerate().filter(|(_, array)| array.0 == ty);
            let k = same.map(|(k, _)| k).nth(place)?;
            *names.get_mut(name.as_str())? = format!("shared_{k}");
        }
        let (mut taken, mut givers) = (Vec::new(), Vec::new());
        for k in 0..member.bindings {
            let is_it = |item: &&Item| item.is_in("storage") && item.binding() == Some(k);
            let Some(item) = items.all.iter().find(is_it) else { continue };
            if member.link.is_some_and(|link| link.takes & bit(k) != 0) {
                taken.push((item.name, item.tokens.iter().any(|token| token.text == "vec4")));
            }
            let follows = |(_, other): &(usize, &Member)| {
                other.link.is_some_and(|link| (link.member, link.binding) == (i, k))
            };
            let takers: Vec<usize> = members.iter().enumerate().filter(follows).map(|(i, _)| i).collect();
            if !takers.is_empty() {
                let name = items.store_of(&reached, item.name)?;
                givers.push(Giver { name, stores: member.unread & bit(k) == 0, takers });
            }
        }
        Some(Part { i, member, items, reached, own, names, taken, givers })
    }

    fn new_name(&self, name: &str) -> Option<String> {
        self.names.get(name).cloned()
    }

    /// A declaration from a token on, with the names of the merged text.
    fn renamed(&self, item: &Item<'a>, from: usize) -> String {
        item.renamed(from, |name| self.new_name(name))
    }

    /// Writes a declaration; `is_again` if another member of the same text is there.
    fn write(&self, item: &Item<'a>, is_again: bool, text: &mut Text) -> Option<()> {
        let (i, is_again) = (self.i, is_again && !self.own.contains(item.name));
        let at = |mark: &str| item.tokens.iter().position(|token| token.text == mark);
        if item.keyword == "enable" {
            text.enables.push(item.renamed(0, |_| None).trim().to_string());
        } else if item.is_in("uniform") {
            let ty = self.renamed(item, at(":")? + 1);
            write!(text.fields, " @align(16) k{i}: {},", ty.trim_end_matches(';')).ok()?;
            if self.member.link.is_some() {
                writeln!(text.out, "var<private> taken_k{i}: vec4<u32>;").ok()?;
            }
        } else if item.is_in("storage") {
            let number = item.binding()?;
            if self.member.binds(number) {
                let access = if item.is_in("read_write") { "read_write" } else { "read" };
                let number = text.bindings + (0..number).filter(|&k| self.member.binds(k)).count();
                let declared = self.renamed(item, at(">")? + 1);
                writeln!(text.out, "@group(0) @binding({number}) var<storage, {access}>{declared}").ok()?;
            }
        } else if !self.reached.contains(item.name) || item.is_in("workgroup") || is_again {
            // Nothing of it is used, or it is there.
        } else if let Some(giver) = self.givers.iter().find(|giver| giver.name == item.name) {
            self.give(item, giver, &mut text.out)?;
        } else if item.name == self.member.entry {
            self.branch(item, &mut text.branches)?;
        } else {
            let mut written = self.renamed(item, 0);
            for (name, is_four) in self.taken.iter().filter(|(name, _)| item.indexes(name)) {
                let array = format!("{}[", self.new_name(name)?);
                written = taking(&written, &array, &format!("taken_k{i}"), *is_four)?;
            }
            text.out.extend([&written, "\n"]);
        }
        Some(())
    }

    /// Writes a function that only stores words, which others take.
    fn give(&self, item: &Item<'a>, giver: &Giver, out: &mut String) -> Option<()> {
        let at = |mark: &str| item.tokens.iter().position(|token| token.text == mark);
        let index = item.tokens[at("(")?..].iter().find(|token| token.is_name)?.text;
        let [all, body, words] = [0, at("{")? + 1, at("=")? + 1].map(|from| self.renamed(item, from));
        let body = body.trim_end().strip_suffix('}')?;
        let words = words.trim_end().strip_suffix('}')?.trim_end().strip_suffix(';')?;
        out.push_str(&all[..=all.find('{')?]);
        for k in &giver.takers {
            writeln!(out, "\n  taken_k{k} = vec4<u32>({words});").ok()?;
        }
        if giver.stores {
            out.push_str(body);
        }
        for k in &giver.takers {
            writeln!(out, "\n  make_four_k{k}({index});").ok()?;
        }
        out.push_str("}\n");
        Some(())
    }

    /// Writes the branch of the member, the body of its entry point.
    fn branch(&self, entry: &Item<'a>, out: &mut String) -> Option<()> {
        let [end, start] = [Some(self.i), self.i.checked_sub(1)]
            .map(|k| k.map_or("0u".to_string(), |k| format!("p.ends[{}][{}]", k / 4, k % 4)));
        writeln!(out, "  if (group < {end}) {{").ok()?;
        let values = [
            ("workgroup_id", format!("vec3<u32>(group - {start}, 0u, 0u)")),
            ("num_workgroups", format!("vec3<u32>({end} - {start}, 1u, 1u)")),
            ("local_invocation_index", "lane".to_string()),
        ];
        for (built_in, value) in values {
            if let Some(name) = parameter(entry, built_in) {
                let name = self.new_name(name).unwrap_or(name.to_string());
                writeln!(out, "    let {name} = {value};").ok()?;
            }
        }
        let body = entry.tokens.iter().position(|token| token.text == "{")?;
        writeln!(out, "    {}\n    return;\n  }}", self.renamed(entry, body)).ok()
    }
}

/// The text with four elements in the place of those of an array, which begin with `start`.
fn taking(text: &str, start: &str, four: &str, is_four: bool) -> Option<String> {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once(start) {
        let mut depth = 1;
        let end = after.find(|c| {
            depth += i32::from(c == '[') - i32::from(c == ']');
            depth == 0
        })?;
        out.extend([before, four]);
        if !is_four {
            write!(out, "[({}) & 3u]", &after[..end]).ok()?;
        }
        rest = &after[end + 1..];
    }
    Some(out + rest)
}

#[cfg(test)]
mod tests;
