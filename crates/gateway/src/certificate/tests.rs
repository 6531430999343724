//! Certificates through damage: what is ours is mended, what is not is refused by name.

use super::*;
use std::fs;

fn load_or_make(folder: &Path) -> Result<Certificate, CertificateError> {
    Certificate::load_or_make(Some(folder), &[])
}

fn files(folder: &Path) -> Vec<String> {
    ["authority.pem", "authority.key", "server.pem", "server.key"]
        .map(|name| fs::read_to_string(folder.join(name)).unwrap_or_default())
        .into()
}

#[test]
fn made_once_and_kept() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("tls");
    let first = load_or_make(&folder).unwrap().authority_pem;
    let before = files(&folder);
    assert_eq!(load_or_make(&folder).unwrap().authority_pem, first);
    assert_eq!(files(&folder), before);
    let count = fs::read_dir(&folder).unwrap().count();
    assert_eq!(count, 4, "nothing else is left");
    #[cfg(unix)]
    for entry in fs::read_dir(&folder).unwrap() {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(entry.unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}

/// Names that are asked for later are issued by the same authority; a certificate that has them all stays.
#[test]
fn further_names_are_issued_by_the_same_authority() {
    let folder = tempfile::tempdir().unwrap();
    let of = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        Certificate::load_or_make(Some(folder.path()), &names).unwrap();
        files(folder.path())
    };
    let long = format!("{}.{}.example", "a".repeat(60), "b".repeat(62));
    let first = of(&[]);
    assert_eq!(of(&["localhost", "127.0.0.1", "::1"]), first);
    let second = of(&["db.example", "10.1.2.3", "fd00::7", &long]);
    assert_eq!(second[..2], first[..2], "the authority");
    assert_ne!(second[2], first[2]);
    assert_eq!(of(&["10.1.2.3", &long]), second);
    assert_ne!(of(&["db.exampl"]), second, "a part of a name is another name");
}

/// However a file is damaged, there is a certificate, and the authority stays as long as it is good.
#[test]
fn damage_is_mended() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("tls");
    for (name, keeps_authority) in
        [("server.pem", true), ("server.key", true), ("authority.pem", false), ("authority.key", false)]
    {
        let authority = load_or_make(&folder).unwrap().authority_pem;
        let good = fs::read(folder.join(name)).unwrap();
        let other = tempfile::tempdir().unwrap();
        load_or_make(other.path()).unwrap();
        let foreign = fs::read(other.path().join(name)).unwrap();
        let damages = [
            None,
            Some(Vec::new()),
            Some(good[..good.len() / 2].to_vec()),
            Some(vec![0xFF; 300]),
            Some(foreign),
        ];
        for damage in damages {
            // A foreign server certificate fits neither the key nor, with its key, anything of ours.
            match damage {
                None => fs::remove_file(folder.join(name)).unwrap(),
                Some(bytes) => fs::write(folder.join(name), bytes).unwrap(),
            }
            let now = load_or_make(&folder).unwrap().authority_pem;
            if keeps_authority {
                assert_eq!(now, authority, "{name}");
            }
            let mended = files(&folder);
            load_or_make(&folder).unwrap();
            assert_eq!(files(&folder), mended, "{name} is mended once");
        }
    }
}

#[test]
fn what_cannot_be_read_is_refused_by_name() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("tls");
    load_or_make(&folder).unwrap();
    fs::remove_file(folder.join("server.key")).unwrap();
    fs::create_dir(folder.join("server.key")).unwrap();
    let refused = load_or_make(&folder).err().unwrap().to_string();
    assert!(refused.contains("server.key") && refused.contains("no plain file"), "{refused}");
    let file = parent.path().join("file");
    fs::write(&file, "").unwrap();
    let refused = load_or_make(&file).err().unwrap().to_string();
    assert!(refused.contains("file"), "{refused}");
}

#[test]
fn the_operators_own() {
    let folder = tempfile::tempdir().unwrap();
    load_or_make(folder.path()).unwrap();
    let at = |name: &str| folder.path().join(name);
    let from_files = |certificate: &str, key: &str| {
        let (certificate, key) = (at(certificate), at(key));
        let (pem, private) = (fs::read(&certificate).unwrap(), fs::read(&key).unwrap());
        let certificate = GivenFile { path: &certificate, content: &pem };
        Certificate::from_files(certificate, GivenFile { path: &key, content: &private })
    };
    let own = from_files("server.pem", "server.key").unwrap();
    assert_eq!(own.authority_pem, fs::read_to_string(at("server.pem")).unwrap().replace("\r\n", "\n"));
    let refuse = |certificate: &str, key: &str, fragments: &[&str]| {
        let refused = from_files(certificate, key).err().unwrap().to_string();
        assert!(fragments.iter().all(|fragment| refused.contains(fragment)), "{refused}");
    };
    refuse("server.key", "server.key", &["server.key", "certificate"]);
    refuse("server.pem", "server.pem", &["server.pem", "private key"]);
    refuse("server.pem", "authority.key", &["server.pem", "authority.key"]);
    // Somebody keeps both in one file: the key is not shown to clients.
    let both = fs::read_to_string(at("server.key")).unwrap() + &fs::read_to_string(at("server.pem")).unwrap();
    fs::write(at("both.pem"), both).unwrap();
    let own = from_files("both.pem", "both.pem").unwrap();
    assert!(!own.authority_pem.contains("PRIVATE"), "the key is shown");
}
