use super::*;

fn names(dir: &Path) -> Vec<String> {
    let mut all: Vec<String> =
        fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    all.sort();
    all
}

fn target(path: PathBuf) -> Target {
    Target { path, len: 4 }
}

#[test]
fn nothing_is_visible_before_commit_and_nothing_else_after() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("o.gguf");
    let staged = Staged::create(&[target(out.clone())], false, &[]).unwrap();
    staged.write_at(0, b"GGUF", 0).unwrap();
    assert!(!out.exists());
    staged.commit(&Cancel::default()).unwrap();
    assert_eq!(fs::read(&out).unwrap(), b"GGUF");
    assert_eq!(names(dir.path()), ["o.gguf"]);
}

#[test]
fn a_dropped_or_cancelled_run_leaves_the_old_file() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("o.gguf");
    fs::write(&out, b"old").unwrap();
    drop(Staged::create(&[target(out.clone())], true, &[]).unwrap());
    let staged = Staged::create(&[target(out.clone())], true, &[]).unwrap();
    let cancel = Cancel::default();
    cancel.set(15);
    assert!(matches!(staged.commit(&cancel), Err(Error::Interrupted(15))));
    assert_eq!(fs::read(&out).unwrap(), b"old");
    assert_eq!(names(dir.path()), ["o.gguf"]);
}

#[test]
fn a_set_is_undone_when_its_first_part_cannot_be_placed() {
    for force in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let paths = [1, 2, 3].map(|i| dir.path().join(format!("o-0000{i}-of-00003.gguf")));
        if force {
            fs::write(&paths[1], b"old2").unwrap();
        }
        let staged = Staged::create(&paths.clone().map(target), force, &[]).unwrap();
        // Part 1 goes last; a folder in its place makes that step fail after the others.
        fs::create_dir(&paths[0]).unwrap();
        let error = staged.commit(&Cancel::default()).unwrap_err().to_string();
        assert!(error.contains("o-00001-of-00003.gguf"), "{error}");
        fs::remove_dir(&paths[0]).unwrap();
        let left = names(dir.path());
        if force {
            assert_eq!(left, ["o-00002-of-00003.gguf"]);
            assert_eq!(fs::read(&paths[1]).unwrap(), b"old2");
        } else {
            assert!(left.is_empty(), "{left:?}");
        }
    }
}

#[test]
fn an_existing_set_is_exchanged_whole() {
    let dir = tempfile::tempdir().unwrap();
    let paths = [1, 2].map(|i| dir.path().join(format!("o-0000{i}-of-00002.gguf")));
    paths.iter().for_each(|p| fs::write(p, b"old").unwrap());
    let staged = Staged::create(&paths.clone().map(target), true, &[]).unwrap();
    staged.write_at(0, b"new1", 0).unwrap();
    staged.write_at(1, b"new2", 0).unwrap();
    staged.commit(&Cancel::default()).unwrap();
    assert_eq!(names(dir.path()).len(), 2);
    assert_eq!(fs::read(&paths[0]).unwrap(), b"new1");
}

#[test]
fn stale_temporaries_go_and_live_ones_stay() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("o.gguf");
    // No process has this id: it is above the kernel's largest.
    let dead = names::temp(&out, 2_000_000_000);
    let dead_part = names::temp(&dir.path().join("o-00002-of-00009.gguf"), 2_000_000_000);
    let other = names::temp(&dir.path().join("p.gguf"), 2_000_000_000);
    let running = names::temp(&out, 1);
    [&dead, &dead_part, &other, &running].iter().for_each(|p| fs::write(p, b"").unwrap());
    drop(Staged::create(&[target(out.clone())], false, &[]).unwrap());
    assert!(!dead.exists() && !dead_part.exists());
    assert!(other.exists() && running.exists());
    let locked = File::create(&dead).unwrap();
    assert!(sys::try_lock(&locked));
    drop(Staged::create(&[target(out)], false, &[]).unwrap());
    assert!(dead.exists());
}

#[test]
fn unfit_targets_are_refused_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.gguf");
    fs::write(&input, b"in").unwrap();
    let hard = dir.path().join("hard.gguf");
    fs::hard_link(&input, &hard).unwrap();
    let say = |path: PathBuf, force: bool| {
        Staged::create(&[target(path)], force, std::slice::from_ref(&input)).unwrap_err().to_string()
    };
    assert!(say(input.clone(), true).contains("is the input"));
    assert!(say(hard.clone(), true).contains("is the input"));
    #[cfg(unix)]
    {
        let soft = dir.path().join("soft.gguf");
        std::os::unix::fs::symlink(&input, &soft).unwrap();
        assert!(say(soft, true).contains("is the input"));
    }
    assert!(say(dir.path().to_path_buf(), true).contains("is a folder"));
    assert!(say(dir.path().join("no/o.gguf"), false).contains("use folder"));
    fs::write(dir.path().join("there.gguf"), b"").unwrap();
    assert!(say(dir.path().join("there.gguf"), false).contains("--force"));
    assert!(say(dir.path().join("in.gguf/o.gguf"), false).contains("not a folder"));
}
